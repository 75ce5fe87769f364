//! Softmax attention.

use super::lanes::Avx512;
use crate::kernels::heads::Share;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::attention::attend).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn attend(share: Share<'_>, partials: &mut [f32], scratch: &mut Vec<f32>) {
    vector::attend(Avx512::new(), share, partials, scratch);
}

/// As [`scalar`](crate::kernels::scalar::attention::merge).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn merge(value_dim: usize, partials: &[f32], into: &mut [f32]) {
    vector::merge(Avx512::new(), value_dim, partials, into);
}

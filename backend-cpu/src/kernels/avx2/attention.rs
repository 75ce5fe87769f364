//! Softmax attention.

use super::lanes::Avx2;
use crate::kernels::heads::Share;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::attention::attend).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn attend(share: Share<'_>, partials: &mut [f32], scratch: &mut Vec<f32>) {
    vector::attend(Avx2::new(), share, partials, scratch);
}

/// As [`scalar`](crate::kernels::scalar::attention::merge).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn merge(value_dim: usize, partials: &[f32], into: &mut [f32]) {
    vector::merge(Avx2::new(), value_dim, partials, into);
}

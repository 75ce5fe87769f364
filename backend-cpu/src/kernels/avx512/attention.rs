//! Softmax attention.

use std::ops::Range;

use super::lanes::Avx512;
use crate::kernels::heads::Heads;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::attention::attend).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn attend(
    heads: &Heads<'_>,
    kv_head: usize,
    tokens: Range<usize>,
    cells: Range<usize>,
    partials: &mut [f32],
    scratch: &mut Vec<f32>,
) {
    vector::attend(Avx512::new(), heads, kv_head, tokens, cells, partials, scratch);
}

/// As [`scalar`](crate::kernels::scalar::attention::merge).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn merge(value_dim: usize, partials: &[f32], into: &mut [f32]) {
    vector::merge(Avx512::new(), value_dim, partials, into);
}

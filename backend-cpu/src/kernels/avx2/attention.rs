//! Softmax attention.

use std::ops::Range;

use super::lanes::Avx2;
use crate::kernels::args::ColumnsMut;
use crate::kernels::heads::Heads;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::attention::attend_tokens).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn attend_tokens(
    heads: &Heads<'_>,
    kv_head: usize,
    tokens: Range<usize>,
    out: &mut ColumnsMut<'_>,
    scratch: &mut Vec<f32>,
) {
    vector::attend_tokens(Avx2::new(), heads, kv_head, tokens, out, scratch);
}

/// As [`scalar`](crate::kernels::scalar::attention::attend_cells).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn attend_cells(
    heads: &Heads<'_>,
    kv_head: usize,
    token: usize,
    cells: Range<usize>,
    partial: &mut [f32],
) {
    vector::attend_cells(Avx2::new(), heads, kv_head, token, cells, partial);
}

//! Softmax attention, one head of one token after the other.

use std::ops::Range;

use crate::kernels::args::ColumnsMut;
use crate::kernels::heads::{Heads, KvCells};

/// Attention of the heads of `kv_head`'s group, for some tokens. Row `i` of `out` is token `tokens.start + i`, its
/// columns `[group · value_dim]`. A token that sees nothing gets zeros. `scratch` holds anything, before and after.
///
/// # Panics
/// If `out` has another shape, or a token or cell does not exist.
pub fn attend_tokens(
    heads: &Heads<'_>,
    kv_head: usize,
    tokens: Range<usize>,
    out: &mut ColumnsMut<'_>,
    scratch: &mut Vec<f32>,
) {
    for (row, token) in tokens.enumerate() {
        let [start, end] = heads.seen(token);
        scratch.clear();
        scratch.resize(heads.group() * heads.partial_len(), 0.0);
        attend(heads, kv_head, token, &heads.cells[start..end], scratch);
        let out = out.row_mut(row);
        assert_eq!(out.len(), heads.group() * heads.value_dim, "a column for each value");
        let partials = scratch.chunks_exact(heads.partial_len());
        for (out, partial) in out.chunks_exact_mut(heads.value_dim).zip(partials) {
            let total = partial[heads.value_dim + 1];
            let sums = partial.iter().map(|sum| if total == 0.0 { 0.0 } else { sum / total });
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum);
        }
    }
}

/// Attention of the heads of `kv_head`'s group to some of a token's cells, `cells` saying where in the list they are.
/// `partial` has for each head `[value_dim]` sums of values weighted by `e^(score − max)`, then the largest score, `max`,
/// and then the sum of those weights.
///
/// # Panics
/// If `partial` has another length, there are more than [`PIECE`](crate::kernels::heads::PIECE) cells or none, or a token
/// or cell does not exist.
pub fn attend_cells(
    heads: &Heads<'_>,
    kv_head: usize,
    token: usize,
    cells: Range<usize>,
    partial: &mut [f32],
) {
    attend(heads, kv_head, token, &heads.cells[cells], partial);
}

fn attend(heads: &Heads<'_>, kv_head: usize, token: usize, cells: &[i32], partial: &mut [f32]) {
    assert_eq!(partial.len(), heads.group() * heads.partial_len(), "a result for each head");
    for (i, partial) in partial.chunks_exact_mut(heads.partial_len()).enumerate() {
        let query = heads.query(token, kv_head * heads.group() + i);
        let scores = cells.iter().map(|&cell| {
            let key = row(heads.k, cell, heads.n_kv_head, kv_head, heads.key_dim);
            let score = heads.scale * query.iter().zip(key).map(|(q, k)| q * k).sum::<f32>();
            heads.soft_cap.map_or(score, |cap| cap * (score / cap).tanh())
        });
        let mut weights: Vec<f32> = scores.collect();
        let max = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        weights.iter_mut().for_each(|weight| *weight = (*weight - max).exp());
        partial.fill(0.0);
        for (weight, &cell) in weights.iter().zip(cells) {
            let value = row(heads.v, cell, heads.n_kv_head, kv_head, heads.value_dim);
            partial.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * value);
        }
        partial[heads.value_dim] = max;
        partial[heads.value_dim + 1] = weights.iter().sum();
    }
}

/// The `dim` values of one head in one cell.
fn row(
    cells: KvCells<'_>,
    cell: i32,
    n_kv_head: usize,
    kv_head: usize,
    dim: usize,
) -> impl Iterator<Item = f32> {
    let start = (usize::try_from(cell).expect("cells count from 0") * n_kv_head + kv_head) * dim;
    (start..start + dim).map(move |i| match cells {
        KvCells::F32(values) => values[i],
        KvCells::F16(values) => values[i].to_f32(),
    })
}

//! Softmax attention, one head of one token after the other.

use std::ops::Range;

use crate::kernels::args::ColumnsMut;
use crate::kernels::heads::{Heads, KvCells};
use crate::kernels::scalar::norm::softmax;

/// Attention of the heads of `kv_head`'s group, for some tokens. Row `i` of `out` is token `tokens.start + i`, its
/// columns `[group · value_dim]`. A token that sees nothing gets zeros.
///
/// # Panics
/// If `out` has another shape, or a token or cell does not exist.
pub fn attention(
    heads: &Heads<'_>,
    kv_head: usize,
    tokens: Range<usize>,
    out: &mut ColumnsMut<'_>,
) {
    for (row, token) in tokens.enumerate() {
        let [start, end] = heads.seen(token);
        let cells = &heads.cells[start..end];
        let out = out.row_mut(row);
        assert_eq!(out.len(), heads.group() * heads.value_dim, "a column for each value");
        for (i, out) in out.chunks_exact_mut(heads.value_dim).enumerate() {
            let query = heads.query(token, kv_head * heads.group() + i);
            attend(heads, kv_head, query, cells, out);
        }
    }
}

/// One head of one token.
fn attend(heads: &Heads<'_>, kv_head: usize, query: &[f32], cells: &[i32], out: &mut [f32]) {
    let mut shares: Vec<f32> = cells
        .iter()
        .map(|&cell| {
            let key = row(heads.k, cell, heads.n_kv_head, kv_head, heads.key_dim);
            let score = heads.scale * query.iter().zip(key).map(|(q, k)| q * k).sum::<f32>();
            heads.soft_cap.map_or(score, |cap| cap * (score / cap).tanh())
        })
        .collect();
    softmax(&mut shares);
    out.fill(0.0);
    for (share, &cell) in shares.iter().zip(cells) {
        let value = row(heads.v, cell, heads.n_kv_head, kv_head, heads.value_dim);
        out.iter_mut().zip(value).for_each(|(out, value)| *out += share * value);
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

//! Softmax attention, one head of one token after the other.

use crate::kernels::heads::{Heads, KvCells, Share};

/// Attention of some heads to one piece of cells, for some tokens. `partials` gets `[tokens, group]` partial results, as
/// [`Heads::partial_len`] describes them; what a token does not see has no weight. `scratch` holds anything, before and
/// after.
///
/// # Panics
/// If `partials` has another length or a token or cell does not exist.
pub fn attend(share: Share<'_>, partials: &mut [f32], scratch: &mut Vec<f32>) {
    let Share { heads, kv_head, tokens, cells } = share;
    let group = heads.group();
    assert_eq!(partials.len(), tokens.len() * group * heads.partial_len(), "a result for each row");
    let rows = tokens.flat_map(|token| (0..group).map(move |head| (token, kv_head * group + head)));
    for ((token, head), partial) in rows.zip(partials.chunks_exact_mut(heads.partial_len())) {
        let [first, end] = heads.seen(token);
        let start = cells.start.max(first);
        let cells = &heads.cells[start..cells.end.min(end).max(start)];
        attend_row(heads, kv_head, heads.query(token, head), cells, partial, scratch);
    }
}

fn attend_row(
    heads: &Heads<'_>,
    kv_head: usize,
    query: &[f32],
    cells: &[i32],
    partial: &mut [f32],
    weights: &mut Vec<f32>,
) {
    weights.clear();
    weights.extend(cells.iter().map(|&cell| {
        let key = row(heads.k, cell, heads.n_kv_head, kv_head, heads.key_dim);
        let score = heads.scale * query.iter().zip(key).map(|(q, k)| q * k).sum::<f32>();
        heads.soft_cap.map_or(score, |cap| cap * (score / cap).tanh())
    }));
    let max = weights.iter().copied().fold(f32::MIN, f32::max);
    weights.iter_mut().for_each(|weight| *weight = (*weight - max).exp());
    partial.fill(0.0);
    for (weight, &cell) in weights.iter().zip(cells) {
        let value = row(heads.v, cell, heads.n_kv_head, kv_head, heads.value_dim);
        partial.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * value);
    }
    partial[heads.value_dim] = weights.iter().sum();
    partial[heads.value_dim + 1] = max;
}

/// Adds partial results of other cells to those in `into`.
///
/// # Panics
/// If lengths differ.
pub fn merge(value_dim: usize, partials: &[f32], into: &mut [f32]) {
    assert_eq!(partials.len(), into.len(), "results of the same rows");
    let len = value_dim + 2;
    for (partial, into) in partials.chunks_exact(len).zip(into.chunks_exact_mut(len)) {
        let max = partial[value_dim + 1].max(into[value_dim + 1]);
        let [kept, added] = [&*into, partial].map(|result| (result[value_dim + 1] - max).exp());
        for (into, partial) in into.iter_mut().zip(partial) {
            *into = *into * kept + partial * added;
        }
        into[value_dim + 1] = max;
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

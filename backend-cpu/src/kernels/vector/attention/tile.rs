//! Attention of many tokens to the cells that they share, a token and head in each lane.
//!
//! Cells are taken in blocks. What is summed so far is scaled down whenever a larger score appears.
//! Source: Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", 2022.

use std::ops::Range;

use super::super::glu::SoftCap;
use super::super::math::{exp, map};
use super::product::{Strided, multiply};
use super::{HeadRows, Stored, Vector};
use crate::kernels::args::ColumnsMut;
use crate::kernels::heads::{Heads, KvCells};

/// Cells in a block.
const BLOCK: usize = 64;

#[inline(always)]
pub(crate) fn attend_tokens<U: Vector>(
    unit: U,
    heads: &Heads<'_>,
    kv_head: usize,
    tokens: Range<usize>,
    out: &mut ColumnsMut<'_>,
    scratch: &mut Vec<f32>,
) {
    let mut token = tokens.start;
    // Tokens whose spans start together are of one sequence, and share its cells.
    for run in heads.spans[tokens.clone()].chunk_by(|a, b| a[0] == b[0]) {
        let run = token..token + run.len();
        token = run.end;
        let first_row = run.start - tokens.start;
        let mut tile = Tile::new(unit, heads, kv_head, run, scratch);
        match (heads.k, heads.v) {
            (KvCells::F16(k), KvCells::F16(v)) => tile.attend(heads.rows(kv_head, k, v)),
            (KvCells::F32(k), KvCells::F32(v)) => tile.attend(heads.rows(kv_head, k, v)),
            _ => panic!("keys and values are stored alike"),
        }
        tile.write(first_row, out);
    }
}

/// What is known of each row, a row being a token and one of its heads. Matrices have a column for each row.
struct Tile<'a, U> {
    unit: U,
    heads: &'a Heads<'a>,
    tokens: Range<usize>,
    /// Where in the list of cells those that any row sees start and end.
    seen: Range<usize>,
    /// Rows, and what lanes beyond them fill up.
    width: usize,
    /// `[key_dim, width]`, scaled.
    queries: &'a mut [f32],
    /// `[BLOCK, width]`: scores of a block of cells, then their exponentials.
    scores: &'a mut [f32],
    /// `[value_dim, width]`: sums of values, weighted by exponentials of scores less `max`.
    sums: &'a mut [f32],
    /// Largest score so far.
    max: &'a mut [f32],
    /// Sum of exponentials so far.
    total: &'a mut [f32],
    /// What is kept of sums when `max` changes.
    kept: &'a mut [f32],
    /// First cell that the row sees, counted from the first that any row sees.
    first: &'a mut [f32],
    /// First cell after those, counted so too.
    end: &'a mut [f32],
    /// `[BLOCK, key_dim]`.
    keys: &'a mut [f32],
    /// `[BLOCK, value_dim]`.
    values: &'a mut [f32],
}

impl<'a, U: Vector> Tile<'a, U> {
    #[inline(always)]
    fn new(
        unit: U,
        heads: &'a Heads<'a>,
        kv_head: usize,
        tokens: Range<usize>,
        scratch: &'a mut Vec<f32>,
    ) -> Self {
        let Heads { key_dim, value_dim, .. } = *heads;
        let group = heads.group();
        let width = (tokens.len() * group).next_multiple_of(U::LANES);
        let [queries, scores, sums, max, total, kept, first, end, keys, values] = carve(
            scratch,
            [
                key_dim * width,
                BLOCK * width,
                value_dim * width,
                width,
                width,
                width,
                width,
                width,
                BLOCK * key_dim,
                BLOCK * value_dim,
            ],
        );
        let first_seen = tokens.clone().map(|token| heads.seen(token)[0]).min().unwrap_or(0);
        // Blocks are counted from where the sequence starts, so that a row's result does not depend on the others.
        let sequence = heads.spans[tokens.start][0] as usize;
        let start = sequence + (first_seen - sequence) / BLOCK * BLOCK;
        let stop = tokens.clone().map(|token| heads.seen(token)[1]).max().unwrap_or(0);
        for row in 0..tokens.len() * group {
            let token = tokens.start + row / group;
            let query = heads.query(token, kv_head * group + row % group);
            for (value, column) in query.iter().zip(queries.chunks_exact_mut(width)) {
                column[row] = value * heads.scale;
            }
            let [from, to] = heads.seen(token).map(|cell| (cell - start) as f32);
            first[row] = from;
            end[row] = to;
        }
        // Finite, so that the difference of two is a number; and below any score.
        max.fill(f32::MIN);
        let seen = start..stop.max(start);
        Tile {
            unit,
            heads,
            tokens,
            seen,
            width,
            queries,
            scores,
            sums,
            max,
            total,
            kept,
            first,
            end,
            keys,
            values,
        }
    }

    #[inline(always)]
    fn attend<T: Stored>(&mut self, [k, v]: [HeadRows<'_, T>; 2]) {
        for start in self.seen.clone().step_by(BLOCK) {
            let block = start..self.seen.end.min(start + BLOCK);
            let cells = &self.heads.cells[block.clone()];
            gather(self.unit, k, cells, self.keys);
            self.score(cells.len());
            self.hide(block);
            self.weigh(cells.len());
            gather(self.unit, v, cells, self.values);
            self.sum(cells.len());
        }
    }

    #[inline(always)]
    fn score(&mut self, n_cells: usize) {
        let key_dim = self.heads.key_dim;
        let keys = Strided { values: self.keys, shape: [n_cells, key_dim], strides: [key_dim, 1] };
        let scores = &mut self.scores[..n_cells * self.width];
        multiply(self.unit, keys, self.queries, None, scores);
        if let Some(cap) = self.heads.soft_cap {
            map(self.unit, SoftCap(cap), scores);
        }
    }

    /// Sets scores of cells that a row does not see to −∞.
    #[inline(always)]
    fn hide(&mut self, block: Range<usize>) {
        let unit = self.unit;
        let all_see = self.tokens.clone().all(|token| {
            let [first, end] = self.heads.seen(token);
            first <= block.start && block.end <= end
        });
        if all_see {
            return;
        }
        let hidden = unit.splat(f32::NEG_INFINITY);
        for (cell, scores) in block.zip(self.scores.chunks_exact_mut(self.width)) {
            let cell = unit.splat((cell - self.seen.start) as f32);
            for (i, score) in scores.chunks_exact_mut(U::LANES).enumerate() {
                let first = unit.load(&self.first[i * U::LANES..]);
                let end = unit.load(&self.end[i * U::LANES..]);
                let shown = unit.if_less(cell, end, unit.load(score), hidden);
                unit.store(unit.if_less(cell, first, hidden, shown), score);
            }
        }
    }

    /// Turns scores into exponentials, and says what is kept of earlier sums.
    #[inline(always)]
    fn weigh(&mut self, n_cells: usize) {
        let unit = self.unit;
        for at in (0..self.width).step_by(U::LANES) {
            let before = unit.load(&self.max[at..]);
            let mut max = before;
            for scores in self.scores.chunks_exact(self.width).take(n_cells) {
                max = unit.max(max, unit.load(&scores[at..]));
            }
            let kept = exp(unit, unit.sub(before, max));
            let mut total = unit.mul(unit.load(&self.total[at..]), kept);
            for scores in self.scores.chunks_exact_mut(self.width).take(n_cells) {
                let weight = exp(unit, unit.sub(unit.load(&scores[at..]), max));
                total = unit.add(total, weight);
                unit.store(weight, &mut scores[at..]);
            }
            unit.store(max, &mut self.max[at..]);
            unit.store(kept, &mut self.kept[at..]);
            unit.store(total, &mut self.total[at..]);
        }
    }

    #[inline(always)]
    fn sum(&mut self, n_cells: usize) {
        let value_dim = self.heads.value_dim;
        let shape = [value_dim, n_cells];
        let values = Strided { values: self.values, shape, strides: [1, value_dim] };
        let weights = &self.scores[..n_cells * self.width];
        multiply(self.unit, values, weights, Some(self.kept), self.sums);
    }

    /// Row `first_row` of `out` is the tile's first token.
    #[inline(always)]
    fn write(&self, first_row: usize, out: &mut ColumnsMut<'_>) {
        let Heads { value_dim, .. } = *self.heads;
        let group = self.heads.group();
        for token in 0..self.tokens.len() {
            let out = out.row_mut(first_row + token);
            assert_eq!(out.len(), group * value_dim, "a column for each value");
            for (head, out) in out.chunks_exact_mut(value_dim).enumerate() {
                let row = token * group + head;
                let total = self.total[row];
                let factor = if total > 0.0 { 1.0 / total } else { total };
                for (out, sums) in out.iter_mut().zip(self.sums.chunks_exact(self.width)) {
                    *out = sums[row] * factor;
                }
            }
        }
    }
}

/// Rows of some cells as f32, one after the other.
#[inline(always)]
fn gather<U: Vector, T: Stored>(unit: U, rows: HeadRows<'_, T>, cells: &[i32], out: &mut [f32]) {
    for (&cell, out) in cells.iter().zip(out.chunks_exact_mut(rows.dim)) {
        let row = rows.row(cell);
        let vectors = row.chunks_exact(U::LANES);
        let rest = vectors.remainder();
        let mut outs = out.chunks_exact_mut(U::LANES);
        for (x, out) in vectors.zip(outs.by_ref()) {
            unit.store(T::load(unit, x), out);
        }
        if !rest.is_empty() {
            unit.store_some(T::load_some(unit, rest), outs.into_remainder());
        }
    }
}

/// Zeroed arrays of these lengths, each from the start of a cache line on.
fn carve<const N: usize>(scratch: &mut Vec<f32>, lens: [usize; N]) -> [&mut [f32]; N] {
    const LINE: usize = 16;
    let whole: usize = lens.iter().map(|len| len.next_multiple_of(LINE)).sum();
    scratch.clear();
    scratch.resize(whole + LINE, 0.0);
    let skipped = scratch.as_ptr().cast::<u8>().align_offset(64) / size_of::<f32>();
    let mut rest = &mut scratch[skipped..];
    lens.map(|len| {
        let (array, after) = std::mem::take(&mut rest).split_at_mut(len.next_multiple_of(LINE));
        rest = after;
        &mut array[..len]
    })
}

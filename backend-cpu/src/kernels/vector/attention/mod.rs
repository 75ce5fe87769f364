//! Softmax attention.
//!
//! A row is a token and one of its heads. Rows do not mix and each adds up in one order, so a token's result does not
//! depend on which others share the pass.

mod gather;
mod matrix;

use std::ops::Range;

use self::gather::{HeadRows, Stored};
use self::matrix::{Matrix, carve, multiply};
use super::Vector;
use super::glu::SoftCap;
use super::math::{exp, map};
use super::norm::{exp_and_sum, largest};
use crate::kernels::heads::{Heads, KvCells, Share};

#[inline(always)]
pub(crate) fn attend<U: Vector>(
    unit: U,
    share: Share<'_>,
    partials: &mut [f32],
    scratch: &mut Vec<f32>,
) {
    let Share { heads, kv_head, tokens, cells } = share;
    let piece = Piece { unit, heads, kv_head, tokens, cells };
    match (heads.k, heads.v) {
        (KvCells::F16(k), KvCells::F16(v)) => piece.attend(k, v, partials, scratch),
        (KvCells::F32(k), KvCells::F32(v)) => piece.attend(k, v, partials, scratch),
        _ => panic!("keys and values are stored alike"),
    }
}

struct Piece<'a, U> {
    unit: U,
    heads: &'a Heads<'a>,
    kv_head: usize,
    tokens: Range<usize>,
    cells: Range<usize>,
}

impl<U: Vector> Piece<'_, U> {
    #[inline(always)]
    fn attend<T: Stored>(self, k: &[T], v: &[T], partials: &mut [f32], scratch: &mut Vec<f32>) {
        let Heads { n_kv_head, key_dim, value_dim, .. } = *self.heads;
        let rows = self.tokens.len() * self.heads.group();
        let cells = &self.heads.cells[self.cells.clone()];
        let [mut queries, mut keys, mut scores, mut values, mut sums] = carve(
            scratch,
            [
                [rows, key_dim],
                [key_dim, cells.len()],
                [rows, cells.len()],
                [cells.len(), value_dim],
                [rows, value_dim],
            ],
        );
        let kv_head = self.kv_head;
        let k = HeadRows { values: k, n_kv_head, kv_head, dim: key_dim };
        let v = HeadRows { values: v, n_kv_head, kv_head, dim: value_dim };
        self.scale_queries(&mut queries);
        k.gather_transposed(self.unit, cells, &mut keys);
        v.prefetch(self.unit, cells);
        multiply(self.unit, &queries, &keys, &mut scores);
        self.weigh(&mut scores, partials);
        v.gather(self.unit, cells, &mut values);
        multiply(self.unit, &scores, &values, &mut sums);
        for (row, partial) in partials.chunks_exact_mut(self.heads.partial_len()).enumerate() {
            partial[..value_dim].copy_from_slice(sums.row(row));
        }
    }

    #[inline(always)]
    fn scale_queries(&self, out: &mut Matrix<'_>) {
        let group = self.heads.group();
        for (row, (token, head)) in self.rows().enumerate() {
            let query = self.heads.query(token, self.kv_head * group + head);
            out.row(row).copy_from_slice(query);
            super::scale(self.unit, self.heads.scale, out.row(row));
        }
    }

    /// Each row's token, and its head within the group.
    #[inline(always)]
    fn rows(&self) -> impl Iterator<Item = (usize, usize)> {
        let group = self.heads.group();
        self.tokens.clone().flat_map(move |token| (0..group).map(move |head| (token, head)))
    }

    /// Turns scores into exponentials. The largest score and the sum of exponentials go to the partial results.
    #[inline(always)]
    fn weigh(&self, scores: &mut Matrix<'_>, partials: &mut [f32]) {
        let value_dim = self.heads.value_dim;
        let partials = partials.chunks_exact_mut(self.heads.partial_len());
        for ((row, (token, _)), partial) in self.rows().enumerate().zip(partials) {
            let scores = scores.row(row);
            if let Some(cap) = self.heads.soft_cap {
                map(self.unit, SoftCap(cap), scores);
            }
            let [first, end] = self
                .heads
                .seen(token)
                .map(|cell| cell.saturating_sub(self.cells.start).min(self.cells.len()));
            scores[..first].fill(f32::NEG_INFINITY);
            scores[end..].fill(f32::NEG_INFINITY);
            // Finite also where nothing is seen, so that differences are numbers.
            let max = largest(self.unit, scores).max(f32::MIN);
            partial[value_dim] = exp_and_sum(self.unit, scores, self.unit.splat(max));
            partial[value_dim + 1] = max;
        }
    }
}

#[inline(always)]
pub(crate) fn merge<U: Vector>(unit: U, value_dim: usize, partials: &[f32], into: &mut [f32]) {
    assert_eq!(partials.len(), into.len(), "results of the same rows");
    let len = value_dim + 2;
    for (partial, into) in partials.chunks_exact(len).zip(into.chunks_exact_mut(len)) {
        let (max, sums) = partial.split_last().expect("a result has a largest score");
        let (max_of_all, sums_of_all) = into.split_last_mut().expect("as above");
        let before = std::mem::replace(max_of_all, max_of_all.max(*max));
        super::scale(unit, exp_of(unit, before - *max_of_all), sums_of_all);
        super::add_scaled(unit, exp_of(unit, max - *max_of_all), sums, sums_of_all);
    }
}

#[inline(always)]
fn exp_of<U: Vector>(unit: U, x: f32) -> f32 {
    unit.largest(exp(unit, unit.splat(x)))
}

//! Attention of one token to some of its cells, values of a head in the lanes.

use std::ops::Range;

use super::super::glu::SoftCap;
use super::super::math::map;
use super::super::norm::{exp_and_sum, largest};
use super::{HeadRows, Stored, Vector};
use crate::kernels::heads::{Heads, KvCells, PIECE};

/// Scores of up to [`PIECE`] cells.
type Scores = [f32; PIECE];

#[inline(always)]
pub(crate) fn attend_cells<U: Vector>(
    unit: U,
    heads: &Heads<'_>,
    kv_head: usize,
    token: usize,
    cells: Range<usize>,
    partial: &mut [f32],
) {
    let piece = Piece { heads, kv_head, token, cells: &heads.cells[cells] };
    assert!(piece.cells.len() <= PIECE, "cells come in pieces");
    match (heads.k, heads.v) {
        (KvCells::F16(k), KvCells::F16(v)) => {
            piece.attend(unit, heads.rows(kv_head, k, v), partial)
        }
        (KvCells::F32(k), KvCells::F32(v)) => {
            piece.attend(unit, heads.rows(kv_head, k, v), partial)
        }
        _ => panic!("keys and values are stored alike"),
    }
}

struct Piece<'a> {
    heads: &'a Heads<'a>,
    kv_head: usize,
    token: usize,
    cells: &'a [i32],
}

impl Piece<'_> {
    /// All heads of the group, a few at a time so that their sums stay in registers.
    #[inline(always)]
    fn attend<U: Vector, T: Stored>(
        &self,
        unit: U,
        [k, v]: [HeadRows<'_, T>; 2],
        partial: &mut [f32],
    ) {
        let group = self.heads.group();
        let len = self.heads.value_dim + 2;
        assert_eq!(partial.len(), group * len, "a partial result for each head");
        for first in (0..group).step_by(4) {
            let partial = &mut partial[first * len..];
            match group - first {
                1 => self.attend_heads::<U, T, 1, 8>(unit, first, k, v, partial),
                2 => self.attend_heads::<U, T, 2, 4>(unit, first, k, v, partial),
                3 => self.attend_heads::<U, T, 3, 4>(unit, first, k, v, partial),
                _ => self.attend_heads::<U, T, 4, 2>(unit, first, k, v, partial),
            }
        }
    }

    /// `H` heads of the group from `first` on, summing `D` vectors of each head's values at a time.
    #[inline(always)]
    fn attend_heads<U: Vector, T: Stored, const H: usize, const D: usize>(
        &self,
        unit: U,
        first: usize,
        k: HeadRows<'_, T>,
        v: HeadRows<'_, T>,
        partial: &mut [f32],
    ) {
        let mut scores = [[0.0; PIECE]; H];
        let head = self.kv_head * self.heads.group() + first;
        let queries: [&[f32]; H] = std::array::from_fn(|h| self.heads.query(self.token, head + h));
        self.score(unit, queries, k, &mut scores);
        for (scores, partial) in scores.iter_mut().zip(partial.chunks_exact_mut(v.dim + 2)) {
            let scores = &mut scores[..self.cells.len()];
            super::super::scale(unit, self.heads.scale, scores);
            if let Some(cap) = self.heads.soft_cap {
                map(unit, SoftCap(cap), scores);
            }
            let max = largest(unit, scores);
            partial[v.dim] = max;
            partial[v.dim + 1] = exp_and_sum(unit, scores, unit.splat(max));
        }
        let mut at = 0;
        while at + D * U::LANES <= v.dim {
            self.sum_values::<U, T, H, D>(unit, at, v, &scores, partial);
            at += D * U::LANES;
        }
        while at < v.dim {
            self.sum_values::<U, T, H, 1>(unit, at, v, &scores, partial);
            at += U::LANES;
        }
    }

    #[inline(always)]
    fn score<U: Vector, T: Stored, const H: usize>(
        &self,
        unit: U,
        queries: [&[f32]; H],
        k: HeadRows<'_, T>,
        scores: &mut [Scores; H],
    ) {
        let (fours, rest) = self.cells.as_chunks::<4>();
        for (i, cells) in fours.iter().enumerate() {
            dots(unit, queries, cells.map(|cell| k.row(cell)), 4 * i, scores);
        }
        for (i, &cell) in (4 * fours.len()..).zip(rest) {
            dots(unit, queries, [k.row(cell)], i, scores);
        }
    }

    /// Sums `D` vectors of each head's values, or what is left of them, from value `at` on.
    #[inline(always)]
    fn sum_values<U: Vector, T: Stored, const H: usize, const D: usize>(
        &self,
        unit: U,
        at: usize,
        v: HeadRows<'_, T>,
        shares: &[Scores; H],
        partial: &mut [f32],
    ) {
        let mut sums = [[unit.splat(0.0); D]; H];
        let width = (D * U::LANES).min(v.dim - at);
        for (c, &cell) in self.cells.iter().enumerate() {
            let row = &v.row(cell)[at..][..width];
            for d in 0..D {
                let value = if width >= U::LANES {
                    T::load(unit, &row[d * U::LANES..])
                } else {
                    T::load_some(unit, row)
                };
                for h in 0..H {
                    sums[h][d] = unit.mul_add(unit.splat(shares[h][c]), value, sums[h][d]);
                }
            }
        }
        for (sums, partial) in sums.iter().zip(partial.chunks_exact_mut(v.dim + 2)) {
            let out = &mut partial[at..][..width];
            for (sum, out) in sums.iter().zip(out.chunks_mut(U::LANES)) {
                if out.len() == U::LANES {
                    unit.store(*sum, out)
                } else {
                    unit.store_some(*sum, out)
                }
            }
        }
    }
}

/// Products of each query with `C` keys; those of query `h` go to `scores[h]` from `at` on.
#[inline(always)]
fn dots<U: Vector, T: Stored, const H: usize, const C: usize>(
    unit: U,
    queries: [&[f32]; H],
    keys: [&[T]; C],
    at: usize,
    scores: &mut [Scores; H],
) {
    let mut sums = [[unit.splat(0.0); C]; H];
    let dim = keys[0].len();
    let whole = dim - dim % U::LANES;
    for d in (0..whole).step_by(U::LANES) {
        let keys = keys.map(|key| T::load(unit, &key[d..]));
        for h in 0..H {
            let query = unit.load(&queries[h][d..]);
            for c in 0..C {
                sums[h][c] = unit.mul_add(query, keys[c], sums[h][c]);
            }
        }
    }
    if whole < dim {
        let keys = keys.map(|key| T::load_some(unit, &key[whole..]));
        for h in 0..H {
            let query = unit.load_some(&queries[h][whole..], 0.0);
            for c in 0..C {
                sums[h][c] = unit.mul_add(query, keys[c], sums[h][c]);
            }
        }
    }
    for h in 0..H {
        for c in 0..C {
            scores[h][at + c] = unit.sum(sums[h][c]);
        }
    }
}

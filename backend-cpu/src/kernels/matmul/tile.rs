//! The product of quantised weight rows and rounded activations, for any vector unit and format.
//!
//! Integers are summed exactly over a run, then scaled and added up in f32, run by run along the row. This order is
//! the same however tokens and rows are grouped, so a result does not depend on what is computed beside it.

use std::marker::PhantomData;

use super::Product;
use super::ahead::{Ahead, Reads};
use super::format::{BLOCKS_TOGETHER, Block, BlockSink, Format, QUANT_WORDS};
use super::lanes::Lanes;
use super::rows::RowGroup;
use crate::kernels::activations::Q8Block;

/// Tokens for which decoded weights are used again. More cost less decoding but more first-level cache.
const CHUNK: usize = 64;

/// Tokens whose sums are in registers at once.
const TILE: usize = 4;

/// Computes a product.
#[inline(always)]
pub(crate) fn product<S: Lanes, F: Format>(s: S, mut p: Product<'_, '_, Q8Block>) {
    let n_tokens = p.tokens.len();
    let mut room = Room::new(s);
    for start in (0..n_tokens).step_by(CHUNK) {
        let tokens = start..n_tokens.min(start + CHUNK);
        if tokens.len() == 1 {
            let x = p.x.row(p.tokens.x(start));
            for first in (0..p.w.n()).step_by(S::COUNT) {
                let rows = RowGroup::of_weights(&p.w, first);
                let sum = one_token::<S, F>(s, &rows, x);
                p.store(s, first, start, sum);
            }
        } else {
            let mut x: [&[Q8Block]; CHUNK] = [&[]; CHUNK];
            for (x, t) in x.iter_mut().zip(tokens.clone()) {
                *x = p.x.row(p.tokens.x(t));
            }
            for first in (0..p.w.n()).step_by(S::COUNT) {
                let rows = RowGroup::of_weights(&p.w, first);
                many_tokens::<S, F>(s, &rows, &x[..tokens.len()], &mut room);
                for (&sum, t) in room.sums.iter().zip(tokens.clone()) {
                    p.store(s, first, t, sum);
                }
            }
        }
    }
}

impl Product<'_, '_, Q8Block> {
    /// Stores the sums of the rows from `first` on, as many as there are, for a token.
    #[inline(always)]
    fn store<S: Lanes>(&mut self, s: S, first: usize, token: usize, sums: S::Floats) {
        let y = &mut self.y.row_mut(self.tokens.y(token))[first..];
        let n = y.len().min(S::COUNT);
        s.store(sums, &mut y[..n]);
    }
}

/// Uses each block as it is decoded.
#[inline(always)]
fn one_token<S: Lanes, F: Format>(s: S, rows: &RowGroup<'_>, x: &[Q8Block]) -> S::Floats {
    let ahead = Ahead::new(rows, S::COUNT, x.len(), Reads::Once);
    let sum = [s.splat_float(0.0)];
    let mut sink = AddUp::<S, F> { s, x: x.iter(), ahead, sum, format: PhantomData };
    for first in (0..x.len()).step_by(BLOCKS_TOGETHER) {
        F::decode(s, rows, first..x.len().min(first + BLOCKS_TOGETHER), &mut sink);
    }
    sink.sum[0]
}

/// Adds what blocks give to the sums of one token.
struct AddUp<'a, S: Lanes, F> {
    s: S,
    x: std::slice::Iter<'a, Q8Block>,
    ahead: Ahead,
    sum: [S::Floats; 1],
    format: PhantomData<F>,
}

impl<S: Lanes, F: Format> BlockSink<S> for AddUp<'_, S, F> {
    #[inline(always)]
    fn take(&mut self, block: Block<S>) {
        self.ahead.fetch(self.s, 1);
        let x = self.x.next().expect("as many blocks as the activations have");
        add_block::<S, F, 1>(self.s, &block, [x], &mut self.sum);
    }
}

/// What is in first-level cache while many tokens pass by.
struct Room<S: Lanes> {
    blocks: [Block<S>; BLOCKS_TOGETHER],
    n_blocks: usize,
    /// One for each token of a chunk.
    sums: [S::Floats; CHUNK],
}

impl<S: Lanes> Room<S> {
    #[inline(always)]
    fn new(s: S) -> Self {
        let zero = s.splat_float(0.0);
        let none = Block { quants: [s.splat(0); QUANT_WORDS], scales: [zero; 2], mins: [zero; 2] };
        Room { blocks: [none; BLOCKS_TOGETHER], n_blocks: 0, sums: [zero; CHUNK] }
    }
}

impl<S: Lanes> BlockSink<S> for Room<S> {
    #[inline(always)]
    fn take(&mut self, block: Block<S>) {
        self.blocks[self.n_blocks] = block;
        self.n_blocks += 1;
    }
}

/// Decodes some blocks, then uses them for all tokens, until the rows end.
#[inline(always)]
fn many_tokens<S: Lanes, F: Format>(
    s: S,
    rows: &RowGroup<'_>,
    x: &[&[Q8Block]],
    room: &mut Room<S>,
) {
    room.sums[..x.len()].fill(s.splat_float(0.0));
    let n_blocks = x[0].len();
    let mut ahead = Ahead::new(rows, S::COUNT, n_blocks, Reads::Again);
    for first in (0..n_blocks).step_by(BLOCKS_TOGETHER) {
        let range = first..n_blocks.min(first + BLOCKS_TOGETHER);
        ahead.fetch(s, range.len());
        room.n_blocks = 0;
        F::decode(s, rows, range.clone(), room);
        let blocks = &room.blocks[..range.len()];
        let (x_tiles, x_rest) = x.as_chunks::<TILE>();
        let (sum_tiles, sum_rest) = room.sums[..x.len()].as_chunks_mut::<TILE>();
        for (x, sums) in x_tiles.iter().zip(sum_tiles) {
            add_blocks::<S, F, TILE>(s, blocks, x.map(|x| &x[range.clone()]), sums);
        }
        for (x, sum) in x_rest.iter().zip(sum_rest) {
            add_blocks::<S, F, 1>(s, blocks, [&x[range.clone()]], std::array::from_mut(sum));
        }
    }
}

#[inline(always)]
fn add_blocks<S: Lanes, F: Format, const T: usize>(
    s: S,
    blocks: &[Block<S>],
    x: [&[Q8Block]; T],
    sums: &mut [S::Floats; T],
) {
    for x in &x {
        assert_eq!(x.len(), blocks.len(), "blocks of weights and activations");
    }
    let mut local = *sums;
    for (b, block) in blocks.iter().enumerate() {
        let mut at = [&x[0][b]; T];
        for t in 0..T {
            at[t] = &x[t][b];
        }
        add_block::<S, F, T>(s, block, at, &mut local);
    }
    *sums = local;
}

/// Adds what one block gives to the sums of `T` tokens.
#[inline(always)]
fn add_block<S: Lanes, F: Format, const T: usize>(
    s: S,
    block: &Block<S>,
    x: [&Q8Block; T],
    sums: &mut [S::Floats; T],
) {
    for run in 0..F::RUNS {
        let dots = dots::<S, F, T>(s, run, block, x);
        for t in 0..T {
            let scale = s.mul(block.scales[run], s.splat_float(x[t].scale));
            sums[t] = s.mul_add(scale, s.to_floats(dots[t]), sums[t]);
            if F::HAS_MIN {
                let sum = if F::RUNS == 1 { x[t].sum } else { x[t].half_sums[run] };
                sums[t] = s.mul_add(block.mins[run], s.splat_float(sum), sums[t]);
            }
        }
    }
}

/// Sums of products over a run, as integers.
#[inline(always)]
fn dots<S: Lanes, F: Format, const T: usize>(
    s: S,
    run: usize,
    block: &Block<S>,
    x: [&Q8Block; T],
) -> [S::Words; T] {
    // Activations are at most 127, and the sum of two products is what may be as large as `NARROW_MAX`.
    let words = QUANT_WORDS / F::RUNS;
    let words_that_fit = (S::NARROW_MAX / (2 * 127 * F::QUANT_MAX)) as usize;
    let words_at_once = words.min(1 << words_that_fit.ilog2());
    let mut wide = [s.splat(0); T];
    for part in 0..words / words_at_once {
        let mut narrow = [s.splat(0); T];
        for i in 0..words_at_once {
            let word = run * words + part * words_at_once + i;
            for t in 0..T {
                let (activations, _) = x[t].values.as_chunks::<4>();
                narrow[t] =
                    s.multiply_add(F::SIGNED, narrow[t], block.quants[word], activations[word]);
            }
        }
        for t in 0..T {
            wide[t] = s.widen(wide[t], narrow[t]);
        }
    }
    wide
}

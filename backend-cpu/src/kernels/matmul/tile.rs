//! The product of quantised weight rows and rounded activations, for any vector unit and format.
//!
//! Integers are summed exactly over a run, then scaled and added up in f32, run by run along the row. This order is
//! the same however tokens and rows are grouped, so a result does not depend on what is computed beside it.

use std::marker::PhantomData;
use std::ops::Range;

use super::Product;
use super::ahead::{Ahead, Reads};
use super::format::{BLOCKS_TOGETHER, Block, BlockSink, Format, QUANT_WORDS};
use super::lanes::Lanes;
use super::rows::RowGroup;
use crate::kernels::activations::Q8Block;

/// Tokens for which decoded weights are used again. More cost less decoding but more first-level cache.
const CHUNK: usize = 64;

/// Most tokens whose sums are in registers at once.
const TILE: usize = 4;

/// Computes a product.
#[inline(always)]
pub(crate) fn product<S: Lanes, F: Format>(s: S, mut p: Product<'_, '_, Q8Block>) {
    let n_tokens = p.tokens.len();
    let mut room = Room::new(s);
    for start in (0..n_tokens).step_by(CHUNK) {
        let tokens = start..n_tokens.min(start + CHUNK);
        match filled::<S>(tokens.len()) {
            1 => p.few_tokens::<S, F, 1>(s, tokens),
            2 => p.few_tokens::<S, F, 2>(s, tokens),
            3 => p.few_tokens::<S, F, 3>(s, tokens),
            4 => p.few_tokens::<S, F, 4>(s, tokens),
            _ => p.many_tokens::<S, F>(s, tokens, &mut room),
        }
    }
}

/// So many tokens, or as many as fill tiles where a lane is a number, of which the compiler makes vectors of whole tiles
/// only.
#[inline(always)]
fn filled<S: Lanes>(n_tokens: usize) -> usize {
    if S::COUNT == 1 && n_tokens > 1 { n_tokens.next_multiple_of(TILE) } else { n_tokens }
}

impl Product<'_, '_, Q8Block> {
    /// What all rows give for up to `T` tokens, the last of which fills the tile.
    #[inline(always)]
    fn few_tokens<S: Lanes, F: Format, const T: usize>(&mut self, s: S, tokens: Range<usize>) {
        let last = tokens.end - 1;
        let tokens: [usize; T] = std::array::from_fn(|t| last.min(tokens.start + t));
        let x = tokens.map(|t| self.x.row(self.tokens.x(t)));
        for first in (0..self.w.n()).step_by(S::COUNT) {
            let rows = RowGroup::of_weights(&self.w, first);
            let sums = add_up::<S, F, T>(s, &rows, x);
            for (sum, t) in sums.into_iter().zip(tokens) {
                self.store(s, first, t, sum);
            }
        }
    }

    /// What all rows give for some tokens, at most as many as there is room for.
    #[inline(always)]
    fn many_tokens<S: Lanes, F: Format>(&mut self, s: S, tokens: Range<usize>, room: &mut Room<S>) {
        let n = filled::<S>(tokens.len());
        let mut x: [&[Q8Block]; CHUNK] = [&[]; CHUNK];
        for (t, x) in x[..n].iter_mut().enumerate() {
            *x = self.x.row(self.tokens.x((tokens.end - 1).min(tokens.start + t)));
        }
        for first in (0..self.w.n()).step_by(S::COUNT) {
            let rows = RowGroup::of_weights(&self.w, first);
            room.add_up::<F>(s, &rows, &x[..n]);
            for (&sum, t) in room.sums.iter().zip(tokens.clone()) {
                self.store(s, first, t, sum);
            }
        }
    }

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
fn add_up<S: Lanes, F: Format, const T: usize>(
    s: S,
    rows: &RowGroup<'_>,
    x: [&[Q8Block]; T],
) -> [S::Floats; T] {
    let n_blocks = x[0].len();
    let ahead = Ahead::new(rows, S::COUNT, n_blocks, Reads::Once);
    let sums = [s.splat_float(0.0); T];
    let mut sink = AddUp::<S, F, T> { s, x: x.map(<[_]>::iter), ahead, sums, format: PhantomData };
    for first in (0..n_blocks).step_by(BLOCKS_TOGETHER) {
        F::decode(s, rows, first..n_blocks.min(first + BLOCKS_TOGETHER), &mut sink);
    }
    sink.sums
}

/// Adds what blocks give to the sums of a few tokens.
struct AddUp<'a, S: Lanes, F, const T: usize> {
    s: S,
    x: [std::slice::Iter<'a, Q8Block>; T],
    ahead: Ahead,
    sums: [S::Floats; T],
    format: PhantomData<F>,
}

impl<S: Lanes, F: Format, const T: usize> BlockSink<S> for AddUp<'_, S, F, T> {
    #[inline(always)]
    fn take(&mut self, block: Block<S>) {
        self.ahead.fetch(self.s, 1);
        let x = self.x.each_mut().map(|x| x.next().expect("as many blocks as the weights have"));
        add_block::<S, F, T>(self.s, &block, x, &mut self.sums);
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

    /// Decodes some blocks, then uses them for all tokens, until the rows end.
    #[inline(always)]
    fn add_up<F: Format>(&mut self, s: S, rows: &RowGroup<'_>, x: &[&[Q8Block]]) {
        self.sums[..x.len()].fill(s.splat_float(0.0));
        let n_blocks = x[0].len();
        let mut ahead = Ahead::new(rows, S::COUNT, n_blocks, Reads::Again);
        for first in (0..n_blocks).step_by(BLOCKS_TOGETHER) {
            let range = first..n_blocks.min(first + BLOCKS_TOGETHER);
            ahead.fetch(s, range.len());
            self.n_blocks = 0;
            F::decode(s, rows, range.clone(), self);
            let blocks = &self.blocks[..range.len()];
            add_tiles::<S, F>(s, blocks, &range, x, &mut self.sums[..x.len()]);
        }
    }
}

impl<S: Lanes> BlockSink<S> for Room<S> {
    #[inline(always)]
    fn take(&mut self, block: Block<S>) {
        self.blocks[self.n_blocks] = block;
        self.n_blocks += 1;
    }
}

/// Adds what some blocks give to the sums of all tokens, in tiles of nearly the same size: a token by itself takes more
/// than twice its time in a tile.
#[inline(always)]
fn add_tiles<S: Lanes, F: Format>(
    s: S,
    blocks: &[Block<S>],
    range: &Range<usize>,
    x: &[&[Q8Block]],
    sums: &mut [S::Floats],
) {
    let mut rest = (x, sums);
    for tiles in (1..=x.len().div_ceil(TILE)).rev() {
        rest = match rest.0.len().div_ceil(tiles) {
            4 => add_tile::<S, F, 4>(s, blocks, range, rest),
            3 => add_tile::<S, F, 3>(s, blocks, range, rest),
            _ => add_tile::<S, F, 2>(s, blocks, range, rest),
        }
    }
}

/// Tokens and their sums.
type Tokens<'a, S> = (&'a [&'a [Q8Block]], &'a mut [<S as Lanes>::Floats]);

/// Adds what some blocks give to the first `T` tokens; gives the others.
#[inline(always)]
fn add_tile<'a, S: Lanes, F: Format, const T: usize>(
    s: S,
    blocks: &[Block<S>],
    range: &Range<usize>,
    (x, sums): Tokens<'a, S>,
) -> Tokens<'a, S> {
    let (x, x_rest) = x.split_first_chunk::<T>().expect("a tile of tokens");
    let (sums, sums_rest) = sums.split_first_chunk_mut::<T>().expect("a sum for each token");
    add_blocks::<S, F, T>(s, blocks, x.map(|x| &x[range.clone()]), sums);
    (x_rest, sums_rest)
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

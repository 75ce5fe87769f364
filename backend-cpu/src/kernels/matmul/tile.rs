//! The product of quantised weight rows and rounded activations, for any vector unit and format.
//!
//! Integers are summed exactly over a run, then scaled and added up in f32, run by run along the row. This order is
//! the same however tokens and rows are grouped, so a result does not depend on what is computed beside it.

use super::Product;
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
pub(crate) fn product<S: Lanes, F: Format>(s: S, p: Product<'_, '_, Q8Block>) {
    let Product { w, x, tokens, y } = p;
    for chunk in (0..tokens.len()).step_by(CHUNK) {
        let n_tokens = CHUNK.min(tokens.len() - chunk);
        for first in (0..w.n()).step_by(S::COUNT) {
            let columns = first..w.n().min(first + S::COUNT);
            let rows = RowGroup::of_weights(&w, first);
            if n_tokens == 1 {
                let sums = one_token::<S, F>(s, &rows, x.row(tokens.x(chunk)));
                s.store(sums, &mut y.row_mut(tokens.y(chunk))[columns]);
            } else {
                let mut x_rows: [&[Q8Block]; CHUNK] = [&[]; CHUNK];
                for (t, x_row) in x_rows[..n_tokens].iter_mut().enumerate() {
                    *x_row = x.row(tokens.x(chunk + t));
                }
                let sums = many_tokens::<S, F>(s, &rows, &x_rows[..n_tokens]);
                for (t, sums) in sums[..n_tokens].iter().enumerate() {
                    s.store(*sums, &mut y.row_mut(tokens.y(chunk + t))[columns.clone()]);
                }
            }
        }
    }
}

/// Uses each block as it is decoded.
#[inline(always)]
fn one_token<S: Lanes, F: Format>(s: S, rows: &RowGroup<'_>, x: &[Q8Block]) -> S::Floats {
    struct AddUp<'a, S: Lanes, F> {
        s: S,
        x: std::slice::Iter<'a, Q8Block>,
        sum: [S::Floats; 1],
        format: std::marker::PhantomData<F>,
    }
    impl<S: Lanes, F: Format> BlockSink<S> for AddUp<'_, S, F> {
        #[inline(always)]
        fn take(&mut self, block: Block<S>) {
            let x = self.x.next().expect("as many blocks as the activations have");
            add_block::<S, F, 1>(self.s, &block, [x], &mut self.sum);
        }
    }
    let sum = [s.splat_float(0.0)];
    let mut sink = AddUp::<S, F> { s, x: x.iter(), sum, format: std::marker::PhantomData };
    for first in (0..x.len()).step_by(BLOCKS_TOGETHER) {
        F::decode(s, rows, first..x.len().min(first + BLOCKS_TOGETHER), &mut sink);
    }
    sink.sum[0]
}

/// Decodes some blocks, then uses them for all tokens.
#[inline(always)]
fn many_tokens<S: Lanes, F: Format>(
    s: S,
    rows: &RowGroup<'_>,
    x: &[&[Q8Block]],
) -> [S::Floats; CHUNK] {
    struct Keep<S: Lanes> {
        blocks: [Block<S>; BLOCKS_TOGETHER],
        len: usize,
    }
    impl<S: Lanes> BlockSink<S> for Keep<S> {
        #[inline(always)]
        fn take(&mut self, block: Block<S>) {
            self.blocks[self.len] = block;
            self.len += 1;
        }
    }
    let zero = s.splat_float(0.0);
    let none = Block { quants: [s.splat(0); QUANT_WORDS], scales: [zero; 2], mins: [zero; 2] };
    let mut kept = Keep { blocks: [none; BLOCKS_TOGETHER], len: 0 };
    let mut sums = [zero; CHUNK];
    let n_blocks = x[0].len();
    for first in (0..n_blocks).step_by(BLOCKS_TOGETHER) {
        kept.len = 0;
        let range = first..n_blocks.min(first + BLOCKS_TOGETHER);
        F::decode(s, rows, range.clone(), &mut kept);
        let blocks = &kept.blocks[..kept.len];
        let (x_tiles, x_rest) = x.as_chunks::<TILE>();
        let (sum_tiles, sum_rest) = sums[..x.len()].as_chunks_mut::<TILE>();
        for (x, sums) in x_tiles.iter().zip(sum_tiles) {
            add_blocks::<S, F, TILE>(s, blocks, x.map(|x| &x[range.clone()]), sums);
        }
        for (x, sum) in x_rest.iter().zip(sum_rest) {
            add_blocks::<S, F, 1>(s, blocks, [&x[range.clone()]], std::array::from_mut(sum));
        }
    }
    sums
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

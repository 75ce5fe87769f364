//! What a product must know of a quantised format: how to get at 32 values of each row.

use std::ops::Range;

use super::lanes::Lanes;
use super::rows::RowGroup;
use crate::kernels::activations::BLOCK;

/// Words that hold a block's quants, four to a word.
pub(crate) const QUANT_WORDS: usize = BLOCK / 4;

/// Blocks that are decoded in one go: what the larger formats store together.
pub(crate) const BLOCKS_TOGETHER: usize = 8;

/// A block format: value `i` of a block is `scale · quant[i] + min`.
pub(crate) trait Format {
    /// The largest magnitude of a quant.
    const QUANT_MAX: i32;
    /// Whether quants are signed bytes.
    const SIGNED: bool;
    /// Runs of a block that have a scale of their own: 1 or 2.
    const RUNS: usize;
    /// Whether there are minimums, other than zero.
    const HAS_MIN: bool;

    /// Decodes the blocks `blocks` of each row, of which there are at most [`BLOCKS_TOGETHER`] from a multiple of that
    /// on, in order.
    fn decode<S: Lanes>(
        s: S,
        rows: &RowGroup<'_>,
        blocks: Range<usize>,
        sink: &mut impl BlockSink<S>,
    );
}

/// 32 values of each row of a group.
#[derive(Clone, Copy)]
pub(crate) struct Block<S: Lanes> {
    /// Word `i` holds quants `4 i..4 i + 4`.
    pub(crate) quants: [S::Words; QUANT_WORDS],
    /// One per run.
    pub(crate) scales: [S::Floats; 2],
    /// One per run.
    pub(crate) mins: [S::Floats; 2],
}

/// Takes blocks as they are decoded.
pub(crate) trait BlockSink<S: Lanes> {
    fn take(&mut self, block: Block<S>);
}

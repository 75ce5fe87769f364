//! The few vector operations that the products of quantised weights are made of.
//!
//! A lane belongs to one weight row and is 32 bits wide: four bytes, an integer or an f32. So a product adds up in each
//! lane by itself, in one order, and every instruction set gives the same bits. Implementations live in the folder of
//! their instruction set; nothing here knows formats.

use super::ahead::Reads;
use super::rows::RowGroup;

/// A vector unit. Having one is the proof that this CPU has it.
///
/// Everything is inlined into a function that has the unit's target features enabled.
pub(crate) trait Lanes: Copy {
    /// Weight rows that are worked on at once; at most [`RowGroup::MAX_ROWS`].
    const COUNT: usize;
    /// What [`Lanes::multiply_add`] may add up in a lane before [`Lanes::widen`], as the largest sum of two products.
    const NARROW_MAX: i32;

    /// 32 bits per lane, seen as four bytes or as an integer.
    type Words: Copy;
    /// An f32 per lane.
    type Floats: Copy;

    /// Four bytes of each row, from byte `at` of the row on.
    fn words(self, rows: &RowGroup<'_>, at: usize) -> Self::Words;
    /// Sixteen bytes of each row, from byte `at` of the row on; word `i` holds bytes `4 i..4 i + 4`.
    fn quads(self, rows: &RowGroup<'_>, at: usize) -> [Self::Words; 4];

    /// Asks for the bytes at an address, which may be any, to come into cache.
    fn prefetch(self, address: usize, reads: Reads);

    /// The same word in each lane.
    fn splat(self, word: u32) -> Self::Words;
    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn or(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Integer sum, wrapping.
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Integer difference, wrapping.
    fn sub(self, a: Self::Words, b: Self::Words) -> Self::Words;
    fn shl(self, a: Self::Words, bits: u32) -> Self::Words;
    fn shr(self, a: Self::Words, bits: u32) -> Self::Words;
    /// Shifts copies of the sign in.
    fn shr_signed(self, a: Self::Words, bits: u32) -> Self::Words;
    /// The smaller of each two unsigned bytes.
    fn min_bytes(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Byte `i` of each word, four times.
    fn repeat_byte(self, words: Self::Words, i: usize) -> Self::Words;
    /// Replaces each byte, which is below 16, by that entry of a table.
    fn look_up(self, table: &[i8; 16], bytes: Self::Words) -> Self::Words;

    /// Adds the products of four bytes with four others to a narrow sum. Weights are signed or not, as told; signed ones
    /// may be −128. The activations are the same in each lane and never −128.
    fn multiply_add(
        self,
        signed: bool,
        narrow: Self::Words,
        weights: Self::Words,
        activations: [i8; 4],
    ) -> Self::Words;
    /// Adds a narrow sum to an i32 one.
    fn widen(self, sum: Self::Words, narrow: Self::Words) -> Self::Words;

    /// Integers as f32, rounded to nearest.
    fn to_floats(self, ints: Self::Words) -> Self::Floats;
    /// The low half of each word, an f16.
    fn low_half(self, halves: Self::Words) -> Self::Floats;
    /// The low half and the high half of each word, both f16.
    fn halves(self, halves: Self::Words) -> [Self::Floats; 2];
    /// The bits of each word.
    fn bits_to_floats(self, bits: Self::Words) -> Self::Floats;
    /// The same value in each lane.
    fn splat_float(self, value: f32) -> Self::Floats;
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a · b + c`, rounded once.
    fn mul_add(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// The first lanes, as many as `out` holds.
    fn store(self, floats: Self::Floats, out: &mut [f32]);
}

/// A vector unit that also multiplies floats, a lane for each of `COUNT` values of one row.
pub(crate) trait FloatLanes: Lanes {
    /// F32 values of row `row`, from byte `at` on.
    fn f32s(self, rows: &RowGroup<'_>, row: usize, at: usize) -> Self::Floats;
    /// F16 values of row `row`, from byte `at` on.
    fn f16s(self, rows: &RowGroup<'_>, row: usize, at: usize) -> Self::Floats;
    /// BF16 values of row `row`, from byte `at` on.
    fn bf16s(self, rows: &RowGroup<'_>, row: usize, at: usize) -> Self::Floats;
    /// The sum of all lanes.
    fn sum(self, floats: Self::Floats) -> f32;
}

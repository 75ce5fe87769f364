//! The formats that store 32 values together.

use std::ops::Range;

use super::format::{Block, BlockSink, Format, QUANT_WORDS};
use super::lanes::Lanes;
use super::rows::RowGroup;
use crate::kernels::dequant::{E2M1_DOUBLED, IQ4_STEPS};

/// The low half of each byte.
const LOW_NIBBLES: u32 = 0x0f0f_0f0f;

/// The low halves of sixteen bytes, then the high halves.
#[inline(always)]
pub(super) fn nibbles<S: Lanes>(s: S, bytes: [S::Words; 4]) -> [S::Words; QUANT_WORDS] {
    let mask = s.splat(LOW_NIBBLES);
    let mut quants = [mask; QUANT_WORDS];
    for i in 0..4 {
        quants[i] = s.and(bytes[i], mask);
        quants[4 + i] = s.and(s.shr(bytes[i], 4), mask);
    }
    quants
}

/// Replaces quants below 16 by entries of a table.
#[inline(always)]
pub(super) fn look_up_all<S: Lanes>(
    s: S,
    table: &[i8; 16],
    mut quants: [S::Words; QUANT_WORDS],
) -> [S::Words; QUANT_WORDS] {
    for quant in &mut quants {
        *quant = s.look_up(table, *quant);
    }
    quants
}

/// A block with one scale and one minimum.
#[inline(always)]
pub(super) fn block<S: Lanes>(
    quants: [S::Words; QUANT_WORDS],
    scale: S::Floats,
    min: S::Floats,
) -> Block<S> {
    Block { quants, scales: [scale; 2], mins: [min; 2] }
}

/// A block without minimum whose quants all stand for `offset` less.
#[inline(always)]
fn block_with_offset<S: Lanes>(
    s: S,
    quants: [S::Words; QUANT_WORDS],
    scale: S::Floats,
    offset: f32,
) -> Block<S> {
    block(quants, scale, s.mul(scale, s.splat_float(-offset)))
}

/// A block with scale and minimum as the two halves of a word.
#[inline(always)]
fn block_with_min<S: Lanes>(
    s: S,
    quants: [S::Words; QUANT_WORDS],
    scale_and_min: S::Words,
) -> Block<S> {
    let [scale, min] = s.halves(scale_and_min);
    block(quants, scale, min)
}

/// Adds bit `i` of the word `bits` to quant `i`, as its fifth bit.
#[inline(always)]
fn with_fifth_bits<S: Lanes>(
    s: S,
    mut quants: [S::Words; QUANT_WORDS],
    bits: S::Words,
) -> [S::Words; QUANT_WORDS] {
    // The high four bits of a byte belong to four quants: each keeps its own, wherever it is, and moves it to bit 4.
    let own = s.splat(0x8040_2010);
    let fifth = s.splat(0x1010_1010);
    for (i, pair) in quants.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let byte = s.repeat_byte(bits, i);
        let low = s.shl(byte, 4);
        pair[0] = s.or(pair[0], s.min_bytes(s.and(low, own), fifth));
        pair[1] = s.or(pair[1], s.min_bytes(s.and(byte, own), fifth));
    }
    quants
}

/// Declares a format by its block's size and how one block is decoded, given where in the row it starts.
macro_rules! format {
    ($(#[$doc:meta])* $name:ident: $bytes:literal bytes, max $max:expr, signed $signed:literal, min $min:literal,
     |$s:ident, $rows:ident, $at:ident| $decode:expr) => {
        $(#[$doc])*
        #[allow(non_camel_case_types, reason = "the format's own name")]
        pub(crate) struct $name;

        impl Format for $name {
            const QUANT_MAX: i32 = $max;
            const SIGNED: bool = $signed;
            const RUNS: usize = 1;
            const HAS_MIN: bool = $min;

            #[inline(always)]
            fn decode<S: Lanes>(
                $s: S,
                $rows: &RowGroup<'_>,
                blocks: Range<usize>,
                sink: &mut impl BlockSink<S>,
            ) {
                for block in blocks {
                    let $at = block * $bytes;
                    sink.take($decode);
                }
            }
        }
    };
}

format! {
    /// Scale, nibbles.
    Q4_0: 18 bytes, max 15, signed false, min true,
    |s, rows, at| {
        let quants = nibbles(s, s.quads(rows, at + 2));
        block_with_offset(s, quants, s.low_half(s.words(rows, at)), 8.0)
    }
}

format! {
    /// Scale, minimum, nibbles.
    Q4_1: 20 bytes, max 15, signed false, min true,
    |s, rows, at| block_with_min(s, nibbles(s, s.quads(rows, at + 4)), s.words(rows, at))
}

format! {
    /// Scale, fifth bits, nibbles.
    Q5_0: 22 bytes, max 31, signed false, min true,
    |s, rows, at| {
        let quants = with_fifth_bits(s, nibbles(s, s.quads(rows, at + 6)), s.words(rows, at + 2));
        block_with_offset(s, quants, s.low_half(s.words(rows, at)), 16.0)
    }
}

format! {
    /// Scale, minimum, fifth bits, nibbles.
    Q5_1: 24 bytes, max 31, signed false, min true,
    |s, rows, at| {
        let quants = with_fifth_bits(s, nibbles(s, s.quads(rows, at + 8)), s.words(rows, at + 4));
        block_with_min(s, quants, s.words(rows, at))
    }
}

format! {
    /// Scale, signed bytes.
    Q8_0: 34 bytes, max 128, signed true, min false,
    |s, rows, at| {
        let [a, b, c, d] = s.quads(rows, at + 2);
        let [e, f, g, h] = s.quads(rows, at + 18);
        block([a, b, c, d, e, f, g, h], s.low_half(s.words(rows, at)), s.splat_float(0.0))
    }
}

format! {
    /// Scale, nibbles that number steps.
    IQ4_NL: 18 bytes, max 127, signed true, min false,
    |s, rows, at| {
        let quants = look_up_all(s, &IQ4_STEPS, nibbles(s, s.quads(rows, at + 2)));
        block(quants, s.low_half(s.words(rows, at)), s.splat_float(0.0))
    }
}

format! {
    /// Exponent, nibbles that are 4-bit floats.
    MXFP4: 17 bytes, max 12, signed true, min false,
    |s, rows, at| {
        let quants = look_up_all(s, &E2M1_DOUBLED, nibbles(s, s.quads(rows, at + 1)));
        let exponent = s.and(s.words(rows, at), s.splat(0xff));
        block(quants, half_power(s, exponent), s.splat_float(0.0))
    }
}

/// Two to the power of `exponent - 128`, the smallest of which are subnormal: a product of two that are not.
#[inline(always)]
fn half_power<S: Lanes>(s: S, exponent: S::Words) -> S::Floats {
    let half = s.shr(exponent, 1);
    let rest = s.sub(exponent, half);
    let a = s.bits_to_floats(s.shl(s.add(half, s.splat(64)), 23));
    let b = s.bits_to_floats(s.shl(s.add(rest, s.splat(62)), 23));
    s.mul(a, b)
}

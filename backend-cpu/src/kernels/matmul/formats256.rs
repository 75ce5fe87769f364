//! The formats that store 256 values together, as runs of 32 or 16 with a small integer scale each.

use std::ops::Range;

use super::format::{BLOCKS_TOGETHER, Block, BlockSink, Format, QUANT_WORDS};
use super::formats32::{block, look_up_all, nibbles};
use super::lanes::Lanes;
use super::rows::RowGroup;
use crate::kernels::dequant::IQ4_STEPS;

/// The low bits of each byte: two, four, six of them.
const TWO: u32 = 0x0303_0303;
const FOUR: u32 = 0x0f0f_0f0f;
const SIX: u32 = 0x3f3f_3f3f;

/// Declares formats by the bytes of 256 values, what their quants are, and the function that decodes 256 values of each
/// row, given where in the row they start.
macro_rules! formats {
    ($($(#[$doc:meta])* $name:ident: $bytes:literal bytes, max $max:literal, signed $signed:literal, runs $runs:literal,
       min $min:literal, by $decode:ident;)*) => {
        $($(#[$doc])*
        #[allow(non_camel_case_types, reason = "the format's own name")]
        pub(crate) struct $name;

        impl Format for $name {
            const QUANT_MAX: i32 = $max;
            const SIGNED: bool = $signed;
            const RUNS: usize = $runs;
            const HAS_MIN: bool = $min;

            #[inline(always)]
            fn decode<S: Lanes>(
                s: S,
                rows: &RowGroup<'_>,
                blocks: Range<usize>,
                sink: &mut impl BlockSink<S>,
            ) {
                debug_assert_eq!(blocks.len(), BLOCKS_TOGETHER, "rows are whole groups of 256 values");
                $decode(s, rows, blocks.start / BLOCKS_TOGETHER * $bytes, sink);
            }
        })*
    };
}

formats! {
    /// Scales and minimums, nibbles.
    Q4_K: 144 bytes, max 15, signed false, runs 1, min true, by q4_k;
    /// Scales and minimums, fifth bits, nibbles.
    Q5_K: 176 bytes, max 31, signed false, runs 1, min true, by q5_k;
    /// Nibbles, high pairs of bits, signed scales, scale.
    Q6_K: 210 bytes, max 63, signed false, runs 2, min true, by q6_k;
    /// Scales and minimums of four bits, pairs of bits, scale of the scales, scale of the minimums.
    Q2_K: 84 bytes, max 3, signed false, runs 2, min true, by q2_k;
    /// Third bits, low pairs of bits, scales of six bits, scale.
    Q3_K: 110 bytes, max 7, signed false, runs 2, min true, by q3_k;
    /// Scale, high two bits of the scales, low four bits, nibbles that number steps.
    IQ4_XS: 136 bytes, max 127, signed true, runs 1, min false, by iq4_xs;
}

/// Repeats statements with a constant in place of a variable, so that counts of shifts are known to the compiler.
macro_rules! unroll {
    (for $i:ident in [$($n:literal),*] $body:block) => {
        $({
            const $i: usize = $n;
            $body
        })*
    };
}

/// Thirty-two bytes of each row.
#[inline(always)]
fn octets<S: Lanes>(s: S, rows: &RowGroup<'_>, at: usize) -> [S::Words; QUANT_WORDS] {
    let [a, b, c, d] = s.quads(rows, at);
    let [e, f, g, h] = s.quads(rows, at + 16);
    [a, b, c, d, e, f, g, h]
}

/// Moves bit `from` of each byte, and those beside it, to bit `to`, and leaves those that are in the mask then.
#[inline(always)]
fn moved<S: Lanes>(
    s: S,
    mut bytes: [S::Words; QUANT_WORDS],
    from: usize,
    to: usize,
    mask: u32,
) -> [S::Words; QUANT_WORDS] {
    for byte in &mut bytes {
        let shifted = if from < to {
            s.shl(*byte, (to - from) as u32)
        } else {
            s.shr(*byte, (from - to) as u32)
        };
        *byte = s.and(shifted, s.splat(mask));
    }
    bytes
}

/// Bits of either.
#[inline(always)]
fn joined<S: Lanes>(
    s: S,
    mut a: [S::Words; QUANT_WORDS],
    b: [S::Words; QUANT_WORDS],
) -> [S::Words; QUANT_WORDS] {
    for i in 0..QUANT_WORDS {
        a[i] = s.or(a[i], b[i]);
    }
    a
}

/// Byte `i` of words, as an unsigned number.
#[inline(always)]
fn byte<S: Lanes>(s: S, words: &[S::Words], i: usize) -> S::Words {
    s.and(s.shr(words[i / 4], 8 * (i % 4) as u32), s.splat(0xff))
}

/// Byte `i` of words, as a signed number.
#[inline(always)]
fn signed_byte<S: Lanes>(s: S, words: &[S::Words], i: usize) -> S::Words {
    s.shr_signed(s.shl(words[i / 4], 24 - 8 * (i % 4) as u32), 24)
}

/// A number times a float.
#[inline(always)]
fn scaled<S: Lanes>(s: S, ints: S::Words, scale: S::Floats) -> S::Floats {
    s.mul(scale, s.to_floats(ints))
}

/// A block of two runs whose quants all stand for `offset` less.
#[inline(always)]
fn runs_with_offset<S: Lanes>(
    s: S,
    quants: [S::Words; QUANT_WORDS],
    scale: S::Floats,
    scales: [S::Words; 2],
    offset: f32,
) -> Block<S> {
    let scales = [scaled(s, scales[0], scale), scaled(s, scales[1], scale)];
    let offset = s.splat_float(-offset);
    Block { quants, scales, mins: [s.mul(scales[0], offset), s.mul(scales[1], offset)] }
}

/// Scale and scale of the minimums, the latter negative, from the two halves of a word.
#[inline(always)]
fn scale_and_min<S: Lanes>(s: S, halves: S::Words) -> (S::Floats, S::Floats) {
    let [scale, min] = s.halves(halves);
    (scale, s.mul(min, s.splat_float(-1.0)))
}

/// The scales and minimums of Q4_K and Q5_K.
struct ScalesAndMins<S: Lanes> {
    scale: S::Floats,
    min: S::Floats,
    /// Six bits each, four runs to a word.
    scales: [S::Words; 2],
    mins: [S::Words; 2],
}

impl<S: Lanes> ScalesAndMins<S> {
    /// From the first sixteen bytes of the 256 values: two f16, then twelve bytes of which the low six bits of the first
    /// four are scales and of the next four are minimums; the others' low four bits are in the last four bytes, their
    /// high two above the six.
    #[inline(always)]
    fn decode(s: S, rows: &RowGroup<'_>, at: usize) -> Self {
        let [halves, a, b, c] = s.quads(rows, at);
        let (scale, min) = scale_and_min(s, halves);
        let six = s.splat(SIX);
        let four = s.splat(FOUR);
        let high = s.splat(SIX & !FOUR);
        let high_scales = s.and(s.shr(a, 2), high);
        let high_mins = s.and(s.shr(b, 2), high);
        ScalesAndMins {
            scale,
            min,
            scales: [s.and(a, six), s.or(s.and(c, four), high_scales)],
            mins: [s.and(b, six), s.or(s.and(s.shr(c, 4), four), high_mins)],
        }
    }

    /// The block of run `i` of a half.
    #[inline(always)]
    fn block(&self, s: S, half: usize, i: usize, quants: [S::Words; QUANT_WORDS]) -> Block<S> {
        let scale = scaled(s, byte(s, &[self.scales[half]], i), self.scale);
        let min = scaled(s, byte(s, &[self.mins[half]], i), self.min);
        block(quants, scale, min)
    }
}

#[inline(always)]
fn q4_k<S: Lanes>(s: S, rows: &RowGroup<'_>, at: usize, sink: &mut impl BlockSink<S>) {
    let scales = ScalesAndMins::decode(s, rows, at);
    for half in 0..2 {
        unroll!(for PAIR in [0, 1] {
            let bytes = octets(s, rows, at + 16 + half * 64 + PAIR * 32);
            sink.take(scales.block(s, half, 2 * PAIR, moved(s, bytes, 0, 0, FOUR)));
            sink.take(scales.block(s, half, 2 * PAIR + 1, moved(s, bytes, 4, 0, FOUR)));
        });
    }
}

#[inline(always)]
fn q5_k<S: Lanes>(s: S, rows: &RowGroup<'_>, at: usize, sink: &mut impl BlockSink<S>) {
    const FIFTH: u32 = 0x1010_1010;
    let scales = ScalesAndMins::decode(s, rows, at);
    let all_fifth = octets(s, rows, at + 16);
    for half in 0..2 {
        let fifth = moved(s, all_fifth, 4 * half, 0, FOUR);
        unroll!(for PAIR in [0, 1] {
            let bytes = octets(s, rows, at + 48 + half * 64 + PAIR * 32);
            let low = moved(s, bytes, 0, 0, FOUR);
            let quants = joined(s, low, moved(s, fifth, 2 * PAIR, 4, FIFTH));
            sink.take(scales.block(s, half, 2 * PAIR, quants));
            let low = moved(s, bytes, 4, 0, FOUR);
            let quants = joined(s, low, moved(s, fifth, 2 * PAIR + 1, 4, FIFTH));
            sink.take(scales.block(s, half, 2 * PAIR + 1, quants));
        });
    }
}

#[inline(always)]
fn q6_k<S: Lanes>(s: S, rows: &RowGroup<'_>, at: usize, sink: &mut impl BlockSink<S>) {
    let scale = s.low_half(s.shr(s.words(rows, at + 206), 16));
    let all_scales = s.quads(rows, at + 192);
    for half in 0..2 {
        let scales = [all_scales[2 * half], all_scales[2 * half + 1]];
        let high = octets(s, rows, at + 128 + half * 32);
        let at = at + half * 64;
        let low = [octets(s, rows, at), octets(s, rows, at + 32)];
        unroll!(for QUARTER in [0, 1, 2, 3] {
            let low = moved(s, low[QUARTER % 2], QUARTER / 2 * 4, 0, FOUR);
            let quants = joined(s, low, moved(s, high, 2 * QUARTER, 4, SIX & !FOUR));
            let first = signed_byte(s, &scales, 2 * QUARTER);
            let second = signed_byte(s, &scales, 2 * QUARTER + 1);
            sink.take(runs_with_offset(s, quants, scale, [first, second], 32.0));
        });
    }
}

#[inline(always)]
fn q2_k<S: Lanes>(s: S, rows: &RowGroup<'_>, at: usize, sink: &mut impl BlockSink<S>) {
    let (scale, min) = scale_and_min(s, s.words(rows, at + 80));
    let scales_and_mins = nibbles(s, s.quads(rows, at));
    let (all_scales, all_mins) = scales_and_mins.split_at(4);
    for half in 0..2 {
        let scales = [all_scales[2 * half], all_scales[2 * half + 1]];
        let mins = [all_mins[2 * half], all_mins[2 * half + 1]];
        let pairs = octets(s, rows, at + 16 + half * 32);
        unroll!(for QUARTER in [0, 1, 2, 3] {
            let first = scaled(s, byte(s, &scales, 2 * QUARTER), scale);
            let second = scaled(s, byte(s, &scales, 2 * QUARTER + 1), scale);
            let first_min = scaled(s, byte(s, &mins, 2 * QUARTER), min);
            let second_min = scaled(s, byte(s, &mins, 2 * QUARTER + 1), min);
            sink.take(Block {
                quants: moved(s, pairs, 2 * QUARTER, 0, TWO),
                scales: [first, second],
                mins: [first_min, second_min],
            });
        });
    }
}

#[inline(always)]
fn q3_k<S: Lanes>(s: S, rows: &RowGroup<'_>, at: usize, sink: &mut impl BlockSink<S>) {
    const THIRD: u32 = 0x0404_0404;
    let scale = s.low_half(s.shr(s.words(rows, at + 106), 16));
    let all_scales = q3_k_scales(s, rows, at + 96);
    let all_third = octets(s, rows, at);
    for half in 0..2 {
        let scales = [all_scales[2 * half], all_scales[2 * half + 1]];
        let third = moved(s, all_third, 4 * half, 0, FOUR);
        let pairs = octets(s, rows, at + 32 + half * 32);
        unroll!(for QUARTER in [0, 1, 2, 3] {
            let low = moved(s, pairs, 2 * QUARTER, 0, TWO);
            let quants = joined(s, low, moved(s, third, QUARTER, 2, THIRD));
            let first = s.sub(byte(s, &scales, 2 * QUARTER), s.splat(32));
            let second = s.sub(byte(s, &scales, 2 * QUARTER + 1), s.splat(32));
            sink.take(runs_with_offset(s, quants, scale, [first, second], 4.0));
        });
    }
}

/// Sixteen scales, six bits each: the low four of each in the nibbles of eight bytes, the high two in four bytes.
#[inline(always)]
fn q3_k_scales<S: Lanes>(s: S, rows: &RowGroup<'_>, at: usize) -> [S::Words; 4] {
    let low = [s.words(rows, at), s.words(rows, at + 4)];
    let high = s.words(rows, at + 8);
    let mut scales = [high; 4];
    for (i, scales) in scales.iter_mut().enumerate() {
        let low = s.and(s.shr(low[i % 2], 4 * (i / 2) as u32), s.splat(FOUR));
        let high = s.and(s.shr(high, 2 * i as u32), s.splat(TWO));
        *scales = s.or(low, s.shl(high, 4));
    }
    scales
}

#[inline(always)]
fn iq4_xs<S: Lanes>(s: S, rows: &RowGroup<'_>, at: usize, sink: &mut impl BlockSink<S>) {
    let head = s.words(rows, at);
    let scale = s.low_half(head);
    let mut high_bits = s.shr(head, 16);
    let mut low_bits = s.words(rows, at + 4);
    for i in 0..BLOCKS_TOGETHER {
        let low = s.and(low_bits, s.splat(15));
        let high = s.and(high_bits, s.splat(3));
        let centred = s.sub(s.or(low, s.shl(high, 4)), s.splat(32));
        let quants = nibbles(s, s.quads(rows, at + 8 + i * 16));
        let quants = look_up_all(s, &IQ4_STEPS, quants);
        sink.take(block(quants, scaled(s, centred, scale), s.splat_float(0.0)));
        low_bits = s.shr(low_bits, 4);
        high_bits = s.shr(high_bits, 2);
    }
}

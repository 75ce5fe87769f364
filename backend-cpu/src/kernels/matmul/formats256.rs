//! The formats that store 256 values together, as runs of 32 or 16 with a small integer scale each.

use std::ops::Range;

use super::format::{BLOCKS_TOGETHER, Block, BlockSink, Format, QUANT_WORDS};
use super::formats32::{block, look_up_all, nibbles};
use super::lanes::Lanes;
use super::rows::RowGroup;
use crate::kernels::dequant::IQ4_STEPS;

/// The low bits of each byte: one, two, four, six of them.
const ONE: u32 = 0x0101_0101;
const TWO: u32 = 0x0303_0303;
const FOUR: u32 = 0x0f0f_0f0f;
const SIX: u32 = 0x3f3f_3f3f;

/// Where the row's 256 values start, given the bytes of 256.
#[inline(always)]
fn start(blocks: &Range<usize>, bytes: usize) -> usize {
    debug_assert_eq!(blocks.len(), BLOCKS_TOGETHER, "a row is a whole number of 256 values");
    blocks.start / BLOCKS_TOGETHER * bytes
}

/// Thirty-two bytes of each row.
#[inline(always)]
fn octets<S: Lanes>(s: S, rows: &RowGroup<'_>, at: usize) -> [S::Words; QUANT_WORDS] {
    let [a, b, c, d] = s.quads(rows, at);
    let [e, f, g, h] = s.quads(rows, at + 16);
    [a, b, c, d, e, f, g, h]
}

/// Bits of each byte: those from `shift` on that are in the mask, moved to the bottom.
#[inline(always)]
fn bits<S: Lanes>(
    s: S,
    mut bytes: [S::Words; QUANT_WORDS],
    shift: u32,
    mask: u32,
) -> [S::Words; QUANT_WORDS] {
    for byte in &mut bytes {
        *byte = s.and(s.shr(*byte, shift), s.splat(mask));
    }
    bytes
}

/// Puts `high` above the lowest `shift` bits of each byte.
#[inline(always)]
fn with_high<S: Lanes>(
    s: S,
    mut low: [S::Words; QUANT_WORDS],
    high: [S::Words; QUANT_WORDS],
    shift: u32,
) -> [S::Words; QUANT_WORDS] {
    for i in 0..QUANT_WORDS {
        low[i] = s.or(low[i], s.shl(high[i], shift));
    }
    low
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

/// The scales and minimums of Q4_K and Q5_K.
struct ScalesAndMins<S: Lanes> {
    scale: S::Floats,
    /// Minus the scale of the minimums.
    min: S::Floats,
    /// Six bits each, four to a word.
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
        let six = s.splat(SIX);
        let four = s.splat(FOUR);
        let high = s.splat(SIX & !FOUR);
        let high_a = s.and(s.shr(a, 2), high);
        let high_b = s.and(s.shr(b, 2), high);
        ScalesAndMins {
            scale: s.low_half(halves),
            min: s.mul(s.low_half(s.shr(halves, 16)), s.splat_float(-1.0)),
            scales: [s.and(a, six), s.or(s.and(c, four), high_a)],
            mins: [s.and(b, six), s.or(s.and(s.shr(c, 4), four), high_b)],
        }
    }

    #[inline(always)]
    fn block(&self, s: S, i: usize, quants: [S::Words; QUANT_WORDS]) -> Block<S> {
        let scale = scaled(s, byte(s, &self.scales, i), self.scale);
        let min = scaled(s, byte(s, &self.mins, i), self.min);
        block(quants, scale, min)
    }
}

/// Scales and minimums, nibbles.
#[allow(non_camel_case_types, reason = "the format's own name")]
pub(crate) struct Q4_K;

impl Format for Q4_K {
    const QUANT_MAX: i32 = 15;
    const SIGNED: bool = false;
    const RUNS: usize = 1;
    const HAS_MIN: bool = true;

    #[inline(always)]
    fn decode<S: Lanes>(
        s: S,
        rows: &RowGroup<'_>,
        blocks: Range<usize>,
        sink: &mut impl BlockSink<S>,
    ) {
        let at = start(&blocks, 144);
        let scales = ScalesAndMins::decode(s, rows, at);
        for pair in 0..4 {
            let quants = octets(s, rows, at + 16 + pair * 32);
            sink.take(scales.block(s, 2 * pair, bits(s, quants, 0, FOUR)));
            sink.take(scales.block(s, 2 * pair + 1, bits(s, quants, 4, FOUR)));
        }
    }
}

/// Scales and minimums, fifth bits, nibbles.
#[allow(non_camel_case_types, reason = "the format's own name")]
pub(crate) struct Q5_K;

impl Format for Q5_K {
    const QUANT_MAX: i32 = 31;
    const SIGNED: bool = false;
    const RUNS: usize = 1;
    const HAS_MIN: bool = true;

    #[inline(always)]
    fn decode<S: Lanes>(
        s: S,
        rows: &RowGroup<'_>,
        blocks: Range<usize>,
        sink: &mut impl BlockSink<S>,
    ) {
        let at = start(&blocks, 176);
        let scales = ScalesAndMins::decode(s, rows, at);
        let fifth = octets(s, rows, at + 16);
        for pair in 0..4 {
            let quants = octets(s, rows, at + 48 + pair * 32);
            for half in 0..2 {
                let i = 2 * pair + half;
                let low = bits(s, quants, 4 * half as u32, FOUR);
                let quants = with_high(s, low, bits(s, fifth, i as u32, ONE), 4);
                sink.take(scales.block(s, i, quants));
            }
        }
    }
}

/// Nibbles, high pairs of bits, signed scales, scale.
#[allow(non_camel_case_types, reason = "the format's own name")]
pub(crate) struct Q6_K;

impl Format for Q6_K {
    const QUANT_MAX: i32 = 63;
    const SIGNED: bool = false;
    const RUNS: usize = 2;
    const HAS_MIN: bool = true;

    #[inline(always)]
    fn decode<S: Lanes>(
        s: S,
        rows: &RowGroup<'_>,
        blocks: Range<usize>,
        sink: &mut impl BlockSink<S>,
    ) {
        let at = start(&blocks, 210);
        let scale = s.low_half(s.shr(s.words(rows, at + 206), 16));
        let scales = s.quads(rows, at + 192);
        for half in 0..2 {
            let high = octets(s, rows, at + 128 + half * 32);
            let low = at + half * 64;
            let low = [octets(s, rows, low), octets(s, rows, low + 32)];
            for quarter in 0..4 {
                let low = bits(s, low[quarter % 2], 4 * (quarter / 2) as u32, FOUR);
                let quants = with_high(s, low, bits(s, high, 2 * quarter as u32, TWO), 4);
                let run = 8 * half + 2 * quarter;
                let scales = [signed_byte(s, &scales, run), signed_byte(s, &scales, run + 1)];
                sink.take(runs_with_offset(s, quants, scale, scales, 32.0));
            }
        }
    }
}

/// Scales and minimums of four bits, pairs of bits, scale of the scales, scale of the minimums.
#[allow(non_camel_case_types, reason = "the format's own name")]
pub(crate) struct Q2_K;

impl Format for Q2_K {
    const QUANT_MAX: i32 = 3;
    const SIGNED: bool = false;
    const RUNS: usize = 2;
    const HAS_MIN: bool = true;

    #[inline(always)]
    fn decode<S: Lanes>(
        s: S,
        rows: &RowGroup<'_>,
        blocks: Range<usize>,
        sink: &mut impl BlockSink<S>,
    ) {
        let at = start(&blocks, 84);
        let halves = s.words(rows, at + 80);
        let scale = s.low_half(halves);
        let min = s.mul(s.low_half(s.shr(halves, 16)), s.splat_float(-1.0));
        let scales_and_mins = nibbles(s, s.quads(rows, at));
        let (scales, mins) = scales_and_mins.split_at(4);
        for half in 0..2 {
            let pairs = octets(s, rows, at + 16 + half * 32);
            for quarter in 0..4 {
                let run = 8 * half + 2 * quarter;
                let (first, second) = (byte(s, scales, run), byte(s, scales, run + 1));
                let (first_min, second_min) = (byte(s, mins, run), byte(s, mins, run + 1));
                sink.take(Block {
                    quants: bits(s, pairs, 2 * quarter as u32, TWO),
                    scales: [scaled(s, first, scale), scaled(s, second, scale)],
                    mins: [scaled(s, first_min, min), scaled(s, second_min, min)],
                });
            }
        }
    }
}

/// Third bits, low pairs of bits, scales of six bits, scale.
#[allow(non_camel_case_types, reason = "the format's own name")]
pub(crate) struct Q3_K;

impl Format for Q3_K {
    const QUANT_MAX: i32 = 7;
    const SIGNED: bool = false;
    const RUNS: usize = 2;
    const HAS_MIN: bool = true;

    #[inline(always)]
    fn decode<S: Lanes>(
        s: S,
        rows: &RowGroup<'_>,
        blocks: Range<usize>,
        sink: &mut impl BlockSink<S>,
    ) {
        let at = start(&blocks, 110);
        let scale = s.low_half(s.shr(s.words(rows, at + 106), 16));
        let scales = q3_k_scales(s, rows, at + 96);
        let third = octets(s, rows, at);
        for half in 0..2 {
            let pairs = octets(s, rows, at + 32 + half * 32);
            for quarter in 0..4 {
                let low = bits(s, pairs, 2 * quarter as u32, TWO);
                let third = bits(s, third, (4 * half + quarter) as u32, ONE);
                let run = 8 * half + 2 * quarter;
                let first = s.sub(byte(s, &scales, run), s.splat(32));
                let second = s.sub(byte(s, &scales, run + 1), s.splat(32));
                let quants = with_high(s, low, third, 2);
                sink.take(runs_with_offset(s, quants, scale, [first, second], 4.0));
            }
        }
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

/// Scale, high two bits of the scales, low four bits, nibbles that number steps.
#[allow(non_camel_case_types, reason = "the format's own name")]
pub(crate) struct IQ4_XS;

impl Format for IQ4_XS {
    const QUANT_MAX: i32 = 127;
    const SIGNED: bool = true;
    const RUNS: usize = 1;
    const HAS_MIN: bool = false;

    #[inline(always)]
    fn decode<S: Lanes>(
        s: S,
        rows: &RowGroup<'_>,
        blocks: Range<usize>,
        sink: &mut impl BlockSink<S>,
    ) {
        let at = start(&blocks, 136);
        let head = s.words(rows, at);
        let scale = s.low_half(head);
        let low_bits = s.words(rows, at + 4);
        for i in 0..BLOCKS_TOGETHER {
            let low = s.and(s.shr(low_bits, 4 * i as u32), s.splat(15));
            let high = s.and(s.shr(head, 16 + 2 * i as u32), s.splat(3));
            let centred = s.sub(s.or(low, s.shl(high, 4)), s.splat(32));
            let quants = nibbles(s, s.quads(rows, at + 8 + i * 16));
            let quants = look_up_all(s, &IQ4_STEPS, quants);
            sink.take(block(quants, scaled(s, centred, scale), s.splat_float(0.0)));
        }
    }
}

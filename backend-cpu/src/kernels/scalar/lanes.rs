//! One weight row at a time, in plain Rust.

use half::f16;

use crate::kernels::activations::Q8Block;
use crate::kernels::matmul::{Format, Lanes, Product, Reads, RowGroup, Unit, product};

/// The unit of any CPU.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Unit for Scalar {
    fn product<F: Format>(self, p: Product<'_, '_, Q8Block>) {
        product::<Self, F>(self, p);
    }
}

impl Lanes for Scalar {
    const COUNT: usize = 1;
    const NARROW_MAX: i32 = i32::MAX;

    type Words = u32;
    type Floats = f32;

    fn words(self, rows: &RowGroup<'_>, at: usize) -> u32 {
        u32::from_le_bytes(*rows.part(0, at))
    }

    fn quads(self, rows: &RowGroup<'_>, at: usize) -> [u32; 4] {
        [0, 4, 8, 12].map(|i| self.words(rows, at + i))
    }

    fn prefetch(self, _: usize, _: Reads) {}

    fn splat(self, word: u32) -> u32 {
        word
    }

    fn and(self, a: u32, b: u32) -> u32 {
        a & b
    }

    fn or(self, a: u32, b: u32) -> u32 {
        a | b
    }

    fn add(self, a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }

    fn sub(self, a: u32, b: u32) -> u32 {
        a.wrapping_sub(b)
    }

    fn shl(self, a: u32, bits: u32) -> u32 {
        a << bits
    }

    fn shr(self, a: u32, bits: u32) -> u32 {
        a >> bits
    }

    fn shr_signed(self, a: u32, bits: u32) -> u32 {
        ((a as i32) >> bits) as u32
    }

    fn min_bytes(self, a: u32, b: u32) -> u32 {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        u32::from_le_bytes(std::array::from_fn(|i| a[i].min(b[i])))
    }

    fn repeat_byte(self, words: u32, i: usize) -> u32 {
        u32::from_le_bytes([words.to_le_bytes()[i]; 4])
    }

    fn look_up(self, table: &[i8; 16], bytes: u32) -> u32 {
        u32::from_le_bytes(bytes.to_le_bytes().map(|b| table[usize::from(b)] as u8))
    }

    fn multiply_add(self, signed: bool, narrow: u32, weights: u32, activations: [i8; 4]) -> u32 {
        let mut sum = narrow as i32;
        for (w, x) in weights.to_le_bytes().into_iter().zip(activations) {
            let w = if signed { i32::from(w as i8) } else { i32::from(w) };
            sum += w * i32::from(x);
        }
        sum as u32
    }

    fn widen(self, sum: u32, narrow: u32) -> u32 {
        self.add(sum, narrow)
    }

    fn to_floats(self, ints: u32) -> f32 {
        ints as i32 as f32
    }

    fn low_half(self, halves: u32) -> f32 {
        f16::from_bits(halves as u16).to_f32()
    }

    fn halves(self, halves: u32) -> [f32; 2] {
        [self.low_half(halves), self.low_half(halves >> 16)]
    }

    fn bits_to_floats(self, bits: u32) -> f32 {
        f32::from_bits(bits)
    }

    fn splat_float(self, value: f32) -> f32 {
        value
    }

    fn mul(self, a: f32, b: f32) -> f32 {
        a * b
    }

    fn mul_add(self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }

    fn store(self, floats: f32, out: &mut [f32]) {
        out[0] = floats;
    }
}

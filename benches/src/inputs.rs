//! Seeded numbers and weights.

use engine_core::weights::DType;
use half::{bf16, f16};

/// A seeded source of numbers.
///
/// Source: Steele et al., "Fast Splittable Pseudorandom Number Generators", 2014.
pub struct Numbers(u64);

impl Numbers {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        Numbers(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number, in −1..1.
    pub fn float(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// The next `n` numbers, each in −1..1.
    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.float()).collect()
    }

    /// `n` rows of `k` weights, of the size that weights of models have.
    ///
    /// # Panics
    /// If a row is not a whole number of blocks.
    pub fn weights(&mut self, dtype: DType, n: usize, k: usize) -> Vec<u8> {
        let row = dtype.row_bytes(k as u64).expect("whole blocks").as_usize();
        let mut bytes: Vec<u8> = (0..n * row).map(|_| self.bits() as u8).collect();
        for block in bytes.chunks_exact_mut(dtype.block().bytes as usize) {
            self.make_finite(dtype, block);
        }
        bytes
    }

    /// Replaces floats that random bits may have made infinite.
    fn make_finite(&mut self, dtype: DType, block: &mut [u8]) {
        let halves: &[usize] = match dtype {
            DType::F32 => return block.copy_from_slice(&self.float().to_le_bytes()),
            DType::BF16 => {
                return block.copy_from_slice(&bf16::from_f32(self.float()).to_le_bytes());
            }
            DType::MXFP4 => return block[0] = 118 + block[0] % 4,
            DType::F16
            | DType::Q4_0
            | DType::Q5_0
            | DType::Q8_0
            | DType::IQ4_NL
            | DType::IQ4_XS => &[0],
            DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => &[0, 2],
            DType::Q2_K => &[80, 82],
            DType::Q3_K => &[108],
            DType::Q6_K => &[208],
            _ => &[],
        };
        for &at in halves {
            block[at..at + 2].copy_from_slice(&f16::from_f32(self.float() / 64.0).to_le_bytes());
        }
    }
}

//! Rounds activations to blocks of bytes.

use std::arch::x86_64::*;

use crate::kernels::activations::{BLOCK, Q8Block};
use crate::kernels::scalar::quant::{STEPS, error_of, quantise_block, scale_of, to_fractions};

/// As [`scalar`](crate::kernels::scalar::quant::quantise), and with the same bits.
///
/// # Safety
/// The CPU has AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn quantise(x: &[f32], out: &mut [Q8Block]) {
    let (blocks, rest) = x.as_chunks::<BLOCK>();
    assert!(rest.is_empty() && blocks.len() == out.len(), "32 values for each block");
    for (x, out) in blocks.iter().zip(out) {
        let vectors = load(x);
        let largest = largest(vectors);
        // What is not finite turns into other bytes here than it does there.
        *out = if f32::from_bits(largest).is_finite() {
            best_of_steps(vectors, largest)
        } else {
            quantise_block(x)
        };
    }
}

#[target_feature(enable = "avx2")]
fn load(x: &[f32; BLOCK]) -> [__m256; 4] {
    let (vectors, _) = x.as_chunks::<8>();
    // SAFETY: each chunk has the eight values that are read.
    std::array::from_fn(|i| unsafe { _mm256_loadu_ps(vectors[i].as_ptr()) })
}

/// The bits of the largest magnitude.
#[target_feature(enable = "avx2")]
fn largest(x: [__m256; 4]) -> u32 {
    let no_sign = _mm256_set1_epi32(i32::MAX);
    let [a, b, c, d] = x.map(|x| _mm256_and_si256(_mm256_castps_si256(x), no_sign));
    let eight = _mm256_max_epi32(_mm256_max_epi32(a, b), _mm256_max_epi32(c, d));
    let four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
    let two = _mm_max_epi32(four, _mm_unpackhi_epi64(four, four));
    let one = _mm_max_epi32(two, _mm_shuffle_epi32::<1>(two));
    _mm_cvtsi128_si32(one) as u32
}

#[target_feature(enable = "avx2")]
fn best_of_steps(x: [__m256; 4], largest: u32) -> Q8Block {
    let [first, others @ ..] = STEPS;
    let mut best = Rounded::new(x, scale_of(largest, first));
    for steps in others {
        let other = Rounded::new(x, scale_of(largest, steps));
        if other.error < best.error {
            best = other;
        }
    }
    best.block()
}

struct Rounded {
    /// A word for each value.
    values: [__m256i; 4],
    scale: f32,
    error: f32,
}

impl Rounded {
    #[target_feature(enable = "avx2")]
    fn new(x: [__m256; 4], scale: f32) -> Self {
        let factor = _mm256_set1_ps(to_fractions(scale));
        let fractions = x.map(|x| _mm256_cvtps_epi32(_mm256_mul_ps(x, factor)));
        let half = _mm256_set1_epi32(128);
        let values = fractions.map(|f| _mm256_srai_epi32::<8>(_mm256_add_epi32(f, half)));
        let mut errors = fractions;
        for (error, &value) in errors.iter_mut().zip(&values) {
            *error = _mm256_sub_epi32(*error, _mm256_slli_epi32::<8>(value));
        }
        let [a, b, c, d] = errors;
        let (ab, cd) = (_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        let squares = _mm256_add_epi32(_mm256_madd_epi16(ab, ab), _mm256_madd_epi16(cd, cd));
        let high = _mm256_extracti128_si256::<1>(squares);
        let squares = sum(_mm_add_epi32(_mm256_castsi256_si128(squares), high));
        Rounded { values, scale, error: error_of(squares, scale) }
    }

    #[target_feature(enable = "avx2")]
    fn block(&self) -> Q8Block {
        let [a, b, c, d] = self.values;
        let bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        // Packing works on each half of a register: words 0 2 4 6 and 1 3 5 7.
        let bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        let mut values = [0; BLOCK];
        // SAFETY: the array has the 32 bytes that are written.
        unsafe { _mm256_storeu_si256(values.as_mut_ptr().cast(), bytes) };
        let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
        let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
        let low = sum(_mm256_castsi256_si128(fours));
        let high = sum(_mm256_extracti128_si256::<1>(fours));
        let [sum, low, high] = [low + high, low, high].map(|sum| sum as f32 * self.scale);
        Q8Block { values, scale: self.scale, sum, half_sums: [low, high] }
    }
}

/// The sum of four words.
#[target_feature(enable = "avx2")]
fn sum(four: __m128i) -> i32 {
    let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<1>(two)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::scalar;

    #[test]
    fn bits_are_those_of_the_scalar_kernel() {
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        let mut x: Vec<f32> = (0..40 * BLOCK as u32)
            .map(|i| {
                (i.wrapping_mul(2_654_435_761) as f32 / 1e9 - 2.0) * 1.7f32.powi(i as i32 / 32)
            })
            .collect();
        // Halves of a step, zeros, what is too small, what is not finite.
        let steps = [127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -126.5, -0.0];
        x[..BLOCK].copy_from_slice(&steps.repeat(4));
        x[BLOCK..2 * BLOCK].fill(0.0);
        x[2 * BLOCK..3 * BLOCK].fill(1e-40);
        x[3 * BLOCK + 5] = f32::NAN;
        x[4 * BLOCK + 6] = f32::NEG_INFINITY;
        x[5 * BLOCK..6 * BLOCK].fill(f32::MIN);
        let mut blocks = [[bytemuck::Zeroable::zeroed(); 40]; 2];
        scalar::quant::quantise(&x, &mut blocks[0]);
        // SAFETY: the features were just detected; every CPU with AVX2 has the other two.
        unsafe { quantise(&x, &mut blocks[1]) };
        let [expected, found] =
            blocks.map(|blocks| blocks.map(|b| bytemuck::bytes_of(&b).to_vec()));
        assert_eq!(found, expected);
    }
}

//! Vectors of eight f32.

use std::arch::x86_64::*;

use half::f16;

use super::lanes::Avx2;
use crate::kernels::matmul::FloatLanes;
use crate::kernels::vector::{MOST, Vector};
use crate::kernels::x86::{instructions, prefetch_all};

impl Vector for Avx2 {
    const LANES: usize = 8;
    type V = __m256;

    #[inline(always)]
    fn load(self, x: &[f32]) -> __m256 {
        let x = &x[..Self::LANES];
        // SAFETY: a unit is only made where its features are enabled; the slice has the values that are read.
        unsafe { _mm256_loadu_ps(x.as_ptr()) }
    }

    #[inline(always)]
    fn load_f16(self, x: &[f16]) -> __m256 {
        let x = &x[..Self::LANES];
        // SAFETY: a unit is only made where its features are enabled; the slice has the values that are read.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(x.as_ptr().cast())) }
    }

    #[inline(always)]
    fn store(self, v: __m256, y: &mut [f32]) {
        let y = &mut y[..Self::LANES];
        // SAFETY: a unit is only made where its features are enabled; the slice has the values that are written.
        unsafe { _mm256_storeu_ps(y.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn store_f16(self, v: __m256, y: &mut [f16]) {
        let y = &mut y[..Self::LANES];
        // SAFETY: a unit is only made where its features are enabled; the slice has the values that are written.
        unsafe {
            let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v);
            _mm_storeu_si128(y.as_mut_ptr().cast(), halves);
        }
    }

    #[inline(always)]
    fn prefetch<T>(self, x: &[T]) {
        prefetch_all(x);
    }

    #[inline(always)]
    fn transpose(self, square: &mut [__m256; MOST]) {
        // SAFETY: a unit is only made where its features are enabled.
        unsafe {
            // Pairs, then fours, then eights: of two vectors, what goes to the one and to the other.
            for i in [0, 2, 4, 6] {
                let (a, b) = (square[i], square[i + 1]);
                square[i] = _mm256_unpacklo_ps(a, b);
                square[i + 1] = _mm256_unpackhi_ps(a, b);
            }
            for i in [0, 4] {
                let [a, b, c, d] = [square[i], square[i + 1], square[i + 2], square[i + 3]];
                square[i] = _mm256_shuffle_ps::<0b01_00_01_00>(a, c);
                square[i + 1] = _mm256_shuffle_ps::<0b11_10_11_10>(a, c);
                square[i + 2] = _mm256_shuffle_ps::<0b01_00_01_00>(b, d);
                square[i + 3] = _mm256_shuffle_ps::<0b11_10_11_10>(b, d);
            }
            for i in 0..4 {
                let (a, b) = (square[i], square[i + 4]);
                square[i] = _mm256_permute2f128_ps::<0x20>(a, b);
                square[i + 4] = _mm256_permute2f128_ps::<0x31>(a, b);
            }
        }
    }

    #[inline(always)]
    fn sum(self, v: __m256) -> f32 {
        FloatLanes::sum(self, v)
    }

    instructions! {
        fn splat(value: f32) -> __m256 { _mm256_set1_ps(value) }
        fn add(a: __m256, b: __m256) -> __m256 { _mm256_add_ps(a, b) }
        fn sub(a: __m256, b: __m256) -> __m256 { _mm256_sub_ps(a, b) }
        fn mul(a: __m256, b: __m256) -> __m256 { _mm256_mul_ps(a, b) }
        fn div(a: __m256, b: __m256) -> __m256 { _mm256_div_ps(a, b) }
        fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fmadd_ps(a, b, c) }
        fn min(a: __m256, b: __m256) -> __m256 { _mm256_min_ps(a, b) }
        fn max(a: __m256, b: __m256) -> __m256 { _mm256_max_ps(a, b) }
        fn if_less(a: __m256, b: __m256, then: __m256, other: __m256) -> __m256 {
            _mm256_blendv_ps(other, then, _mm256_cmp_ps::<_CMP_LT_OQ>(a, b))
        }
        fn round(a: __m256) -> __m256 {
            _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a)
        }
        fn power_of_two(n: __m256) -> __m256 {{
            let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent))
        }}
        fn swap_pairs(v: __m256) -> __m256 { _mm256_permute_ps::<0b10_11_00_01>(v) }
        fn largest(v: __m256) -> f32 {{
            let four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }}
    }
}

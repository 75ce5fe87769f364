//! Vectors of sixteen f32.

use std::arch::x86_64::*;

use half::f16;

use super::lanes::Avx512;
use crate::kernels::matmul::FloatLanes;
use crate::kernels::vector::{MOST, Vector};
use crate::kernels::x86::{instructions, prefetch_all};

impl Vector for Avx512 {
    const LANES: usize = 16;
    type V = __m512;

    #[inline(always)]
    fn load(self, x: &[f32]) -> __m512 {
        let x = &x[..Self::LANES];
        // SAFETY: a unit is only made where its features are enabled; the slice has the values that are read.
        unsafe { _mm512_loadu_ps(x.as_ptr()) }
    }

    #[inline(always)]
    fn load_f16(self, x: &[f16]) -> __m512 {
        let x = &x[..Self::LANES];
        // SAFETY: a unit is only made where its features are enabled; the slice has the values that are read.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(x.as_ptr().cast())) }
    }

    #[inline(always)]
    fn store(self, v: __m512, y: &mut [f32]) {
        let y = &mut y[..Self::LANES];
        // SAFETY: a unit is only made where its features are enabled; the slice has the values that are written.
        unsafe { _mm512_storeu_ps(y.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn store_f16(self, v: __m512, y: &mut [f16]) {
        let y = &mut y[..Self::LANES];
        // SAFETY: a unit is only made where its features are enabled; the slice has the values that are written.
        unsafe {
            let halves = _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v);
            _mm256_storeu_si256(y.as_mut_ptr().cast(), halves);
        }
    }

    #[inline(always)]
    fn prefetch<T>(self, x: &[T]) {
        prefetch_all(x);
    }

    #[inline(always)]
    fn transpose(self, square: &mut [__m512; MOST]) {
        // SAFETY: a unit is only made where its features are enabled.
        unsafe {
            // Pairs, then fours: of two vectors, what goes to the one and to the other.
            for i in (0..16).step_by(2) {
                let (a, b) = (square[i], square[i + 1]);
                square[i] = _mm512_unpacklo_ps(a, b);
                square[i + 1] = _mm512_unpackhi_ps(a, b);
            }
            for i in (0..16).step_by(4) {
                let [a, b, c, d] = [square[i], square[i + 1], square[i + 2], square[i + 3]];
                square[i] = _mm512_shuffle_ps::<0b01_00_01_00>(a, c);
                square[i + 1] = _mm512_shuffle_ps::<0b11_10_11_10>(a, c);
                square[i + 2] = _mm512_shuffle_ps::<0b01_00_01_00>(b, d);
                square[i + 3] = _mm512_shuffle_ps::<0b11_10_11_10>(b, d);
            }
            // Then quarters of vectors, as if each were one value.
            for i in 0..4 {
                let [a, b, c, d] = [square[i], square[i + 4], square[i + 8], square[i + 12]];
                let ab_low = _mm512_shuffle_f32x4::<0b01_00_01_00>(a, b);
                let ab_high = _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b);
                let cd_low = _mm512_shuffle_f32x4::<0b01_00_01_00>(c, d);
                let cd_high = _mm512_shuffle_f32x4::<0b11_10_11_10>(c, d);
                square[i] = _mm512_shuffle_f32x4::<0b10_00_10_00>(ab_low, cd_low);
                square[i + 4] = _mm512_shuffle_f32x4::<0b11_01_11_01>(ab_low, cd_low);
                square[i + 8] = _mm512_shuffle_f32x4::<0b10_00_10_00>(ab_high, cd_high);
                square[i + 12] = _mm512_shuffle_f32x4::<0b11_01_11_01>(ab_high, cd_high);
            }
        }
    }

    #[inline(always)]
    fn sum(self, v: __m512) -> f32 {
        FloatLanes::sum(self, v)
    }

    instructions! {
        fn splat(value: f32) -> __m512 { _mm512_set1_ps(value) }
        fn add(a: __m512, b: __m512) -> __m512 { _mm512_add_ps(a, b) }
        fn sub(a: __m512, b: __m512) -> __m512 { _mm512_sub_ps(a, b) }
        fn mul(a: __m512, b: __m512) -> __m512 { _mm512_mul_ps(a, b) }
        fn div(a: __m512, b: __m512) -> __m512 { _mm512_div_ps(a, b) }
        fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
        fn min(a: __m512, b: __m512) -> __m512 { _mm512_min_ps(a, b) }
        fn max(a: __m512, b: __m512) -> __m512 { _mm512_max_ps(a, b) }
        fn if_less(a: __m512, b: __m512, then: __m512, other: __m512) -> __m512 {
            _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), other, then)
        }
        fn round(a: __m512) -> __m512 {
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a)
        }
        fn power_of_two(n: __m512) -> __m512 {{
            let exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(exponent))
        }}
        fn swap_pairs(v: __m512) -> __m512 { _mm512_permute_ps::<0b10_11_00_01>(v) }
        fn largest(v: __m512) -> f32 {{
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(v)));
            let eight = _mm256_max_ps(_mm512_castps512_ps256(v), high);
            let four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }}
    }
}

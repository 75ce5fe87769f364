//! Eight weight rows at a time in 256-bit registers.

use std::arch::x86_64::*;

use crate::kernels::activations::Q8Block;
use crate::kernels::matmul::{FloatLanes, Lanes, Reads, RowGroup};
use crate::kernels::x86::{instructions, prefetch, products};

/// The unit of AVX2, FMA and F16C; with `VNNI`, also of AVX-VNNI.
#[derive(Clone, Copy)]
pub(super) struct Avx2<const VNNI: bool = false>(());

impl Avx2 {
    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn new() -> Self {
        Avx2(())
    }
}

impl Avx2<true> {
    #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
    pub(super) fn with_vnni() -> Self {
        Avx2(())
    }
}

products! { Unit::product(Q8Block) of Format:
    Avx2, "avx2,fma,f16c";
    Avx2<true>, "avx2,fma,f16c,avxvnni";
}

products! { FloatUnit::float_product(f32) of FloatFormat:
    Avx2, "avx2,fma,f16c";
}

impl<const VNNI: bool> Lanes for Avx2<VNNI> {
    const COUNT: usize = 8;
    const NARROW_MAX: i32 = if VNNI { i32::MAX } else { i16::MAX as i32 };

    type Words = __m256i;
    type Floats = __m256;

    #[inline(always)]
    fn words(self, rows: &RowGroup<'_>, at: usize) -> __m256i {
        let w = |i| i32::from_le_bytes(*rows.part(i, at));
        // SAFETY: a unit is only made where its features are enabled.
        unsafe { _mm256_setr_epi32(w(0), w(1), w(2), w(3), w(4), w(5), w(6), w(7)) }
    }

    #[inline(always)]
    fn quads(self, rows: &RowGroup<'_>, at: usize) -> [__m256i; 4] {
        let row = |i| rows.part::<16>(i, at).as_ptr().cast();
        // SAFETY: a unit is only made where its features are enabled; a part has the sixteen bytes that are read.
        unsafe {
            let row = |i| _mm_loadu_si128(row(i));
            // Row i in the low half, row i + 4 in the high one; then each half is turned on its own.
            let a = _mm256_set_m128i(row(4), row(0));
            let b = _mm256_set_m128i(row(5), row(1));
            let c = _mm256_set_m128i(row(6), row(2));
            let d = _mm256_set_m128i(row(7), row(3));
            let (ab_low, ab_high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
            let (cd_low, cd_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
            [
                _mm256_unpacklo_epi64(ab_low, cd_low),
                _mm256_unpackhi_epi64(ab_low, cd_low),
                _mm256_unpacklo_epi64(ab_high, cd_high),
                _mm256_unpackhi_epi64(ab_high, cd_high),
            ]
        }
    }

    #[inline(always)]
    fn prefetch(self, address: usize, reads: Reads) {
        prefetch(address, reads);
    }

    instructions! {
        fn splat(word: u32) -> __m256i { _mm256_set1_epi32(word as i32) }
        fn and(a: __m256i, b: __m256i) -> __m256i { _mm256_and_si256(a, b) }
        fn or(a: __m256i, b: __m256i) -> __m256i { _mm256_or_si256(a, b) }
        fn add(a: __m256i, b: __m256i) -> __m256i { _mm256_add_epi32(a, b) }
        fn sub(a: __m256i, b: __m256i) -> __m256i { _mm256_sub_epi32(a, b) }
        fn shl(a: __m256i, bits: u32) -> __m256i { _mm256_sll_epi32(a, _mm_cvtsi32_si128(bits as i32)) }
        fn shr(a: __m256i, bits: u32) -> __m256i { _mm256_srl_epi32(a, _mm_cvtsi32_si128(bits as i32)) }
        fn shr_signed(a: __m256i, bits: u32) -> __m256i { _mm256_sra_epi32(a, _mm_cvtsi32_si128(bits as i32)) }
        fn min_bytes(a: __m256i, b: __m256i) -> __m256i { _mm256_min_epu8(a, b) }
        fn repeat_byte(words: __m256i, i: usize) -> __m256i {{
            let first = 0x0101_0101 * i as i32;
            let from = |word| first + 0x0404_0404 * word;
            let quarter = _mm_setr_epi32(from(0), from(1), from(2), from(3));
            _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(quarter))
        }}
        fn look_up(table: &[i8; 16], bytes: __m256i) -> __m256i {
            _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast())), bytes)
        }
        fn widen(sum: __m256i, narrow: __m256i) -> __m256i {{
            let wide =
                if VNNI { narrow } else { _mm256_madd_epi16(narrow, _mm256_set1_epi16(1)) };
            _mm256_add_epi32(sum, wide)
        }}
        fn to_floats(ints: __m256i) -> __m256 { _mm256_cvtepi32_ps(ints) }
        fn low_half(halves: __m256i) -> __m256 {{
            let low = _mm256_and_si256(halves, _mm256_set1_epi32(0xffff));
            let packed = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256::<1>(low));
            _mm256_cvtph_ps(packed)
        }}
        fn halves(halves: __m256i) -> [__m256; 2] {{
            // Low halves then high halves within each four words, then of all words.
            let order = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
            let of_four = _mm256_shuffle_epi8(halves, _mm256_broadcastsi128_si256(order));
            let of_all = _mm256_permute4x64_epi64::<0b11_01_10_00>(of_four);
            let high = _mm256_extracti128_si256::<1>(of_all);
            [_mm256_cvtph_ps(_mm256_castsi256_si128(of_all)), _mm256_cvtph_ps(high)]
        }}
        fn bits_to_floats(bits: __m256i) -> __m256 { _mm256_castsi256_ps(bits) }
        fn splat_float(value: f32) -> __m256 { _mm256_set1_ps(value) }
        fn mul(a: __m256, b: __m256) -> __m256 { _mm256_mul_ps(a, b) }
        fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn multiply_add(
        self,
        signed: bool,
        narrow: __m256i,
        weights: __m256i,
        activations: [i8; 4],
    ) -> __m256i {
        let x = i32::from_le_bytes(activations.map(|x| x as u8));
        // SAFETY: a unit is only made where its features are enabled.
        unsafe {
            let x = _mm256_set1_epi32(x);
            // Instructions take unsigned times signed bytes, so a weight's sign goes to the activation, whose negative
            // is a byte since it is not −128; the weight's magnitude, up to 128, is an unsigned byte.
            let (w, x) = if signed {
                (_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights))
            } else {
                (weights, x)
            };
            if VNNI {
                _mm256_dpbusd_avx_epi32(narrow, w, x)
            } else {
                _mm256_add_epi16(narrow, _mm256_maddubs_epi16(w, x))
            }
        }
    }

    #[inline(always)]
    fn store(self, floats: __m256, out: &mut [f32]) {
        if let Ok(out) = <&mut [f32; 8]>::try_from(&mut *out) {
            // SAFETY: a unit is only made where its features are enabled; the array has what is written.
            unsafe { _mm256_storeu_ps(out.as_mut_ptr(), floats) }
        } else {
            let mut all = [0.0; 8];
            self.store(floats, &mut all);
            out.copy_from_slice(&all[..out.len()]);
        }
    }
}

impl FloatLanes for Avx2 {
    #[inline(always)]
    fn f32s(self, rows: &RowGroup<'_>, row: usize, at: usize) -> __m256 {
        let part = rows.part::<32>(row, at);
        // SAFETY: a unit is only made where its features are enabled; the part has the bytes that are read.
        unsafe { _mm256_loadu_ps(part.as_ptr().cast()) }
    }

    #[inline(always)]
    fn f16s(self, rows: &RowGroup<'_>, row: usize, at: usize) -> __m256 {
        let part = rows.part::<16>(row, at);
        // SAFETY: a unit is only made where its features are enabled; the part has the bytes that are read.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(part.as_ptr().cast())) }
    }

    #[inline(always)]
    fn bf16s(self, rows: &RowGroup<'_>, row: usize, at: usize) -> __m256 {
        let part = rows.part::<16>(row, at);
        // SAFETY: a unit is only made where its features are enabled; the part has the bytes that are read.
        unsafe {
            let low_halves = _mm256_cvtepu16_epi32(_mm_loadu_si128(part.as_ptr().cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(low_halves))
        }
    }

    #[inline(always)]
    fn sum(self, floats: __m256) -> f32 {
        // SAFETY: a unit is only made where its features are enabled.
        unsafe {
            let four =
                _mm_add_ps(_mm256_castps256_ps128(floats), _mm256_extractf128_ps::<1>(floats));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
}

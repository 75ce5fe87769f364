//! Sixteen weight rows at a time in 512-bit registers.

use std::arch::x86_64::*;

use crate::kernels::activations::Q8Block;
use crate::kernels::matmul::{FloatLanes, Lanes, Reads, RowGroup};
use crate::kernels::x86::{instructions, prefetch, products};

/// The unit of AVX-512 F and BW; with `VNNI`, also of AVX-512 VNNI.
#[derive(Clone, Copy)]
pub(super) struct Avx512<const VNNI: bool = false>(());

impl Avx512 {
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn new() -> Self {
        Avx512(())
    }
}

impl Avx512<true> {
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn with_vnni() -> Self {
        Avx512(())
    }
}

products! { Unit::product(Q8Block) of Format:
    Avx512, "avx512f,avx512bw";
    Avx512<true>, "avx512f,avx512bw,avx512vnni";
}

products! { FloatUnit::float_product(f32) of FloatFormat:
    Avx512, "avx512f,avx512bw";
}

impl<const VNNI: bool> Lanes for Avx512<VNNI> {
    const COUNT: usize = 16;
    const NARROW_MAX: i32 = if VNNI { i32::MAX } else { i16::MAX as i32 };

    type Words = __m512i;
    type Floats = __m512;

    #[inline(always)]
    fn words(self, rows: &RowGroup<'_>, at: usize) -> __m512i {
        let w = |i| i32::from_le_bytes(*rows.part(i, at));
        // SAFETY: a unit is only made where its features are enabled.
        unsafe {
            #[rustfmt::skip]
            let words = _mm512_setr_epi32(
                w(0), w(1), w(2), w(3), w(4), w(5), w(6), w(7),
                w(8), w(9), w(10), w(11), w(12), w(13), w(14), w(15),
            );
            words
        }
    }

    #[inline(always)]
    fn quads(self, rows: &RowGroup<'_>, at: usize) -> [__m512i; 4] {
        let row = |i| rows.part::<16>(i, at).as_ptr().cast();
        // SAFETY: a unit is only made where its features are enabled; a part has the sixteen bytes that are read.
        unsafe {
            // Rows i, i + 4, i + 8 and i + 12 in the quarters; then each quarter is turned on its own.
            let four_rows = |i| {
                let first = _mm512_castsi128_si512(_mm_loadu_si128(row(i)));
                let two = _mm512_inserti32x4::<1>(first, _mm_loadu_si128(row(i + 4)));
                let three = _mm512_inserti32x4::<2>(two, _mm_loadu_si128(row(i + 8)));
                _mm512_inserti32x4::<3>(three, _mm_loadu_si128(row(i + 12)))
            };
            let (a, b, c, d) = (four_rows(0), four_rows(1), four_rows(2), four_rows(3));
            let (ab_low, ab_high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
            let (cd_low, cd_high) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
            [
                _mm512_unpacklo_epi64(ab_low, cd_low),
                _mm512_unpackhi_epi64(ab_low, cd_low),
                _mm512_unpacklo_epi64(ab_high, cd_high),
                _mm512_unpackhi_epi64(ab_high, cd_high),
            ]
        }
    }

    #[inline(always)]
    fn prefetch(self, address: usize, reads: Reads) {
        prefetch(address, reads);
    }

    instructions! {
        fn splat(word: u32) -> __m512i { _mm512_set1_epi32(word as i32) }
        fn and(a: __m512i, b: __m512i) -> __m512i { _mm512_and_si512(a, b) }
        fn or(a: __m512i, b: __m512i) -> __m512i { _mm512_or_si512(a, b) }
        fn add(a: __m512i, b: __m512i) -> __m512i { _mm512_add_epi32(a, b) }
        fn sub(a: __m512i, b: __m512i) -> __m512i { _mm512_sub_epi32(a, b) }
        fn shl(a: __m512i, bits: u32) -> __m512i { _mm512_sll_epi32(a, _mm_cvtsi32_si128(bits as i32)) }
        fn shr(a: __m512i, bits: u32) -> __m512i { _mm512_srl_epi32(a, _mm_cvtsi32_si128(bits as i32)) }
        fn shr_signed(a: __m512i, bits: u32) -> __m512i { _mm512_sra_epi32(a, _mm_cvtsi32_si128(bits as i32)) }
        fn min_bytes(a: __m512i, b: __m512i) -> __m512i { _mm512_min_epu8(a, b) }
        fn repeat_byte(words: __m512i, i: usize) -> __m512i {{
            let first = 0x0101_0101 * i as i32;
            let from = |word| first + 0x0404_0404 * word;
            let quarter = _mm_setr_epi32(from(0), from(1), from(2), from(3));
            _mm512_shuffle_epi8(words, _mm512_broadcast_i32x4(quarter))
        }}
        fn look_up(table: &[i8; 16], bytes: __m512i) -> __m512i {
            _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())), bytes)
        }
        fn widen(sum: __m512i, narrow: __m512i) -> __m512i {{
            let wide =
                if VNNI { narrow } else { _mm512_madd_epi16(narrow, _mm512_set1_epi16(1)) };
            _mm512_add_epi32(sum, wide)
        }}
        fn to_floats(ints: __m512i) -> __m512 { _mm512_cvtepi32_ps(ints) }
        fn low_half(halves: __m512i) -> __m512 { _mm512_cvtph_ps(_mm512_cvtepi32_epi16(halves)) }
        fn halves(halves: __m512i) -> [__m512; 2] {{
            let high = _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(halves));
            [_mm512_cvtph_ps(_mm512_cvtepi32_epi16(halves)), _mm512_cvtph_ps(high)]
        }}
        fn bits_to_floats(bits: __m512i) -> __m512 { _mm512_castsi512_ps(bits) }
        fn splat_float(value: f32) -> __m512 { _mm512_set1_ps(value) }
        fn mul(a: __m512, b: __m512) -> __m512 { _mm512_mul_ps(a, b) }
        fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn multiply_add(
        self,
        signed: bool,
        narrow: __m512i,
        weights: __m512i,
        activations: [i8; 4],
    ) -> __m512i {
        let x = i32::from_le_bytes(activations.map(|x| x as u8));
        // SAFETY: a unit is only made where its features are enabled.
        unsafe {
            let x = _mm512_set1_epi32(x);
            // Instructions take unsigned times signed bytes, so a weight's sign goes to the activation, whose negative
            // is a byte since it is not −128; the weight's magnitude, up to 128, is an unsigned byte.
            let (w, x) = if signed {
                let negative = _mm512_movepi8_mask(weights);
                let zero = _mm512_setzero_si512();
                (_mm512_abs_epi8(weights), _mm512_mask_sub_epi8(x, negative, zero, x))
            } else {
                (weights, x)
            };
            if VNNI {
                _mm512_dpbusd_epi32(narrow, w, x)
            } else {
                _mm512_add_epi16(narrow, _mm512_maddubs_epi16(w, x))
            }
        }
    }

    #[inline(always)]
    fn store(self, floats: __m512, out: &mut [f32]) {
        if let Ok(out) = <&mut [f32; 16]>::try_from(&mut *out) {
            // SAFETY: a unit is only made where its features are enabled; the array has what is written.
            unsafe { _mm512_storeu_ps(out.as_mut_ptr(), floats) }
        } else {
            let mut all = [0.0; 16];
            self.store(floats, &mut all);
            out.copy_from_slice(&all[..out.len()]);
        }
    }
}

impl FloatLanes for Avx512 {
    #[inline(always)]
    fn f32s(self, rows: &RowGroup<'_>, row: usize, at: usize) -> __m512 {
        let part = rows.part::<64>(row, at);
        // SAFETY: a unit is only made where its features are enabled; the part has the bytes that are read.
        unsafe { _mm512_loadu_ps(part.as_ptr().cast()) }
    }

    #[inline(always)]
    fn f16s(self, rows: &RowGroup<'_>, row: usize, at: usize) -> __m512 {
        let part = rows.part::<32>(row, at);
        // SAFETY: a unit is only made where its features are enabled; the part has the bytes that are read.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(part.as_ptr().cast())) }
    }

    #[inline(always)]
    fn bf16s(self, rows: &RowGroup<'_>, row: usize, at: usize) -> __m512 {
        let part = rows.part::<32>(row, at);
        // SAFETY: a unit is only made where its features are enabled; the part has the bytes that are read.
        unsafe {
            let low_halves = _mm512_cvtepu16_epi32(_mm256_loadu_si256(part.as_ptr().cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(low_halves))
        }
    }

    #[inline(always)]
    fn sum(self, floats: __m512) -> f32 {
        // SAFETY: a unit is only made where its features are enabled.
        unsafe {
            let high = _mm512_castps_pd(floats);
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(high));
            let eight = _mm256_add_ps(_mm512_castps512_ps256(floats), high);
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
}

//! Loops that do nothing but multiply and add, on registers, for the most capable instruction set that the CPU has.

use std::hint::black_box;

/// Rounds of a loop.
const ROUNDS: usize = 1 << 19;

/// Multiplies and adds f32; returns how many operations that was.
pub(super) fn floats() -> f64 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature was just detected.
            return unsafe { x86::floats_avx512() };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the features were just detected.
            return unsafe { x86::floats_avx2() };
        }
    }
    let mut sums = black_box([0.5f32; 32]);
    for _ in 0..ROUNDS {
        sums.iter_mut().for_each(|sum| *sum = *sum * 0.5 + 0.5);
    }
    black_box(sums);
    (ROUNDS * 32 * 2) as f64
}

/// Multiplies and adds bytes; returns how many operations that was.
pub(super) fn bytes() -> f64 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512bw") {
            // SAFETY: the features were just detected.
            return unsafe { x86::bytes_avx512_vnni() };
        }
        if is_x86_feature_detected!("avx512bw") {
            // SAFETY: the feature was just detected.
            return unsafe { x86::bytes_avx512() };
        }
        if is_x86_feature_detected!("avxvnni") {
            // SAFETY: the feature was just detected.
            return unsafe { x86::bytes_avx_vnni() };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the feature was just detected.
            return unsafe { x86::bytes_avx2() };
        }
    }
    let mut sums = black_box([3i16; 32]);
    for _ in 0..ROUNDS {
        sums.iter_mut().for_each(|sum| *sum = sum.wrapping_mul(5).wrapping_add(7));
    }
    black_box(sums);
    (ROUNDS * 32 * 2) as f64
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{ROUNDS, black_box};

    /// Defines a loop over more sums than an instruction takes cycles. Each round reads what the one before wrote, so that
    /// no part of it can be done once for all.
    macro_rules! peak {
        ($name:ident, $features:literal, $products:literal products, $start:expr, |$s:ident| $step:expr) => {
            #[target_feature(enable = $features)]
            pub(super) fn $name() -> f64 {
                const SUMS: usize = 14;
                let mut sums = black_box([$start; SUMS]);
                for _ in 0..ROUNDS {
                    for sum in &mut sums {
                        let $s = *sum;
                        *sum = $step;
                    }
                }
                black_box(sums);
                (ROUNDS * SUMS * $products * 2) as f64
            }
        };
    }

    peak!(floats_avx2, "avx2,fma", 8 products, _mm256_set1_ps(0.5), |s| {
        _mm256_fmadd_ps(s, s, s)
    });
    peak!(floats_avx512, "avx512f", 16 products, _mm512_set1_ps(0.5), |s| {
        _mm512_fmadd_ps(s, s, s)
    });
    peak!(bytes_avx2, "avx2", 32 products, _mm256_set1_epi8(3), |s| {
        _mm256_add_epi16(s, _mm256_maddubs_epi16(s, s))
    });
    peak!(bytes_avx_vnni, "avxvnni", 32 products, _mm256_set1_epi8(3), |s| {
        _mm256_dpbusd_avx_epi32(s, s, s)
    });
    peak!(bytes_avx512, "avx512bw", 64 products, _mm512_set1_epi8(3), |s| {
        _mm512_add_epi16(s, _mm512_maddubs_epi16(s, s))
    });
    peak!(bytes_avx512_vnni, "avx512vnni,avx512bw", 64 products, _mm512_set1_epi8(3), |s| {
        _mm512_dpbusd_epi32(s, s, s)
    });
}

//! Kernels for CPUs with AVX-512 F and BW.

mod lanes;
mod vectors;

use self::lanes::Avx512;
// Rounding activations takes a small part of the time; wider registers would gain nothing that shows.
pub(crate) use super::avx2::quant;

super::x86::kernels! { Avx512, "avx512f,avx512bw", vnni "avx512f,avx512bw,avx512vnni" }

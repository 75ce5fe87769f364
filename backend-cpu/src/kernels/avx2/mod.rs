//! Kernels for CPUs with AVX2, FMA and F16C.

mod lanes;
pub(crate) mod quant;
mod vectors;

use self::lanes::Avx2;

super::x86::kernels! { Avx2, "avx2,fma,f16c", vnni "avx2,fma,f16c,avxvnni" }

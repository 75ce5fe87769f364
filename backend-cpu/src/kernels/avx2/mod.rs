//! Kernels for CPUs with AVX2, FMA and F16C.

mod lanes;
pub mod matmul;
pub mod quant;

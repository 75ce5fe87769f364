//! Kernels for CPUs with AVX2, FMA and F16C.

pub(crate) mod add;
pub(crate) mod attention;
pub(crate) mod convert;
pub(crate) mod glu;
mod lanes;
pub(crate) mod matmul;
pub(crate) mod norm;
pub(crate) mod quant;
pub(crate) mod rope;
pub(crate) mod vectors;

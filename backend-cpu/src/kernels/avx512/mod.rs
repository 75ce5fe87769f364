//! Kernels for CPUs with AVX-512 F and BW.

pub(crate) mod add;
pub(crate) mod attention;
pub(crate) mod convert;
pub(crate) mod glu;
mod lanes;
pub(crate) mod matmul;
pub(crate) mod norm;
pub(crate) mod rope;
mod vectors;

// Rounding activations takes a small part of the time; wider registers would gain nothing that shows.
pub(crate) use super::avx2::quant;

//! Kernels for CPUs with AVX-512 F and BW.

mod lanes;
pub(crate) mod matmul;

// Rounding activations takes a small part of the time; wider registers would gain nothing that shows.
pub(crate) use super::avx2::quant;
pub(crate) use super::avx2::{add, attention, convert, glu, norm, rope};

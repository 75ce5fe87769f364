//! Kernels for any CPU, and what the others are measured against.

pub mod matmul;
pub mod quant;

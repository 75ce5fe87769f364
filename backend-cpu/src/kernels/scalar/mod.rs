//! Kernels for any CPU, and what the others are measured against.

pub mod add;
pub mod attention;
pub mod convert;
pub mod glu;
mod lanes;
pub mod matmul;
pub mod norm;
pub mod quant;
pub mod rope;

//! Kernels: arithmetic on slices, one folder per instruction set; nothing here knows ops, buffers or threads.

pub mod activations;
pub mod args;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub mod dequant;
pub mod heads;
mod matmul;
pub mod scalar;
#[cfg(target_arch = "x86_64")]
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

//! Kernels: arithmetic on slices, one folder per instruction set; nothing here knows ops, buffers or threads.

pub mod activations;
pub mod args;
pub mod dequant;
pub mod heads;
pub mod scalar;

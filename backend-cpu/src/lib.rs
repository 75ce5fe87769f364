//! Runs ops on the CPU.

pub mod kernels;

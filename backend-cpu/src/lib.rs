//! Runs ops on the CPU.
//!
//! Buffers are host memory, one submit runs on a team of threads, and kernels are chosen for the instruction sets that
//! the CPU has when the backend is made. A second backend computes with the same kernels but behaves like a GPU: it has
//! memory of its own under a cap, two queues, and a link of a set rate. Both can be slowed down to a set pace, to stand for
//! devices that this machine does not have. The crate knows ops and no models. Unsafe code is in `table`, `threads` and
//! `kernels` only.
#![deny(unsafe_code)]

mod arena;
mod backend;
mod host;
#[allow(unsafe_code, reason = "raw access to vectors, and to columns that threads share")]
pub mod kernels;
mod ops;
mod pace;
mod simulated;
#[allow(unsafe_code, reason = "calls kernels for instruction sets that it detected")]
mod table;
#[allow(unsafe_code, reason = "memory that threads share")]
mod threads;
mod wave;

pub use backend::{CpuBackend, CpuOptions};
pub use pace::Pace;
pub use simulated::{Faults, SimOptions, SimulatedGpu};
pub use table::{Isa, KernelTable};

//! Micro-benchmarks: what a planner must know about a machine, measured through the [`Backend`] trait.
//!
//! Owns what is measured and how; knows no model, no kind of device and no file. Times are taken as a model would see them:
//! weights and KV cells come from memory and not from a cache, activations come from the op before, and ops run in lists.
//!
//! [`Backend`]: crate::backend::Backend

mod attention;
mod bench;
mod effort;
mod error;
mod figure;
mod kernels;
mod light;
mod link;
mod pass;
mod pool;
mod products;
mod profile;
mod stopwatch;

pub use effort::{Effort, Size};
pub use error::MeasureError;
pub use figure::{Figure, Noisy};
pub use profile::{Devices, Measured, Subject, measure};
pub use stopwatch::{Progress, Watcher};

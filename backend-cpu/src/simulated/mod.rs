//! A GPU that is not there. Real are time, asynchrony and the cap on memory; its arithmetic is that of the CPU's kernels.
//!
//! Nothing here knows an op: that is the runner's business, as on the CPU.

mod backend;
mod lanes;
mod link;
mod options;
mod progress;
mod queue;

pub use backend::SimulatedGpu;
pub use options::{Faults, SimOptions};

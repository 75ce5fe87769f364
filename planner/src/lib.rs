//! What the planner and the engine share: physical units and the three places a shard can live.
//!
//! This crate sees numbers only. It knows no tensors, devices, clocks or files.
#![forbid(unsafe_code)]

mod placement;
mod units;

pub use placement::{Placement, Tier};
pub use units::{Bytes, BytesPerSec, Flops, FlopsPerSec, Seconds};

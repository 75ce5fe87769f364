//! Each kind of op with its memory at hand: views resolved, the output cut into tiles, and the kernel call for a tile.
//!
//! A file per family of ops. Nothing here knows how threads meet.

mod attention;
mod elementwise;
mod experts;
mod matmul;
mod norm;
mod quantised;
mod rope;
mod rows;
mod task;

pub(crate) use quantised::Quantised;
pub(crate) use task::{Bench, Task};

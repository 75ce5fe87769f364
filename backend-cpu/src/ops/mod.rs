//! Each kind of op with its memory at hand: views resolved, the output cut into tiles, and the kernel call for a tile.
//!
//! A file per family of ops. Nothing here knows how threads meet.

mod attention;
mod cut;
mod elementwise;
mod experts;
mod kept;
mod matmul;
mod norm;
mod rope;
mod rows;
mod supported;
mod task;

pub(crate) use supported::supports;
pub(crate) use task::{Bench, Shared, Task};

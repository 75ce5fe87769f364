//! Model files: what tensors there are, how they are stored, where their bytes lie.

mod dtype;
mod metadata;

pub use dtype::{Block, DType};
pub use metadata::{Array, Metadata, Value};

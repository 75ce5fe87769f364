//! Model files: what tensors there are, how they are stored, where their bytes lie.

mod dtype;
mod gguf;
mod looks;
mod metadata;
mod mmap;
mod parts;
mod store;
mod tensor;

pub use dtype::{Block, DType};
pub use gguf::{Gguf, GgufError, GgufFault, GgufHeader, Reading};
pub use looks::Looks;
pub use metadata::{Array, Metadata, Value};
pub use mmap::{MapError, map_file};
pub use store::{DuplicateTensor, WeightFile, Weights};
pub use tensor::{Shape, TensorInfo, TensorType, UnknownFormat};

//! Model files: what tensors there are, how they are stored, where their bytes lie.

mod checkpoint;
mod dtype;
mod folder;
mod gguf;
mod looks;
mod metadata;
mod mmap;
mod open;
mod parts;
mod safetensors;
mod store;
mod tensor;
mod text;

pub use checkpoint::{Checkpoint, CheckpointError};
pub use dtype::{Block, DType};
pub use gguf::{Gguf, GgufError, GgufFault, GgufHeader, Reading};
pub use looks::Looks;
pub use metadata::{Array, Metadata, Value};
pub use mmap::{MapError, map_file};
pub use open::{ModelFiles, OpenError};
pub use safetensors::{SafetensorsFault, SafetensorsHeader};
pub use store::{DuplicateTensor, WeightFile, Weights};
pub use tensor::{Shape, TensorInfo, TensorType, UnknownFormat};
pub use text::{Listed, Name};

//! Model files: what tensors there are, how they are stored, where their bytes lie.
//!
//! [`ModelFiles::open`] takes a path to either kind of model. Files are mapped, not read: [`Weights`] gives each tensor
//! as a part of a mapped file. Everything a file says about itself is checked when it is opened, so that a bad one is an
//! error then and not a wrong answer later. Nothing here knows a model family, a device or a plan.

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
mod tensor_fault;
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
pub use tensor_fault::TensorFault;
pub use text::{Listed, Name};

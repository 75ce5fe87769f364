//! Reads a Hugging Face checkpoint: a folder with `config.json`, tokenizer files, and `*.safetensors`.

mod error;
mod files;
mod open;

pub use error::CheckpointError;
pub use open::Checkpoint;

//! What can be wrong with a checkpoint.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::super::text::{Listed, Name};
use super::super::{DuplicateTensor, MapError, SafetensorsFault};

/// Why a checkpoint could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A file of weights could not be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A file or folder could not be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// The bytes of a file of weights are not what they should be.
    #[error("{}: {fault}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: SafetensorsFault,
    },
    /// A file that must hold a JSON object does not.
    #[error("{}: is damaged: {source}; fetch it again", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// There is no `config.json`.
    #[error("{}: has no config.json; fetch it from where the weights came from", folder.display())]
    NoConfig {
        /// The folder.
        folder: PathBuf,
    },
    /// There are no weights that Baton reads.
    #[error(
        "{}: has no *.safetensors{}; fetch the model as safetensors or GGUF",
        folder.display(), but_has(other)
    )]
    NoWeights {
        /// The folder.
        folder: PathBuf,
        /// Weights in another form.
        other: Vec<String>,
    },
    /// Several files of weights, and nothing that says how they belong together.
    #[error(
        "{}: holds several files of weights and no model.safetensors.index.json: {}; leave one model in the folder",
        folder.display(), Listed(files)
    )]
    SeveralWeights {
        /// The folder.
        folder: PathBuf,
        /// Their names.
        files: Vec<String>,
    },
    /// Files that the index or the names of other parts promise are not there.
    #[error(
        "{}: {} files of weights are missing: {}; fetch them into the same folder",
        folder.display(), missing.len(), Listed(missing)
    )]
    MissingFiles {
        /// The folder.
        folder: PathBuf,
        /// Their names.
        missing: Vec<String>,
    },
    /// The index names something that is no file of the folder.
    #[error("{}: names {file:?} for tensor `{tensor}`, which is no file name", index.display())]
    IndexFileName {
        /// The index.
        index: PathBuf,
        /// The tensor.
        tensor: Name,
        /// What it names.
        file: String,
    },
    /// The index promises a tensor that its file does not hold.
    #[error(
        "{}: promises tensor `{tensor}` in {file:?}, which does not hold it; fetch both from one place",
        index.display()
    )]
    IndexTensor {
        /// The index.
        index: PathBuf,
        /// The tensor.
        tensor: Name,
        /// Name of the file.
        file: String,
    },
    /// A tensor in two files.
    #[error(transparent)]
    DuplicateTensor(#[from] DuplicateTensor),
}

fn but_has(other: &[String]) -> String {
    if other.is_empty() { String::new() } else { format!(", but {}", Listed(other)) }
}

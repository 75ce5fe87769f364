//! Opens a model of either kind, by looking at what a path leads to.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::folder::file_names;
use super::looks::Looks;
use super::parts::PartName;
use super::text::Listed;
use super::{Checkpoint, CheckpointError, Gguf, GgufError, Weights};

/// An open model.
#[derive(Debug, Clone)]
pub enum ModelFiles {
    /// One GGUF file or all parts of a split one.
    Gguf(Gguf),
    /// A Hugging Face folder.
    Checkpoint(Checkpoint),
}

impl From<Gguf> for ModelFiles {
    fn from(gguf: Gguf) -> ModelFiles {
        ModelFiles::Gguf(gguf)
    }
}

impl From<Checkpoint> for ModelFiles {
    fn from(checkpoint: Checkpoint) -> ModelFiles {
        ModelFiles::Checkpoint(checkpoint)
    }
}

/// Why a path could not be opened as a model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is nothing at that path.
    #[error("{}: there is no such file or folder", path.display())]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// There is something at that path, but neither a file nor a folder.
    #[error("{}: is neither a file nor a folder", path.display())]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },
    /// The file is no model that can be opened by itself.
    #[error("{}: is not a model file: it looks like {looks}{}", path.display(), looks.advice())]
    NotAModel {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        looks: Looks,
    },
    /// The folder holds no model.
    #[error(
        "{}: holds no model; a model is a GGUF file, or a folder with config.json and *.safetensors",
        folder.display()
    )]
    NoModel {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds more than one model.
    #[error("{}: holds {} models: {}; name one of them", folder.display(), models.len(), Listed(models))]
    SeveralModels {
        /// The folder.
        folder: PathBuf,
        /// Their files; of split ones the first part.
        models: Vec<String>,
    },
    /// A GGUF model that cannot be opened.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// A checkpoint that cannot be opened.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

impl ModelFiles {
    /// Opens the model at a path: a GGUF file, any part of a split one, or a folder.
    ///
    /// A folder with `config.json` and `*.safetensors` is a checkpoint. Otherwise it must hold one GGUF model;
    /// projectors of vision models (`mmproj*.gguf`) do not count.
    ///
    /// # Errors
    /// If there is no model at the path, or it cannot be opened.
    pub fn open(path: &Path) -> Result<ModelFiles, OpenError> {
        let kind = match std::fs::metadata(path) {
            Ok(kind) => kind,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::NotFound { path: path.to_owned() });
            }
            Err(source) => return Err(OpenError::Io { path: path.to_owned(), source }),
        };
        if kind.is_dir() {
            open_folder(path)
        } else if kind.is_file() {
            open_file(path)
        } else {
            Err(OpenError::NotAFile { path: path.to_owned() })
        }
    }

    /// The tensors.
    pub fn weights(&self) -> &Weights {
        match self {
            ModelFiles::Gguf(gguf) => &gguf.weights,
            ModelFiles::Checkpoint(checkpoint) => &checkpoint.weights,
        }
    }
}

fn open_file(path: &Path) -> Result<ModelFiles, OpenError> {
    let looks = look(path).map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
    match looks {
        Looks::Gguf => Ok(Gguf::open(path)?.into()),
        looks => Err(OpenError::NotAModel { path: path.to_owned(), looks }),
    }
}

fn look(path: &Path) -> io::Result<Looks> {
    let mut head = Vec::new();
    File::open(path)?.take(Looks::HEAD_BYTES as u64).read_to_end(&mut head)?;
    Ok(Looks::of(&head))
}

fn open_folder(folder: &Path) -> Result<ModelFiles, OpenError> {
    let names =
        file_names(folder).map_err(|source| OpenError::Io { path: folder.to_owned(), source })?;
    let models: BTreeSet<String> = names.iter().filter_map(|name| gguf_model(name)).collect();
    let models = Vec::from_iter(models);
    let has_config = names.contains("config.json");
    let has_safetensors = names.iter().any(|name| name.ends_with(".safetensors"));
    let folder = folder.to_owned();
    match &models[..] {
        _ if has_config && has_safetensors => Ok(Checkpoint::open(&folder)?.into()),
        [model] => Ok(Gguf::open(&folder.join(model))?.into()),
        // Opening says what is missing.
        [] if has_config || has_safetensors => Ok(Checkpoint::open(&folder)?.into()),
        [] => Err(OpenError::NoModel { folder }),
        _ => Err(OpenError::SeveralModels { folder, models }),
    }
}

/// The name under which a file of a folder is opened as a GGUF model: its own, or that of the first part.
fn gguf_model(file_name: &str) -> Option<String> {
    if !file_name.ends_with(".gguf") || file_name.starts_with("mmproj") {
        return None;
    }
    let first = PartName::parse(file_name, "gguf").and_then(|part| part.all().next());
    Some(first.map_or_else(|| file_name.to_owned(), |part| part.to_string()))
}

//! Opens a checkpoint: its JSON files and its weights.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::super::{SafetensorsHeader, TensorInfo, WeightFile, Weights, map_file};
use super::CheckpointError;
use super::files::{self, Index};

/// An open checkpoint. The bytes of its tensors stay in the mapped files.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    folder: PathBuf,
    /// `config.json`, an object.
    pub config: Value,
    /// `generation_config.json`, an object, where there is one.
    pub generation_config: Option<Value>,
    /// Tensors of all files.
    pub weights: Weights,
}

impl Checkpoint {
    /// Opens the checkpoint in a folder.
    ///
    /// # Errors
    /// If `config.json` or the weights are missing, a file cannot be read or is damaged, or the files do not belong
    /// together.
    pub fn open(folder: &Path) -> Result<Checkpoint, CheckpointError> {
        let config = json(folder, "config.json")?
            .ok_or_else(|| CheckpointError::NoConfig { folder: folder.to_owned() })?;
        let generation_config = json(folder, "generation_config.json")?;
        let weights = weights(folder)?;
        Ok(Checkpoint { folder: folder.to_owned(), config, generation_config, weights })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where `tokenizer.json` is, or would be.
    pub fn tokenizer_path(&self) -> PathBuf {
        self.folder.join("tokenizer.json")
    }

    /// The JSON object in another file of the folder, such as `tokenizer_config.json`; `None` when there is no such
    /// file.
    ///
    /// # Errors
    /// If the file cannot be read or does not hold a JSON object.
    pub fn json(&self, file_name: &str) -> Result<Option<Value>, CheckpointError> {
        json(&self.folder, file_name)
    }
}

fn json(folder: &Path, file_name: &str) -> Result<Option<Value>, CheckpointError> {
    let path = folder.join(file_name);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(CheckpointError::Io { path, source }),
    };
    match serde_json::from_slice::<Map<String, Value>>(&text) {
        Ok(object) => Ok(Some(Value::Object(object))),
        Err(source) => Err(CheckpointError::Json { path, source }),
    }
}

fn weights(folder: &Path) -> Result<Weights, CheckpointError> {
    let files = files::choose(folder)?;
    let mut parts = Vec::new();
    for name in &files.names {
        let path = folder.join(name);
        let region = map_file(&path)?;
        match SafetensorsHeader::parse(region.bytes()) {
            Ok(header) => parts.push((WeightFile { path, region }, header.tensors)),
            Err(fault) => return Err(CheckpointError::Bad { path, fault }),
        }
    }
    let weights = Weights::new(parts)?;
    if let Some(index) = files.index {
        check_index(&weights, index)?;
    }
    Ok(weights)
}

/// Every tensor of the index is in the file that it names. Tensors that it does not name are kept: they are there.
fn check_index(weights: &Weights, index: Index) -> Result<(), CheckpointError> {
    let holds = |tensor: &TensorInfo, file: &str| weights.path(tensor).ends_with(file);
    let broken = index
        .promised
        .into_iter()
        .find(|(tensor, file)| !weights.get(tensor).is_some_and(|found| holds(found, file)));
    match broken {
        None => Ok(()),
        Some((tensor, file)) => {
            let tensor = tensor.into();
            Err(CheckpointError::IndexTensor { index: index.path, tensor, file })
        }
    }
}

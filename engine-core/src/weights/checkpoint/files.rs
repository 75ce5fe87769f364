//! Decides which files of a folder hold the weights.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::super::folder::file_names;
use super::super::parts::PartName;
use super::CheckpointError;

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
const EXTENSION: &str = "safetensors";

/// The names of the files that hold the weights, in order, and what an index promises of them.
pub(super) struct WeightFiles {
    pub names: Vec<String>,
    pub index: Option<Index>,
}

/// Which file holds which tensor.
pub(super) struct Index {
    pub path: PathBuf,
    /// Tensor → file.
    pub promised: BTreeMap<String, String>,
}

/// Chooses as the reference implementation does: `model.safetensors`, else the files that the index names. Without
/// either, the only `*.safetensors`, or the parts of one split file.
pub(super) fn choose(folder: &Path) -> Result<WeightFiles, CheckpointError> {
    let present = file_names(folder)
        .map_err(|source| CheckpointError::Io { path: folder.to_owned(), source })?;
    let (names, index) = if present.contains(SINGLE) {
        (vec![SINGLE.to_owned()], None)
    } else if present.contains(INDEX) {
        let index = Index::read(folder.join(INDEX))?;
        let names: BTreeSet<&String> = index.promised.values().collect();
        (names.into_iter().cloned().collect(), Some(index))
    } else {
        (without_index(folder, &present)?, None)
    };
    let missing: Vec<String> =
        names.iter().filter(|name| !present.contains(*name)).cloned().collect();
    if !missing.is_empty() {
        return Err(CheckpointError::MissingFiles { folder: folder.to_owned(), missing });
    }
    Ok(WeightFiles { names, index })
}

fn without_index(
    folder: &Path,
    present: &BTreeSet<String>,
) -> Result<Vec<String>, CheckpointError> {
    let suffix = format!(".{EXTENSION}");
    let files: Vec<&String> = present.iter().filter(|name| name.ends_with(&suffix)).collect();
    let folder = folder.to_owned();
    let Some(first) = files.first() else {
        let other = present.iter().filter(|name| is_other_weights(name)).cloned().collect();
        return Err(CheckpointError::NoWeights { folder, other });
    };
    let promised: Vec<String> = match PartName::parse(first, EXTENSION) {
        Some(part) => part.all().map(|part| part.to_string()).collect(),
        None => vec![(*first).clone()],
    };
    if files.iter().any(|file| !promised.contains(file)) {
        let files = files.into_iter().cloned().collect();
        return Err(CheckpointError::SeveralWeights { folder, files });
    }
    Ok(promised)
}

fn is_other_weights(name: &str) -> bool {
    [".bin", ".pth", ".pt", ".ckpt", ".h5", ".msgpack", ".npz"]
        .iter()
        .any(|suffix| name.ends_with(suffix))
}

impl Index {
    fn read(path: PathBuf) -> Result<Index, CheckpointError> {
        #[derive(Deserialize)]
        struct File {
            weight_map: BTreeMap<String, String>,
        }
        let text = std::fs::read(&path)
            .map_err(|source| CheckpointError::Io { path: path.clone(), source })?;
        let File { weight_map } = serde_json::from_slice(&text)
            .map_err(|source| CheckpointError::Json { path: path.clone(), source })?;
        // A name with folders in it could lead anywhere on this machine.
        let odd =
            weight_map.iter().find(|(_, file)| Path::new(file).file_name() != Some(file.as_ref()));
        match odd {
            None => Ok(Index { path, promised: weight_map }),
            Some((tensor, file)) => Err(CheckpointError::IndexFileName {
                index: path,
                tensor: tensor.as_str().into(),
                file: file.clone(),
            }),
        }
    }
}

//! All tensors of a model over its mapped files: name → description → bytes. Knows no file format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use planner::Bytes;
use thiserror::Error;

use super::text::Name;
use super::{TensorInfo, UnknownFormat};
use crate::backend::{HostRegion, HostSlice};

/// One mapped file of a model.
#[derive(Debug, Clone)]
pub struct WeightFile {
    /// Where it was found.
    pub path: PathBuf,
    /// Its bytes.
    pub region: Arc<HostRegion>,
}

/// Two files of a model hold a tensor of one name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("tensor `{tensor}` is in both {} and {}", first.display(), second.display())]
#[non_exhaustive]
pub struct DuplicateTensor {
    /// Name of the tensor.
    pub tensor: Name,
    /// The file that comes first.
    pub first: PathBuf,
    /// The other file.
    pub second: PathBuf,
}

/// The tensors of a model, in the order of its files.
#[derive(Debug, Clone)]
pub struct Weights {
    files: Vec<WeightFile>,
    tensors: Vec<TensorInfo>,
    /// Indices of `tensors`, sorted by name.
    by_name: Vec<usize>,
}

impl Weights {
    /// Joins files with the tensors that each of them holds, already checked to lie inside it.
    pub(super) fn new(
        parts: impl IntoIterator<Item = (WeightFile, Vec<TensorInfo>)>,
    ) -> Result<Weights, DuplicateTensor> {
        let (mut files, mut tensors) = (Vec::new(), Vec::new());
        for (file, found) in parts {
            let region = files.len();
            tensors.extend(found.into_iter().map(|tensor| TensorInfo { region, ..tensor }));
            files.push(file);
        }
        let mut by_name: Vec<usize> = (0..tensors.len()).collect();
        // Stable, so that of two equal names the earlier file comes first.
        by_name.sort_by_key(|&index| tensors[index].name.as_str());
        let twice = by_name.windows(2).find(|w| tensors[w[0]].name == tensors[w[1]].name);
        if let Some(twice) = twice {
            let path = |index: usize| files[tensors[index].region].path.clone();
            return Err(DuplicateTensor {
                tensor: tensors[twice[0]].name.as_str().into(),
                first: path(twice[0]),
                second: path(twice[1]),
            });
        }
        Ok(Weights { files, tensors, by_name })
    }

    /// The mapped files. A backend can import each once, in place, and address tensors by
    /// [`TensorInfo::region`] and [`TensorInfo::offset`].
    pub fn files(&self) -> &[WeightFile] {
        &self.files
    }

    /// All tensors, in the order of the files.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Option<&TensorInfo> {
        let found = self.by_name.binary_search_by_key(&name, |&i| self.tensors[i].name.as_str());
        found.ok().map(|at| &self.tensors[self.by_name[at]])
    }

    /// The bytes of a tensor of these weights.
    ///
    /// # Errors
    /// If its format, and so its size, is not known.
    ///
    /// # Panics
    /// If the tensor belongs to other weights.
    pub fn slice(&self, tensor: &TensorInfo) -> Result<HostSlice, UnknownFormat> {
        let range = tensor.range().ok_or_else(|| tensor.unknown_format())?;
        let region = Arc::clone(&self.files[tensor.region].region);
        Ok(HostSlice::new(region, range).expect("tensors were checked to lie inside their file"))
    }

    /// Where the file of a tensor was found, for messages.
    ///
    /// # Panics
    /// If the tensor belongs to other weights.
    pub fn path(&self, tensor: &TensorInfo) -> &Path {
        &self.files[tensor.region].path
    }

    /// Sum of the known sizes of all tensors.
    pub fn total_bytes(&self) -> Bytes {
        self.tensors.iter().filter_map(TensorInfo::size).sum()
    }
}

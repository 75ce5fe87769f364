//! What can be wrong with a model's description.

use std::fmt;

use thiserror::Error;

use super::arch::FAMILIES;
use crate::weights::{DType, UnknownFormat};

/// Why a model cannot be run, as found in its metadata and tensor list.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The file names a family that is not in the table.
    #[error("architecture '{found}' ({key}) is not supported; supported: {supported}")]
    UnknownArchitecture {
        /// The key that names it.
        key: &'static str,
        /// The name.
        found: String,
        /// What there is.
        supported: SupportedFamilies,
    },
    /// A key that every model of the family has is absent.
    #[error("metadata key '{key}' is missing")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A key has a value of another type, or outside what makes sense.
    #[error("metadata key '{key}' is {found}; expected {expected}")]
    BadValue {
        /// The key.
        key: String,
        /// The value, printed.
        found: String,
        /// What would do.
        expected: &'static str,
    },
    /// A rope scaling kind that is not known; running without it would give wrong answers.
    #[error("rope scaling '{found}' ({key}) is not supported")]
    UnknownRopeScaling {
        /// The key that names it.
        key: String,
        /// The kind.
        found: String,
    },
    /// A tensor that the model needs is absent.
    #[error("tensor '{name}' is missing")]
    MissingTensor {
        /// Its name.
        name: String,
    },
    /// A tensor has another shape than the metadata asks for.
    #[error("tensor '{name}' has shape {found:?}; the metadata asks for {expected:?}")]
    TensorShape {
        /// Its name.
        name: String,
        /// Shape in the file, slowest dimension first.
        found: Vec<u64>,
        /// Shape asked for, slowest dimension first.
        expected: Vec<u64>,
    },
    /// A tensor is stored in a format without arithmetic.
    #[error(
        "tensor '{name}' is stored as {dtype}, for which there is no arithmetic; use another quantisation of the model"
    )]
    TensorType {
        /// Its name.
        name: String,
        /// Its format.
        dtype: DType,
    },
    /// A tensor is stored in a format that is not known at all.
    #[error(transparent)]
    UnknownFormat(#[from] UnknownFormat),
    /// A tensor that the family has no use for: leaving it out would give wrong answers.
    #[error(
        "tensor '{name}' is not part of a {family} model as known here; the file needs a newer version or another engine"
    )]
    UnusedTensor {
        /// Its name.
        name: String,
        /// The family.
        family: &'static str,
    },
}

/// Prints the supported architecture names.
#[derive(Debug, Clone, Copy)]
pub struct SupportedFamilies;

impl fmt::Display for SupportedFamilies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, family) in FAMILIES.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}", family.gguf_name)?;
        }
        Ok(())
    }
}

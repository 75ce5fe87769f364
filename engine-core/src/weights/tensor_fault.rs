//! What can be wrong with the tensors that a file describes, whatever its format.

use std::collections::HashSet;

use thiserror::Error;

use super::text::Name;

/// What is wrong with a tensor, as a file describes it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TensorFault {
    /// A name that occurs twice.
    #[error("tensor `{tensor}` occurs twice")]
    Twice {
        /// The tensor.
        tensor: Name,
    },
    /// The number of values, or of bytes, does not fit in 64 bits.
    #[error("tensor `{tensor}` claims an impossible size: {dims:?} values")]
    Size {
        /// The tensor.
        tensor: Name,
        /// Its dimensions, slowest first.
        dims: Vec<u64>,
    },
    /// A tensor that ends, or starts, outside the file.
    #[error(
        "is cut short or damaged: tensor `{tensor}` ends at byte {end}, the file at byte {length} \
         ({} bytes are missing); fetch it again", end.saturating_sub(*length)
    )]
    PastEnd {
        /// The tensor that ends last.
        tensor: Name,
        /// Where it ends (where it starts, when its size is unknown); saturating.
        end: u64,
        /// Length of the file.
        length: u64,
    },
    /// Two tensors that share bytes.
    #[error("tensors `{first}` and `{second}` overlap")]
    Overlap {
        /// The one that starts first.
        first: Name,
        /// The one that starts inside it.
        second: Name,
    },
}

impl TensorFault {
    /// Finds a name that occurs twice.
    pub(super) fn twice<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Result<(), Self> {
        let mut seen = HashSet::with_capacity(names.len());
        match { names }.find(|&name| !seen.insert(name)) {
            None => Ok(()),
            Some(name) => Err(TensorFault::Twice { tensor: name.into() }),
        }
    }
}

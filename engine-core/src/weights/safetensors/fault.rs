//! What can be wrong with the bytes of one safetensors file.

use thiserror::Error;

use super::super::looks::Looks;
use super::super::tensor_fault::TensorFault;
use super::super::text::Name;
use super::layout::MAX_DIMS;

/// What is wrong with a safetensors file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SafetensorsFault {
    /// The header does not start like one, and the file looks like something else.
    #[error("is not a safetensors file: it looks like {looks}{}", looks.advice())]
    NotSafetensors {
        /// What it looks like.
        looks: Looks,
    },
    /// The file ends before or inside its header.
    #[error(
        "is cut short or damaged: its header should take {needed} bytes after the first 8, and the file has {left}; \
         fetch it again"
    )]
    HeaderCut {
        /// Length of the header, as the file claims.
        needed: u64,
        /// Bytes there are after the first eight.
        left: u64,
    },
    /// The header is not UTF-8 text.
    #[error("is damaged: its header is not UTF-8 text (from byte {at} on)")]
    NotUtf8 {
        /// Where in the file the first bad byte is.
        at: u64,
    },
    /// The header is JSON, but not an object.
    #[error("has a header that is no JSON object; it starts with {found:?}")]
    NotAnObject {
        /// Its first character; `None` when it is blank.
        found: Option<char>,
    },
    /// The header is not JSON, or an entry lacks something or holds something else than it must.
    #[error("has a bad header: {0}")]
    Json(#[source] serde_json::Error),
    /// A tensor that ends before it starts.
    #[error("tensor `{tensor}` has offsets the wrong way round: {begin} to {end}")]
    Reversed {
        /// The tensor.
        tensor: Name,
        /// Its first offset.
        begin: u64,
        /// Its second offset.
        end: u64,
    },
    /// More dimensions than any framework writes.
    #[error("tensor `{tensor}` has {found} dimensions; at most {MAX_DIMS} are allowed")]
    Dimensions {
        /// The tensor.
        tensor: Name,
        /// How many it has.
        found: usize,
    },
    /// The bytes set aside for a tensor are not as many as its shape needs.
    #[error(
        "tensor `{tensor}` {dims:?} of {dtype} needs {needed} bytes, and its offsets give it {found}"
    )]
    WrongSize {
        /// The tensor.
        tensor: Name,
        /// Its dimensions.
        dims: Vec<u64>,
        /// Its type.
        dtype: Name,
        /// What shape and type need, rounded up to whole bytes.
        needed: u64,
        /// What the offsets give.
        found: u64,
    },
    /// Bytes between two tensors that belong to neither.
    #[error("is damaged: {bytes} bytes before tensor `{tensor}` belong to no tensor")]
    Gap {
        /// The tensor after the gap.
        tensor: Name,
        /// Length of the gap.
        bytes: u64,
    },
    /// Bytes behind the last tensor.
    #[error("is damaged: {bytes} bytes behind the last tensor belong to no tensor")]
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// A tensor is described wrongly.
    #[error(transparent)]
    Tensor(#[from] TensorFault),
}

//! What can be wrong with the bytes of one GGUF file.

use std::fmt;

use thiserror::Error;

use super::super::looks::Looks;
use super::super::tensor_fault::TensorFault;
use super::super::text::Name;
use super::super::{DType, Shape};
use super::value::MAX_DEPTH;

/// Which piece of a header was being read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reading {
    /// Magic, version and counts.
    Preamble,
    /// The key of the metadata entry with this number, from 0.
    Key(usize),
    /// The value of this metadata key.
    Value(Name),
    /// As many metadata entries as the file claims.
    Entries(u64),
    /// The description of the tensor with this number, from 0.
    Tensor(usize),
    /// As many tensor descriptions as the file claims.
    Tensors(u64),
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reading::Preamble => write!(f, "the start of the header"),
            Reading::Key(number) => write!(f, "the key of metadata entry {number}"),
            Reading::Value(key) => write!(f, "the value of `{key}`"),
            Reading::Entries(count) => write!(f, "the list of {count} metadata entries"),
            Reading::Tensor(number) => write!(f, "the description of tensor {number}"),
            Reading::Tensors(count) => write!(f, "the list of {count} tensors"),
        }
    }
}

/// What is wrong with a GGUF file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GgufFault {
    /// The file does not start with `GGUF`.
    #[error("is not a GGUF file: it looks like {looks}{}", looks.advice())]
    NotGguf {
        /// What it looks like.
        looks: Looks,
    },
    /// The numbers are stored most significant byte first.
    #[error(
        "is a big-endian GGUF file; Baton reads little-endian ones: convert it or fetch the usual version"
    )]
    BigEndian,
    /// A version of the format that is not read.
    #[error(
        "is GGUF version {found}; Baton reads versions 2 and 3: fetch another version of the model"
    )]
    Version {
        /// The version in the file.
        found: u32,
    },
    /// The file ends inside its header.
    #[error(
        "is cut short or damaged: {reading} (at byte {at}) should take {needed} bytes, and the file has {left} more; \
         fetch it again"
    )]
    Cut {
        /// What was being read.
        reading: Reading,
        /// Where it starts.
        at: u64,
        /// Bytes it needs at least.
        needed: u64,
        /// Bytes there are.
        left: u64,
    },
    /// A key or a tensor's name is not UTF-8 text.
    #[error("is damaged: a name in {reading} is not UTF-8 text")]
    NameNotUtf8 {
        /// What was being read.
        reading: Reading,
    },
    /// A metadata value of a type that the format does not define.
    #[error("metadata key `{key}` has value type {found}; the format defines 0 to 12")]
    ValueType {
        /// The key.
        key: Name,
        /// The type number.
        found: u32,
    },
    /// A truth value that is neither.
    #[error("metadata key `{key}` has a truth value of {found}; it must be 0 or 1")]
    Bool {
        /// The key.
        key: Name,
        /// The byte found.
        found: u8,
    },
    /// Arrays inside arrays inside arrays.
    #[error("metadata key `{key}` nests arrays more than {MAX_DEPTH} deep")]
    Depth {
        /// The key.
        key: Name,
    },
    /// A metadata key that occurs twice.
    #[error("metadata key `{key}` occurs twice")]
    DuplicateKey {
        /// The key.
        key: Name,
    },
    /// The alignment of tensors is not one that the format allows.
    #[error("`general.alignment` is {found}; it must be a power of two")]
    Alignment {
        /// The value.
        found: u64,
    },
    /// The alignment of tensors is not a count.
    #[error("`general.alignment` is of type {found}, or negative; it must be a power of two")]
    AlignmentType {
        /// Name of its type.
        found: &'static str,
    },
    /// More dimensions than the format allows.
    #[error("tensor `{tensor}` has {found} dimensions; at most 4 are allowed")]
    Dimensions {
        /// The tensor.
        tensor: Name,
        /// How many it claims.
        found: u32,
    },
    /// A dimension of length zero.
    #[error("tensor `{tensor}` has a dimension of length 0: {dims:?}")]
    ZeroDimension {
        /// The tensor.
        tensor: Name,
        /// Its dimensions, slowest first.
        dims: Vec<u64>,
    },
    /// A row that is not a whole number of blocks.
    #[error(
        "tensor `{tensor}` {shape} is stored as {dtype}, but a row of {} values is no whole number of blocks of {}",
        shape.columns(), dtype.block().values
    )]
    PartialBlock {
        /// The tensor.
        tensor: Name,
        /// Its shape.
        shape: Shape,
        /// Its format.
        dtype: DType,
    },
    /// A tensor that does not start at a multiple of the alignment.
    #[error(
        "tensor `{tensor}` starts at byte {offset} of the tensor data, no multiple of the alignment {alignment}"
    )]
    Misaligned {
        /// The tensor.
        tensor: Name,
        /// Its offset from the start of the tensor data.
        offset: u64,
        /// The file's alignment.
        alignment: u64,
    },
    /// A tensor is described wrongly.
    #[error(transparent)]
    Tensor(#[from] TensorFault),
}

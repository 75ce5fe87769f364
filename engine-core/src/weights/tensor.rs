//! What a model file says about one tensor: name, shape, format, and where its bytes lie.

use std::fmt;
use std::ops::Range;

use planner::Bytes;
use thiserror::Error;

use super::DType;
use super::text::Name;

/// Lengths of a tensor's dimensions, slowest first (row-major): the last is the length of a row.
///
/// GGUF stores them the other way round; readers turn them. The number of values always fits in 64 bits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shape(Box<[u64]>);

impl Shape {
    /// The shape with these lengths, slowest first; `None` when the number of values does not fit in 64 bits.
    pub fn new(dims: impl Into<Box<[u64]>>) -> Option<Shape> {
        let dims = dims.into();
        // A zero must not hide an overflow from `rows`, which leaves the last length out.
        dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim.max(1)))?;
        Some(Shape(dims))
    }

    /// All lengths, slowest first.
    pub fn dims(&self) -> &[u64] {
        &self.0
    }

    /// Length of a row: the last dimension, or 1 for a scalar.
    pub fn columns(&self) -> u64 {
        self.0.last().copied().unwrap_or(1)
    }

    /// Number of rows: all dimensions but the last, multiplied; 1 for a vector.
    pub fn rows(&self) -> u64 {
        self.0.split_last().map_or(1, |(_, slower)| slower.iter().product())
    }

    /// Number of values.
    pub fn len(&self) -> u64 {
        self.0.iter().product()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows and columns as a [`View`](crate::op::View) counts them; `None` when one is 2³² or more.
    pub fn matrix(&self) -> Option<[u32; 2]> {
        Some([self.rows().try_into().ok()?, self.columns().try_into().ok()?])
    }
}

impl fmt::Display for Shape {
    /// `[49152, 576]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.dims()).finish()
    }
}

/// How a file says that a tensor's values are stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TensorType {
    /// A known format.
    Known(DType),
    /// A GGUF type number that [`DType`] does not list. The tensor's size is unknown.
    GgufNumber(u32),
    /// A safetensors type that [`DType`] does not list, such as `F8_E4M3`.
    Safetensors(Name),
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorType::Known(dtype) => dtype.fmt(f),
            TensorType::Safetensors(name) => name.fmt(f),
            TensorType::GgufNumber(number) => match DType::retired_name(*number) {
                Some(name) => write!(f, "type number {number} ({name})"),
                None => write!(f, "type number {number}"),
            },
        }
    }
}

/// A tensor of a format that Baton does not know was to be used. Listing it works all the same.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "tensor `{tensor}` is stored as {found}, which Baton does not know; use another version of the model"
)]
#[non_exhaustive]
pub struct UnknownFormat {
    /// Name of the tensor.
    pub tensor: Name,
    /// What the file says.
    pub found: TensorType,
}

/// One tensor of a model, as described by the file it lies in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) stored_as: TensorType,
    pub(super) region: usize,
    pub(super) offset: usize,
    /// `None` only for [`TensorType::GgufNumber`].
    pub(super) size: Option<usize>,
}

impl TensorInfo {
    /// The name in the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dimensions, slowest first.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The format, as the file says; for listing.
    pub fn stored_as(&self) -> &TensorType {
        &self.stored_as
    }

    /// The format, for use.
    ///
    /// # Errors
    /// If it is not a known one.
    pub fn dtype(&self) -> Result<DType, UnknownFormat> {
        match self.stored_as {
            TensorType::Known(dtype) => Ok(dtype),
            _ => Err(self.unknown_format()),
        }
    }

    /// Which of the model's files it lies in: an index into [`Weights::files`](super::Weights::files).
    pub fn region(&self) -> usize {
        self.region
    }

    /// Where in its file the tensor starts, in bytes. No alignment is promised: some writers keep none.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The size in bytes; `None` when the format is unknown and the file does not say.
    pub fn size(&self) -> Option<Bytes> {
        self.size.map(Bytes::from)
    }

    /// Where in its file the tensor's bytes lie; `None` when [`size`](TensorInfo::size) is.
    pub fn range(&self) -> Option<Range<usize>> {
        // The sum was checked against the file's length when the tensor was found.
        self.size.map(|size| self.offset..self.offset + size)
    }

    pub(super) fn unknown_format(&self) -> UnknownFormat {
        UnknownFormat { tensor: self.name.as_str().into(), found: self.stored_as.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns() {
        let shape = Shape::new([8, 3, 32]).unwrap();
        assert_eq!((shape.rows(), shape.columns(), shape.len()), (24, 32, 768));
        assert_eq!(shape.matrix(), Some([24, 32]));
        assert_eq!(shape.to_string(), "[8, 3, 32]");
        assert_eq!(Shape::new([5]).unwrap().matrix(), Some([1, 5]));
        assert_eq!(Shape::new([]).unwrap().matrix(), Some([1, 1]));
        assert_eq!(Shape::new([1 << 32, 1]).unwrap().matrix(), None);
    }

    #[test]
    fn too_many_values_are_no_shape() {
        assert_eq!(Shape::new([u64::MAX, 2]), None);
        assert_eq!(Shape::new([u64::MAX, 2, 0]), None, "the zero hides nothing");
    }
}

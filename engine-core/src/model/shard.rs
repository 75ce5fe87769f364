//! How a model is cut, below the layer so that attention and FFN can live in different places, and where its pieces lie
//! in its files.

use planner::Bytes;
pub use planner::Shard;

/// Where a matrix or vector lies in the model's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoredMatrix {
    /// Which of the mapped files.
    pub region: usize,
    /// Where in the file it starts.
    pub offset: Bytes,
    /// Rows and columns, in values; a vector is one row.
    pub shape: [u32; 2],
    /// How its values are stored.
    pub dtype: crate::weights::DType,
}

impl StoredMatrix {
    /// Bytes of the whole matrix.
    pub fn bytes(&self) -> Bytes {
        let row = self.dtype.row_bytes(self.shape[1].into());
        row.expect("rows were checked to be whole blocks when the file was read")
            * u64::from(self.shape[0])
    }
}

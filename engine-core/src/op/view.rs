//! Arrays in buffers.

use planner::Bytes;

use crate::backend::BufferId;
use crate::weights::DType;

/// A contiguous two-dimensional array inside a buffer: `[rows, columns]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct View {
    /// The buffer it lies in.
    pub buffer: BufferId,
    /// Where in the buffer the first row starts.
    pub offset: Bytes,
    /// Rows and columns, in values.
    pub shape: [u32; 2],
    /// How values are stored. A row is a whole number of blocks.
    pub dtype: DType,
}

impl View {
    /// Number of rows.
    pub fn rows(&self) -> u32 {
        self.shape[0]
    }

    /// Values in a row.
    pub fn columns(&self) -> u32 {
        self.shape[1]
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> Bytes {
        self.dtype
            .row_bytes(self.columns().into())
            .expect("a view's row is a whole number of blocks, checked when it was made")
    }

    /// Bytes of the whole view.
    pub fn bytes(&self) -> Bytes {
        self.row_bytes() * u64::from(self.rows())
    }

    /// The same memory as `[rows, columns]` with the same number of values in all.
    ///
    /// # Panics
    /// If the number of values differs.
    pub fn reshape(self, rows: u32, columns: u32) -> View {
        assert_eq!(self.len(), u64::from(rows) * u64::from(columns), "reshape keeps all values");
        View { shape: [rows, columns], ..self }
    }

    /// The first rows.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn first_rows(self, rows: u32) -> View {
        assert!(rows <= self.rows(), "a part of the view");
        View { shape: [rows, self.columns()], ..self }
    }

    /// Number of values.
    pub fn len(&self) -> u64 {
        u64::from(self.rows()) * u64::from(self.columns())
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

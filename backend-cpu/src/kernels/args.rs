//! What the matrix products read and write: weight rows, token rows, columns of the result.
//!
//! Owns the shapes and who may write where; must not know formats or instruction sets.

use std::marker::PhantomData;
use std::ops::Range;

use engine_core::weights::DType;

/// `n` rows of `k` weights each, as they lie in a file: any format, any alignment.
#[derive(Debug, Clone, Copy)]
pub struct WeightRows<'a> {
    bytes: &'a [u8],
    row_bytes: usize,
    dtype: DType,
    k: usize,
}

impl<'a> WeightRows<'a> {
    /// Rows of `k` values that fill `bytes`.
    ///
    /// # Panics
    /// If a row is not a whole number of blocks, is empty, or `bytes` is not a whole number of rows.
    pub fn new(bytes: &'a [u8], dtype: DType, k: usize) -> Self {
        let row_bytes =
            dtype.row_bytes(k as u64).expect("a weight row is a whole number of blocks");
        let row_bytes = row_bytes.as_usize();
        assert!(row_bytes > 0 && bytes.len().is_multiple_of(row_bytes), "whole rows of weights");
        WeightRows { bytes, row_bytes, dtype, k }
    }

    /// Number of rows.
    pub fn n(&self) -> usize {
        self.bytes.len() / self.row_bytes
    }

    /// Values in a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// How the values are stored.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// All rows, one after the other.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// One row.
    ///
    /// # Panics
    /// If there are not so many rows.
    pub fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.row_bytes..][..self.row_bytes]
    }

    /// Some of the rows.
    ///
    /// # Panics
    /// If there are not so many rows.
    pub fn rows(&self, rows: Range<usize>) -> WeightRows<'a> {
        let bytes = &self.bytes[rows.start * self.row_bytes..rows.end * self.row_bytes];
        WeightRows { bytes, ..*self }
    }
}

/// Which row of the activations gives which row of the result.
#[derive(Debug, Clone, Copy)]
pub enum TokenRows<'a> {
    /// Row `t` gives row `t`, for this many rows.
    First(usize),
    /// The listed ones: the tokens of one expert. No two write the same row.
    Listed(&'a [TokenRow]),
}

/// One row of the activations and the row of the result that it gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRow {
    /// Row of the activations.
    pub x: u32,
    /// Row of the result.
    pub y: u32,
}

impl TokenRows<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            TokenRows::First(n) => *n,
            TokenRows::Listed(rows) => rows.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `i`-th row of the activations.
    pub fn x(&self, i: usize) -> usize {
        match self {
            TokenRows::First(_) => i,
            TokenRows::Listed(rows) => rows[i].x as usize,
        }
    }

    /// The `i`-th row of the result.
    pub fn y(&self, i: usize) -> usize {
        match self {
            TokenRows::First(_) => i,
            TokenRows::Listed(rows) => rows[i].y as usize,
        }
    }
}

/// Exclusive access to some columns of a row-major f32 matrix whose other columns belong to other threads.
#[derive(Debug)]
pub struct ColumnsMut<'a> {
    first: *mut f32,
    rows: usize,
    /// Values from one row to the next.
    stride: usize,
    width: usize,
    matrix: PhantomData<&'a mut [f32]>,
}

// SAFETY: it stands for `&mut` access to its own columns and to nothing else.
unsafe impl Send for ColumnsMut<'_> {}

impl<'a> ColumnsMut<'a> {
    /// All columns of a matrix with rows of `width` values.
    ///
    /// # Panics
    /// If `width` is zero or `matrix` is not a whole number of rows.
    pub fn all(matrix: &'a mut [f32], width: usize) -> Self {
        assert!(matrix.len().is_multiple_of(width), "whole rows of the result");
        let rows = matrix.len() / width;
        ColumnsMut { first: matrix.as_mut_ptr(), rows, stride: width, width, matrix: PhantomData }
    }

    /// Columns `columns` of the matrix at `matrix`, which has `rows` rows of `stride` values.
    ///
    /// # Safety
    /// The matrix is valid for reads and writes during `'a`, and nothing else touches these columns in that time.
    ///
    /// # Panics
    /// If the columns do not lie inside a row.
    pub unsafe fn from_raw(
        matrix: *mut f32,
        rows: usize,
        stride: usize,
        columns: Range<usize>,
    ) -> Self {
        assert!(columns.start <= columns.end && columns.end <= stride, "columns lie inside a row");
        let first = matrix.wrapping_add(columns.start);
        ColumnsMut { first, rows, stride, width: columns.len(), matrix: PhantomData }
    }

    /// The first `column` columns, and the rest.
    ///
    /// # Panics
    /// If there are not so many columns.
    pub fn split_at(self, column: usize) -> (Self, Self) {
        assert!(column <= self.width, "a split lies inside");
        let right = self.first.wrapping_add(column);
        let width = self.width - column;
        (ColumnsMut { width: column, ..self }, ColumnsMut { first: right, width, ..self })
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns of one row.
    ///
    /// # Panics
    /// If there are not so many rows.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.rows, "row of the result");
        // SAFETY: the row lies in the matrix, its columns are ours alone, and `&mut self` lends them once.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(row * self.stride), self.width) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_disjoint() {
        let mut matrix = vec![0.0; 3 * 5];
        let (mut left, mut right) = ColumnsMut::all(&mut matrix, 5).split_at(2);
        for row in 0..3 {
            left.row_mut(row).fill(1.0);
            right.row_mut(row).fill(2.0);
        }
        assert_eq!((left.width(), right.width()), (2, 3));
        assert_eq!(matrix, [1.0, 1.0, 2.0, 2.0, 2.0].repeat(3));
    }

    #[test]
    fn weight_rows_slice() {
        let bytes: Vec<u8> = (0..18 * 6).collect();
        let w = WeightRows::new(&bytes, DType::Q4_0, 64);
        assert_eq!((w.n(), w.row_bytes()), (3, 36));
        assert_eq!(w.rows(1..3).row(1), &bytes[72..]);
    }
}

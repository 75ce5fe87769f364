//! Rows that a kernel works on side by side.

use crate::kernels::activations::Rows;
use crate::kernels::args::WeightRows;

/// Rows of one length, anywhere in some bytes.
#[derive(Clone, Copy)]
pub(crate) struct RowGroup<'a> {
    bytes: &'a [u8],
    /// Where rows start in `bytes`; each has `row_bytes` from there on.
    starts: [usize; RowGroup::MAX_ROWS],
    row_bytes: usize,
}

impl<'a> RowGroup<'a> {
    /// Most rows in a group.
    pub(crate) const MAX_ROWS: usize = 16;

    /// Weight rows from `first` on. Where the matrix ends early its last row stands in for those that are missing.
    ///
    /// # Panics
    /// If there is no row `first`.
    #[inline(always)]
    pub(crate) fn of_weights(w: &WeightRows<'a>, first: usize) -> Self {
        let last = w.n() - 1;
        assert!(first <= last, "a group has a row");
        let starts = std::array::from_fn(|i| (first + i).min(last) * w.row_bytes());
        RowGroup { bytes: w.bytes(), starts, row_bytes: w.row_bytes() }
    }

    /// The given rows of activations. The first stands in for those that are missing.
    ///
    /// # Panics
    /// If there are not so many rows.
    #[inline(always)]
    pub(crate) fn of_activations<const N: usize>(x: Rows<'a, f32>, rows: [usize; N]) -> Self {
        let bytes: &[u8] = bytemuck::cast_slice(x.items());
        let row_bytes = x.width() * size_of::<f32>();
        let mut starts = [rows[0] * row_bytes; RowGroup::MAX_ROWS];
        for (start, row) in starts.iter_mut().zip(rows) {
            *start = row * row_bytes;
            assert!(*start + row_bytes <= bytes.len(), "row of the activations");
        }
        RowGroup { bytes, starts, row_bytes }
    }

    /// Row `i`.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> &'a [u8] {
        &self.bytes[self.starts[i]..][..self.row_bytes]
    }

    /// Bytes of each row.
    #[inline(always)]
    pub(crate) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Where row `i` has the bytes `at..at + LEN`, not aligned.
    ///
    /// # Panics
    /// If the bytes are not inside the row.
    #[inline(always)]
    pub(crate) fn part<const LEN: usize>(&self, i: usize, at: usize) -> &'a [u8; LEN] {
        // The same test for all rows of the group, so that it is made once.
        assert!(at + LEN <= self.row_bytes, "bytes of a row");
        // SAFETY: each row starts with `row_bytes` bytes to go, among which these were just found to be.
        unsafe { &*self.bytes.as_ptr().add(self.starts[i] + at).cast::<[u8; LEN]>() }
    }

    /// Copies the rest of each row, from byte `at` on, to where it can be read as if zeros followed.
    ///
    /// # Panics
    /// If the rest is longer than a row of `space`.
    pub(crate) fn padded<'s>(&self, at: usize, space: &'s mut PaddedRows) -> RowGroup<'s> {
        for (row, &start) in space.iter_mut().zip(&self.starts) {
            let rest = &self.bytes[start..][at..self.row_bytes];
            row[..rest.len()].copy_from_slice(rest);
        }
        let row_bytes = size_of_val(&space[0]);
        let starts = std::array::from_fn(|i| i * row_bytes);
        RowGroup { bytes: space.as_flattened(), starts, row_bytes }
    }
}

/// Room for a vector of each row.
pub(crate) type PaddedRows = [[u8; 64]; RowGroup::MAX_ROWS];

/// Nothing but padding.
pub(crate) const NO_ROWS: PaddedRows = [[0; 64]; RowGroup::MAX_ROWS];

//! A matrix that several threads write at once, each in tiles that it alone has.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::kernels::args::ColumnsMut;

/// A whole row-major matrix that may be written.
pub(crate) struct MatrixMut<'a, T> {
    values: &'a mut [T],
    columns: usize,
}

impl<'a, T> MatrixMut<'a, T> {
    /// The matrix of `values`, with rows of `columns`.
    ///
    /// # Panics
    /// If `values` are not whole rows.
    pub(crate) fn new(values: &'a mut [T], columns: usize) -> MatrixMut<'a, T> {
        assert!(columns > 0 && values.len().is_multiple_of(columns), "a matrix has whole rows");
        MatrixMut { values, columns }
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Values in a row.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// All values, row by row.
    pub(crate) fn values(&mut self) -> &mut [T] {
        self.values
    }

    /// Cuts the matrix into tiles of at most `rows` × `columns`.
    ///
    /// # Panics
    /// If either is zero.
    pub(crate) fn cut(self, rows: usize, columns: usize) -> Tiles<'a, T> {
        assert!(rows > 0 && columns > 0, "a tile holds something");
        let shape = [self.rows(), self.columns];
        let tile = [rows.min(shape[0].max(1)), columns.min(shape[1])];
        let first = self.values.as_mut_ptr();
        Tiles { first, shape, tile, taken: AtomicUsize::new(0), memory: PhantomData }
    }
}

/// A matrix cut into tiles, each of which is given away once.
pub(crate) struct Tiles<'a, T> {
    first: *mut T,
    shape: [usize; 2],
    tile: [usize; 2],
    taken: AtomicUsize,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: this stands for a `&mut [T]` whose parts are handed to whichever thread asks; no part is handed out twice.
unsafe impl<T: Send> Send for Tiles<'_, T> {}
// SAFETY: as above; `taken` is atomic.
unsafe impl<T: Send> Sync for Tiles<'_, T> {}

impl<'a, T> Tiles<'a, T> {
    /// The next tile that nobody has had, going along the rows first.
    pub(crate) fn take(&self) -> Option<Tile<'a, T>> {
        let across = self.shape[1].div_ceil(self.tile[1]);
        let count = self.shape[0].div_ceil(self.tile[0]) * across;
        let n = self.taken.fetch_add(1, Relaxed);
        let part = |i: usize, size: usize, end: usize| i * size..((i + 1) * size).min(end);
        (n < count).then(|| Tile {
            first: self.first,
            stride: self.shape[1],
            rows: part(n / across, self.tile[0], self.shape[0]),
            columns: part(n % across, self.tile[1], self.shape[1]),
            memory: PhantomData,
        })
    }
}

/// Part of a matrix that one thread has to itself.
pub(crate) struct Tile<'a, T> {
    /// The matrix's first value.
    first: *mut T,
    /// Values in a row of the matrix.
    stride: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: a tile stands for `&mut` to its own values, and no two tiles of a matrix share a value.
unsafe impl<T: Send> Send for Tile<'_, T> {}

impl<T> Tile<'_, T> {
    /// Which rows of the matrix it has.
    pub(crate) fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Which columns of the matrix it has.
    pub(crate) fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// The tile's part of row `row` of the matrix.
    ///
    /// # Panics
    /// If the tile does not have that row.
    pub(crate) fn row(&mut self, row: usize) -> &mut [T] {
        assert!(self.rows.contains(&row), "row {row} is not among {:?}", self.rows);
        let start = row * self.stride + self.columns.start;
        // SAFETY: the row is the tile's own and so are its columns, all inside the matrix that `first` points to;
        // nobody else has them, and `&mut self` keeps this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(start), self.columns.len()) }
    }

    /// The tile's values, row by row, when it has whole rows or just one.
    ///
    /// # Panics
    /// If it has several rows but not the whole of them.
    pub(crate) fn values(&mut self) -> &mut [T] {
        let whole = self.columns.len() == self.stride;
        assert!(whole || self.rows.len() == 1, "values of a tile are together in memory");
        let start = self.rows.start * self.stride + self.columns.start;
        let len = self.rows.len() * self.columns.len();
        // SAFETY: with whole rows or one row, these `len` values are the tile's own, as in `row`.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(start), len) }
    }
}

impl Tile<'_, f32> {
    /// The tile as kernels want it; row 0 is its own first row.
    pub(crate) fn columns_mut(&mut self) -> ColumnsMut<'_> {
        let first = self.first.wrapping_add(self.rows.start * self.stride);
        // SAFETY: these rows and columns are the tile's own, and `&mut self` lends them to nobody else meanwhile.
        unsafe { ColumnsMut::from_raw(first, self.rows.len(), self.stride, self.columns()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_value_once() {
        for (rows, columns, tile) in
            [(5, 7, [2, 3]), (1, 9, [4, 4]), (6, 1, [6, 1]), (3, 4, [9, 9])]
        {
            let mut values = vec![0; rows * columns];
            let tiles = MatrixMut::new(&mut values, columns).cut(tile[0], tile[1]);
            while let Some(mut tile) = tiles.take() {
                for row in tile.rows() {
                    let first = tile.columns().start;
                    for (i, value) in tile.row(row).iter_mut().enumerate() {
                        *value += 1 + row * columns + first + i;
                    }
                }
            }
            assert!(values.iter().enumerate().all(|(i, &value)| value == i + 1));
        }
    }

    #[test]
    fn threads_share_tiles() {
        let mut values = vec![0u32; 1000];
        let tiles = MatrixMut::new(&mut values, 10).cut(3, 10);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while let Some(mut tile) = tiles.take() {
                        tile.values().iter_mut().for_each(|value| *value += 1);
                    }
                });
            }
        });
        assert!(values.iter().all(|&value| value == 1));
    }

    #[test]
    fn a_matrix_without_rows_has_no_tiles() {
        assert!(MatrixMut::<f32>::new(&mut [], 4).cut(1, 4).take().is_none());
    }

    #[test]
    #[should_panic(expected = "row 2 is not among 0..2")]
    fn rows_of_others_are_out_of_reach() {
        let mut values = [0; 8];
        let mut tile = MatrixMut::new(&mut values, 2).cut(2, 2).take().unwrap();
        tile.row(2);
    }
}

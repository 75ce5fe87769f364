//! How outputs are cut into tiles.

use crate::threads::{MatrixMut, Tiles};

/// Tiles wanted per thread, so that one that is held up leaves its tiles to the others.
const TILES_PER_THREAD: usize = 4;

/// Values of f32 in a cache line, of which tiles have whole ones, so that threads do not write to the same one.
const LINE: usize = 16;

/// Values that a tile has at least, so that taking tiles costs little beside working on them.
const TILE_VALUES: usize = 1024;

/// Cuts an output into tiles of whole rows, enough of them for `threads` if there are.
pub(super) fn cut_rows<T>(matrix: MatrixMut<'_, T>, threads: usize) -> Tiles<'_, T> {
    let [rows, columns] = [matrix.rows(), matrix.columns()];
    let enough = rows.div_ceil(threads * TILES_PER_THREAD);
    matrix.cut(enough.max(TILE_VALUES.div_ceil(columns)), columns)
}

/// Cuts an output into tiles of whole rows if there are enough of them for `threads`, else of whole cache lines.
pub(super) fn cut_any<T>(matrix: MatrixMut<'_, T>, threads: usize) -> Tiles<'_, T> {
    let [rows, columns] = [matrix.rows(), matrix.columns()];
    let wanted = threads * TILES_PER_THREAD;
    if rows >= wanted || columns <= TILE_VALUES {
        return cut_rows(matrix, threads);
    }
    let width = columns.div_ceil(wanted.div_ceil(rows.max(1))).max(TILE_VALUES);
    matrix.cut(1, width.next_multiple_of(LINE))
}

/// Cuts a result into tiles of some columns of all rows, a few for each thread.
pub(super) fn cut_columns<T>(matrix: MatrixMut<'_, T>, threads: usize) -> Tiles<'_, T> {
    let rows = matrix.rows().max(1);
    let width = matrix.columns().div_ceil(threads * TILES_PER_THREAD);
    matrix.cut(rows, width.next_multiple_of(LINE))
}

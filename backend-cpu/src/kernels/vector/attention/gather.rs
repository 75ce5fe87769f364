//! Turns keys and values of cells, wherever they lie and however they are stored, into f32 matrices.

use half::f16;

use super::Vector;
use super::matrix::Matrix;
use crate::kernels::vector::unit::MOST;

/// A format of keys and values.
pub(super) trait Stored: Copy {
    fn load<U: Vector>(unit: U, x: &[Self]) -> U::V;
    fn load_some<U: Vector>(unit: U, x: &[Self]) -> U::V;
}

impl Stored for f32 {
    #[inline(always)]
    fn load<U: Vector>(unit: U, x: &[f32]) -> U::V {
        unit.load(x)
    }

    #[inline(always)]
    fn load_some<U: Vector>(unit: U, x: &[f32]) -> U::V {
        unit.load_some(x, 0.0)
    }
}

impl Stored for f16 {
    #[inline(always)]
    fn load<U: Vector>(unit: U, x: &[f16]) -> U::V {
        unit.load_f16(x)
    }

    #[inline(always)]
    fn load_some<U: Vector>(unit: U, x: &[f16]) -> U::V {
        unit.load_some_f16(x)
    }
}

/// How many cells ahead memory is asked for: rows lie apart, which the hardware's own prefetching does not follow well.
const AHEAD: usize = 32;

/// Keys or values of one head in all cells.
#[derive(Clone, Copy)]
pub(super) struct HeadRows<'a, T> {
    pub(super) values: &'a [T],
    pub(super) n_kv_head: usize,
    pub(super) kv_head: usize,
    pub(super) dim: usize,
}

impl<'a, T: Stored> HeadRows<'a, T> {
    #[inline(always)]
    fn row(&self, cell: i32) -> &'a [T] {
        let cell = usize::try_from(cell).expect("cells count from 0");
        &self.values[(cell * self.n_kv_head + self.kv_head) * self.dim..][..self.dim]
    }

    /// Asks for the memory that gathering these cells reads first.
    #[inline(always)]
    pub(super) fn prefetch<U: Vector>(self, unit: U, cells: &[i32]) {
        for &cell in cells.iter().take(AHEAD) {
            unit.prefetch(self.row(cell));
        }
    }

    /// Row `i` of `out` becomes the row of cell `cells[i]`.
    #[inline(always)]
    pub(super) fn gather<U: Vector>(self, unit: U, cells: &[i32], out: &mut Matrix<'_>) {
        for (i, &cell) in cells.iter().enumerate() {
            if let Some(&later) = cells.get(i + AHEAD) {
                unit.prefetch(self.row(later));
            }
            let vectors = self.row(cell).chunks_exact(U::LANES);
            let rest = vectors.remainder();
            let mut outs = out.row(i).chunks_exact_mut(U::LANES);
            for (x, out) in vectors.zip(outs.by_ref()) {
                unit.store(T::load(unit, x), out);
            }
            if !rest.is_empty() {
                unit.store_some(T::load_some(unit, rest), outs.into_remainder());
            }
        }
    }

    /// Column `i` of `out` becomes the row of cell `all[i]`.
    #[inline(always)]
    pub(super) fn gather_transposed<U: Vector>(self, unit: U, all: &[i32], out: &mut Matrix<'_>) {
        for (i, cells) in all.chunks(U::LANES).enumerate() {
            // Rows beyond the last are that again; their columns are beyond the last one.
            let mut rows = [self.row(cells[0]); MOST];
            for (row, &cell) in rows.iter_mut().zip(cells) {
                *row = self.row(cell);
            }
            for &later in all.iter().skip(i * U::LANES + AHEAD).take(U::LANES) {
                unit.prefetch(self.row(later));
            }
            let whole = self.dim - self.dim % U::LANES;
            for d in (0..whole).step_by(U::LANES) {
                let mut square = [unit.splat(0.0); MOST];
                for j in 0..U::LANES {
                    square[j] = T::load(unit, &rows[j][d..]);
                }
                store_transposed(unit, square, U::LANES, d, i * U::LANES, out);
            }
            if whole < self.dim {
                let mut square = [unit.splat(0.0); MOST];
                for j in 0..U::LANES {
                    square[j] = T::load_some(unit, &rows[j][whole..]);
                }
                store_transposed(unit, square, self.dim - whole, whole, i * U::LANES, out);
            }
        }
    }
}

/// Stores the first `n` vectors of the transposed square to `out`, from row `row` and column `column` on.
#[inline(always)]
fn store_transposed<U: Vector>(
    unit: U,
    mut square: [U::V; MOST],
    n: usize,
    row: usize,
    column: usize,
    out: &mut Matrix<'_>,
) {
    unit.transpose(&mut square);
    for (j, vector) in square.iter().enumerate().take(n) {
        unit.store(*vector, out.row_from(row + j, column));
    }
}

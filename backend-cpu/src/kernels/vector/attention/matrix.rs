//! Matrices in scratch memory, and their products, whose sums stay in registers.

use std::ops::Range;

use super::Vector;
use crate::kernels::vector::unit::MOST;

/// A row-major f32 matrix. Each row has room for whole vectors; what is there beyond the columns is anything.
pub(super) struct Matrix<'a> {
    values: &'a mut [f32],
    rows: usize,
    columns: usize,
    stride: usize,
}

/// What rows have beyond whole vectors, so that the values of a column do not share a few sets of the cache.
const PADDING: usize = 16;

/// Matrices of these numbers of rows and columns, holding anything.
#[inline(always)]
pub(super) fn carve<const N: usize>(
    scratch: &mut Vec<f32>,
    shapes: [[usize; 2]; N],
) -> [Matrix<'_>; N] {
    let stride = |columns: usize| columns.next_multiple_of(MOST) + PADDING;
    let len = shapes.iter().map(|&[rows, columns]| rows * stride(columns)).sum::<usize>() + MOST;
    if scratch.len() < len {
        scratch.resize(len, 0.0);
    }
    // From a cache line on.
    let skipped = scratch.as_ptr().cast::<u8>().align_offset(64) / size_of::<f32>();
    let mut rest = &mut scratch[skipped..];
    shapes.map(|[rows, columns]| {
        let stride = stride(columns);
        let (values, after) = std::mem::take(&mut rest).split_at_mut(rows * stride);
        rest = after;
        Matrix { values, rows, columns, stride }
    })
}

impl Matrix<'_> {
    /// The columns of one row.
    #[inline(always)]
    pub(super) fn row(&mut self, row: usize) -> &mut [f32] {
        &mut self.values[row * self.stride..][..self.columns]
    }

    /// One row from column `column` on, with room for a whole vector at any column there is.
    #[inline(always)]
    pub(super) fn row_from(&mut self, row: usize, column: usize) -> &mut [f32] {
        &mut self.values[row * self.stride..][column..self.stride]
    }
}

/// `out = a · b`, each value summed from the first column of `a` to the last whatever the shapes.
#[inline(always)]
pub(super) fn multiply<'m, U: Vector>(
    unit: U,
    a: &Matrix<'m>,
    b: &Matrix<'m>,
    out: &mut Matrix<'m>,
) {
    assert!(a.rows == out.rows && a.columns == b.rows && b.columns == out.columns, "shapes fit");
    let mut product = Product { unit, a, b, out };
    // As many sums as registers allow, since each waits for the one before it: of four rows two vectors, and so on.
    let fours = a.rows / 4 * 4;
    product.rows::<4, 2>(0..fours);
    match a.rows - fours {
        0 => {}
        1 => product.rows::<1, 4>(fours..a.rows),
        2 => product.rows::<2, 4>(fours..a.rows),
        _ => product.rows::<3, 3>(fours..a.rows),
    }
}

struct Product<'a, 'm, U> {
    unit: U,
    a: &'a Matrix<'m>,
    b: &'a Matrix<'m>,
    out: &'a mut Matrix<'m>,
}

impl<U: Vector> Product<'_, '_, U> {
    /// Rows in steps of `N`, columns in steps of `W` vectors and then of one.
    #[inline(always)]
    fn rows<const N: usize, const W: usize>(&mut self, rows: Range<usize>) {
        let width = self.b.columns.next_multiple_of(U::LANES);
        let mut at = 0;
        while at < width {
            let whole = at + W * U::LANES <= width;
            for row in rows.clone().step_by(N) {
                if whole { self.tile::<N, W>(row, at) } else { self.tile::<N, 1>(row, at) }
            }
            at += if whole { W * U::LANES } else { U::LANES };
        }
    }

    /// `N` rows from `row` on and `W` vectors of columns from `at` on.
    #[inline(always)]
    fn tile<const N: usize, const W: usize>(&mut self, row: usize, at: usize) {
        let Product { unit, a, b, .. } = *self;
        let mut factors = [&a.values[..]; N];
        for (n, factors) in factors.iter_mut().enumerate() {
            *factors = &a.values[(row + n) * a.stride..][..b.rows];
        }
        let mut sums = [[unit.splat(0.0); W]; N];
        for (k, b) in b.values.chunks_exact(b.stride).enumerate() {
            let b = &b[at..][..W * U::LANES];
            let mut vectors = [unit.splat(0.0); W];
            for (w, vector) in vectors.iter_mut().enumerate() {
                *vector = unit.load(&b[w * U::LANES..]);
            }
            for (factors, sums) in factors.iter().zip(&mut sums) {
                let factor = unit.splat(factors[k]);
                for (sum, vector) in sums.iter_mut().zip(vectors) {
                    *sum = unit.mul_add(factor, vector, *sum);
                }
            }
        }
        for (n, sums) in sums.iter().enumerate() {
            let out = &mut self.out.values[(row + n) * self.out.stride + at..][..W * U::LANES];
            for (w, sum) in sums.iter().enumerate() {
                unit.store(*sum, &mut out[w * U::LANES..]);
            }
        }
    }
}

//! The small matrix products of attention, whose sums stay in registers.

use super::Vector;

/// A matrix of f32 with any distance between rows and between columns.
#[derive(Clone, Copy)]
pub(super) struct Strided<'a> {
    pub(super) values: &'a [f32],
    pub(super) shape: [usize; 2],
    pub(super) strides: [usize; 2],
}

/// Rows of `a` that are worked on at once, for up to three vectors of columns: twelve sums, four factors at most.
const ROWS: usize = 4;

/// `out = a · b + kept · out`, where each column of `out` is kept by its own factor, or not at all.
///
/// `a` is `[n, k]`, `b` is `[k, width]` and `out` is `[n, width]`, with `width` a whole number of vectors.
#[inline(always)]
pub(super) fn multiply<U: Vector>(
    unit: U,
    a: Strided<'_>,
    b: &[f32],
    kept: Option<&[f32]>,
    out: &mut [f32],
) {
    let [n, k] = a.shape;
    let width = out.len() / n.max(1);
    assert!(out.len() == n * width && b.len() == k * width, "shapes fit");
    assert!(width.is_multiple_of(U::LANES), "whole vectors");
    assert!(kept.is_none_or(|kept| kept.len() == width), "a factor for each column");
    if n == 0 || k == 0 {
        return;
    }
    let last = (n - 1) * a.strides[0] + (k - 1) * a.strides[1];
    assert!(last < a.values.len(), "the matrix has all its values");
    let columns = Columns { unit, a, b, kept, width };
    let mut at = 0;
    while at < width {
        match (width - at) / U::LANES {
            1 => at += columns.multiply::<1>(at, out),
            2 => at += columns.multiply::<2>(at, out),
            _ => at += columns.multiply::<3>(at, out),
        }
    }
}

struct Columns<'a, U> {
    unit: U,
    a: Strided<'a>,
    b: &'a [f32],
    kept: Option<&'a [f32]>,
    width: usize,
}

impl<U: Vector> Columns<'_, U> {
    /// `W` vectors of columns from `at` on. Returns how many columns that are.
    #[inline(always)]
    fn multiply<const W: usize>(&self, at: usize, out: &mut [f32]) -> usize {
        let n = self.a.shape[0];
        let mut row = 0;
        while row + ROWS <= n {
            self.multiply_rows::<ROWS, W>(row, at, out);
            row += ROWS;
        }
        while row < n {
            self.multiply_rows::<1, W>(row, at, out);
            row += 1;
        }
        W * U::LANES
    }

    #[inline(always)]
    fn multiply_rows<const N: usize, const W: usize>(
        &self,
        row: usize,
        at: usize,
        out: &mut [f32],
    ) {
        let Columns { unit, a, b, kept, width } = *self;
        let mut sums = [[unit.splat(0.0); W]; N];
        if let Some(kept) = kept {
            for (i, sums) in sums.iter_mut().enumerate() {
                let out = &out[(row + i) * width + at..][..W * U::LANES];
                for w in 0..W {
                    let kept = unit.load(&kept[at + w * U::LANES..]);
                    sums[w] = unit.mul(unit.load(&out[w * U::LANES..]), kept);
                }
            }
        }
        for (k, b) in b.chunks_exact(width).enumerate() {
            let b = &b[at..][..W * U::LANES];
            let mut vectors = [unit.splat(0.0); W];
            for w in 0..W {
                vectors[w] = unit.load(&b[w * U::LANES..]);
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                // SAFETY: `row + i` is below the rows of `a` and `k` below its columns, and `multiply` has checked that
                // the last row and column is inside.
                let factor =
                    unsafe { *a.values.get_unchecked((row + i) * a.strides[0] + k * a.strides[1]) };
                let factor = unit.splat(factor);
                for w in 0..W {
                    sums[w] = unit.mul_add(factor, vectors[w], sums[w]);
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            let out = &mut out[(row + i) * width + at..][..W * U::LANES];
            for w in 0..W {
                unit.store(sums[w], &mut out[w * U::LANES..]);
            }
        }
    }
}

//! The product of float weights and unrounded activations.
//!
//! A lane belongs to every `COUNT`-th value of a row, and lanes are added up at the end. The order is the same however
//! tokens and rows are grouped.

use super::Product;
use super::ahead::{Ahead, Reads};
use super::lanes::FloatLanes;
use super::rows::{NO_ROWS, RowGroup};

/// Weight rows, and most tokens, whose sums are in registers at once.
const TILE_ROWS: usize = 3;
const TILE_TOKENS: usize = 3;

/// Bytes of activations that stay in the second-level cache while weights pass by.
const CHUNK_BYTES: usize = 128 * 1024;

/// How float weights are stored.
pub(crate) trait FloatFormat {
    /// Bytes of a value.
    const BYTES: usize;

    /// As many values as there are lanes, from byte `at` of row `row` on.
    fn load<S: FloatLanes>(s: S, rows: &RowGroup<'_>, row: usize, at: usize) -> S::Floats;
}

/// Computes a product.
#[inline(always)]
pub(crate) fn float_product<S: FloatLanes, F: FloatFormat>(s: S, mut p: Product<'_, '_, f32>) {
    let tile_bytes = p.x.width() * size_of::<f32>() * TILE_TOKENS;
    let chunk = TILE_TOKENS * (CHUNK_BYTES / tile_bytes).max(1);
    let n_tokens = p.tokens.len();
    for start in (0..n_tokens).step_by(chunk) {
        let end = n_tokens.min(start + chunk);
        for first in (0..p.w.n()).step_by(TILE_ROWS) {
            let w = RowGroup::of_weights(&p.w, first);
            let mut t = start;
            // Of nearly the same size: a token by itself takes longer than in a tile.
            for tiles in (1..=(end - start).div_ceil(TILE_TOKENS)).rev() {
                t += match (end - t).div_ceil(tiles) {
                    3 => p.tile::<S, F, 3>(s, &w, first, t),
                    2 => p.tile::<S, F, 2>(s, &w, first, t),
                    _ => p.tile::<S, F, 1>(s, &w, first, t),
                }
            }
        }
    }
}

impl Product<'_, '_, f32> {
    /// Computes what the rows `w`, from `first` on, give for the `T` tokens from `t` on. Gives `T`.
    #[inline(always)]
    fn tile<S: FloatLanes, F: FloatFormat, const T: usize>(
        &mut self,
        s: S,
        w: &RowGroup<'_>,
        first: usize,
        t: usize,
    ) -> usize {
        let tokens: [usize; T] = std::array::from_fn(|i| t + i);
        let x = RowGroup::of_activations(self.x, tokens.map(|t| self.tokens.x(t)));
        let sums = dots::<S, F, T>(s, w, &x);
        for (sums, t) in sums.iter().zip(tokens) {
            let y = &mut self.y.row_mut(self.tokens.y(t))[first..];
            for (y, &sum) in y.iter_mut().zip(sums) {
                *y = s.sum(sum);
            }
        }
        T
    }
}

/// Per token and weight row, a sum in each lane.
#[inline(always)]
fn dots<S: FloatLanes, F: FloatFormat, const T: usize>(
    s: S,
    w: &RowGroup<'_>,
    x: &RowGroup<'_>,
) -> [[S::Floats; TILE_ROWS]; T] {
    let mut sums = [[s.splat_float(0.0); TILE_ROWS]; T];
    let n = w.row_bytes() / F::BYTES;
    let n_whole = n / S::COUNT * S::COUNT;
    let mut ahead = Ahead::new(w, TILE_ROWS, n.div_ceil(S::COUNT), Reads::Once);
    for i in (0..n_whole).step_by(S::COUNT) {
        if T == 1 {
            ahead.fetch(s, 1);
        }
        step::<S, F, T>(s, w, x, i, &mut sums);
    }
    if n_whole < n {
        let mut space = [NO_ROWS; 2];
        let [w_space, x_space] = &mut space;
        let w = w.padded(n_whole * F::BYTES, w_space);
        let x = x.padded(n_whole * F32::BYTES, x_space);
        step::<S, F, T>(s, &w, &x, 0, &mut sums);
    }
    sums
}

/// Adds the products of the values from `i` on, one in each lane.
#[inline(always)]
fn step<S: FloatLanes, F: FloatFormat, const T: usize>(
    s: S,
    w: &RowGroup<'_>,
    x: &RowGroup<'_>,
    i: usize,
    sums: &mut [[S::Floats; TILE_ROWS]; T],
) {
    let mut activations = [s.splat_float(0.0); T];
    for (t, x_t) in activations.iter_mut().enumerate() {
        *x_t = F32::load(s, x, t, i * F32::BYTES);
    }
    for row in 0..TILE_ROWS {
        let weights = F::load(s, w, row, i * F::BYTES);
        for (sums, &activations) in sums.iter_mut().zip(&activations) {
            sums[row] = s.mul_add(weights, activations, sums[row]);
        }
    }
}

/// Declares a format and how it is loaded.
macro_rules! float_format {
    ($name:ident: $bytes:literal bytes, $load:ident) => {
        #[doc = concat!("See [`FloatLanes::", stringify!($load), "`].")]
        pub(crate) struct $name;

        impl FloatFormat for $name {
            const BYTES: usize = $bytes;

            #[inline(always)]
            fn load<S: FloatLanes>(s: S, rows: &RowGroup<'_>, row: usize, at: usize) -> S::Floats {
                s.$load(rows, row, at)
            }
        }
    };
}

float_format!(F32: 4 bytes, f32s);
float_format!(F16: 2 bytes, f16s);
float_format!(BF16: 2 bytes, bf16s);

//! Matrix products by turning weights into f32 and adding up.

use crate::kernels::activations::{Activations, BLOCK};
use crate::kernels::args::{ColumnsMut, TokenRows, WeightRows};
use crate::kernels::dequant::dequantise_row;

/// `y = x · wᵀ`, column `i` of `y` being row `i` of `w`.
///
/// # Panics
/// If shapes do not fit each other, or the form of `x` is not that of the weights.
pub fn matmul(
    w: WeightRows<'_>,
    x: Activations<'_>,
    tokens: TokenRows<'_>,
    y: &mut ColumnsMut<'_>,
) {
    assert_eq!(y.width(), w.n(), "a column of the result for each weight row");
    let mut row = vec![0.0; w.k()];
    for n in 0..w.n() {
        dequantise_row(w.dtype(), w.row(n), &mut row);
        for t in 0..tokens.len() {
            let dot = match x {
                Activations::F32(x) => dot(&row, x.row(tokens.x(t))),
                Activations::Q8(x) => {
                    let blocks = row.chunks_exact(BLOCK).zip(x.row(tokens.x(t)));
                    blocks.map(|(w, x)| x.scale * dot(w, &x.values.map(f32::from))).sum()
                }
            };
            y.row_mut(tokens.y(t))[n] = dot;
        }
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    debug_assert_eq!(a.len(), b.len(), "rows of one length");
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

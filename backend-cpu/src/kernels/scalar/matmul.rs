//! Matrix products.

use super::lanes::Scalar;
use crate::kernels::activations::{Activations, Rows};
use crate::kernels::args::{ColumnsMut, TokenRows, WeightRows};
use crate::kernels::dequant::dequantise_row;
use crate::kernels::matmul::{Product, dispatch};

/// `y = x · wᵀ` for the listed rows of `x` and `y`; column `i` of `y` belongs to row `i` of `w`.
///
/// # Panics
/// If shapes do not fit each other, or the form of `x` is not that of the weights.
pub fn matmul(
    w: WeightRows<'_>,
    x: Activations<'_>,
    tokens: TokenRows<'_>,
    y: &mut ColumnsMut<'_>,
) {
    match x {
        Activations::Q8(x) => dispatch(Scalar, Product { w, x, tokens, y }),
        Activations::F32(x) => float_matmul(w, x, tokens, y),
    }
}

fn float_matmul(
    w: WeightRows<'_>,
    x: Rows<'_, f32>,
    tokens: TokenRows<'_>,
    y: &mut ColumnsMut<'_>,
) {
    assert_eq!(w.k(), x.width(), "rows of weights and activations are alike");
    assert_eq!(w.n(), y.width(), "a column of the result for each weight row");
    let mut row = vec![0.0; w.k()];
    for n in 0..w.n() {
        dequantise_row(w.dtype(), w.row(n), &mut row);
        for t in 0..tokens.len() {
            let products = row.iter().zip(x.row(tokens.x(t))).map(|(w, x)| w * x);
            y.row_mut(tokens.y(t))[n] = products.sum();
        }
    }
}

//! Matrix products, written once for all vector units: [`Lanes`] is what a unit must do, [`Format`] what a block format
//! is, and `tile` the loops over weight rows and tokens.

mod ahead;
mod floats;
mod format;
mod formats256;
mod formats32;
mod lanes;
mod rows;
#[cfg(test)]
mod tests;
mod tile;

use engine_core::weights::DType;

pub(crate) use ahead::Reads;
pub(crate) use floats::{FloatFormat, float_product};
pub(crate) use format::Format;
pub(crate) use lanes::{FloatLanes, Lanes};
pub(crate) use rows::RowGroup;
pub(crate) use tile::product;

use self::floats::{BF16, F16, F32};
use self::formats32::{IQ4_NL, MXFP4, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0};
use self::formats256::{IQ4_XS, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K};
use super::activations::{BLOCK, Q8Block, Rows};
use super::args::{ColumnsMut, TokenRows, WeightRows};

/// One product: `y = x · wᵀ` for the listed rows of `x` and `y`.
pub(crate) struct Product<'a, 'y, T> {
    pub(crate) w: WeightRows<'a>,
    pub(crate) x: Rows<'a, T>,
    pub(crate) tokens: TokenRows<'a>,
    pub(crate) y: &'a mut ColumnsMut<'y>,
}

/// A vector unit's way into [`product`], with its target features enabled.
pub(crate) trait Unit: Lanes {
    fn product<F: Format>(self, p: Product<'_, '_, Q8Block>);
}

/// Computes a product in the format of its weights.
///
/// # Panics
/// If shapes do not fit each other or the format is not a quantised one with arithmetic.
pub(crate) fn dispatch<U: Unit>(unit: U, p: Product<'_, '_, Q8Block>) {
    assert_eq!(p.w.k(), p.x.width() * BLOCK, "rows of weights and activations are alike");
    assert_eq!(p.w.n(), p.y.width(), "a column of the result for each weight row");
    match p.w.dtype() {
        DType::Q4_0 => unit.product::<Q4_0>(p),
        DType::Q4_1 => unit.product::<Q4_1>(p),
        DType::Q5_0 => unit.product::<Q5_0>(p),
        DType::Q5_1 => unit.product::<Q5_1>(p),
        DType::Q8_0 => unit.product::<Q8_0>(p),
        DType::Q2_K => unit.product::<Q2_K>(p),
        DType::Q3_K => unit.product::<Q3_K>(p),
        DType::Q4_K => unit.product::<Q4_K>(p),
        DType::Q5_K => unit.product::<Q5_K>(p),
        DType::Q6_K => unit.product::<Q6_K>(p),
        DType::IQ4_NL => unit.product::<IQ4_NL>(p),
        DType::IQ4_XS => unit.product::<IQ4_XS>(p),
        DType::MXFP4 => unit.product::<MXFP4>(p),
        dtype => panic!("{dtype} does not multiply with rounded activations"),
    }
}

/// A vector unit's way into [`float_product`], with its target features enabled.
pub(crate) trait FloatUnit: FloatLanes {
    fn float_product<F: FloatFormat>(self, p: Product<'_, '_, f32>);
}

/// Computes a product in the format of its weights.
///
/// # Panics
/// If shapes do not fit each other or the format is not of floats.
pub(crate) fn dispatch_floats<U: FloatUnit>(unit: U, p: Product<'_, '_, f32>) {
    assert_eq!(p.w.k(), p.x.width(), "rows of weights and activations are alike");
    assert_eq!(p.w.n(), p.y.width(), "a column of the result for each weight row");
    match p.w.dtype() {
        DType::F32 => unit.float_product::<F32>(p),
        DType::F16 => unit.float_product::<F16>(p),
        DType::BF16 => unit.float_product::<BF16>(p),
        dtype => panic!("{dtype} does not multiply with unrounded activations"),
    }
}

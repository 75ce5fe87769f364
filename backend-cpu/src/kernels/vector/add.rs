//! Sums and multiples of rows.

use super::Vector;
use super::math::{Function, map};

#[inline(always)]
pub(crate) fn add_scaled<U: Vector>(unit: U, factor: f32, x: &[f32], y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "rows of one length");
    let factor = unit.splat(factor);
    let xs = x.chunks_exact(U::LANES);
    let rest_of_x = xs.remainder();
    let mut ys = y.chunks_exact_mut(U::LANES);
    for (y, x) in ys.by_ref().zip(xs) {
        unit.store(unit.mul_add(factor, unit.load(x), unit.load(y)), y);
    }
    let rest = ys.into_remainder();
    if !rest.is_empty() {
        let x = unit.load_some(rest_of_x, 0.0);
        unit.store_some(unit.mul_add(factor, x, unit.load_some(rest, 0.0)), rest);
    }
}

#[inline(always)]
pub(crate) fn scale<U: Vector>(unit: U, factor: f32, y: &mut [f32]) {
    map(unit, Scale(factor), y);
}

#[derive(Clone, Copy)]
struct Scale(f32);

impl Function for Scale {
    #[inline(always)]
    fn at<U: Vector>(self, unit: U, x: U::V) -> U::V {
        unit.mul(unit.splat(self.0), x)
    }
}

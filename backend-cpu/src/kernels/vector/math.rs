//! Functions of each value of a vector.

use super::Vector;

/// A function of one value.
pub(super) trait Function: Copy {
    fn at<U: Vector>(self, unit: U, x: U::V) -> U::V;
}

/// Replaces each value of `y` by the function of it.
#[inline(always)]
pub(super) fn map<U: Vector>(unit: U, function: impl Function, y: &mut [f32]) {
    let mut vectors = y.chunks_exact_mut(U::LANES);
    for y in &mut vectors {
        unit.store(function.at(unit, unit.load(y)), y);
    }
    let rest = vectors.into_remainder();
    if !rest.is_empty() {
        unit.store_some(function.at(unit, unit.load_some(rest, 0.0)), rest);
    }
}

/// `eˣ`, within 2 units in the last place; 0 where it is below the smallest normal number, infinity above the largest.
///
/// Source: the polynomial of `expf` in the Cephes library, S. Moshier.
#[inline(always)]
pub(super) fn exp<U: Vector>(unit: U, x: U::V) -> U::V {
    const LOWEST: f32 = -87.336_54;
    const HIGHEST: f32 = 88.722_83;
    // ln 2 in two parts, the first with so few bits that its multiples are exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const POLYNOMIAL: [f32; 6] =
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
    let splat = |value| unit.splat(value);
    let bounded = unit.min(splat(HIGHEST), unit.max(splat(LOWEST), x));
    let n = unit.round(unit.mul(bounded, splat(std::f32::consts::LOG2_E)));
    let r = unit.mul_add(n, splat(-LN_2_HIGH), bounded);
    let r = unit.mul_add(n, splat(-LN_2_LOW), r);
    let mut p = splat(POLYNOMIAL[0]);
    for coefficient in &POLYNOMIAL[1..] {
        p = unit.mul_add(p, r, splat(*coefficient));
    }
    let p = unit.add(unit.mul_add(unit.mul(r, r), p, r), splat(1.0));
    // In two steps, since 2¹²⁸ is beyond the range where the result is not.
    let half = unit.round(unit.mul(n, splat(0.5)));
    let rest = unit.sub(n, half);
    let y = unit.mul(unit.mul(p, unit.power_of_two(half)), unit.power_of_two(rest));
    let y = unit.if_less(splat(HIGHEST), x, splat(f32::INFINITY), y);
    unit.if_less(x, splat(LOWEST), splat(0.0), y)
}

/// `tanh x`, within 2 units in the last place.
///
/// Source: as `tanhf` in the Cephes library, S. Moshier: a polynomial near zero, where the exponential would cancel.
#[inline(always)]
pub(super) fn tanh<U: Vector>(unit: U, x: U::V) -> U::V {
    const NEAR: f32 = 0.625;
    const POLYNOMIAL: [f32; 5] =
        [-5.704_988_7e-3, 2.063_908_8e-2, -5.373_971_6e-2, 1.333_144_2e-1, -3.333_328e-1];
    let splat = |value| unit.splat(value);
    let square = unit.mul(x, x);
    let mut p = splat(POLYNOMIAL[0]);
    for coefficient in &POLYNOMIAL[1..] {
        p = unit.mul_add(p, square, splat(*coefficient));
    }
    let near = unit.mul_add(unit.mul(square, p), x, x);
    let size = unit.max(unit.sub(splat(0.0), x), x);
    let e = exp(unit, unit.add(size, size));
    let far = unit.sub(splat(1.0), unit.div(splat(2.0), unit.add(e, splat(1.0))));
    let far = unit.if_less(x, splat(0.0), unit.sub(splat(0.0), far), far);
    unit.if_less(size, splat(NEAR), near, far)
}

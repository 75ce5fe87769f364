//! Turns f32 into narrower formats.

use half::f16;

use super::Vector;
use super::unit::MOST;

#[inline(always)]
pub(crate) fn to_f16<U: Vector>(unit: U, x: &[f32], y: &mut [f16]) {
    assert_eq!(x.len(), y.len(), "rows of one length");
    let xs = x.chunks_exact(U::LANES);
    let rest_of_x = xs.remainder();
    let mut ys = y.chunks_exact_mut(U::LANES);
    for (y, x) in ys.by_ref().zip(xs) {
        unit.store_f16(in_range(unit, unit.load(x)), y);
    }
    let rest = ys.into_remainder();
    let mut all = [f16::ZERO; MOST];
    unit.store_f16(in_range(unit, unit.load_some(rest_of_x, 0.0)), &mut all);
    rest.copy_from_slice(&all[..rest.len()]);
}

/// Numbers at most as large as the largest f16; infinities and NaN as they are.
#[inline(always)]
fn in_range<U: Vector>(unit: U, x: U::V) -> U::V {
    let most = f16::MAX.to_f32();
    let [low, high, infinity] = [-most, most, f32::INFINITY].map(|value| unit.splat(value));
    let size = unit.max(unit.sub(unit.splat(0.0), x), x);
    unit.if_less(size, infinity, unit.min(high, unit.max(low, x)), x)
}

//! Normalises a row.

use super::Vector;
use super::math::exp;

#[inline(always)]
pub(crate) fn rms_norm<U: Vector>(
    unit: U,
    x: &mut [f32],
    weight: &[f32],
    weight_offset: f32,
    eps: f32,
) {
    assert_eq!(x.len(), weight.len(), "a weight for each value");
    let factor = 1.0 / (sum_of_squares(unit, x) / x.len() as f32 + eps).sqrt();
    let [factor, offset] = [factor, weight_offset].map(|value| unit.splat(value));
    let mut xs = x.chunks_exact_mut(U::LANES);
    let weights = weight.chunks_exact(U::LANES);
    let rest_of_weight = weights.remainder();
    for (x, weight) in xs.by_ref().zip(weights) {
        let weight = unit.add(unit.load(weight), offset);
        unit.store(unit.mul(unit.mul(unit.load(x), factor), weight), x);
    }
    let rest = xs.into_remainder();
    if !rest.is_empty() {
        let weight = unit.add(unit.load_some(rest_of_weight, 0.0), offset);
        unit.store_some(unit.mul(unit.mul(unit.load_some(rest, 0.0), factor), weight), rest);
    }
}

#[inline(always)]
fn sum_of_squares<U: Vector>(unit: U, x: &[f32]) -> f32 {
    // Four sums, so that each addition need not wait for the last one.
    let mut sums = [unit.splat(0.0); 4];
    let groups = x.chunks_exact(4 * U::LANES);
    let rest = groups.remainder();
    for group in groups {
        for (sum, x) in sums.iter_mut().zip(group.chunks_exact(U::LANES)) {
            let x = unit.load(x);
            *sum = unit.mul_add(x, x, *sum);
        }
    }
    for x in rest.chunks(U::LANES) {
        let x = if x.len() == U::LANES { unit.load(x) } else { unit.load_some(x, 0.0) };
        sums[0] = unit.mul_add(x, x, sums[0]);
    }
    let [a, b, c, d] = sums;
    unit.sum(unit.add(unit.add(a, b), unit.add(c, d)))
}

#[inline(always)]
pub(crate) fn softmax<U: Vector>(unit: U, x: &mut [f32]) {
    let max = unit.splat(largest(unit, x));
    let sum = exp_and_sum(unit, x, max);
    super::scale(unit, 1.0 / sum, x);
}

/// The largest value; −∞ if there is none.
#[inline(always)]
pub(super) fn largest<U: Vector>(unit: U, x: &[f32]) -> f32 {
    let mut max = unit.splat(f32::NEG_INFINITY);
    let vectors = x.chunks_exact(U::LANES);
    let rest = vectors.remainder();
    for x in vectors {
        max = unit.max(max, unit.load(x));
    }
    unit.largest(unit.max(max, unit.load_some(rest, f32::NEG_INFINITY)))
}

/// `x = e^(x − max)`; returns the sum of that.
#[inline(always)]
pub(super) fn exp_and_sum<U: Vector>(unit: U, x: &mut [f32], max: U::V) -> f32 {
    let mut sum = unit.splat(0.0);
    let mut vectors = x.chunks_exact_mut(U::LANES);
    for x in &mut vectors {
        let y = exp(unit, unit.sub(unit.load(x), max));
        sum = unit.add(sum, y);
        unit.store(y, x);
    }
    let rest = vectors.into_remainder();
    if !rest.is_empty() {
        let y = exp(unit, unit.sub(unit.load_some(rest, f32::NEG_INFINITY), max));
        sum = unit.add(sum, y);
        unit.store_some(y, rest);
    }
    unit.sum(sum)
}

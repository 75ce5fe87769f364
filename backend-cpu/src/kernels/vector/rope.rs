//! Rotates the pairs of a head.

use engine_core::op::RopePairs;

use super::Vector;

#[inline(always)]
pub(crate) fn rotate<U: Vector>(
    unit: U,
    head: &mut [f32],
    cos: &[f32],
    sin: &[f32],
    pairs: RopePairs,
) {
    let n = cos.len();
    assert!(sin.len() == n && n <= head.len() && n.is_multiple_of(2), "factors of whole pairs");
    match pairs {
        RopePairs::Adjacent => rotate_adjacent(unit, &mut head[..n], cos, sin),
        RopePairs::Halves => rotate_halves(unit, &mut head[..n], cos, sin),
    }
}

#[inline(always)]
fn rotate_adjacent<U: Vector>(unit: U, head: &mut [f32], cos: &[f32], sin: &[f32]) {
    let turned =
        |x: U::V, cos: U::V, sin: U::V| unit.mul_add(x, cos, unit.mul(unit.swap_pairs(x), sin));
    for (i, x) in head.chunks_mut(U::LANES).enumerate() {
        let (cos, sin) = (&cos[i * U::LANES..], &sin[i * U::LANES..]);
        if x.len() == U::LANES {
            unit.store(turned(unit.load(x), unit.load(cos), unit.load(sin)), x);
        } else {
            let some = |x| unit.load_some(x, 0.0);
            unit.store_some(turned(some(x), some(cos), some(sin)), x);
        }
    }
}

#[inline(always)]
fn rotate_halves<U: Vector>(unit: U, head: &mut [f32], cos: &[f32], sin: &[f32]) {
    let n = head.len() / 2;
    let (first, second) = head.split_at_mut(n);
    let [(cos_1, cos_2), (sin_1, sin_2)] = [cos.split_at(n), sin.split_at(n)];
    for i in (0..n).step_by(U::LANES) {
        let (x, y) = (&mut first[i..], &mut second[i..]);
        let factors = [&cos_1[i..], &sin_1[i..], &cos_2[i..], &sin_2[i..]];
        let whole = x.len() >= U::LANES;
        let some = |x| if whole { unit.load(x) } else { unit.load_some(x, 0.0) };
        let [cos_1, sin_1, cos_2, sin_2] = factors.map(some);
        let (a, b) = (some(x), some(y));
        let x_turned = unit.mul_add(a, cos_1, unit.mul(b, sin_1));
        let y_turned = unit.mul_add(b, cos_2, unit.mul(a, sin_2));
        if whole {
            unit.store(x_turned, x);
            unit.store(y_turned, y);
        } else {
            unit.store_some(x_turned, x);
            unit.store_some(y_turned, y);
        }
    }
}

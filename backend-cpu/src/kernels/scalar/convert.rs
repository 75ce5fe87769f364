//! Turns f32 into narrower formats.

use half::f16;

/// Rounds to the nearest f16, ties to even. A number beyond the range becomes the largest f16, so that no infinity,
/// and later no NaN, comes of a number; infinities and NaN stay.
///
/// # Panics
/// If lengths differ.
pub fn to_f16(x: &[f32], y: &mut [f16]) {
    assert_eq!(x.len(), y.len(), "rows of one length");
    for (y, &x) in y.iter_mut().zip(x) {
        let near = f16::from_f32(x);
        let overflowed = near.is_infinite() && x.is_finite();
        *y = if overflowed { f16::MAX.copysign(near) } else { near };
    }
}

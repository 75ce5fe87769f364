//! Sums and multiples of rows.

/// `y += factor · x`.
///
/// # Panics
/// If lengths differ.
pub fn add_scaled(factor: f32, x: &[f32], y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "rows of one length");
    for (y, x) in y.iter_mut().zip(x) {
        *y += factor * x;
    }
}

/// `y = factor · y`.
pub fn scale(factor: f32, y: &mut [f32]) {
    y.iter_mut().for_each(|y| *y *= factor);
}

//! Normalises a row.

/// `x = x / sqrt(mean(x²) + eps) · (weight + weight_offset)`.
///
/// # Panics
/// If `weight` is not as long as `x`.
pub fn rms_norm(x: &mut [f32], weight: &[f32], weight_offset: f32, eps: f32) {
    assert_eq!(x.len(), weight.len(), "a weight for each value");
    let sum: f32 = x.iter().map(|x| x * x).sum();
    let factor = 1.0 / (sum / x.len() as f32 + eps).sqrt();
    for (x, weight) in x.iter_mut().zip(weight) {
        *x = *x * factor * (weight + weight_offset);
    }
}

/// Shares that sum to 1: `x = eˣ / Σ eˣ`.
pub fn softmax(x: &mut [f32]) {
    let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for x in x.iter_mut() {
        *x = (*x - max).exp();
        sum += *x;
    }
    x.iter_mut().for_each(|x| *x /= sum);
}

//! Sums and multiples of rows.

use super::lanes::Avx512;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::add::add_scaled).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn add_scaled(factor: f32, x: &[f32], y: &mut [f32]) {
    vector::add_scaled(Avx512::new(), factor, x, y);
}

/// As [`scalar`](crate::kernels::scalar::add::scale).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn scale(factor: f32, y: &mut [f32]) {
    vector::scale(Avx512::new(), factor, y);
}

//! Sums and multiples of rows.

use super::lanes::Avx2;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::add::add_scaled).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn add_scaled(factor: f32, x: &[f32], y: &mut [f32]) {
    vector::add_scaled(Avx2::new(), factor, x, y);
}

/// As [`scalar`](crate::kernels::scalar::add::scale).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn scale(factor: f32, y: &mut [f32]) {
    vector::scale(Avx2::new(), factor, y);
}

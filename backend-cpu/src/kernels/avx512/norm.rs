//! Normalises a row.

use super::lanes::Avx512;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::norm::rms_norm).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn rms_norm(x: &mut [f32], weight: &[f32], weight_offset: f32, eps: f32) {
    vector::rms_norm(Avx512::new(), x, weight, weight_offset, eps);
}

/// As [`scalar`](crate::kernels::scalar::norm::softmax).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn softmax(x: &mut [f32]) {
    vector::softmax(Avx512::new(), x);
}

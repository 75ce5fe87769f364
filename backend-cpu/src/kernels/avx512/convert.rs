//! Turns f32 into narrower formats.

use half::f16;

use super::lanes::Avx512;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::convert::to_f16), and with the same bits.
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn to_f16(x: &[f32], y: &mut [f16]) {
    vector::to_f16(Avx512::new(), x, y);
}

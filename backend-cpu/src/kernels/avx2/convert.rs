//! Turns f32 into narrower formats.

use half::f16;

use super::lanes::Avx2;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::convert::to_f16), and with the same bits.
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn to_f16(x: &[f32], y: &mut [f16]) {
    vector::to_f16(Avx2::new(), x, y);
}

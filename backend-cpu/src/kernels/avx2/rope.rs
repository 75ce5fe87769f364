//! Rotates the pairs of a head.

use engine_core::op::RopePairs;

use super::lanes::Avx2;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::rope::rotate).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn rotate(head: &mut [f32], cos: &[f32], sin: &[f32], pairs: RopePairs) {
    vector::rotate(Avx2::new(), head, cos, sin, pairs);
}

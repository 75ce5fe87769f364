//! Rotates the pairs of a head.

use engine_core::op::RopePairs;

use super::lanes::Avx512;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::rope::rotate).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn rotate(head: &mut [f32], cos: &[f32], sin: &[f32], pairs: RopePairs) {
    vector::rotate(Avx512::new(), head, cos, sin, pairs);
}

//! Functions of single values.

use engine_core::op::Activation;

use super::lanes::Avx2;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::glu::glu).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn glu(activation: Activation, gate: &[f32], y: &mut [f32]) {
    vector::glu(Avx2::new(), activation, gate, y);
}

/// As [`scalar`](crate::kernels::scalar::glu::soft_cap).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn soft_cap(y: &mut [f32], cap: f32) {
    vector::soft_cap(Avx2::new(), y, cap);
}

//! Functions of single values.

use engine_core::op::Activation;

use super::lanes::Avx512;
use crate::kernels::vector;

/// As [`scalar`](crate::kernels::scalar::glu::glu).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn glu(activation: Activation, gate: &[f32], y: &mut [f32]) {
    vector::glu(Avx512::new(), activation, gate, y);
}

/// As [`scalar`](crate::kernels::scalar::glu::soft_cap).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn soft_cap(y: &mut [f32], cap: f32) {
    vector::soft_cap(Avx512::new(), y, cap);
}

//! Matrix products.

use super::lanes::Avx2;
use crate::kernels::activations::Activations;
use crate::kernels::args::{ColumnsMut, TokenRows, WeightRows};
use crate::kernels::matmul::{Product, dispatch, dispatch_floats};

/// As [`scalar`](crate::kernels::scalar::matmul::matmul).
///
/// # Safety
/// The CPU has AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn matmul(
    w: WeightRows<'_>,
    x: Activations<'_>,
    tokens: TokenRows<'_>,
    y: &mut ColumnsMut<'_>,
) {
    match x {
        Activations::Q8(x) => dispatch(Avx2::new(), Product { w, x, tokens, y }),
        Activations::F32(x) => dispatch_floats(Avx2::new(), Product { w, x, tokens, y }),
    }
}

/// As [`scalar`](crate::kernels::scalar::matmul::matmul).
///
/// # Safety
/// The CPU has AVX2, FMA, F16C and AVX-VNNI.
#[target_feature(enable = "avx2,fma,f16c,avxvnni")]
pub(crate) fn matmul_vnni(
    w: WeightRows<'_>,
    x: Activations<'_>,
    tokens: TokenRows<'_>,
    y: &mut ColumnsMut<'_>,
) {
    match x {
        Activations::Q8(x) => dispatch(Avx2::with_vnni(), Product { w, x, tokens, y }),
        Activations::F32(x) => dispatch_floats(Avx2::new(), Product { w, x, tokens, y }),
    }
}

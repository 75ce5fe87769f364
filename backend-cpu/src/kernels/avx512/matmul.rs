//! Matrix products.

use super::lanes::Avx512;
use crate::kernels::activations::Activations;
use crate::kernels::args::{ColumnsMut, TokenRows, WeightRows};
use crate::kernels::matmul::{Product, dispatch, dispatch_floats};

/// As [`scalar`](crate::kernels::scalar::matmul::matmul).
///
/// # Safety
/// The CPU has AVX-512 F and BW.
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn matmul(
    w: WeightRows<'_>,
    x: Activations<'_>,
    tokens: TokenRows<'_>,
    y: &mut ColumnsMut<'_>,
) {
    match x {
        Activations::Q8(x) => dispatch(Avx512::new(), Product { w, x, tokens, y }),
        Activations::F32(x) => dispatch_floats(Avx512::new(), Product { w, x, tokens, y }),
    }
}

/// As [`scalar`](crate::kernels::scalar::matmul::matmul).
///
/// # Safety
/// The CPU has AVX-512 F, BW and VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(crate) fn matmul_vnni(
    w: WeightRows<'_>,
    x: Activations<'_>,
    tokens: TokenRows<'_>,
    y: &mut ColumnsMut<'_>,
) {
    match x {
        Activations::Q8(x) => dispatch(Avx512::with_vnni(), Product { w, x, tokens, y }),
        Activations::F32(x) => dispatch_floats(Avx512::new(), Product { w, x, tokens, y }),
    }
}

//! Which ops there are kernels for.

use engine_core::op::{Op, View};
use engine_core::weights::DType;

use crate::kernels::activations::Form;

/// Whether an op of these formats can be prepared.
pub(crate) fn supports(op: &Op) -> bool {
    let multiplies = |w: &View| Form::of(w.dtype).is_some();
    let is_float = |w: &View| matches!(w.dtype, DType::F32 | DType::F16 | DType::BF16);
    let is_cell = |w: &View| matches!(w.dtype, DType::F32 | DType::F16);
    match op {
        Op::GatherRows(op) => multiplies(&op.table),
        Op::ScatterRows(op) => is_cell(&op.table),
        Op::MatMul(op) => multiplies(&op.w),
        Op::MatMulExperts(op) => op.w.iter().all(multiplies),
        Op::RmsNorm(op) => is_float(&op.weight),
        Op::AddBias(op) => is_float(&op.bias),
        Op::Attention(op) => is_cell(&op.k) && op.k.dtype == op.v.dtype,
        Op::Rope(_)
        | Op::Glu(_)
        | Op::Add(_)
        | Op::SoftCap(_)
        | Op::RouteExperts(_)
        | Op::CombineExperts(_) => true,
    }
}

//! All kernels of one device.

use std::sync::Arc;

use planner::{Format, Kernels, Seconds};

use super::bench::Bench;
use super::effort::Effort;
use super::error::MeasureError;
use super::light::LightTimes;
use super::stopwatch::Stopwatch;
use super::{attention, light, pass, products};
use crate::backend::{Backend, BufferId, HostRegion};
use crate::cost::format;
use crate::op::{MatMul, MatMulExperts, Op, View};
use crate::weights::DType;

/// Formats that a device computes with, by their names on both sides.
pub(super) type Formats = Vec<(DType, Format)>;

/// What was found out about one device.
pub(super) struct DeviceTimes {
    pub(super) kernels: Kernels,
    /// Fixed time of a pass that this device begins and ends.
    pub(super) pass: Seconds,
}

/// Of all formats those that `backend` computes with, or those of `wanted`.
///
/// # Errors
/// A wanted format that it does not compute with.
pub(super) fn formats(
    backend: &dyn Backend,
    wanted: Option<&[Format]>,
) -> Result<Formats, MeasureError> {
    let computes = DType::ALL.iter().copied().filter(|&dtype| supports(backend, dtype));
    let known: Formats = computes.filter_map(|dtype| Some((dtype, format(dtype)?))).collect();
    let Some(wanted) = wanted else { return Ok(known) };
    let find = |&wanted: &Format| {
        let found = known.iter().find(|(_, format)| *format == wanted);
        let missing =
            || MeasureError::NoArithmetic { device: backend.name().to_owned(), format: wanted };
        found.copied().ok_or_else(missing)
    };
    wanted.iter().map(find).collect()
}

fn supports(backend: &dyn Backend, dtype: DType) -> bool {
    let block = dtype.block().values;
    let view = |rows, columns, dtype| View {
        buffer: BufferId(0),
        offset: planner::Bytes::ZERO,
        shape: [rows, columns],
        dtype,
    };
    let (x, w, y) = (view(1, block, DType::F32), view(1, block, dtype), view(1, 1, DType::F32));
    let experts = view(1, 1, DType::I32);
    let product = Op::MatMul(MatMul { x, w, y });
    let of_experts = Op::MatMulExperts(MatMulExperts { x, w: Arc::new([w]), experts, y });
    backend.supports(&product) && backend.supports(&of_experts)
}

/// Measures a device. `region` is memory that looks like weights.
pub(super) fn measure(
    backend: &mut dyn Backend,
    region: &Arc<HostRegion>,
    watch: &mut Stopwatch<'_>,
    effort: &Effort,
    formats: &Formats,
) -> Result<DeviceTimes, MeasureError> {
    let mut bench = Bench::new(backend, region)?;
    let light = light::measure(&mut bench, watch)?;
    let pass = pass::measure(&mut bench, watch, light)?;
    let attention = effort
        .heads
        .iter()
        .map(|&shape| attention::measure(&mut bench, watch, effort, light, shape));
    let attention = attention.collect::<Result<_, _>>()?;
    let mut of_formats = Vec::new();
    for &format in formats {
        of_formats.extend(products::measure(&mut bench, watch, effort, light, format)?);
    }
    let LightTimes { op, memory } = light;
    Ok(DeviceTimes { kernels: Kernels { op, memory, products: of_formats, attention }, pass })
}

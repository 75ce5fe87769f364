//! What the simulated GPU promises besides arithmetic.

mod faults;
mod queues;

use std::sync::Arc;

use engine_core::backend::HostRegion;
use engine_core::op::{Add, Op, View};
use engine_core::weights::DType;
use planner::Bytes;

use crate::harness::{Bench, fast};

pub(super) fn bench() -> Bench {
    Bench::simulated(fast())
}

pub(super) fn bytes_of(values: &[f32]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

pub(super) fn region(values: &[f32]) -> Arc<HostRegion> {
    HostRegion::new(bytes_of(values))
}

pub(super) fn add(x: View, y: View) -> [Op; 1] {
    [Op::Add(Add { x, y })]
}

/// Ops on parts of one buffer, as the executor has them: a slot and a sum of eight values each.
pub(super) fn slot_and_sum(bench: &mut Bench) -> [View; 2] {
    let buffer = bench.backend.alloc(Bytes::new(64)).unwrap();
    let part = |offset| View { buffer, offset, shape: [1, 8], dtype: DType::F32 };
    [0, 32].map(|offset| part(Bytes::new(offset)))
}

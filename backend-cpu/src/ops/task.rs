//! One op, ready to be worked on by any number of threads.

use engine_core::op::Op;

use super::matmul::Quantised;
use super::rope::Angles;
use super::{attention, elementwise, experts, matmul, norm, rope, rows};
use crate::arena::Arena;
use crate::table::KernelTable;
use crate::threads::{Conflict, Crew};

/// What ops are prepared with.
pub(crate) struct Bench<'m, 'c, 'g> {
    pub(crate) arena: &'m Arena,
    pub(crate) kernels: KernelTable,
    pub(crate) crew: &'c mut Crew<'g>,
    pub(crate) shared: &'c mut Shared,
}

/// What several ops use, computed from views.
#[derive(Default)]
pub(crate) struct Shared {
    pub(super) quantised: Quantised,
    pub(super) angles: Angles,
}

impl Shared {
    /// Forgets everything, since memory may have changed in any way.
    pub(crate) fn clear(&mut self) {
        self.quantised.forget(|_| true);
        self.angles.forget(|_| true);
    }

    /// Forgets what was computed from memory that is lent out for writing.
    pub(crate) fn forget_written(&mut self, arena: &Arena) {
        self.quantised.forget(|view| arena.is_written(view));
        self.angles.forget(|key| key.views().iter().any(|view| arena.is_written(view)));
    }
}

/// An op whose views are resolved. Every thread calls [`work`](Task::work) once; the op is done when all have returned.
pub(crate) enum Task<'m> {
    Gather(rows::Gather<'m>),
    Scatter(rows::Scatter<'m>),
    MatMul(matmul::Product<'m>),
    RmsNorm(norm::Norm<'m>),
    Rope(rope::Rotation<'m>),
    Attention(attention::Attending<'m>),
    Glu(elementwise::Gating<'m>),
    Add(elementwise::Addition<'m>),
    SoftCap(elementwise::Capping<'m>),
    Route(experts::Routing<'m>),
    MatMulExperts(experts::Products<'m>),
    Combine(experts::Combination<'m>),
}

impl<'m> Task<'m> {
    /// Resolves the views of `op`, or says that one of them is in use by an op prepared before.
    ///
    /// # Panics
    /// If shapes or formats are not those that the op defines, or a view is not inside its buffer.
    pub(crate) fn prepare(op: &Op, bench: &mut Bench<'m, '_, '_>) -> Result<Task<'m>, Conflict> {
        Ok(match op {
            Op::GatherRows(op) => Task::Gather(rows::Gather::prepare(op, bench)?),
            Op::ScatterRows(op) => Task::Scatter(rows::Scatter::prepare(op, bench)?),
            Op::MatMul(op) => Task::MatMul(matmul::Product::prepare(op, bench)?),
            Op::RmsNorm(op) => Task::RmsNorm(norm::Norm::prepare(op, bench)?),
            Op::Rope(op) => Task::Rope(rope::Rotation::prepare(op, bench)?),
            Op::Attention(op) => Task::Attention(attention::Attending::prepare(op, bench)?),
            Op::Glu(op) => Task::Glu(elementwise::Gating::prepare(op, bench)?),
            Op::Add(op) => Task::Add(elementwise::Addition::prepare(op, bench)?),
            Op::AddBias(op) => Task::Add(elementwise::Addition::prepare_bias(op, bench)?),
            Op::SoftCap(op) => Task::SoftCap(elementwise::Capping::prepare(op, bench)?),
            Op::RouteExperts(op) => Task::Route(experts::Routing::prepare(op, bench)?),
            Op::MatMulExperts(op) => Task::MatMulExperts(experts::Products::prepare(op, bench)?),
            Op::CombineExperts(op) => Task::Combine(experts::Combination::prepare(op, bench)?),
        })
    }

    /// Does tiles of the op until none is left. `scratch` belongs to this thread and holds anything.
    pub(crate) fn work(&self, kernels: KernelTable, shared: &Shared, scratch: &mut Vec<f32>) {
        match self {
            Task::Gather(task) => task.work(kernels),
            Task::Scatter(task) => task.work(kernels),
            Task::MatMul(task) => task.work(kernels, &shared.quantised),
            Task::RmsNorm(task) => task.work(kernels),
            Task::Rope(task) => task.work(kernels, &shared.angles),
            Task::Attention(task) => task.work(kernels, scratch),
            Task::Glu(task) => task.work(kernels, scratch),
            Task::Add(task) => task.work(kernels),
            Task::SoftCap(task) => task.work(kernels),
            Task::Route(task) => task.work(kernels, scratch),
            Task::MatMulExperts(task) => task.work(kernels, &shared.quantised),
            Task::Combine(task) => task.work(kernels),
        }
    }
}

/// Turns stored row numbers into indices.
///
/// # Panics
/// If one is negative.
pub(super) fn index(number: i32) -> usize {
    usize::try_from(number).expect("rows, cells and experts are numbered from 0")
}

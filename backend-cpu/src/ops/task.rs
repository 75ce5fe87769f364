//! One op, ready to be worked on by any number of threads.

use engine_core::op::Op;

use super::{attention, elementwise, experts, matmul, norm, quantised::Quantised, rope, rows};
use crate::arena::Arena;
use crate::table::KernelTable;
use crate::threads::{Conflict, Crew, MatrixMut, Tiles};

/// What ops are prepared with.
pub(crate) struct Bench<'m, 'c, 'g> {
    pub(crate) arena: &'m Arena,
    pub(crate) kernels: KernelTable,
    pub(crate) crew: &'c mut Crew<'g>,
    pub(crate) quantised: &'c mut Quantised,
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
    pub(crate) fn work(&self, kernels: KernelTable, quantised: &Quantised, scratch: &mut Vec<f32>) {
        match self {
            Task::Gather(task) => task.work(kernels),
            Task::Scatter(task) => task.work(kernels),
            Task::MatMul(task) => task.work(kernels, quantised),
            Task::RmsNorm(task) => task.work(kernels),
            Task::Rope(task) => task.work(kernels),
            Task::Attention(task) => task.work(kernels, scratch),
            Task::Glu(task) => task.work(kernels, scratch),
            Task::Add(task) => task.work(kernels),
            Task::SoftCap(task) => task.work(kernels),
            Task::Route(task) => task.work(kernels, scratch),
            Task::MatMulExperts(task) => task.work(kernels, quantised),
            Task::Combine(task) => task.work(kernels),
        }
    }
}

/// Tiles wanted per thread, so that one that is held up leaves its tiles to the others.
const TILES_PER_THREAD: usize = 4;

/// Values of f32 in a cache line, of which tiles have whole ones, so that threads do not write to the same one.
const LINE: usize = 16;

/// Values that a tile has at least, so that taking tiles costs little beside working on them.
const TILE_VALUES: usize = 1024;

/// Cuts an output into tiles of whole rows, enough of them for `threads` if there are.
pub(super) fn cut_rows<T>(matrix: MatrixMut<'_, T>, threads: usize) -> Tiles<'_, T> {
    let [rows, columns] = [matrix.rows(), matrix.columns()];
    let enough = rows.div_ceil(threads * TILES_PER_THREAD);
    matrix.cut(enough.max(TILE_VALUES.div_ceil(columns)), columns)
}

/// Cuts an output into tiles of whole rows if there are enough of them for `threads`, else of whole cache lines.
pub(super) fn cut_any<T>(matrix: MatrixMut<'_, T>, threads: usize) -> Tiles<'_, T> {
    let [rows, columns] = [matrix.rows(), matrix.columns()];
    let wanted = threads * TILES_PER_THREAD;
    if rows >= wanted || columns <= TILE_VALUES {
        return cut_rows(matrix, threads);
    }
    let width = columns.div_ceil(wanted.div_ceil(rows.max(1))).max(TILE_VALUES);
    matrix.cut(1, width.next_multiple_of(LINE))
}

/// Cuts a result into tiles of some columns of all rows, a few for each thread.
pub(super) fn cut_columns<T>(matrix: MatrixMut<'_, T>, threads: usize) -> Tiles<'_, T> {
    let rows = matrix.rows().max(1);
    let width = matrix.columns().div_ceil(threads * TILES_PER_THREAD);
    matrix.cut(rows, width.next_multiple_of(LINE))
}

/// Turns stored row numbers into indices.
///
/// # Panics
/// If one is negative.
pub(super) fn index(number: i32) -> usize {
    usize::try_from(number).expect("rows, cells and experts are numbered from 0")
}

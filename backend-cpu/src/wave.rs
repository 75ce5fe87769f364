//! Runs a list of ops in waves: as many consecutive ops at once as do not touch each other's results.

use engine_core::op::Op;

use crate::arena::Arena;
use crate::ops::{Bench, Shared, Task};
use crate::table::KernelTable;
use crate::threads::Crew;

/// Most ops that run at once. More would only find each other's memory in use.
const WAVE: usize = 8;

/// What running ops needs besides the ops and their memory; kept from one submit to the next.
pub(crate) struct Runner {
    kernels: KernelTable,
    shared: Shared,
}

impl Runner {
    /// A runner that uses these kernels.
    pub(crate) fn new(kernels: KernelTable) -> Runner {
        Runner { kernels, shared: Shared::default() }
    }

    /// Runs ops in order, each seeing what the ones before it wrote.
    ///
    /// # Panics
    /// If an op's output overlaps one of its inputs where it must not, or as [`Task::prepare`] says.
    pub(crate) fn run(&mut self, mut ops: &[Op], arena: &mut Arena, crew: &mut Crew<'_>) {
        self.shared.clear();
        while !ops.is_empty() {
            arena.reclaim();
            let done = self.run_wave(ops, arena, crew);
            self.shared.forget_written(arena);
            ops = &ops[done..];
        }
    }

    /// Runs the first few ops at once and returns how many those are.
    fn run_wave(&mut self, ops: &[Op], arena: &Arena, crew: &mut Crew<'_>) -> usize {
        let mut tasks = Vec::with_capacity(WAVE);
        let mut nanoseconds = 0.0;
        for op in ops.iter().take(WAVE) {
            let mut bench = Bench { arena, kernels: self.kernels, crew, shared: &mut self.shared };
            match Task::prepare(op, &mut bench) {
                Ok(task) => tasks.push(task),
                Err(_) if !tasks.is_empty() => break,
                Err(_) => panic!("the output of {op:?} overlaps its inputs"),
            }
            nanoseconds += estimate(op);
        }
        crew.run(nanoseconds, &|scratch| {
            for task in &tasks {
                task.work(self.kernels, &self.shared, scratch);
            }
        });
        tasks.len()
    }
}

/// About how many nanoseconds one thread takes for an op. Decides only who works on it.
fn estimate(op: &Op) -> f64 {
    op.bytes().get() as f64 / 8.0 + op.flops().get() / 16.0
}

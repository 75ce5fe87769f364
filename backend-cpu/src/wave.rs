//! Runs a list of ops in waves: as many consecutive ops at once as do not touch each other's results.

use std::time::Duration;

use engine_core::op::Op;

use crate::arena::Arena;
use crate::ops::{Bench, Shared, Task};
use crate::pace::Pace;
use crate::table::KernelTable;
use crate::threads::Crew;

/// Most ops that run at once. More would only find each other's memory in use.
const WAVE: usize = 8;

/// What running ops needs besides the ops and their memory; kept from one submit to the next.
pub(crate) struct Runner {
    kernels: KernelTable,
    pace: Option<Pace>,
    shared: Shared,
}

impl Runner {
    /// A runner that uses these kernels, for a device of this pace.
    pub(crate) fn new(kernels: KernelTable, pace: Option<Pace>) -> Runner {
        Runner { kernels, pace, shared: Shared::default() }
    }

    /// Runs ops in order, each seeing what the ones before it wrote. Returns how long the device takes for them at its pace:
    /// no time, if it has none.
    ///
    /// # Panics
    /// If an op's output overlaps one of its inputs where it must not, or as [`Task::prepare`] says.
    pub(crate) fn run(
        &mut self,
        mut ops: &[Op],
        arena: &mut Arena,
        crew: &mut Crew<'_>,
    ) -> Duration {
        self.shared.clear();
        let mut paced = Duration::ZERO;
        while !ops.is_empty() {
            arena.reclaim();
            let (done, time) = self.run_wave(ops, arena, crew);
            self.shared.forget_written(arena);
            ops = &ops[done..];
            paced += time;
        }
        paced
    }

    /// Runs the first few ops at once and returns how many those are, and their time at the device's pace.
    fn run_wave(&mut self, ops: &[Op], arena: &Arena, crew: &mut Crew<'_>) -> (usize, Duration) {
        let mut tasks = Vec::with_capacity(WAVE);
        let (mut nanoseconds, mut paced) = (0.0, Duration::ZERO);
        for op in ops.iter().take(WAVE) {
            let mut bench = Bench { arena, kernels: self.kernels, crew, shared: &mut self.shared };
            match Task::prepare(op, &mut bench) {
                Ok(task) => {
                    paced += self.pace.map_or(Duration::ZERO, |pace| pace.time(op, &task));
                    tasks.push(task);
                }
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
        (tasks.len(), paced)
    }
}

/// About how many nanoseconds one thread takes for an op. Decides only who works on it.
fn estimate(op: &Op) -> f64 {
    op.bytes().get() as f64 / 8.0 + op.flops().get() / 16.0
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::Arc;

    use engine_core::op::{Add, MatMul, MatMulExperts, View};
    use engine_core::weights::DType;
    use planner::{Bytes, BytesPerSec, FlopsPerSec};

    use super::*;
    use crate::threads::Team;

    /// Milliseconds of an op whose arrays lie one after the other in a buffer that begins with `first`, at one byte and one
    /// operation in a millisecond.
    fn milliseconds(
        first: &[i32],
        op: impl Fn(&mut dyn FnMut([u32; 2], DType) -> View) -> Op,
    ) -> u128 {
        let mut arena = Arena::default();
        let buffer = arena.alloc(4096).expect("that much is there");
        let mut offset = Bytes::ZERO;
        let op = op(&mut |shape, dtype| {
            let view = View { buffer, offset, shape, dtype };
            offset += view.bytes();
            view
        });
        let pace = Pace { memory: BytesPerSec::new(1e3), compute: FlopsPerSec::new(1e3) };
        let numbers =
            View { buffer, offset: Bytes::ZERO, shape: [1, first.len() as u32], dtype: DType::I32 };
        arena.fill(&numbers, 4 * first.len(), |bytes| {
            bytes.copy_from_slice(bytemuck::cast_slice(first))
        });
        let team = Team::new(NonZeroUsize::MIN).expect("this thread");
        let mut runner = Runner::new(KernelTable::detect(), Some(pace));
        team.assemble(|crew| runner.run(&[op], &mut arena, crew)).as_millis()
    }

    #[test]
    fn an_op_takes_the_longer_of_reading_and_computing() {
        let product = |n_tokens| {
            milliseconds(&[], |view| {
                let x = view([n_tokens, 8], DType::F32);
                let (w, y) = (view([4, 8], DType::F32), view([n_tokens, 4], DType::F32));
                Op::MatMul(MatMul { x, w, y })
            })
        };
        assert_eq!(product(1), 4 * (8 + 32 + 4));
        assert_eq!(product(16), 2 * 16 * 32);
        let sum = milliseconds(&[], |view| {
            Op::Add(Add { x: view([2, 8], DType::F32), y: view([2, 8], DType::F32) })
        });
        assert_eq!(sum, 3 * 64);
    }

    #[test]
    fn experts_take_time_that_were_chosen() {
        // Of four experts one is chosen by one token and another by five.
        let took = milliseconds(&[2, 0, 0, 0, 0, 0], |view| {
            let experts = view([6, 1], DType::I32);
            let x = view([6, 8], DType::F32);
            let w: Arc<[View]> = (0..4).map(|_| view([4, 8], DType::F32)).collect();
            let y = view([6, 4], DType::F32);
            Op::MatMulExperts(MatMulExperts { x, w, experts, y })
        });
        assert_eq!(took, 4 * 32 + 2 * 5 * 32);
    }
}

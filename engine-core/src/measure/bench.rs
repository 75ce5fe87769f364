//! A device with arrays to try ops on.

use std::sync::Arc;
use std::time::Instant;

use planner::Bytes;

use super::pool::Pool;
use crate::backend::{Backend, BufferId, HostRegion, Res};
use crate::op::{Op, View};
use crate::weights::DType;

/// Seconds that one list of ops takes at least, so that handing it over and reading the clock do not matter.
const LIST: f64 = 4e-3;
/// Ops of a list at most.
const MOST_REPEATS: f64 = 1000.0;

/// A device, what was allocated on it, and memory that looks like weights. All of it is given back in the end.
pub(super) struct Bench<'a> {
    backend: &'a mut dyn Backend,
    pool: Pool,
    arrays: Vec<BufferId>,
}

impl<'a> Bench<'a> {
    /// A bench whose cold memory is `region`.
    pub(super) fn new(backend: &'a mut dyn Backend, region: &Arc<HostRegion>) -> Res<Bench<'a>> {
        let pool = Pool::new(backend, region)?;
        Ok(Bench { backend, pool, arrays: Vec::new() })
    }

    /// The device.
    pub(super) fn backend(&mut self) -> &mut dyn Backend {
        self.backend
    }

    /// A view of weights or KV cells that no cache holds.
    pub(super) fn cold(&mut self, shape: [u32; 2], dtype: DType) -> View {
        self.pool.part(shape, dtype)
    }

    /// An array of zeros.
    pub(super) fn zeros(&mut self, shape: [u32; 2], dtype: DType) -> Res<View> {
        let mut view = View { buffer: BufferId(0), offset: Bytes::ZERO, shape, dtype };
        view.buffer = self.backend.alloc(view.bytes())?;
        self.arrays.push(view.buffer);
        Ok(view)
    }

    /// An array of f32 between −1 and 1.
    pub(super) fn floats(&mut self, rows: u32, columns: u32) -> Res<View> {
        let view = self.zeros([rows, columns], DType::F32)?;
        let values = (0..view.len()).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0);
        let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        self.backend.write(&view, &bytes)?;
        Ok(view)
    }

    /// An array of numbers, with rows of `columns`.
    pub(super) fn numbers(&mut self, numbers: &[u32], columns: u32) -> Res<View> {
        let rows = numbers.len() as u32 / columns;
        let view = self.zeros([rows, columns], DType::I32)?;
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.backend.write(&view, &bytes)?;
        Ok(view)
    }

    /// Gives back all arrays.
    pub(super) fn clear(&mut self) {
        for buffer in self.arrays.drain(..) {
            self.backend.free(buffer);
        }
    }

    /// Seconds from handing over a list of ops until it is done.
    pub(super) fn time(&mut self, ops: &[Op]) -> Res<f64> {
        let start = Instant::now();
        let done = self.backend.submit(ops, &[])?;
        self.backend.wait(done)?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// A list of ops that is long enough to be timed. `step` appends the ops of one repetition, each time with other cold
    /// memory.
    pub(super) fn repeated<F: Fn(&mut Bench<'_>, &mut Vec<Op>)>(
        &mut self,
        step: F,
    ) -> Res<Repeated<'_, 'a, F>> {
        // What was written to the arrays may still be on its way.
        self.time(&[])?;
        let mut repeated = Repeated { bench: self, step, n: 1, ops: Vec::new() };
        let mut once = repeated.time()?;
        if once < LIST {
            // The first run of all pays for memory that was never touched.
            once = repeated.time()?;
        }
        repeated.n = (LIST / once).ceil().clamp(1.0, MOST_REPEATS) as usize;
        Ok(repeated)
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        self.clear();
        self.backend.free(self.pool.buffer());
    }
}

/// One step of ops, several times in a list.
pub(super) struct Repeated<'b, 'a, F> {
    bench: &'b mut Bench<'a>,
    step: F,
    n: usize,
    ops: Vec<Op>,
}

impl<F: Fn(&mut Bench<'_>, &mut Vec<Op>)> Repeated<'_, '_, F> {
    /// Seconds of one step.
    pub(super) fn time(&mut self) -> Res<f64> {
        self.ops.clear();
        for _ in 0..self.n {
            (self.step)(self.bench, &mut self.ops);
        }
        Ok(self.bench.time(&self.ops)? / self.n as f64)
    }
}

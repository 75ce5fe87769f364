//! Devices slower than this machine, whatever else it does: each piece of work takes as long as at set rates.

use std::hint::spin_loop;
use std::thread;
use std::time::{Duration, Instant};

use engine_core::op::Op;
use planner::{Bytes, BytesPerSec, Flops, FlopsPerSec, Seconds};

use crate::ops::Task;

/// What the system may add to a rest: the last stretch of a wait is spent awake.
const AWAKE: Duration = Duration::from_micros(60);

/// Rates of a device that is slower than the kernels it computes with. An op takes as long as the slower of its memory
/// traffic and its arithmetic, a group of experts as long as the products with each expert that was chosen. Where the
/// kernels take longer than that, so does the op.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Rate at which memory is read and written. Above zero.
    pub memory: BytesPerSec,
    /// Rate of matrix products and attention. Above zero.
    pub compute: FlopsPerSec,
}

impl Pace {
    /// The time of an op whose task is prepared.
    pub(crate) fn time(self, op: &Op, task: &Task<'_>) -> Duration {
        let seconds: Seconds = match task {
            Task::MatMulExperts(products) => products.each().map(|cost| self.slower(cost)).sum(),
            _ => self.slower((op.bytes(), op.flops())),
        };
        Duration::from_secs_f64(seconds.get())
    }

    fn slower(self, (bytes, flops): (Bytes, Flops)) -> Seconds {
        let (memory, compute) = (bytes / self.memory, flops / self.compute);
        if memory > compute { memory } else { compute }
    }
}

/// Returns at `due`, or at once if that is past.
pub(crate) fn rest_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left > AWAKE {
        thread::sleep(left - AWAKE);
    }
    while Instant::now() < due {
        spin_loop();
    }
}

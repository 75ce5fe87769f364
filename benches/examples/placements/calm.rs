//! Tells whether other work disturbs the machine: the same work takes longer then.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

/// Steps of the work on each thread, about 10 ms.
const STEPS: u64 = 6_000_000;

/// The devices compute on so many threads.
const THREADS: usize = 2;

/// The machine is calm while the work takes at most so many times what it took at best.
const CALM: f64 = 1.06;

/// How long the work took at best.
pub(crate) struct Probe {
    best: f64,
}

impl Probe {
    pub(crate) fn new() -> Probe {
        Probe { best: f64::INFINITY }
    }

    /// Whether the machine is calm now.
    pub(crate) fn is_calm(&mut self) -> bool {
        let start = Instant::now();
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(work);
            }
        });
        let seconds = start.elapsed().as_secs_f64();
        self.best = self.best.min(seconds);
        seconds <= CALM * self.best
    }
}

/// Multiplications that wait for each other.
fn work() {
    let mut x = 1_u64;
    for step in 0..STEPS {
        x = black_box(x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step);
    }
}

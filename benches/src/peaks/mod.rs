//! The most that this machine does: bytes read per second, multiplications and additions per second.

mod arithmetic;

use std::fmt;
use std::hint::black_box;
use std::time::Instant;

/// Rates of some threads together.
#[derive(Debug, Clone, Copy)]
pub struct Peaks {
    /// Threads that worked.
    pub threads: usize,
    /// Bytes per second from memory that no cache holds.
    pub read: f64,
    /// f32 multiplications and additions per second.
    pub float_ops: f64,
    /// Multiplications and additions of bytes per second.
    pub byte_ops: f64,
}

/// Far more than caches hold.
const READ_BYTES: usize = 256 << 20;

/// Runs of which the fastest counts.
const RUNS: usize = 10;

impl Peaks {
    /// Takes about a second.
    pub fn measure(threads: usize) -> Peaks {
        let memory = vec![1u64; READ_BYTES / size_of::<u64>()];
        let parts = || memory.chunks(memory.len().div_ceil(threads)).collect();
        let seconds = fastest(parts, |part: &[u64]| {
            black_box(sum(part));
        });
        Peaks {
            threads,
            read: READ_BYTES as f64 / seconds,
            float_ops: rate(threads, arithmetic::floats),
            byte_ops: rate(threads, arithmetic::bytes),
        }
    }
}

impl fmt::Display for Peaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Peaks { threads, read, float_ops, byte_ops } = self;
        write!(
            f,
            "peaks of {threads} threads: reading {:.1} GB/s, f32 {:.0} GFLOP/s, bytes {:.0} GFLOP/s",
            read / 1e9,
            float_ops / 1e9,
            byte_ops / 1e9
        )
    }
}

/// Places that are read in turn. One would be what a CPU's prefetcher follows from one place, not what memory gives.
const STREAMS: usize = 8;

fn sum(values: &[u64]) -> u64 {
    let len = values.len() / STREAMS;
    let streams: [&[[u64; 8]]; STREAMS] =
        std::array::from_fn(|i| values[i * len..][..len].as_chunks().0);
    let mut sums = [0u64; 8];
    for i in 0..streams[0].len() {
        for stream in streams {
            for (sum, x) in sums.iter_mut().zip(stream[i]) {
                *sum = sum.wrapping_add(x);
            }
        }
    }
    sums.iter().fold(0, |all, sum| all.wrapping_add(*sum))
}

/// Operations per second of `kernel`, which returns how many it did, on all threads.
fn rate(threads: usize, kernel: fn() -> f64) -> f64 {
    let ops = kernel() * threads as f64;
    let seconds = fastest(
        || vec![(); threads],
        |()| {
            black_box(kernel());
        },
    );
    ops / seconds
}

/// Seconds of the fastest run.
fn fastest<T: Send>(parts: impl Fn() -> Vec<T>, work: impl Fn(T) + Sync) -> f64 {
    (0..RUNS).map(|_| on_threads(parts(), &work)).fold(f64::INFINITY, f64::min)
}

/// Does each part of some work on a thread of its own; returns how many seconds that took.
pub fn on_threads<T: Send>(parts: Vec<T>, work: impl Fn(T) + Sync) -> f64 {
    let work = &work;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let mut parts = parts.into_iter();
        let own = parts.next();
        for part in parts {
            scope.spawn(move || work(part));
        }
        own.into_iter().for_each(work);
    });
    start.elapsed().as_secs_f64()
}

//! How far the queues of a device have got, for all who wait for them.

use std::any::Any;
use std::hint::spin_loop;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

use engine_core::backend::{Fence, FenceSpan};

/// A queue of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Runs ops, and writes small inputs between them.
    Compute,
    /// Makes uploads.
    Copy,
}

impl Lane {
    /// The fence after the first `n` pieces of work of this queue.
    pub(super) fn fence(self, n: u64) -> Fence {
        Fence(n << 1 | self as u64)
    }

    /// Whose fence this is, and how many pieces of work are before it.
    pub(super) fn of(fence: Fence) -> (Lane, u64) {
        let lane = if fence.0 & 1 == 0 { Lane::Compute } else { Lane::Copy };
        (lane, fence.0 >> 1)
    }
}

/// A thread of the device panicked, which ends all its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

/// Rounds of spinning, some 20 µs, before a thread that waits goes to sleep.
const PATIENCE: u32 = 1000;

/// Shared by the threads of a device and its caller.
#[derive(Default)]
pub(super) struct Progress {
    /// Pieces of work done, of each queue. Like `broken`, changed with `record` locked, so that nobody misses it.
    done: [AtomicU64; 2],
    broken: AtomicBool,
    record: Mutex<Record>,
    changed: Condvar,
}

#[derive(Default)]
struct Record {
    panic: Option<Box<dyn Any + Send>>,
    /// What was noted; absent when nothing is to be.
    spans: Option<Vec<FenceSpan>>,
}

impl Progress {
    /// Whether a fence is reached.
    pub(super) fn is_reached(&self, fence: Fence) -> bool {
        let (lane, n) = Lane::of(fence);
        self.done[lane as usize].load(Acquire) >= n
    }

    /// Returns when a fence is reached, or will never be.
    pub(super) fn wait(&self, fence: Fence) -> Result<(), Broken> {
        let over = || self.is_reached(fence) || self.broken.load(Acquire);
        for _ in 0..PATIENCE {
            if over() {
                break;
            }
            spin_loop();
        }
        if !over() {
            let _record = self.changed.wait_while(self.record(), |_| !over());
        }
        self.intact()
    }

    /// An error once a thread has panicked.
    pub(super) fn intact(&self) -> Result<(), Broken> {
        if self.broken.load(Acquire) { Err(Broken) } else { Ok(()) }
    }

    /// Notes that a queue is done with what is before `fence`, and from when on it was busy with that if anyone is to know.
    pub(super) fn reach(&self, fence: Fence, start: Option<Instant>) {
        let mut record = self.record();
        if let (Some(spans), Some(start)) = (&mut record.spans, start) {
            spans.push(FenceSpan { fence, start, end: Instant::now() });
        }
        let (lane, n) = Lane::of(fence);
        self.done[lane as usize].store(n, Release);
        drop(record);
        self.changed.notify_all();
    }

    /// Notes that a thread has panicked.
    pub(super) fn fail(&self, panic: Box<dyn Any + Send>) {
        let mut record = self.record();
        record.panic.get_or_insert(panic);
        self.broken.store(true, Release);
        drop(record);
        self.changed.notify_all();
    }

    /// Goes on with the panic of a thread, unless somebody has already.
    pub(super) fn resume_panic(&self) {
        let panic = self.record().panic.take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Notes spans from now on, or stops that.
    pub(super) fn note_spans(&self, on: bool) {
        let mut record = self.record();
        record.spans = on.then(|| record.spans.take().unwrap_or_default());
    }

    /// What was noted since the last call.
    pub(super) fn take_spans(&self) -> Vec<FenceSpan> {
        self.record().spans.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("nothing panics with this lock held")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_tell_their_queue() {
        for lane in [Lane::Compute, Lane::Copy] {
            assert_eq!(Lane::of(lane.fence(7)), (lane, 7));
        }
    }

    #[test]
    fn the_first_panic_is_handed_on_once() {
        let progress = Progress::default();
        progress.reach(Lane::Copy.fence(2), None);
        assert_eq!(progress.wait(Lane::Copy.fence(1)), Ok(()));
        progress.fail(Box::new("first"));
        progress.fail(Box::new("second"));
        assert_eq!(progress.wait(Lane::Compute.fence(1)), Err(Broken));
        let caught =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| progress.resume_panic()));
        assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "first");
        progress.resume_panic();
    }
}

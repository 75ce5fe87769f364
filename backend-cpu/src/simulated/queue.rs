//! A thread that does work in order, each piece once the fences that it names are reached.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use engine_core::backend::Fence;

use super::progress::{Broken, Lane, Progress};

/// A queue whose thread owns an `S` to work with. Dropped, it does what it was given and ends its thread.
pub(super) struct Queue<S> {
    lane: Lane,
    /// Absent only while this is dropped.
    jobs: Option<Sender<Job<S>>>,
    thread: Option<JoinHandle<()>>,
    given: u64,
}

struct Job<S> {
    after: Vec<Fence>,
    given: Instant,
    is_noted: bool,
    work: Work<S>,
}

/// Work, told since when it was ready to begin.
type Work<S> = Box<dyn FnOnce(&mut S, Instant) + Send>;

impl<S: Send + 'static> Queue<S> {
    /// Starts the thread.
    pub(super) fn start(lane: Lane, state: S, progress: &Arc<Progress>) -> io::Result<Queue<S>> {
        let (jobs, given) = channel();
        let progress = Arc::clone(progress);
        let name = format!("sim-{lane:?}").to_lowercase();
        let serve = move || Worker { lane, state, progress }.serve(given);
        let thread = Builder::new().name(name).spawn(serve)?;
        Ok(Queue { lane, jobs: Some(jobs), thread: Some(thread), given: 0 })
    }

    /// Gives the thread work to begin with once all of `after` are reached, and notes how long that took if asked to.
    pub(super) fn run(
        &mut self,
        after: &[Fence],
        work: impl FnOnce(&mut S, Instant) + Send + 'static,
    ) -> Fence {
        self.give(after, true, Box::new(work))
    }

    /// Gives the thread something to do between its work.
    pub(super) fn tell(&mut self, work: impl FnOnce(&mut S) + Send + 'static) {
        self.give(&[], false, Box::new(|state, _| work(state)));
    }

    /// The fence after all that was given so far.
    pub(super) fn last(&self) -> Fence {
        self.lane.fence(self.given)
    }

    fn give(&mut self, after: &[Fence], is_noted: bool, work: Work<S>) -> Fence {
        let job = Job { after: after.to_vec(), given: Instant::now(), is_noted, work };
        let jobs = self.jobs.as_ref().expect("there until dropped");
        assert!(jobs.send(job).is_ok(), "the thread listens until the queue is dropped");
        self.given += 1;
        self.last()
    }
}

impl<S> Drop for Queue<S> {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // Panics of work are caught and told elsewhere.
            let _ = thread.join();
        }
    }
}

struct Worker<S> {
    lane: Lane,
    state: S,
    progress: Arc<Progress>,
}

impl<S> Worker<S> {
    fn serve(mut self, jobs: Receiver<Job<S>>) {
        for (n, job) in (1..).zip(jobs) {
            // After a panic, jobs are only dropped.
            let _ = self.work(self.lane.fence(n), job);
        }
    }

    fn work(&mut self, fence: Fence, job: Job<S>) -> Result<(), Broken> {
        let Job { after, given, is_noted, work } = job;
        let ready = self.ready(&after, given)?;
        let start = Instant::now();
        // Work consumes what it was given, so a source is let go of before the fence is reached.
        match catch_unwind(AssertUnwindSafe(|| work(&mut self.state, ready))) {
            Ok(()) => self.progress.reach(fence, is_noted.then_some(start)),
            Err(panic) => self.progress.fail(panic),
        }
        Ok(())
    }

    /// Waits for fences. Returns since when the work behind them was ready: the moment it was given if they were reached
    /// before this thread came to look.
    fn ready(&self, after: &[Fence], given: Instant) -> Result<Instant, Broken> {
        self.progress.intact()?;
        if after.iter().all(|&fence| self.progress.is_reached(fence)) {
            return Ok(given);
        }
        after.iter().try_for_each(|&fence| self.progress.wait(fence))?;
        Ok(Instant::now())
    }
}

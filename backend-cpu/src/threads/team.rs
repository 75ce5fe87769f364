//! The threads that run one submit together, and the gate through which they join each piece of work.
//!
//! The calling thread leads. It opens the gate for a piece of work, works itself, closes the gate and waits for those
//! who entered. A thread that the system has not woken in time does not enter and is not waited for, so work is
//! handed out in shares that whoever is there takes (see [`Tiles`](super::Tiles)), never assigned to a thread.

use std::any::Any;
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// Threads that wait to be called together.
pub(crate) struct Team {
    /// All but the calling thread; none when that one works alone.
    workers: Option<ThreadPool>,
    /// For each thread memory that it alone uses. The locks are never contended.
    scratch: Vec<Mutex<Vec<f32>>>,
}

impl Team {
    /// A team of `size` threads, one of which is the caller of [`assemble`](Team::assemble).
    pub(crate) fn new(size: NonZeroUsize) -> Result<Team, ThreadPoolBuildError> {
        let size = size.get();
        let build = |n| {
            ThreadPoolBuilder::new()
                .num_threads(n)
                .thread_name(|i| format!("cpu-{}", i + 1))
                .build()
        };
        let workers = if size > 1 { Some(build(size - 1)?) } else { None };
        Ok(Team { workers, scratch: (0..size).map(|_| Mutex::default()).collect() })
    }

    /// Calls the threads together, runs `lead` on this one, and lets the others go when it ends.
    pub(crate) fn assemble<R>(&self, lead: impl FnOnce(&mut Crew<'_>) -> R) -> R {
        let gate = Gate::new();
        let scratch = &self.scratch;
        let Some(workers) = &self.workers else { return lead(&mut Crew { gate: None, scratch }) };
        workers.in_place_scope(|scope| {
            scope.spawn_broadcast(|_, worker| gate.serve(worker.index() + 1));
            let _dismissal = Dismissal(&gate);
            lead(&mut Crew { gate: Some(&gate), scratch })
        })
    }
}

/// A team that has been called together.
pub(crate) struct Crew<'a> {
    /// None when the calling thread is alone.
    gate: Option<&'a Gate>,
    scratch: &'a [Mutex<Vec<f32>>],
}

impl Crew<'_> {
    /// Number of threads that may work.
    pub(crate) fn size(&self) -> usize {
        self.scratch.len()
    }

    /// Runs `work` once on this thread and at most once on each other one, each with scratch memory of its own that holds
    /// anything. Returns when all are done. Whatever has to be done must be done however many of them come: none do if
    /// this thread would take about `nanoseconds` for all of it, and that is less than calling them costs.
    ///
    /// # Panics
    /// With the panic of any thread in `work`, once all are done.
    pub(crate) fn run(&mut self, nanoseconds: f64, work: &(dyn Fn(&mut Vec<f32>) + Sync)) {
        let work = |member: usize| {
            work(&mut self.scratch[member].lock().unwrap_or_else(PoisonError::into_inner));
        };
        match self.gate {
            Some(gate) if nanoseconds > ALONE => gate.run(&work),
            _ => work(0),
        }
    }
}

/// Nanoseconds of work that one thread does sooner than it calls others.
const ALONE: f64 = 4000.0;

/// A worker entered and has not left: counted in the low bits of the gate's state.
const ENTERED: u64 = 1;
const COUNT: u64 = (1 << 16) - 1;
/// Workers may enter.
const OPEN: u64 = 1 << 16;
/// No more work will come.
const DISMISSED: u64 = 1 << 17;
/// Number of the piece of work: the high bits.
const PIECE: u64 = 1 << 18;

/// One word says which piece of work is on, whether one may still enter, and how many are inside.
struct Gate {
    state: AtomicU64,
    work: UnsafeCell<Option<Work>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A borrowed closure whose lifetime the gate vouches for.
#[derive(Clone, Copy)]
struct Work(*const (dyn Fn(usize) + Sync));

// SAFETY: `work` is written by the leader alone, while the gate is closed and empty, and read by workers that entered
// while it was open; the state's ordering separates the two. The closure behind it is `Sync`.
unsafe impl Sync for Gate {}

impl Gate {
    fn new() -> Gate {
        Gate { state: AtomicU64::new(0), work: UnsafeCell::new(None), panic: Mutex::new(None) }
    }

    /// The leader's side of one piece of work. Called by one thread at a time: a crew has one leader.
    fn run(&self, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime changes; `closing` keeps this frame, and so the borrow, until no worker is inside.
        let work_here: *const (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(work) };
        // SAFETY: the gate is closed and nobody is inside, so no worker reads this.
        unsafe { *self.work.get() = Some(Work(work_here)) };
        self.state.fetch_add(PIECE | OPEN, Release);
        {
            let _closing = Closing(self);
            work(0);
        }
        if let Some(panic) = self.panic.lock().expect("nothing panics with this lock held").take() {
            resume_unwind(panic);
        }
    }

    /// A worker's side: joins every piece of work that it is in time for.
    fn serve(&self, member: usize) {
        let mut last = 0;
        loop {
            let seen = wait_for(&self.state, |state| {
                state & DISMISSED != 0 || (state & OPEN != 0 && state / PIECE != last)
            });
            if seen & DISMISSED != 0 {
                return;
            }
            let entered = self.state.fetch_add(ENTERED, Acquire);
            if entered & OPEN != 0 {
                last = entered / PIECE;
                // SAFETY: this thread entered while the gate was open, so the leader set the work before and neither
                // changes it nor returns from `run` until this thread has left.
                let work = unsafe { &*(*self.work.get()).expect("set before the gate opens").0 };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(member))) {
                    *self.panic.lock().expect("nothing panics with this lock held") = Some(panic);
                }
            }
            self.state.fetch_sub(ENTERED, Release);
        }
    }
}

/// Closes the gate and waits for those inside, also when the leader's share panics.
struct Closing<'a>(&'a Gate);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!OPEN, Relaxed);
        wait_for(&self.0.state, |state| state & COUNT == 0);
    }
}

/// Lets the workers go, also when the leader panics.
struct Dismissal<'a>(&'a Gate);

impl Drop for Dismissal<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_or(DISMISSED, Release);
    }
}

/// Rounds of spinning, some 20 µs in all, before a waiting thread offers its core to others at each round.
const PATIENCE: u32 = 1000;

/// Waits until `state` satisfies `done` and returns it, seeing all that was written before it became so.
fn wait_for(state: &AtomicU64, done: impl Fn(u64) -> bool) -> u64 {
    let mut rounds = 0;
    loop {
        let now = state.load(Acquire);
        if done(now) {
            return now;
        }
        if rounds < PATIENCE {
            rounds += 1;
            spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn team(size: usize) -> Team {
        Team::new(NonZeroUsize::new(size).unwrap()).unwrap()
    }

    /// Work of `shares` shares that whoever comes takes; true when each was done once.
    fn shares_done_once(crew: &mut Crew<'_>, shares: usize) -> bool {
        let done: Vec<AtomicUsize> = (0..shares).map(|_| AtomicUsize::new(0)).collect();
        let next = AtomicUsize::new(0);
        crew.run(f64::MAX, &|_| {
            while let Some(share) = done.get(next.fetch_add(1, Relaxed)) {
                share.fetch_add(1, Relaxed);
            }
        });
        done.iter().all(|n| n.load(Relaxed) == 1)
    }

    #[test]
    fn many_small_pieces_are_each_done_once() {
        for size in [1, 2, 3, 5] {
            let team = team(size);
            for _ in 0..20 {
                team.assemble(|crew| {
                    assert!((0..500).all(|piece| shares_done_once(crew, piece % 7)));
                });
            }
        }
    }

    #[test]
    fn scratch_is_of_one_thread_at_a_time() {
        team(4).assemble(|crew| {
            for round in 0..2000 {
                crew.run(f64::MAX, &|scratch| {
                    scratch.clear();
                    scratch.extend([round as f32; 3]);
                    assert_eq!(*scratch, [round as f32; 3]);
                });
            }
        });
    }

    #[test]
    fn what_one_piece_writes_the_next_one_reads() {
        let values: Vec<AtomicUsize> = (0..64).map(|_| AtomicUsize::new(0)).collect();
        team(3).assemble(|crew| {
            for round in 0..500 {
                let next = AtomicUsize::new(0);
                crew.run(f64::MAX, &|_| {
                    while let Some(value) = values.get(next.fetch_add(1, Relaxed)) {
                        assert_eq!(value.load(Relaxed), round);
                        value.store(round + 1, Relaxed);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_leader_and_the_team_lives_on() {
        let team = team(2);
        for _ in 0..20 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                team.assemble(|crew| {
                    // Both threads wait for each other, so that the worker surely takes part.
                    let here = AtomicUsize::new(0);
                    let leader = std::thread::current().id();
                    crew.run(f64::MAX, &|_| {
                        here.fetch_add(1, Relaxed);
                        while here.load(Relaxed) < 2 {
                            std::thread::yield_now();
                        }
                        assert_eq!(std::thread::current().id(), leader, "a worker's panic");
                    });
                })
            }));
            let message = *caught.unwrap_err().downcast::<String>().unwrap();
            assert!(message.contains("a worker's panic"), "{message}");
        }
        team.assemble(|crew| assert!(shares_done_once(crew, 3)));
    }
}

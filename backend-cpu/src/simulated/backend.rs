//! The backend: calls checked, counted and put into the queues.

use std::sync::Arc;
use std::time::Instant;

use engine_core::backend::{
    Backend, BackendError, BufferId, Fence, FenceSpan, HostRegion, HostSlice, MemoryInfo, Res,
};
use engine_core::op::{Op, View};
use planner::Bytes;

use super::lanes::{Computer, Copier, Holder};
use super::link::Link;
use super::options::{Faults, SimOptions, fails};
use super::progress::{Broken, Lane, Progress};
use super::queue::Queue;
use crate::arena::Arena;
use crate::ops;
use crate::threads::Team;
use crate::wave::Runner;

/// A GPU for machines that have none. Ops and uploads go on beside the caller, each kind in order on a thread of its own;
/// copies take as long as a link of the set rate would take for them; memory ends at the set size. Results are those of
/// the [`CpuBackend`](crate::CpuBackend), to the bit.
///
/// A schedule that lets two queues, or a queue and a [`read`](Backend::read), use the same bytes at once without a fence
/// between them panics, as does every other mistake that a thread finds: at the caller's next `wait` or `read`. All later
/// calls that need the threads fail. Dropped, the device finishes what it was given.
pub struct SimulatedGpu {
    vram: Bytes,
    allocated: Bytes,
    faults: Faults,
    progress: Arc<Progress>,
    compute: Queue<Computer>,
    copies: Queue<Copier>,
    /// The caller's own hold on all buffers, and its way of reading them.
    arena: Arena,
    down: Link,
}

const NAME: &str = "sim";

impl SimulatedGpu {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`BackendError::Threads`] when the system does not give them.
    ///
    /// # Panics
    /// If the rate of the link is not above zero.
    pub fn new(options: SimOptions) -> Res<SimulatedGpu> {
        let SimOptions { vram, pcie, threads, kernels, pace, faults } = options;
        let progress = Arc::new(Progress::default());
        let computer = Computer {
            arena: Arena::default(),
            team: Team::new(threads).map_err(|source| no_threads(threads.get(), source))?,
            runner: Runner::new(kernels, pace),
            free: Instant::now(),
            link: Link::new(pcie),
        };
        let copier = Copier { arena: Arena::default(), link: Link::new(pcie) };
        let missing = |source| no_threads(1, source);
        Ok(SimulatedGpu {
            vram,
            allocated: Bytes::ZERO,
            faults,
            compute: Queue::start(Lane::Compute, computer, &progress).map_err(missing)?,
            copies: Queue::start(Lane::Copy, copier, &progress).map_err(missing)?,
            progress,
            arena: Arena::default(),
            down: Link::new(pcie),
        })
    }

    fn free_memory(&self) -> Bytes {
        self.vram.saturating_sub(self.allocated)
    }

    fn check_fences(&self, fences: &[Fence]) {
        for &fence in fences {
            let last = match Lane::of(fence).0 {
                Lane::Compute => self.compute.last(),
                Lane::Copy => self.copies.last(),
            };
            assert!(fence <= last, "{fence:?} is not of this backend");
        }
    }

    /// An error if `call` would find no threads to do it.
    fn check_threads(&self, call: &'static str) -> Res<()> {
        self.progress.intact().map_err(|Broken| failed(call))
    }

    /// Waits for all of `fences`, and panics as a thread did.
    fn wait_for(&self, fences: &[Fence], call: &'static str) -> Res<()> {
        self.check_fences(fences);
        let reached = fences.iter().try_for_each(|&fence| self.progress.wait(fence));
        reached.and_then(|()| self.progress.intact()).map_err(|Broken| {
            self.progress.resume_panic();
            failed(call)
        })
    }
}

fn no_threads(
    threads: usize,
    source: impl std::error::Error + Send + Sync + 'static,
) -> BackendError {
    BackendError::Threads { device: NAME.to_owned(), threads, source: Box::new(source) }
}

fn failed(call: &'static str) -> BackendError {
    BackendError::Failed { device: NAME.to_owned(), call }
}

impl Backend for SimulatedGpu {
    fn name(&self) -> &str {
        NAME
    }

    fn memory(&self) -> Res<MemoryInfo> {
        Ok(MemoryInfo { total: self.vram, free: self.free_memory() })
    }

    fn supports(&self, op: &Op) -> bool {
        ops::supports(op)
    }

    fn alloc(&mut self, size: Bytes) -> Res<BufferId> {
        let is_refused = fails(&mut self.faults.alloc) || size > self.free_memory();
        let id = if is_refused { None } else { self.arena.alloc(size.as_usize()) };
        let id = id.ok_or_else(|| BackendError::OutOfMemory {
            device: NAME.to_owned(),
            asked: size,
            free: self.free_memory(),
            total: self.vram,
        })?;
        self.allocated += size;
        // Memory of a device is there from the start: no copy pays for its pages.
        self.arena.touch(id);
        let [here, there] = [(); 2].map(|()| self.arena.share(id));
        self.compute.tell(move |lane| lane.hold(id, here));
        self.copies.tell(move |lane| lane.hold(id, there));
        Ok(id)
    }

    fn free(&mut self, buffer: BufferId) {
        self.allocated = self.allocated.saturating_sub(self.arena.free(buffer).into());
        self.compute.tell(move |lane| lane.free(buffer));
        self.copies.tell(move |lane| lane.free(buffer));
    }

    fn import(&mut self, _src: HostSlice) -> Res<BufferId> {
        Err(BackendError::Unsupported { device: NAME.to_owned(), call: "import" })
    }

    fn page_lock(&mut self, _region: &Arc<HostRegion>) -> Res<()> {
        Ok(())
    }

    fn upload(&mut self, src: HostSlice, dst: &View, after: &[Fence]) -> Res<Fence> {
        self.check_fences(after);
        self.arena.range(dst, src.range().len());
        self.check_threads("upload")?;
        if fails(&mut self.faults.copy) {
            return Err(failed("upload"));
        }
        let dst = *dst;
        Ok(self.copies.run(after, move |lane, ready| lane.upload(&src, &dst, ready)))
    }

    fn write(&mut self, dst: &View, src: &[u8]) -> Res<()> {
        self.arena.range(dst, src.len());
        self.check_threads("write")?;
        let (dst, src) = (*dst, src.to_vec());
        self.compute.tell(move |lane| lane.write(&dst, &src));
        Ok(())
    }

    fn read(&mut self, src: &View, dst: &mut [u8], after: &[Fence]) -> Res<()> {
        self.wait_for(after, "read")?;
        let SimulatedGpu { arena, down, .. } = self;
        arena.show(src, dst.len(), |bytes| down.copy(bytes, dst, Instant::now()));
        Ok(())
    }

    fn submit(&mut self, ops: &[Op], after: &[Fence]) -> Res<Fence> {
        self.check_fences(after);
        self.check_threads("submit")?;
        if fails(&mut self.faults.submit) {
            return Err(failed("submit"));
        }
        let ops = ops.to_vec();
        Ok(self.compute.run(after, move |lane, ready| lane.run(&ops, ready)))
    }

    fn wait(&mut self, fence: Fence) -> Res<()> {
        self.wait_for(&[fence], "wait")
    }

    fn note_spans(&mut self, on: bool) {
        self.progress.note_spans(on);
    }

    fn take_spans(&mut self) -> Vec<FenceSpan> {
        self.progress.take_spans()
    }
}

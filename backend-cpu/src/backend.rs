//! The backend: buffers, copies and fences; ops go to the [`Runner`].

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use engine_core::backend::{
    Backend, BackendError, BufferId, Fence, HostRegion, HostSlice, MemoryInfo, Res,
};
use engine_core::op::{Op, View};
use planner::Bytes;

use crate::arena::Arena;
use crate::host;
use crate::ops;
use crate::pace::{Pace, rest_until};
use crate::table::KernelTable;
use crate::threads::Team;
use crate::wave::Runner;

/// How a [`CpuBackend`] works.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuOptions {
    /// Threads that compute, the calling one with them. By default one for each fast core that this process may use.
    pub threads: NonZeroUsize,
    /// The kernels. By default those of [`KernelTable::detect`].
    pub kernels: KernelTable,
    /// What it is slowed down to, if at all.
    pub pace: Option<Pace>,
}

impl Default for CpuOptions {
    fn default() -> CpuOptions {
        CpuOptions { threads: host::fast_cores(), kernels: KernelTable::detect(), pace: None }
    }
}

/// The CPU as a device: its buffers are host memory, and it computes while [`submit`](Backend::submit) runs, on the
/// calling thread and others. Results do not depend on the number of threads.
pub struct CpuBackend {
    arena: Arena,
    team: Team,
    runner: Runner,
    /// Free memory when the backend was made, if known, and what it has allocated since. The system counts memory as
    /// used only once it is written.
    free_at_first: Option<Bytes>,
    allocated: Bytes,
    reached: Fence,
}

const NAME: &str = "cpu";

impl CpuBackend {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`BackendError::Threads`] when the system does not give them.
    pub fn new(options: CpuOptions) -> Res<CpuBackend> {
        let threads = options.threads;
        let team = Team::new(threads).map_err(|source| BackendError::Threads {
            device: NAME.to_owned(),
            threads: threads.get(),
            source: Box::new(source),
        })?;
        Ok(CpuBackend {
            arena: Arena::default(),
            team,
            runner: Runner::new(options.kernels, options.pace),
            free_at_first: host::memory().map(|memory| memory.free),
            allocated: Bytes::ZERO,
            reached: Fence(0),
        })
    }

    fn next_fence(&mut self) -> Fence {
        self.reached.0 += 1;
        self.reached
    }

    /// Everything is done before a call returns, so fences are only checked.
    fn check_reached(&self, fences: &[Fence]) {
        for fence in fences {
            assert!(*fence <= self.reached, "{fence:?} is not of this backend");
        }
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &str {
        NAME
    }

    fn memory(&self) -> Res<MemoryInfo> {
        let unknown = || BackendError::MemoryUnknown { device: NAME.to_owned() };
        let now = host::memory().ok_or_else(unknown)?;
        let unwritten = self.free_at_first.unwrap_or(now.free).saturating_sub(self.allocated);
        Ok(MemoryInfo { total: now.total, free: now.free.min(unwritten) })
    }

    fn supports(&self, op: &Op) -> bool {
        ops::supports(op)
    }

    fn alloc(&mut self, size: Bytes) -> Res<BufferId> {
        // Where the system does not tell what is free, it still refuses what it cannot give.
        let memory = self.memory().unwrap_or(MemoryInfo { total: size, free: size });
        let id = if size <= memory.free { self.arena.alloc(size.as_usize()) } else { None };
        let id = id.ok_or_else(|| BackendError::OutOfMemory {
            device: NAME.to_owned(),
            asked: size,
            free: memory.free,
            total: memory.total,
        })?;
        self.allocated += size;
        Ok(id)
    }

    fn free(&mut self, buffer: BufferId) {
        self.allocated = self.allocated.saturating_sub(self.arena.free(buffer).into());
    }

    fn import(&mut self, src: HostSlice) -> Res<BufferId> {
        Ok(self.arena.import(src))
    }

    fn page_lock(&mut self, _region: &Arc<HostRegion>) -> Res<()> {
        Ok(())
    }

    fn upload(&mut self, src: HostSlice, dst: &View, after: &[Fence]) -> Res<Fence> {
        self.check_reached(after);
        self.write(dst, src.bytes())?;
        Ok(self.next_fence())
    }

    fn write(&mut self, dst: &View, src: &[u8]) -> Res<()> {
        self.arena.fill(dst, src.len(), |bytes| bytes.copy_from_slice(src));
        Ok(())
    }

    fn read(&mut self, src: &View, dst: &mut [u8], after: &[Fence]) -> Res<()> {
        self.check_reached(after);
        self.arena.show(src, dst.len(), |bytes| dst.copy_from_slice(bytes));
        Ok(())
    }

    fn submit(&mut self, ops: &[Op], after: &[Fence]) -> Res<Fence> {
        self.check_reached(after);
        let CpuBackend { arena, team, runner, .. } = self;
        let start = Instant::now();
        let paced = team.assemble(|crew| runner.run(ops, arena, crew));
        rest_until(start + paced);
        Ok(self.next_fence())
    }

    fn wait(&mut self, fence: Fence) -> Res<()> {
        self.check_reached(&[fence]);
        Ok(())
    }
}

//! What a device must do: own buffers, copy bytes in and out, run lists of ops, and order all that by fences.
//!
//! Nothing here knows a device kind, a model or a plan.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use planner::Bytes;
use thiserror::Error;

use crate::op::{Op, View};

/// A buffer of one backend. Numbers are the backend's own and mean nothing to another backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// A point in the work of one backend, reached when the call that gave it is done.
///
/// A backend has two queues: uploads are made in order, and lists of ops run in order. The two go on side by side, and
/// wait for each other only where a call names a fence of the other queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence(pub u64);

/// Host memory with a shared owner, such as a mapped model file.
pub struct HostRegion {
    memory: HostMemory,
}

enum HostMemory {
    Shown(Box<dyn AsRef<[u8]> + Send + Sync>),
    Own(Box<[u8]>),
}

impl HostRegion {
    /// Takes ownership of `memory`, whose bytes must stay at one address as long as it lives.
    pub fn new(memory: impl AsRef<[u8]> + Send + Sync + 'static) -> Arc<HostRegion> {
        Arc::new(HostRegion { memory: HostMemory::Shown(Box::new(memory)) })
    }

    /// `len` bytes of zeros, which whoever holds the region alone may write.
    pub fn zeros(len: usize) -> Arc<HostRegion> {
        Arc::new(HostRegion { memory: HostMemory::Own(vec![0; len].into()) })
    }

    /// All bytes of the region.
    pub fn bytes(&self) -> &[u8] {
        match &self.memory {
            HostMemory::Shown(memory) => (**memory).as_ref(),
            HostMemory::Own(bytes) => bytes,
        }
    }

    /// The bytes to write; `None` where they are somebody else's.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match &mut self.memory {
            HostMemory::Shown(_) => None,
            HostMemory::Own(bytes) => Some(bytes),
        }
    }
}

impl fmt::Debug for HostRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostRegion({} bytes)", self.bytes().len())
    }
}

/// Part of a [`HostRegion`]. Holding one keeps the memory alive, so a copy in flight can never lose its source.
#[derive(Debug, Clone)]
pub struct HostSlice {
    region: Arc<HostRegion>,
    range: Range<usize>,
}

impl HostSlice {
    /// The bytes `range` of `region`, or `None` when they are not all inside it.
    pub fn new(region: Arc<HostRegion>, range: Range<usize>) -> Option<HostSlice> {
        region.bytes().get(range.clone())?;
        Some(HostSlice { region, range })
    }

    /// All of `region`.
    pub fn whole(region: Arc<HostRegion>) -> HostSlice {
        let range = 0..region.bytes().len();
        HostSlice { region, range }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.region.bytes()[self.range.clone()]
    }

    /// The region this is a part of.
    pub fn region(&self) -> &Arc<HostRegion> {
        &self.region
    }

    /// Where in the region the part lies.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }
}

/// Memory of a device at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryInfo {
    /// All memory that this process may use on the device.
    pub total: Bytes,
    /// What of it is free now.
    pub free: Bytes,
}

/// Why a backend refused or failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The device has no room for a new buffer.
    #[error("{device}: no room for {asked}; {free} of {total} free")]
    OutOfMemory {
        /// Name of the device.
        device: String,
        /// Size of the refused buffer.
        asked: Bytes,
        /// Memory free when it was asked for.
        free: Bytes,
        /// Memory of the device, or the cap that it runs under.
        total: Bytes,
    },
    /// The device does not offer this call.
    #[error("{device}: {call} is not supported")]
    Unsupported {
        /// Name of the device.
        device: String,
        /// The refused call.
        call: &'static str,
    },
    /// The operating system did not tell how much memory there is.
    #[error("{device}: free memory is unknown; give a budget")]
    MemoryUnknown {
        /// Name of the device.
        device: String,
    },
    /// The device failed to do what it was asked.
    #[error("{device}: {call} failed")]
    Failed {
        /// Name of the device.
        device: String,
        /// The call that failed.
        call: &'static str,
    },
    /// Worker threads could not be started.
    #[error("{device}: cannot start {threads} threads")]
    Threads {
        /// Name of the device.
        device: String,
        /// How many were asked for.
        threads: usize,
        /// What the system answered.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Result of a backend call.
pub type Res<T> = Result<T, BackendError>;

/// When the work behind a fence was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FenceSpan {
    /// Which work.
    pub fence: Fence,
    /// When the device began with it.
    pub start: Instant,
    /// When it was done.
    pub end: Instant,
}

/// A device that runs ops. Object-safe.
///
/// A view handed to any call must lie inside its buffer and every fence must come from this backend; breaking that
/// is a bug of the caller and panics.
pub trait Backend: Send {
    /// A short name for messages, such as `cpu` or `cuda:0`.
    fn name(&self) -> &str;

    /// Memory of the device now.
    fn memory(&self) -> Res<MemoryInfo>;

    /// Whether `submit` can run this op. Asked while lowering, never while running.
    fn supports(&self, op: &Op) -> bool;

    /// A new buffer of zeros. Load time only.
    fn alloc(&mut self, size: Bytes) -> Res<BufferId>;

    /// Gives a buffer back; views of it must not be used any more.
    fn free(&mut self, buffer: BufferId);

    /// Makes host memory a read-only buffer in place, without a copy.
    fn import(&mut self, src: HostSlice) -> Res<BufferId>;

    /// Locks host memory for fast copies; does nothing where that has no meaning.
    fn page_lock(&mut self, region: &Arc<HostRegion>) -> Res<()>;

    /// Starts copying to `dst` once `after` is reached. When the fence is reached, the backend has let go of `src`.
    fn upload(&mut self, src: HostSlice, dst: &View, after: &[Fence]) -> Res<Fence>;

    /// Writes a few bytes at the start of `dst`, after everything submitted before and before everything submitted later.
    fn write(&mut self, dst: &View, src: &[u8]) -> Res<()>;

    /// Fills `dst` from the start of `src` once `after` is reached; waits for it.
    fn read(&mut self, src: &View, dst: &mut [u8], after: &[Fence]) -> Res<()>;

    /// Runs ops in order, each seeing what the ones before it wrote.
    fn submit(&mut self, ops: &[Op], after: &[Fence]) -> Res<Fence>;

    /// Returns when `fence` is reached.
    fn wait(&mut self, fence: Fence) -> Res<()>;

    /// Notes from now on when work was done, or stops that. A device that works only within calls has nothing to note:
    /// its caller can look at the clock.
    fn note_spans(&mut self, _on: bool) {}

    /// What was noted since the last call, of work that is done.
    fn take_spans(&mut self) -> Vec<FenceSpan> {
        Vec::new()
    }
}

/// The devices of one engine.
pub struct Backends {
    /// Runs what stays in host memory.
    pub cpu: Box<dyn Backend>,
    /// Runs what is in VRAM, under a budget.
    pub gpu: Option<Box<dyn Backend>>,
}

impl Backends {
    /// The CPU alone.
    pub fn cpu_only(cpu: impl Backend + 'static) -> Backends {
        Backends { cpu: Box::new(cpu), gpu: None }
    }
}

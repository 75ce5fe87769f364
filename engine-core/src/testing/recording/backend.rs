//! The backend: each call checked, done at once and noted.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use planner::Bytes;

use super::arithmetic;
use super::memory::{Memory, range};
use super::order::{Begun, Order, Queue, Race, Touch, Work};
use crate::backend::{
    Backend, BackendError, BufferId, Fence, HostRegion, HostSlice, MemoryInfo, Res,
};
use crate::op::{Op, View};

/// What a device was asked for.
#[derive(Debug, Default)]
pub struct Journal {
    /// Sizes of the buffers that were taken.
    pub allocated: Vec<Bytes>,
    /// Sizes of the copies out of page-locked memory, which is that of files.
    pub copied_from_files: Vec<Bytes>,
    /// Sizes of all other copies.
    pub copied: Vec<Bytes>,
    /// For each time that experts were chosen, how many different ones.
    pub n_chosen: Vec<usize>,
    /// Host memory that was page-locked: that of files.
    pub files: Vec<Weak<HostRegion>>,
}

/// A CPU or a GPU that shows whether its caller is right.
///
/// # Panics
/// All calls do, where two uses of the same bytes are in no certain order; where a view is not in its buffer or an op
/// reads what has no place; and where a fence is of nobody.
pub struct Recording {
    memory: Memory,
    cap: Bytes,
    taken: Bytes,
    order: Order,
    plays: Plays,
    locked: Vec<Arc<HostRegion>>,
    /// Sources of copies that the host does not know to be done.
    in_flight: Vec<(Work, HostSlice)>,
    journal: Arc<Mutex<Journal>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plays {
    /// Everything is done when a call returns.
    Cpu,
    /// Two queues.
    Gpu,
}

impl Recording {
    /// A CPU: it uses host memory in place, and each call is done when it returns.
    pub fn cpu() -> Recording {
        Recording::new(Plays::Cpu, Bytes::new(u64::MAX))
    }

    /// A GPU with so much memory: a copy holds its source until the host can know that it is done.
    pub fn gpu(cap: Bytes) -> Recording {
        Recording::new(Plays::Gpu, cap)
    }

    fn new(plays: Plays, cap: Bytes) -> Recording {
        Recording {
            memory: Memory::default(),
            cap,
            taken: Bytes::ZERO,
            order: Order::default(),
            plays,
            locked: Vec::new(),
            in_flight: Vec::new(),
            journal: Arc::default(),
        }
    }

    /// What the device is asked for, to be looked at while it is somebody else's.
    pub fn journal(&self) -> Arc<Mutex<Journal>> {
        self.journal.clone()
    }

    fn note(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().expect("nobody fails with the journal in hand")
    }

    fn touch(&mut self, begun: Begun, touch: Touch, buffer: BufferId, range: Range<u64>) {
        if !range.is_empty() {
            self.order.touch(begun, touch, buffer, range).unwrap_or_else(|race| fail(&race));
        }
    }

    fn reached(&mut self, fences: &[Fence]) {
        let done = self.order.reached(fences);
        self.in_flight.retain(|(work, _)| !done.covers(*work));
    }

    /// A fence for the last work of a queue, reached at once where there are no queues.
    fn fence(&mut self, queue: Queue) -> Fence {
        let fence = self.order.fence(queue);
        if self.plays == Plays::Cpu {
            self.reached(&[fence]);
        }
        fence
    }

    fn touch_all(&mut self, begun: Begun, touch: Touch, mut views: Vec<View>) {
        views.sort_by_key(|view| (view.buffer, view.offset));
        let mut open: Option<(BufferId, Range<u64>)> = None;
        for view in &views {
            let next = range(view);
            match &mut open {
                Some((buffer, range)) if *buffer == view.buffer && next.start <= range.end => {
                    range.end = range.end.max(next.end);
                }
                _ => {
                    if let Some((buffer, range)) = open.replace((view.buffer, next)) {
                        self.touch(begun, touch, buffer, range);
                    }
                }
            }
        }
        if let Some((buffer, range)) = open {
            self.touch(begun, touch, buffer, range);
        }
    }

    /// What an op reads; of a group of experts those that were chosen.
    fn reads(&self, op: &Op) -> Vec<View> {
        match op {
            Op::MatMulExperts(product) => {
                let chosen = arithmetic::chosen(product, &self.memory);
                let experts = chosen.into_iter().map(|expert| product.w[expert]);
                [product.x, product.experts].into_iter().chain(experts).collect()
            }
            _ => op.reads(),
        }
    }
}

fn fail(race: &Race) -> ! {
    panic!("in no certain order: {race:?}")
}

impl Backend for Recording {
    fn name(&self) -> &str {
        match self.plays {
            Plays::Cpu => "recording:cpu",
            Plays::Gpu => "recording:gpu",
        }
    }

    fn memory(&self) -> Res<MemoryInfo> {
        Ok(MemoryInfo { total: self.cap, free: self.cap.saturating_sub(self.taken) })
    }

    fn supports(&self, _op: &Op) -> bool {
        true
    }

    fn alloc(&mut self, size: Bytes) -> Res<BufferId> {
        let MemoryInfo { total, free } = self.memory()?;
        if size > free {
            let device = self.name().to_owned();
            return Err(BackendError::OutOfMemory { device, asked: size, free, total });
        }
        self.taken += size;
        self.note().allocated.push(size);
        Ok(self.memory.alloc(size.as_usize()))
    }

    fn free(&mut self, buffer: BufferId) {
        self.taken = self.taken.saturating_sub(self.memory.free(buffer).into());
    }

    fn import(&mut self, src: HostSlice) -> Res<BufferId> {
        match self.plays {
            Plays::Cpu => Ok(self.memory.import(src)),
            Plays::Gpu => {
                let device = self.name().to_owned();
                Err(BackendError::Unsupported { device, call: "import" })
            }
        }
    }

    fn page_lock(&mut self, region: &Arc<HostRegion>) -> Res<()> {
        self.note().files.push(Arc::downgrade(region));
        self.locked.push(region.clone());
        Ok(())
    }

    fn upload(&mut self, src: HostSlice, dst: &View, after: &[Fence]) -> Res<Fence> {
        let begun = self.order.begin(Queue::Uploads, after);
        self.touch(begun, Touch::Write, dst.buffer, range(dst));
        self.memory.bytes_mut(dst).copy_from_slice(src.bytes());
        let is_locked = self.locked.iter().any(|region| Arc::ptr_eq(region, src.region()));
        {
            let mut journal = self.note();
            let size = Bytes::from(src.bytes().len());
            if is_locked {
                journal.copied_from_files.push(size);
            } else {
                journal.copied.push(size);
            }
        }
        self.in_flight.push((begun.work, src));
        Ok(self.fence(Queue::Uploads))
    }

    fn write(&mut self, dst: &View, src: &[u8]) -> Res<()> {
        let begun = self.order.begin(Queue::Runs, &[]);
        let start = range(dst).start;
        self.touch(begun, Touch::Write, dst.buffer, start..start + src.len() as u64);
        self.memory.bytes_mut(dst)[..src.len()].copy_from_slice(src);
        if self.plays == Plays::Cpu {
            self.fence(Queue::Runs);
        }
        Ok(())
    }

    fn read(&mut self, src: &View, dst: &mut [u8], after: &[Fence]) -> Res<()> {
        self.reached(after);
        let start = range(src).start;
        let range = start..start + dst.len() as u64;
        self.order.touch_by_host(src.buffer, &range).unwrap_or_else(|race| fail(&race));
        dst.copy_from_slice(&self.memory.bytes(src)[..dst.len()]);
        Ok(())
    }

    fn submit(&mut self, ops: &[Op], after: &[Fence]) -> Res<Fence> {
        let begun = self.order.begin(Queue::Runs, after);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for op in ops {
            reads.extend(self.reads(op));
            writes.extend(op.writes());
            arithmetic::run(op, &mut self.memory);
            if let Op::RouteExperts(route) = op {
                let chosen: BTreeSet<u32> =
                    self.memory.numbers(&route.experts).into_iter().collect();
                self.note().n_chosen.push(chosen.len());
            }
        }
        self.touch_all(begun, Touch::Read, reads);
        self.touch_all(begun, Touch::Write, writes);
        Ok(self.fence(Queue::Runs))
    }

    fn wait(&mut self, fence: Fence) -> Res<()> {
        self.reached(&[fence]);
        Ok(())
    }
}

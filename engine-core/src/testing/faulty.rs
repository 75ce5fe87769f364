//! A device of which one call fails.

use std::sync::{Arc, Mutex};

use planner::Bytes;

use crate::backend::{
    Backend, BackendError, BufferId, Fence, FenceSpan, HostRegion, HostSlice, MemoryInfo, Res,
};
use crate::op::{Op, View};

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// [`Backend::alloc`].
    Alloc,
    /// [`Backend::upload`].
    Upload,
    /// [`Backend::write`].
    Write,
    /// [`Backend::read`].
    Read,
    /// [`Backend::submit`].
    Submit,
    /// [`Backend::wait`].
    Wait,
}

impl Call {
    /// All of them.
    pub const ALL: [Call; 6] =
        [Call::Alloc, Call::Upload, Call::Write, Call::Read, Call::Submit, Call::Wait];

    /// As errors name it.
    pub fn name(self) -> &'static str {
        match self {
            Call::Alloc => "alloc",
            Call::Upload => "upload",
            Call::Write => "write",
            Call::Read => "read",
            Call::Submit => "submit",
            Call::Wait => "wait",
        }
    }
}

/// What is to go wrong, once; may be set while the device is somebody else's.
#[derive(Debug, Clone, Default)]
pub struct Fault(Arc<Mutex<Option<(Call, usize)>>>);

impl Fault {
    /// From now on, of the calls of that kind the one after `n` others fails.
    pub fn set(&self, call: Call, n: usize) {
        *self.lock() = Some((call, n));
    }

    /// Nothing is to go wrong any more; whether it still was to.
    pub fn clear(&self) -> bool {
        self.lock().take().is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Call, usize)>> {
        self.0.lock().expect("nobody fails with it in hand")
    }

    /// Counts one call; an error if it is the one.
    fn meet(&self, call: Call, device: &str) -> Res<()> {
        let mut fault = self.lock();
        match &mut *fault {
            Some((kind, 0)) if *kind == call => {
                *fault = None;
                Err(BackendError::Failed { device: device.to_owned(), call: call.name() })
            }
            Some((kind, left)) if *kind == call => {
                *left -= 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Another device, of which a call that is to fail does nothing else.
pub struct Faulty<B> {
    inner: B,
    fault: Fault,
}

impl<B: Backend> Faulty<B> {
    /// `inner`, with what `fault` says.
    pub fn new(inner: B, fault: &Fault) -> Faulty<B> {
        Faulty { inner, fault: fault.clone() }
    }

    fn meet(&self, call: Call) -> Res<()> {
        self.fault.meet(call, self.inner.name())
    }
}

impl<B: Backend> Backend for Faulty<B> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn memory(&self) -> Res<MemoryInfo> {
        self.inner.memory()
    }

    fn supports(&self, op: &Op) -> bool {
        self.inner.supports(op)
    }

    fn alloc(&mut self, size: Bytes) -> Res<BufferId> {
        self.meet(Call::Alloc)?;
        self.inner.alloc(size)
    }

    fn free(&mut self, buffer: BufferId) {
        self.inner.free(buffer);
    }

    fn import(&mut self, src: HostSlice) -> Res<BufferId> {
        self.inner.import(src)
    }

    fn page_lock(&mut self, region: &Arc<HostRegion>) -> Res<()> {
        self.inner.page_lock(region)
    }

    fn upload(&mut self, src: HostSlice, dst: &View, after: &[Fence]) -> Res<Fence> {
        self.meet(Call::Upload)?;
        self.inner.upload(src, dst, after)
    }

    fn write(&mut self, dst: &View, src: &[u8]) -> Res<()> {
        self.meet(Call::Write)?;
        self.inner.write(dst, src)
    }

    fn read(&mut self, src: &View, dst: &mut [u8], after: &[Fence]) -> Res<()> {
        self.meet(Call::Read)?;
        self.inner.read(src, dst, after)
    }

    fn submit(&mut self, ops: &[Op], after: &[Fence]) -> Res<Fence> {
        self.meet(Call::Submit)?;
        self.inner.submit(ops, after)
    }

    fn wait(&mut self, fence: Fence) -> Res<()> {
        self.meet(Call::Wait)?;
        self.inner.wait(fence)
    }

    fn note_spans(&mut self, on: bool) {
        self.inner.note_spans(on);
    }

    fn take_spans(&mut self) -> Vec<FenceSpan> {
        self.inner.take_spans()
    }
}

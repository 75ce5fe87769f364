//! A device with its two queues: what was begun on it, and what comes next must wait for.

use std::collections::HashMap;
use std::sync::Arc;

use planner::Lane;

use super::placed::Upload;
use crate::backend::{Backend, Fence, FenceSpan, HostRegion, HostSlice, Res};
use crate::op::{Op, View};

/// What a fence stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Labelled {
    pub(super) fence: Fence,
    pub(super) lane: Lane,
    /// The first shard of the work.
    pub(super) shard: usize,
}

/// A device, and how far it has got.
pub(super) struct Stream {
    backend: Box<dyn Backend>,
    /// The model's files, mapped.
    files: Vec<Arc<HostRegion>>,
    /// When all that was submitted is done.
    ran: Option<Fence>,
    /// When every copy is done that was begun.
    copied: Option<Fence>,
    /// What the next submission must wait for besides a copy that it names.
    loading: Option<Fence>,
    /// What each fence stands for, while work is traced.
    labels: Option<Vec<Labelled>>,
}

impl Stream {
    pub(super) fn new(backend: Box<dyn Backend>, files: Vec<Arc<HostRegion>>) -> Stream {
        Stream { backend, files, ran: None, copied: None, loading: None, labels: None }
    }

    pub(super) fn backend(&mut self) -> &mut dyn Backend {
        self.backend.as_mut()
    }

    /// When what was submitted last is done.
    pub(super) fn ran(&self) -> Option<Fence> {
        self.ran
    }

    /// Runs the ops of shards from `shard` on, once `copy` and all that was loaded is there.
    pub(super) fn submit(&mut self, shard: usize, ops: &[Op], copy: Option<Fence>) -> Res<()> {
        if ops.is_empty() {
            return Ok(());
        }
        let after: Vec<Fence> = self.loading.into_iter().chain(copy).collect();
        let ran = self.backend.submit(ops, &after)?;
        self.label(ran, Lane::Gpu, shard);
        self.ran = Some(ran);
        self.loading = None;
        Ok(())
    }

    /// Copies a tensor, once all that was submitted so far has been done.
    pub(super) fn upload(&mut self, Upload { shard, stored, view }: &Upload) -> Res<Fence> {
        let start = stored.offset.as_usize();
        let range = start..start + stored.bytes().as_usize();
        let slice = HostSlice::new(self.files[stored.region].clone(), range);
        let slice = slice.expect("tensors were checked to lie inside their file");
        self.copy(*shard, slice, view)
    }

    /// Starts a copy for a shard, once all that was submitted so far has been done.
    pub(super) fn copy(&mut self, shard: usize, src: HostSlice, view: &View) -> Res<Fence> {
        let fence = self.backend.upload(src, view, self.ran.as_slice())?;
        self.label(fence, Lane::Copy, shard);
        self.copied = Some(fence);
        Ok(fence)
    }

    /// Copies tensors that the next submission needs.
    pub(super) fn load(&mut self, uploads: &[Upload]) -> Res<()> {
        for upload in uploads {
            self.loading = Some(self.upload(upload)?);
        }
        Ok(())
    }

    /// Starts a copy for a shard that the next submission needs.
    pub(super) fn load_slice(&mut self, shard: usize, src: HostSlice, view: &View) -> Res<()> {
        self.loading = Some(self.copy(shard, src, view)?);
        Ok(())
    }

    /// Reads what was computed.
    pub(super) fn read(&mut self, view: &View, bytes: &mut [u8]) -> Res<()> {
        self.backend.read(view, bytes, self.ran.as_slice())
    }

    /// Waits for what was submitted, and with it for the copies that it needed.
    pub(super) fn wait(&mut self) -> Res<()> {
        self.ran.map_or(Ok(()), |ran| self.backend.wait(ran))
    }

    /// Waits for all that is under way.
    pub(super) fn settle(&mut self) -> Res<()> {
        // What was written has no fence: it is done with what is submitted after it.
        let ran = self.backend.submit(&[], &[]).and_then(|fence| self.backend.wait(fence));
        // Copies are waited for, too, where what ran has failed: they still use host memory.
        let copied = self.copied.map_or(Ok(()), |fence| self.backend.wait(fence));
        ran.and(copied)?;
        (self.ran, self.copied, self.loading) = (None, None, None);
        Ok(())
    }

    /// Traces from now on what the device does.
    pub(super) fn trace(&mut self) {
        self.backend.note_spans(true);
        self.labels = Some(Vec::new());
    }

    /// What was traced so far; waits until it is done. Ends the trace.
    pub(super) fn take_traced(&mut self) -> Res<Vec<(Labelled, FenceSpan)>> {
        self.settle()?;
        let spans = self.backend.take_spans();
        let spans: HashMap<Fence, FenceSpan> =
            spans.into_iter().map(|span| (span.fence, span)).collect();
        let labels = self.labels.take().unwrap_or_default();
        self.backend.note_spans(false);
        let known = |label: Labelled| Some((label, *spans.get(&label.fence)?));
        Ok(labels.into_iter().filter_map(known).collect())
    }

    fn label(&mut self, fence: Fence, lane: Lane, shard: usize) {
        if let Some(labels) = &mut self.labels {
            labels.push(Labelled { fence, lane, shard });
        }
    }
}

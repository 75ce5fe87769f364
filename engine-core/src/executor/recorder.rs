//! Notes what ran when, while that is asked for.

use std::collections::HashMap;
use std::time::Instant;

use planner::{Bytes, Lane, Span};

use super::gpu::Gpu;
use super::stream::Labelled;
use crate::backend::{Fence, FenceSpan, Res};
use crate::batch::PassInputs;
use crate::trace::{Trace, TracedPass};

/// What was noted so far.
pub(super) struct Recorder {
    start: Instant,
    passes: Vec<TracedPass>,
    spans: Vec<Span>,
    handoffs: Vec<Handoff>,
}

/// A hand-off as the host sees it.
struct Handoff {
    shard: usize,
    /// What the host waited for before it could begin.
    after: Option<Fence>,
    start: Instant,
    end: Instant,
}

/// How a pass began on the GPU, if there is one.
#[derive(Default)]
pub(super) struct Begun {
    pub(super) plan: Option<usize>,
    pub(super) loaded: Bytes,
    pub(super) is_cold: bool,
}

impl Recorder {
    pub(super) fn new() -> Recorder {
        let (passes, spans, handoffs) = (Vec::new(), Vec::new(), Vec::new());
        Recorder { start: Instant::now(), passes, spans, handoffs }
    }

    /// A pass that began at `start` and is over.
    pub(super) fn pass(&mut self, ubatches: &[PassInputs], begun: Begun, start: Instant) {
        let n_ubatches = ubatches.len() as u32;
        let n_tokens = ubatches.iter().map(|inputs| inputs.size().n_tokens).sum();
        let n_kv = ubatches.last().map_or(0, |inputs| inputs.size().n_cells);
        let Begun { plan, loaded, is_cold } = begun;
        let (start, end) = (self.seconds(start), self.seconds(Instant::now()));
        let pass = TracedPass { n_tokens, n_ubatches, n_kv, plan, loaded, is_cold, start, end };
        self.passes.push(pass);
    }

    /// The CPU has computed shards from this one on.
    pub(super) fn cpu(&mut self, shard: usize, start: Instant) {
        let (start, end) = (self.seconds(start), self.seconds(Instant::now()));
        self.spans.push(Span { lane: Lane::Cpu, shard, start, end });
    }

    /// Activations before a shard have been handed over, after the GPU was done with what it had.
    pub(super) fn handoff(&mut self, shard: usize, after: Option<Fence>, start: Instant) {
        self.handoffs.push(Handoff { shard, after, start, end: Instant::now() });
    }

    /// All that was noted, with what the GPU did.
    pub(super) fn finish(mut self, gpu: Option<&mut Gpu>) -> Res<Trace> {
        let traced = gpu.map(Gpu::take_traced).transpose()?.unwrap_or_default();
        for (Labelled { lane, shard, .. }, FenceSpan { start, end, .. }) in &traced {
            let (start, end) = (self.seconds(*start), self.seconds(*end));
            self.spans.push(Span { lane: *lane, shard: *shard, start, end });
        }
        let ends: HashMap<Fence, Instant> =
            traced.iter().map(|(_, span)| (span.fence, span.end)).collect();
        for Handoff { shard, after, start, end } in std::mem::take(&mut self.handoffs) {
            // Until then the GPU was computing, and nothing was handed over.
            let ran = after.and_then(|fence| ends.get(&fence).copied());
            let start = ran.map_or(start, |ran| ran.clamp(start, end));
            let (start, end) = (self.seconds(start), self.seconds(end));
            self.spans.push(Span { lane: Lane::Handoff, shard, start, end });
        }
        self.spans.sort_by(|a, b| a.start.total_cmp(&b.start));
        Ok(Trace { passes: self.passes, spans: self.spans })
    }

    fn seconds(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.start).as_secs_f64()
    }
}

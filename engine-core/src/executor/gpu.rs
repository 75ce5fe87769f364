//! The GPU's memory from pass to pass: the plan it is laid out for, what lies in it, and the copies under way.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use planner::{Bytes, Lane, Placement, TierPlan};

use super::cpu::Cpu;
use super::inputs::write_all_inv_freq;
use super::kv_home::{KvHome, fetch, fetch_written, slices, store};
use super::placed::{Blueprint, PlacedPlan, Upload};
use super::{SetupError, Subject};
use crate::arena::{Needs, arrange};
use crate::backend::{Backend, Fence, FenceSpan, HostRegion, HostSlice, Res};
use crate::model::ModelConfig;
use crate::op::{Op, View};
use crate::schedule::Device;

/// What is outside the GPU when its memory is laid out.
pub(super) struct Host<'a> {
    pub(super) cpu: &'a mut Cpu,
    pub(super) config: &'a ModelConfig,
    /// Cells in use of each group of layers.
    pub(super) used: &'a [u32],
}

/// What a fence stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Labelled {
    pub(super) fence: Fence,
    pub(super) lane: Lane,
    /// The first shard of the work.
    pub(super) shard: usize,
}

/// A GPU with an arena for some plans.
pub(super) struct Gpu {
    backend: Box<dyn Backend>,
    /// The model's files, mapped.
    files: Vec<Arc<HostRegion>>,
    /// The plan that the arena is laid out for.
    laid_out: Option<usize>,
    /// Weights in it.
    contents: HashSet<Upload>,
    /// Where the KV cells of each layer are.
    kv: Vec<KvHome>,
    /// For each copy of the plan, when it is done that was begun last.
    copies: Vec<Option<Fence>>,
    /// When every copy is done that was begun.
    copied: Option<Fence>,
    /// Whether the copies that a pass expects to find have been begun.
    is_ahead: bool,
    /// When all that was submitted is done.
    ran: Option<Fence>,
    /// What the next submission must wait for besides its own copy.
    loading: Option<Fence>,
    /// Weights that were copied to lay the arena out for another plan, since this was last asked.
    loaded: Bytes,
    /// What each fence stands for, while work is traced.
    labels: Option<Vec<Labelled>>,
}

impl Gpu {
    /// Takes the arena for some plans, each within `budget`, and gives each its places.
    ///
    /// # Errors
    /// A plan that does not fit the model or the budget; a device that has no room for the arena.
    pub(super) fn new(
        mut backend: Box<dyn Backend>,
        subject: &Subject<'_>,
        plans: &[TierPlan],
        budget: Bytes,
    ) -> Result<(Gpu, Vec<PlacedPlan>), SetupError> {
        let Subject { model, weights, limits, kv_dtype } = *subject;
        let blueprint = Blueprint::new(model, limits, kv_dtype);
        for plan in plans {
            let misfit = |fault| SetupError::Plan { n_tokens: plan.tier.n_tokens(), fault };
            blueprint.check(plan, budget).map_err(misfit)?;
        }
        let needs: Vec<Needs> = plans.iter().map(|plan| blueprint.needs(plan)).collect();
        let size = needs.iter().map(Needs::total).max().unwrap_or_default();
        let files: Vec<_> = weights.files().iter().map(|file| file.region.clone()).collect();
        for file in &files {
            backend.page_lock(file)?;
        }
        let arena = backend.alloc(size)?;
        let places = arrange(size, &needs);
        let placed = plans.iter().zip(&places).map(|(plan, at)| blueprint.place(plan, at, arena));
        let gpu = Gpu {
            backend,
            files,
            laid_out: None,
            contents: HashSet::new(),
            kv: vec![KvHome::Cpu; blueprint.kv.len()],
            copies: Vec::new(),
            copied: None,
            is_ahead: false,
            ran: None,
            loading: None,
            loaded: Bytes::ZERO,
            labels: None,
        };
        Ok((gpu, placed.collect()))
    }

    /// Lays the arena out for a plan: KV cells move to where their attention is, weights that are not there are copied.
    ///
    /// # Errors
    /// A device failure; cells are then where they were or in host memory, and the next call goes on from there.
    pub(super) fn lay_out(&mut self, index: usize, plan: &PlacedPlan, host: Host<'_>) -> Res<()> {
        if self.laid_out == Some(index) {
            return Ok(());
        }
        let Host { cpu, config, used } = host;
        self.settle()?;
        self.laid_out = None;
        self.take_out_kv(plan, cpu, used)?;
        let stays: HashSet<Upload> = plan.stays.iter().copied().collect();
        self.contents.retain(|upload| stays.contains(upload));
        self.put_in_kv(plan, cpu, used)?;
        let is_there = |upload: &&Upload| self.contents.contains(upload);
        let missing: Vec<Upload> = plan.stays.iter().filter(|u| !is_there(u)).copied().collect();
        self.load(&missing)?;
        self.loaded += missing.iter().map(|upload| upload.view.bytes()).sum();
        self.contents = stays;
        self.copies = vec![None; plan.copies.len()];
        if plan.schedule.uses(Device::Gpu) {
            write_all_inv_freq(config, self.backend.as_mut(), &plan.memory.pass)?;
        }
        self.laid_out = Some(index);
        Ok(())
    }

    /// Moves KV cells that do not stay where they are to host memory.
    fn take_out_kv(&mut self, plan: &PlacedPlan, cpu: &mut Cpu, used: &[u32]) -> Res<()> {
        for (layer, home) in self.kv.iter_mut().enumerate() {
            let wanted = plan.memory.kv[layer];
            let (backend, views) = match (&*home, plan.attention[layer]) {
                (KvHome::Cpu, Placement::Cpu) | (KvHome::Host(_), _) => continue,
                (KvHome::Vram(views), Placement::Pinned) if *views == wanted => continue,
                (KvHome::Cpu, _) => (&mut cpu.backend, cpu.memory.kv[layer]),
                (KvHome::Vram(views), _) => (&mut self.backend, *views),
            };
            *home = KvHome::Host(fetch(backend.as_mut(), &views, used[wanted.group])?);
        }
        Ok(())
    }

    /// Moves KV cells from host memory to where attention is.
    fn put_in_kv(&mut self, plan: &PlacedPlan, cpu: &mut Cpu, used: &[u32]) -> Res<()> {
        for layer in 0..self.kv.len() {
            let KvHome::Host(host) = &self.kv[layer] else { continue };
            let wanted = plan.memory.kv[layer];
            let n_cells = used[wanted.group];
            self.kv[layer] = match plan.attention[layer] {
                Placement::Streamed => continue,
                Placement::Cpu => {
                    store(cpu.backend.as_mut(), host, &cpu.memory.kv[layer], n_cells)?;
                    KvHome::Cpu
                }
                Placement::Pinned => {
                    for (cells, view) in slices(host, &wanted, n_cells) {
                        // Attention comes first in its layer, after the embedding.
                        self.loading = Some(self.copy(1 + 2 * layer, cells, &view)?);
                    }
                    KvHome::Vram(wanted)
                }
            };
        }
        Ok(())
    }

    /// Begins the copies that a pass expects to find, unless the pass before has begun them.
    pub(super) fn begin(&mut self, plan: &PlacedPlan, used: &[u32]) -> Res<()> {
        if !self.is_ahead {
            for copy in 0..plan.schedule.ahead {
                self.start_copy(plan, copy, used)?;
            }
            self.is_ahead = true;
        }
        Ok(())
    }

    /// Whether copies have been begun for the pass that comes next.
    pub(super) fn is_ahead(&self) -> bool {
        self.is_ahead
    }

    /// Weights that were copied for a change of plans, since this was last asked.
    pub(super) fn take_loaded(&mut self) -> Bytes {
        std::mem::take(&mut self.loaded)
    }

    /// Begins a copy of the ring, once all that was submitted so far has been done.
    pub(super) fn start_copy(&mut self, plan: &PlacedPlan, copy: usize, used: &[u32]) -> Res<()> {
        let what = &plan.copies[copy];
        let mut last = None;
        for tensor in &what.tensors {
            last = Some(self.upload(tensor)?);
        }
        if let Some(layer) = what.kv
            && let KvHome::Host(host) = &self.kv[layer]
        {
            let views = plan.memory.kv[layer];
            for (cells, view) in slices(host, &views, used[views.group]) {
                last = Some(self.copy(plan.schedule.copies[copy], cells, &view)?);
            }
        }
        self.copies[copy] = last;
        Ok(())
    }

    /// Runs the ops of shards from `shard` on, which need what copy number `copy` brings, if one is named.
    pub(super) fn submit(&mut self, shard: usize, ops: &[Op], copy: Option<usize>) -> Res<()> {
        if ops.is_empty() {
            return Ok(());
        }
        let after: Vec<Fence> =
            self.loading.into_iter().chain(copy.and_then(|copy| self.copies[copy])).collect();
        let ran = self.backend.submit(ops, &after)?;
        self.label(ran, Lane::Gpu, shard);
        self.ran = Some(ran);
        self.loading = None;
        Ok(())
    }

    /// Runs a group of experts: its router first, then what the tokens chose, as soon as that is copied.
    pub(super) fn submit_chosen(
        &mut self,
        plan: &PlacedPlan,
        shard: usize,
        ops: &mut [Op],
    ) -> Res<()> {
        let group = &plan.chosen[&shard];
        let routed = ops.iter().find_map(|op| match op {
            Op::RouteExperts(route) => Some(route.experts),
            _ => None,
        });
        // Without tokens whose logits are wanted the last group has nothing to do.
        let Some(routed) = routed else { return Ok(()) };
        self.load(&group.first)?;
        let n_first = ops.iter().take_while(|op| !matches!(op, Op::MatMulExperts(_))).count();
        let (first, rest) = ops.split_at_mut(n_first);
        self.submit(shard, first, None)?;
        let brought = group.bring(&self.read_numbers(&routed)?);
        self.load(&brought.uploads)?;
        brought.point(rest);
        self.submit(shard, rest, None)
    }

    /// Copies what the next submission needs.
    fn load(&mut self, uploads: &[Upload]) -> Res<()> {
        for upload in uploads {
            self.loading = Some(self.upload(upload)?);
        }
        Ok(())
    }

    fn read_numbers(&mut self, view: &View) -> Res<BTreeSet<usize>> {
        let mut bytes = vec![0; view.bytes().as_usize()];
        self.read(view, &mut bytes)?;
        let (numbers, _) = bytes.as_chunks::<4>();
        Ok(numbers.iter().map(|number| u32::from_le_bytes(*number) as usize).collect())
    }

    /// Brings the cells that a pass has written to the host memory of a layer that is streamed.
    pub(super) fn keep_written(
        &mut self,
        plan: &PlacedPlan,
        layer: usize,
        written: &[u32],
    ) -> Res<()> {
        let KvHome::Host(host) = &mut self.kv[layer] else { return Ok(()) };
        // With what ran the copies that it needed are done: only then does nothing else hold the memory.
        if let Some(ran) = self.ran {
            self.backend.wait(ran)?;
        }
        fetch_written(self.backend.as_mut(), &plan.memory.kv[layer], written, host)
    }

    /// Reads what was computed.
    pub(super) fn read(&mut self, view: &View, bytes: &mut [u8]) -> Res<()> {
        self.backend.read(view, bytes, self.ran.as_slice())
    }

    /// The plan that the arena is laid out for.
    pub(super) fn laid_out(&self) -> Option<usize> {
        self.laid_out
    }

    pub(super) fn backend(&mut self) -> &mut dyn Backend {
        self.backend.as_mut()
    }

    /// Waits for all that is under way, and forgets the copies that were made ahead.
    pub(super) fn settle(&mut self) -> Res<()> {
        self.is_ahead = false;
        self.copies.fill(None);
        // What was written has no fence: it is done with what is submitted after it.
        let ran = self.backend.submit(&[], &[]).and_then(|fence| self.backend.wait(fence));
        // Copies are waited for, too, where what ran has failed: they still use host memory.
        let copied = self.copied.map_or(Ok(()), |fence| self.backend.wait(fence));
        ran.and(copied)?;
        (self.ran, self.copied, self.loading) = (None, None, None);
        Ok(())
    }

    /// Traces from now on what the GPU does.
    pub(super) fn trace(&mut self) {
        self.backend.note_spans(true);
        self.labels = Some(Vec::new());
    }

    /// What was traced so far; waits until it is done.
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

    /// When what was submitted last is done.
    pub(super) fn ran(&self) -> Option<Fence> {
        self.ran
    }

    fn label(&mut self, fence: Fence, lane: Lane, shard: usize) {
        if let Some(labels) = &mut self.labels {
            labels.push(Labelled { fence, lane, shard });
        }
    }

    fn upload(&mut self, Upload { shard, stored, view }: &Upload) -> Res<Fence> {
        let start = stored.offset.as_usize();
        let range = start..start + stored.bytes().as_usize();
        let slice = HostSlice::new(self.files[stored.region].clone(), range);
        let slice = slice.expect("tensors were checked to lie inside their file");
        self.copy(*shard, slice, view)
    }

    /// Starts a copy for a shard, once all that was submitted so far has been done.
    fn copy(&mut self, shard: usize, src: HostSlice, view: &View) -> Res<Fence> {
        let fence = self.backend.upload(src, view, self.ran.as_slice())?;
        self.label(fence, Lane::Copy, shard);
        self.copied = Some(fence);
        Ok(fence)
    }
}

//! The GPU's memory from pass to pass: the plan it is laid out for, what lies in it, and the copies under way.

use std::collections::{BTreeSet, HashSet};

use planner::{Bytes, Placement, TierPlan};

use super::cpu::Cpu;
use super::inputs::write_all_inv_freq;
use super::kv_home::{KvHome, fetch, fetch_written, slices, store};
use super::placed::{Blueprint, PlacedPlan, Upload};
use super::stream::{Labelled, Stream};
use super::{SetupError, Subject};
use crate::arena::{Needs, arrange};
use crate::backend::{Backend, Fence, FenceSpan, Res};
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

/// A GPU with an arena for some plans.
pub(super) struct Gpu {
    stream: Stream,
    /// The plan that the arena is laid out for.
    laid_out: Option<usize>,
    /// Weights in it.
    contents: HashSet<Upload>,
    /// Where the KV cells of each layer are.
    kv: Vec<KvHome>,
    /// For each copy of the plan, when it is done that was begun last.
    copies: Vec<Option<Fence>>,
    /// Whether the copies that a pass expects to find have been begun.
    is_ahead: bool,
    /// Weights that were copied to lay the arena out for another plan, since this was last asked.
    loaded: Bytes,
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
            stream: Stream::new(backend, files),
            laid_out: None,
            contents: HashSet::new(),
            kv: vec![KvHome::Cpu; blueprint.kv.len()],
            copies: Vec::new(),
            is_ahead: false,
            loaded: Bytes::ZERO,
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
        self.stream.load(&missing)?;
        self.loaded += missing.iter().map(|upload| upload.view.bytes()).sum();
        self.contents = stays;
        self.copies = vec![None; plan.copies.len()];
        if plan.schedule.uses(Device::Gpu) {
            write_all_inv_freq(config, self.stream.backend(), &plan.memory.pass)?;
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
                (KvHome::Cpu, _) => {
                    (cpu.backend.as_mut() as &mut dyn Backend, cpu.memory.kv[layer])
                }
                (KvHome::Vram(views), _) => (self.stream.backend(), *views),
            };
            *home = KvHome::Host(fetch(backend, &views, used[wanted.group])?);
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
                        self.stream.load_slice(1 + 2 * layer, cells, &view)?;
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

    /// Ends a pass, with the copies begun that the next one expects to find, or without.
    pub(super) fn end(&mut self, is_ahead: bool) {
        self.is_ahead = is_ahead;
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
            last = Some(self.stream.upload(tensor)?);
        }
        if let Some(layer) = what.kv
            && let KvHome::Host(host) = &self.kv[layer]
        {
            let views = plan.memory.kv[layer];
            for (cells, view) in slices(host, &views, used[views.group]) {
                last = Some(self.stream.copy(plan.schedule.copies[copy], cells, &view)?);
            }
        }
        self.copies[copy] = last;
        Ok(())
    }

    /// Runs the ops of shards from `shard` on, which need what copy number `copy` brings, if one is named.
    pub(super) fn submit(&mut self, shard: usize, ops: &[Op], copy: Option<usize>) -> Res<()> {
        self.stream.submit(shard, ops, copy.and_then(|copy| self.copies[copy]))
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
        self.stream.load(&group.first)?;
        let n_first = ops.iter().take_while(|op| !matches!(op, Op::MatMulExperts(_))).count();
        let (first, rest) = ops.split_at_mut(n_first);
        self.stream.submit(shard, first, None)?;
        let brought = group.bring(&self.read_numbers(&routed)?);
        self.stream.load(&brought.uploads)?;
        brought.point(rest);
        self.stream.submit(shard, rest, None)
    }

    fn read_numbers(&mut self, view: &View) -> Res<BTreeSet<usize>> {
        let mut bytes = vec![0; view.bytes().as_usize()];
        self.stream.read(view, &mut bytes)?;
        let (numbers, _) = bytes.as_chunks::<4>();
        Ok(numbers.iter().map(|number| u32::from_le_bytes(*number) as usize).collect())
    }

    /// Brings the cells that the ubatches of a pass have written to the host memory of a layer that is streamed.
    pub(super) fn keep_written<'a>(
        &mut self,
        plan: &PlacedPlan,
        layer: usize,
        written: impl Iterator<Item = &'a [u32]>,
    ) -> Res<()> {
        let KvHome::Host(host) = &mut self.kv[layer] else { return Ok(()) };
        // With what ran the copies that it needed are done: only then does nothing else hold the memory.
        self.stream.wait()?;
        for written in written {
            fetch_written(self.stream.backend(), &plan.memory.kv[layer], written, host)?;
        }
        Ok(())
    }

    /// The plan that the arena is laid out for.
    pub(super) fn laid_out(&self) -> Option<usize> {
        self.laid_out
    }

    /// The device with its queues.
    pub(super) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// Waits for all that is under way, and forgets the copies that were made ahead.
    pub(super) fn settle(&mut self) -> Res<()> {
        self.is_ahead = false;
        self.copies.fill(None);
        self.stream.settle()
    }

    /// What was traced so far; waits until it is done. Ends the trace.
    pub(super) fn take_traced(&mut self) -> Res<Vec<(Labelled, FenceSpan)>> {
        self.settle()?;
        self.stream.take_traced()
    }
}

//! A plan carried out in an arena: the views that the GPU computes with, and what must be copied where.

use std::collections::BTreeMap;

use planner::{Bytes, Placement, Plan, Shard, Slot, TierPlan};

use super::chosen::{ChosenExperts, nowhere};
use super::memory::DeviceMemory;
use crate::arena::{Item, Needs, Places};
use crate::backend::BufferId;
use crate::cost::in_vram;
use crate::kv::{KvGroups, KvViews};
use crate::model::{Model, StoredMatrix};
use crate::op::View;
use crate::schedule::Schedule;
use crate::scratch::{Layout, PassLimits, PassViews, Place};
use crate::weights::DType;

/// A tensor of the model's files and its place in VRAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Upload {
    /// The shard that it is for, by its place in running order.
    pub(super) shard: usize,
    pub(super) stored: StoredMatrix,
    pub(super) view: View,
}

/// What one copy of the ring brings.
#[derive(Debug, Clone)]
pub(super) struct SlotCopy {
    pub(super) tensors: Vec<Upload>,
    /// The layer whose KV cells go along.
    pub(super) kv: Option<usize>,
}

/// A plan with all its places.
#[derive(Debug, Clone)]
pub(super) struct PlacedPlan {
    /// Most tokens of an ubatch.
    pub(super) n_tokens: u32,
    /// Most ubatches of a pass.
    pub(super) n_ubatches: u32,
    pub(super) schedule: Schedule,
    /// What is not in VRAM has views that no backend takes.
    pub(super) memory: DeviceMemory,
    /// Weights that stay in VRAM.
    pub(super) stays: Vec<Upload>,
    /// In the order of the schedule's copies.
    pub(super) copies: Vec<SlotCopy>,
    /// Groups of experts that are copied by choice, by their place in running order.
    pub(super) chosen: BTreeMap<usize, ChosenExperts>,
    /// Where each layer's attention is.
    pub(super) attention: Vec<Placement>,
}

/// What is the same for all plans of a model.
pub(super) struct Blueprint<'a> {
    pub(super) model: &'a Model,
    pub(super) limits: PassLimits,
    pub(super) groups: KvGroups,
    /// Each layer, at no place.
    pub(super) kv: Vec<KvViews>,
    pub(super) shards: Vec<Shard>,
}

impl<'a> Blueprint<'a> {
    pub(super) fn new(model: &'a Model, limits: PassLimits, kv_dtype: DType) -> Blueprint<'a> {
        let config = &model.config;
        let groups = KvGroups::of(&config.layers, limits);
        let (kv, _) = KvViews::layout(config, &groups, kv_dtype, Place::NOWHERE.buffer);
        Blueprint { model, limits, groups, kv, shards: Shard::all(config.n_layer()) }
    }

    /// The largest pass that a plan is for.
    pub(super) fn limits(&self, plan: &TierPlan) -> PassLimits {
        let n_tokens = plan.tier.n_tokens().min(self.limits.n_tokens);
        PassLimits { n_tokens, n_outputs: self.limits.n_outputs.min(n_tokens), ..self.limits }
    }

    /// What a plan's passes take besides weights and cells: the views of an ubatch, and the residuals of those that wait.
    fn pass(&self, plan: &TierPlan, start: Place) -> (PassViews, Vec<View>, Bytes) {
        let limits = self.limits(plan);
        let (views, room) = PassViews::layout(&self.model.config, &self.groups, limits, start);
        let after = Place { offset: start.offset + room, ..start };
        let (waiting, more) = views.waiting(plan.ubatches - 1, after);
        (views, waiting, room + more)
    }

    /// What a plan takes of an arena.
    pub(super) fn needs(&self, plan: &TierPlan) -> Needs {
        let layout = &plan.plan.layout;
        let mut needs = Needs::default();
        if layout.placements.iter().all(|&placement| placement == Placement::Cpu) {
            return needs;
        }
        needs.ring = layout.ring;
        needs.scratch = self.pass(plan, Place::NOWHERE).2;
        for (i, (&shard, placement)) in self.shards.iter().zip(&layout.placements).enumerate() {
            if *placement != Placement::Pinned {
                continue;
            }
            if !self.stored_with_output(shard, &layout.placements) {
                needs.items.insert(Item::Weights(i), self.room(shard));
            }
            if let Shard::Attention { layer } = shard {
                let layer = layer as usize;
                needs.items.insert(Item::Kv(layer), self.kv[layer].room());
            }
        }
        for tensor in &layout.resident {
            needs.items.insert(Item::Product(tensor.shard, tensor.tensor), tensor.bytes);
        }
        needs
    }

    /// An embedding that is the output's matrix, which is pinned.
    fn stored_with_output(&self, shard: Shard, placements: &[Placement]) -> bool {
        let tensors = &self.model.tensors;
        shard == Shard::Embedding
            && tensors.embedding == tensors.output
            && placements.last() == Some(&Placement::Pinned)
    }

    pub(super) fn room(&self, shard: Shard) -> Bytes {
        let tensors = self.model.tensors.of_shard(shard);
        tensors.iter().map(|stored| in_vram(stored.bytes())).sum()
    }

    /// The plan with `places` in `arena`.
    pub(super) fn place(&self, plan: &TierPlan, places: &Places, arena: BufferId) -> PlacedPlan {
        let limits = self.limits(plan);
        let scratch = Place { buffer: arena, offset: places.scratch };
        let mut placing = Placing {
            blueprint: self,
            plan: &plan.plan,
            places,
            arena,
            chosen_room: self.chosen_room(&plan.plan, limits),
            by_shard: vec![Vec::new(); self.shards.len()],
            stays: Vec::new(),
            kv: self.kv.clone(),
            copies: Vec::new(),
            chosen: BTreeMap::new(),
        };
        // The output comes first, since the embedding may be stored with it.
        for i in (0..self.shards.len()).rev() {
            placing.shard(i);
        }
        let Placing { by_shard, stays, kv, mut copies, chosen, .. } = placing;
        copies.reverse();
        let mut views = by_shard.into_iter().flatten();
        let tensors = self.model.tensors.map(|_| views.next().expect("a view for each tensor"));
        let attention = self.shards.iter().zip(&plan.plan.layout.placements);
        let attention = attention.filter(|(shard, _)| matches!(shard, Shard::Attention { .. }));
        let (pass, waiting, _) = self.pass(plan, scratch);
        PlacedPlan {
            n_tokens: limits.n_tokens,
            n_ubatches: plan.ubatches,
            schedule: Schedule::of(&plan.plan.layout.placements, &plan.plan.slots),
            memory: DeviceMemory { tensors, kv, pass, waiting },
            stays,
            copies,
            chosen,
            attention: attention.map(|(_, &placement)| placement).collect(),
        }
    }

    /// The region before the first slot, in which groups of experts that are copied by choice take turns.
    pub(super) fn chosen_room(&self, plan: &Plan, limits: PassLimits) -> Bytes {
        let without_slot = |i: usize| plan.slots.iter().all(|slot| slot.shard != i);
        let streamed = self.shards.iter().zip(&plan.layout.placements).enumerate();
        let chosen = streamed
            .filter(|(i, (_, placement))| **placement == Placement::Streamed && without_slot(*i));
        // The last group, before the output, runs for the tokens whose logits are wanted.
        let last = self.shards.len() - 2;
        let n_tokens = |i| if i == last { limits.n_outputs } else { limits.n_tokens };
        let rooms = chosen.map(|(i, _)| ChosenExperts::room(self.model, i, n_tokens(i)));
        rooms.max().unwrap_or_default()
    }
}

/// A plan of which some shards have their places.
struct Placing<'a> {
    blueprint: &'a Blueprint<'a>,
    plan: &'a Plan,
    places: &'a Places,
    arena: BufferId,
    /// Room of the region before the first slot.
    chosen_room: Bytes,
    /// The views of each shard's tensors.
    by_shard: Vec<Vec<View>>,
    stays: Vec<Upload>,
    kv: Vec<KvViews>,
    copies: Vec<SlotCopy>,
    chosen: BTreeMap<usize, ChosenExperts>,
}

impl Placing<'_> {
    fn at(&self, offset: Bytes) -> Place {
        Place { buffer: self.arena, offset }
    }

    fn stored(&self, i: usize) -> Vec<StoredMatrix> {
        self.blueprint.model.tensors.of_shard(self.blueprint.shards[i])
    }

    fn shard(&mut self, i: usize) {
        let slot = self.plan.slots.iter().find(|slot| slot.shard == i);
        self.by_shard[i] = match (self.plan.layout.placements[i], slot) {
            (Placement::Cpu, _) => self.stored(i).iter().map(nowhere).collect(),
            (Placement::Pinned, _) => self.pinned(i),
            (Placement::Streamed, Some(slot)) => self.streamed(i, slot),
            (Placement::Streamed, None) => self.chosen(i),
        };
    }

    fn pinned(&mut self, i: usize) -> Vec<View> {
        if let Shard::Attention { layer } = self.blueprint.shards[i] {
            let place = self.at(self.places.items[&Item::Kv(layer as usize)]);
            self.kv[layer as usize] = self.kv[layer as usize].at(place);
        }
        let Some(&offset) = self.places.items.get(&Item::Weights(i)) else {
            let output = self.by_shard.last().and_then(|views| views.last());
            return vec![*output.expect("an embedding without a place is the output's matrix")];
        };
        let Laid { views, uploads, .. } = lay_out(i, &self.stored(i), self.at(offset));
        self.stays.extend(uploads);
        views
    }

    /// Tensors that stay where they are kept, the others in the slot; then KV cells.
    fn streamed(&mut self, i: usize, slot: &Slot) -> Vec<View> {
        let kept = self.kept(i);
        let is_kept = |tensor: &StoredMatrix| kept.iter().any(|upload| upload.stored == *tensor);
        let stored = self.stored(i);
        let copied: Vec<StoredMatrix> = stored.iter().copied().filter(|t| !is_kept(t)).collect();
        let start = self.at(self.places.ring + self.chosen_room + slot.offset);
        let Laid { uploads, end, .. } = lay_out(i, &copied, start);
        let kv = match self.blueprint.shards[i] {
            Shard::Attention { layer } => Some(layer as usize),
            Shard::Embedding | Shard::Ffn { .. } | Shard::Output => None,
        };
        if let Some(layer) = kv {
            self.kv[layer] = self.kv[layer].at(end);
        }
        let view_of = |tensor: &StoredMatrix| {
            let upload = kept.iter().chain(&uploads).find(|upload| upload.stored == *tensor);
            upload.expect("a tensor stays or is copied").view
        };
        let views = stored.iter().map(view_of).collect();
        self.stays.extend(kept);
        self.copies.push(SlotCopy { tensors: uploads, kv });
        views
    }

    /// Tensors of a streamed shard that stay.
    fn kept(&self, i: usize) -> Vec<Upload> {
        let products = self.blueprint.model.tensors.products(self.blueprint.shards[i]);
        let resident = self.plan.layout.resident.iter().filter(|tensor| tensor.shard == i);
        let uploads = resident.flat_map(|tensor| {
            let offset = self.places.items[&Item::Product(i, tensor.tensor)];
            lay_out(i, &products[tensor.tensor], self.at(offset)).uploads
        });
        uploads.collect()
    }

    fn chosen(&mut self, i: usize) -> Vec<View> {
        let model = self.blueprint.model;
        let experts = ChosenExperts::new(model, i, self.at(self.places.ring));
        let views = self.stored(i).iter().map(|stored| experts.view(stored)).collect();
        self.chosen.insert(i, experts);
        views
    }
}

/// Tensors one after the other.
pub(super) struct Laid {
    pub(super) views: Vec<View>,
    pub(super) uploads: Vec<Upload>,
    pub(super) end: Place,
}

pub(super) fn lay_out(shard: usize, tensors: &[StoredMatrix], start: Place) -> Laid {
    let mut layout = Layout::new(start);
    let place =
        |stored: &StoredMatrix| layout.place(stored.shape[0], stored.shape[1], stored.dtype);
    let views: Vec<View> = tensors.iter().map(place).collect();
    let uploads = tensors.iter().zip(&views).map(|(&stored, &view)| Upload { shard, stored, view });
    Laid { uploads: uploads.collect(), end: Place { offset: layout.end(), ..start }, views }
}

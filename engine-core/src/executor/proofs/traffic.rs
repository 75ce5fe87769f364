//! What plans say is copied, by rules of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use planner::{Bytes, OpCost, Placement, Shard, ShardCost, TierPlan};

use super::bench::LIMITS;
use crate::batch::PassInputs;
use crate::cost::in_vram;
use crate::engine::KvFormat;
use crate::kv::{KvGroups, KvViews};
use crate::model::ModelConfig;
use crate::scratch::Place;
use crate::testing::Journal;

/// Copies of some plans, pass by pass.
pub(super) struct Traffic {
    plans: Vec<Copies>,
    n_layer: u32,
    /// Of each layer, whose cells it has and the size of a cell.
    kv: Vec<(usize, Bytes)>,
    /// Cells in use of each group of layers.
    used: Vec<u64>,
    /// The plan that memory is laid out for.
    current: usize,
    /// Whether the pass before has begun copies for the next.
    is_ahead: bool,
}

/// What one plan copies.
struct Copies {
    n_tokens: u32,
    plan: TierPlan,
    shards: Vec<ShardCost>,
}

/// Copies out of files, each as large as its place, and copies of KV cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
struct Amount {
    files: Bytes,
    kv: Bytes,
}

impl std::ops::Add for Amount {
    type Output = Amount;

    fn add(self, other: Amount) -> Amount {
        Amount { files: self.files + other.files, kv: self.kv + other.kv }
    }
}

impl Traffic {
    pub(super) fn new(
        config: &ModelConfig,
        plans: Vec<TierPlan>,
        shards: Vec<Vec<ShardCost>>,
    ) -> Traffic {
        let groups = KvGroups::of(&config.layers, LIMITS);
        let dtype = KvFormat::F16.dtype();
        let (views, _) = KvViews::layout(config, &groups, dtype, Place::NOWHERE.buffer);
        let cell = dtype.row_bytes((config.key_width() + config.value_width()).into()).unwrap();
        let plans: Vec<Copies> = plans
            .into_iter()
            .zip(shards)
            .map(|(plan, shards)| Copies { n_tokens: plan.tier.n_tokens(), plan, shards })
            .collect();
        Traffic {
            n_layer: config.n_layer(),
            kv: views.iter().map(|views| (views.group, cell)).collect(),
            used: vec![0; groups.all().len()],
            current: plans.len() - 1,
            plans,
            is_ahead: false,
        }
    }

    /// Loading copies what stays.
    pub(super) fn check_load(&self, journal: &mut Journal) {
        let files = self.plans[self.current].stays().values().copied().sum();
        assert_eq!(drain(journal), Amount { files, kv: Bytes::ZERO });
    }

    /// Some ubatches, in as few passes as the plan has it and with so many to follow, copy what they need and do not find.
    pub(super) fn check(&mut self, ubatches: &[PassInputs], n_after: u32, journal: &mut Journal) {
        let n_chosen = take(&mut journal.n_chosen);
        let mut n_chosen = &n_chosen[..];
        let [mut least, mut most] = [Amount::default(); 2];
        let mut rest = ubatches;
        while !rest.is_empty() {
            let before = self.current;
            let pass = self.enter(rest);
            rest = &rest[pass.len()..];
            // What comes after a prompt is an answer, under the first plan.
            let goes_on = self.current == 0 || !rest.is_empty() || n_after > 0;
            let copied = self.ring(goes_on) + self.chosen(pass, &mut n_chosen);
            let switch =
                if before == self.current { Default::default() } else { self.switch(before) };
            least = least + copied + switch[0];
            most = most + copied + switch[1];
        }
        assert!(n_chosen.is_empty());
        let found = drain(journal);
        assert!(least.files <= found.files && found.files <= most.files, "{least:?} {found:?}");
        assert!(least.kv <= found.kv && found.kv <= most.kv, "{least:?} {found:?} {most:?}");
    }

    /// What a pass copies through the slots of the ring, with what the next one finds if it is to go on with the plan.
    fn ring(&mut self, goes_on: bool) -> Amount {
        let copies = &self.plans[self.current];
        let (n, ahead) = (copies.plan.plan.slots.len(), copies.ahead());
        let (start, end) =
            (if self.is_ahead { ahead } else { 0 }, if goes_on { n + ahead } else { n });
        self.is_ahead = goes_on;
        let copied = (start..end).map(|m| self.copy(m % n));
        copied.fold(Amount::default(), |sum, copy| sum + copy)
    }

    /// What the ubatches of a pass copy by choice.
    fn chosen(&self, ubatches: &[PassInputs], n_chosen: &mut &[usize]) -> Amount {
        let copies = &self.plans[self.current];
        let of = |inputs: &PassInputs| {
            copies.chosen(n_chosen, self.n_layer, !inputs.output_rows.is_empty())
        };
        Amount { files: ubatches.iter().map(of).sum(), kv: Bytes::ZERO }
    }

    /// Ubatches ended before they ran: what they copied is not counted, and nothing is ahead any more.
    pub(super) fn forget(&mut self, ubatches: &[PassInputs], journal: &mut Journal) {
        self.enter(ubatches);
        self.is_ahead = false;
        drain(journal);
        journal.n_chosen.clear();
    }

    /// Goes on to the plan of some ubatches; gives those of its first pass.
    fn enter<'a>(&mut self, ubatches: &'a [PassInputs]) -> &'a [PassInputs] {
        let n_tokens = ubatches[0].token_ids.len() as u32;
        let next = self.plans.iter().position(|plan| plan.n_tokens >= n_tokens).unwrap();
        self.is_ahead &= self.current == next;
        self.current = next;
        let most = self.plans[next].plan.ubatches as usize;
        let pass = &ubatches[..most.min(ubatches.len())];
        for inputs in pass {
            for (used, cells) in self.used.iter_mut().zip(&inputs.cells) {
                let highest = cells.written.iter().max().unwrap();
                *used = (*used).max(u64::from(highest + 1));
            }
        }
        pass
    }

    /// One copy into the ring.
    fn copy(&self, m: usize) -> Amount {
        let copies = &self.plans[self.current];
        let shard = copies.plan.plan.slots[m].shard;
        let kept: Bytes = copies.kept(shard).map(|kept| kept.bytes).sum();
        let kv = match copies.shards[shard].shard {
            Shard::Attention { layer } => self.cells_in_use(layer),
            _ => Bytes::ZERO,
        };
        Amount { files: copies.shards[shard].weights.saturating_sub(kept), kv }
    }

    fn cells_in_use(&self, layer: u32) -> Bytes {
        let (group, cell) = self.kv[layer as usize];
        cell * self.used[group]
    }

    /// The least and the most that a change of plans copies: what both keep may have to move.
    fn switch(&self, before: usize) -> [Amount; 2] {
        let [old, new] = [before, self.current].map(|index| &self.plans[index]);
        let known: BTreeSet<usize> = old.stays().keys().map(|(i, _)| old.stored_with(*i)).collect();
        let stays = new.stays();
        let new_shards = stays.iter().filter(|((i, _), _)| !known.contains(&new.stored_with(*i)));
        let cells = |i: usize| match new.shards[i].shard {
            Shard::Attention { layer } if new.is(i, Placement::Pinned) => self.cells_in_use(layer),
            _ => Bytes::ZERO,
        };
        let n = new.shards.len();
        let new_cells = (0..n).filter(|&i| !old.is(i, Placement::Pinned)).map(cells);
        [
            Amount { files: new_shards.map(|(_, bytes)| *bytes).sum(), kv: new_cells.sum() },
            Amount { files: stays.values().copied().sum(), kv: (0..n).map(cells).sum() },
        ]
    }
}

impl Copies {
    fn is(&self, shard: usize, placement: Placement) -> bool {
        self.plan.plan.layout.placements[shard] == placement
    }

    fn has_slot(&self, shard: usize) -> bool {
        self.plan.plan.slots.iter().any(|slot| slot.shard == shard)
    }

    fn kept(&self, shard: usize) -> impl Iterator<Item = &planner::Resident> {
        self.plan.plan.layout.resident.iter().filter(move |kept| kept.shard == shard)
    }

    /// The shard whose tensors a shard has: those of a tied embedding are the output's.
    fn stored_with(&self, shard: usize) -> usize {
        if self.shards[shard].shared_with_output { self.shards.len() - 1 } else { shard }
    }

    /// What stays in VRAM: whole shards, and single tensors of streamed ones.
    fn stays(&self) -> BTreeMap<(usize, Option<usize>), Bytes> {
        let output_pinned = self.is(self.shards.len() - 1, Placement::Pinned);
        let pinned = (0..self.shards.len()).filter(|&i| {
            self.is(i, Placement::Pinned) && !(self.shards[i].shared_with_output && output_pinned)
        });
        let whole = pinned.map(|i| ((i, None), self.shards[i].weights));
        let kept = self.plan.plan.layout.resident.iter().filter(|kept| self.has_slot(kept.shard));
        whole.chain(kept.map(|kept| ((kept.shard, Some(kept.tensor)), kept.bytes))).collect()
    }

    /// Copies that nothing has to be used for.
    fn ahead(&self) -> usize {
        let slots = &self.plan.plan.slots;
        (0..).take_while(|m| !slots.is_empty() && slots[m % slots.len()].after > *m).count()
    }

    /// Of groups that are copied by choice in an ubatch: router and norms, and each expert that was chosen. `n_chosen`
    /// begins with an entry for each group that the GPU ran; they are taken off.
    fn chosen(&self, n_chosen: &mut &[usize], n_layer: u32, has_outputs: bool) -> Bytes {
        let ran = (0..self.shards.len()).filter(|&i| {
            let last = self.shards[i].shard == Shard::Ffn { layer: n_layer - 1 };
            let idle = last && !has_outputs;
            self.shards[i].has_experts() && !self.is(i, Placement::Cpu) && !idle
        });
        let ran: Vec<usize> = ran.collect();
        let (own, rest) = n_chosen.split_at(ran.len());
        *n_chosen = rest;
        let by_choice = ran
            .iter()
            .zip(own)
            .filter(|(i, _)| self.is(**i, Placement::Streamed) && !self.has_slot(**i));
        let copied = by_choice.map(|(&i, &n_chosen)| {
            let groups = self.shards[i].ops.iter().filter_map(|op| match op {
                OpCost::Experts { expert, n_expert, .. } => Some((*expert, *n_expert)),
                _ => None,
            });
            let all: Bytes = groups.clone().map(|(one, n)| one * u64::from(n)).sum();
            let chosen: Bytes = groups.map(|(one, _)| one * n_chosen as u64).sum();
            self.shards[i].weights.saturating_sub(all) + chosen
        });
        copied.sum()
    }
}

/// What was copied since the last time.
fn drain(journal: &mut Journal) -> Amount {
    Amount {
        files: take(&mut journal.copied_from_files).into_iter().map(in_vram).sum(),
        kv: take(&mut journal.copied).into_iter().sum(),
    }
}

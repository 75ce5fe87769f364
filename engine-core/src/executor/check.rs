//! Whether a plan can be carried out with a model's tensors. The planner's own plans can; a saved one may be of another
//! model.

use planner::{Bytes, Placement, Shard, TierPlan};
use thiserror::Error;

use super::placed::Blueprint;
use crate::cost::in_vram;
use crate::model::Network;

/// Why a plan cannot be carried out. Shards are named by their place in running order.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlanFault {
    /// Another number of shards.
    #[error("it places {found} shards of {expected}")]
    Shards {
        /// Shards placed.
        found: usize,
        /// Shards of the model.
        expected: usize,
    },
    /// A slot or a region for chosen experts that is too small.
    #[error("shard {shard} needs {need} of the ring and has {have}")]
    Slot {
        /// Which shard.
        shard: usize,
        /// What it has.
        have: Bytes,
        /// What it needs.
        need: Bytes,
    },
    /// A streamed shard without a slot that is no group of experts.
    #[error("streamed shard {shard} has no slot")]
    NoSlot {
        /// Which shard.
        shard: usize,
    },
    /// A tensor that stays, of another size or not there.
    #[error("tensor {tensor} of shard {shard} is not one of {bytes}")]
    Tensor {
        /// Which shard.
        shard: usize,
        /// Which of the tensors that its products read.
        tensor: usize,
        /// Its size in the plan.
        bytes: Bytes,
    },
    /// More than the budget.
    #[error("it takes {need} of VRAM; the budget has {have}")]
    OverBudget {
        /// The budget without what the driver takes.
        have: Bytes,
        /// What the plan takes.
        need: Bytes,
    },
}

impl Blueprint<'_> {
    /// Checks that a plan can be carried out within `budget`.
    pub(super) fn check(&self, plan: &TierPlan, budget: Bytes) -> Result<(), PlanFault> {
        let (found, expected) = (plan.plan.layout.placements.len(), self.shards.len());
        if found != expected {
            return Err(PlanFault::Shards { found, expected });
        }
        self.check_tensors(plan)?;
        self.check_slots(plan)?;
        let (have, need) = (budget, self.needs(plan).total());
        if need > have { Err(PlanFault::OverBudget { have, need }) } else { Ok(()) }
    }

    fn check_tensors(&self, plan: &TierPlan) -> Result<(), PlanFault> {
        let fits = |kept: &&planner::Resident| {
            let shard = self.shards.get(kept.shard);
            let products = shard.map(|&shard| self.model.tensors.products(shard));
            let tensors = products.as_ref().and_then(|products| products.get(kept.tensor));
            let size = |group: &Vec<crate::model::StoredMatrix>| -> Bytes {
                group.iter().map(|stored| in_vram(stored.bytes())).sum()
            };
            tensors.map(size) == Some(kept.bytes)
        };
        match plan.plan.layout.resident.iter().find(|kept| !fits(kept)) {
            Some(&planner::Resident { shard, tensor, bytes }) => {
                Err(PlanFault::Tensor { shard, tensor, bytes })
            }
            None => Ok(()),
        }
    }

    fn check_slots(&self, plan: &TierPlan) -> Result<(), PlanFault> {
        let streamed = plan.plan.layout.placements.iter().enumerate();
        for (i, _) in streamed.filter(|(_, place)| **place == Placement::Streamed) {
            match plan.plan.slots.iter().find(|slot| slot.shard == i) {
                Some(slot) => {
                    let (have, need) = (slot.size, self.slot(plan, i));
                    if need > have {
                        return Err(PlanFault::Slot { shard: i, have, need });
                    }
                }
                None if !self.has_experts(self.shards[i]) => {
                    return Err(PlanFault::NoSlot { shard: i });
                }
                None => {}
            }
        }
        let chosen = self.chosen_room(&plan.plan, self.limits(plan));
        let last = plan.plan.slots.iter().max_by_key(|slot| slot.offset + slot.size);
        let need = chosen + last.map_or(Bytes::ZERO, |slot| slot.offset + slot.size);
        let (have, shard) = (plan.plan.layout.ring, last.map_or(0, |slot| slot.shard));
        if need > have { Err(PlanFault::Slot { shard, have, need }) } else { Ok(()) }
    }

    /// What a streamed shard needs of its slot.
    fn slot(&self, plan: &TierPlan, i: usize) -> Bytes {
        let kept = plan.plan.layout.resident.iter().filter(|kept| kept.shard == i);
        let kept: Bytes = kept.map(|kept| kept.bytes).sum();
        let kv = match self.shards[i] {
            Shard::Attention { layer } => self.kv[layer as usize].room(),
            Shard::Embedding | Shard::Ffn { .. } | Shard::Output => Bytes::ZERO,
        };
        self.room(self.shards[i]).saturating_sub(kept) + kv
    }

    fn has_experts(&self, shard: Shard) -> bool {
        let Shard::Ffn { layer } = shard else { return false };
        let network = &self.model.tensors.layers[layer as usize].ffn.network;
        matches!(network, Network::Experts { .. })
    }
}

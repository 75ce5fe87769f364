//! Plans as a file: what was planned for, and a plan for each tier.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::error::PlanError;
use crate::forecast::{Method, Setting, TierPlan, Workload};
use crate::ring::is_safe;
use crate::tiers::plan_tiers;
use crate::units::Bytes;

/// Version of the file's layout.
pub const PLAN_SCHEMA: u32 = 1;

/// The plans of all tiers of one model on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedPlan {
    /// Version of the layout, [`PLAN_SCHEMA`].
    pub schema: u32,
    /// Name of the model.
    pub model: String,
    /// Its layers.
    pub n_layer: u32,
    /// Name of the machine.
    pub machine: String,
    /// KV cells that there is room for.
    pub n_ctx: u32,
    /// The budget.
    pub vram: Bytes,
    /// In rising order.
    pub tiers: Vec<TierPlan>,
}

/// Why a saved plan was refused.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SavedPlanError {
    /// It is no plan.
    #[error("not a saved plan: {}", .0.message())]
    Syntax(#[from] toml::de::Error),
    /// It is of another version.
    #[error("the plan has schema {found}; this program knows {known}")]
    Schema {
        /// Version of the file.
        found: u32,
        /// Version of this program.
        known: u32,
    },
    /// There is nothing in it, or a tier twice or out of order, or one for passes of no ubatch.
    #[error("its tiers must be in rising order, each once, and at least one")]
    Tiers,
    /// A layout that is not for such a model.
    #[error(
        "the plan for {n_tokens} tokens places {found} shards; {n_layer} layers have {expected}"
    )]
    Shards {
        /// The tier.
        n_tokens: u32,
        /// Shards placed.
        found: usize,
        /// Layers of the model.
        n_layer: u32,
        /// Shards of so many layers.
        expected: u64,
    },
    /// It takes more than its budget.
    #[error("the plan for {n_tokens} tokens takes {found} of VRAM; its budget is {vram}")]
    OverBudget {
        /// The tier.
        n_tokens: u32,
        /// What it takes.
        found: Bytes,
        /// The budget.
        vram: Bytes,
    },
    /// Slots out of order, or one that does not wait for those that it overlaps.
    #[error("the plan for {n_tokens} tokens has slots that would be overwritten while in use")]
    Order {
        /// The tier.
        n_tokens: u32,
    },
    /// A slot or a tensor that stays belongs to a shard that is not streamed, or a slot lies outside the ring.
    #[error(
        "the plan for {n_tokens} tokens has a slot or tensor for shard {shard} that its layout has no place for"
    )]
    Slot {
        /// The tier.
        n_tokens: u32,
        /// Index of the shard.
        shard: usize,
    },
}

impl SavedPlan {
    /// Plans all tiers up to `n_ubatch` tokens.
    ///
    /// # Errors
    /// As [`crate::forecast()`].
    pub fn of(
        setting: &Setting<'_>,
        n_ctx: u32,
        n_ubatch: u32,
        method: Method,
    ) -> Result<SavedPlan, PlanError> {
        Ok(SavedPlan {
            schema: PLAN_SCHEMA,
            model: setting.model.name().to_owned(),
            n_layer: setting.model.n_layer(),
            machine: setting.machine.name.clone(),
            n_ctx,
            vram: setting.vram,
            tiers: plan_tiers(setting, Workload::halfway(n_ctx), n_ubatch, method)?,
        })
    }

    /// Reads a saved plan and checks it.
    ///
    /// # Errors
    /// Text that is no plan; a plan that cannot be carried out.
    pub fn from_toml(text: &str) -> Result<SavedPlan, SavedPlanError> {
        let plan: SavedPlan = toml::from_str(text)?;
        plan.check()?;
        Ok(plan)
    }

    /// The plan as a TOML file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("tables of numbers and names are TOML")
    }

    fn check(&self) -> Result<(), SavedPlanError> {
        if self.schema != PLAN_SCHEMA {
            return Err(SavedPlanError::Schema { found: self.schema, known: PLAN_SCHEMA });
        }
        let rising = self.tiers.is_sorted_by(|a, b| (a.tier, a.ubatches) < (b.tier, b.ubatches));
        if self.tiers.is_empty() || !rising || self.tiers.iter().any(|tier| tier.ubatches == 0) {
            return Err(SavedPlanError::Tiers);
        }
        self.tiers.iter().try_for_each(|tier| self.check_tier(tier))
    }

    fn check_tier(&self, TierPlan { tier, plan, .. }: &TierPlan) -> Result<(), SavedPlanError> {
        use crate::placement::Placement;
        let n_tokens = tier.n_tokens();
        let (found, expected) = (plan.layout.placements.len(), 2 * u64::from(self.n_layer) + 2);
        if found as u64 != expected {
            let n_layer = self.n_layer;
            return Err(SavedPlanError::Shards { n_tokens, found, n_layer, expected });
        }
        // Sums of sizes out of a file may overflow.
        let kinds = [plan.vram.kv, plan.vram.slots, plan.vram.scratch, plan.vram.driver];
        let total = kinds.into_iter().try_fold(plan.vram.weights, Bytes::checked_add);
        let total = total.unwrap_or(Bytes::new(u64::MAX));
        if total > self.vram {
            return Err(SavedPlanError::OverBudget { n_tokens, found: total, vram: self.vram });
        }
        let streamed = |shard: usize| {
            plan.layout.placements.get(shard).is_some_and(|place| *place == Placement::Streamed)
        };
        let inside = |end: Option<Bytes>| end.is_some_and(|end| end <= plan.layout.ring);
        let slots = plan.slots.iter().map(|slot| {
            (slot.shard, streamed(slot.shard) && inside(slot.offset.checked_add(slot.size)))
        });
        let resident = plan.layout.resident.iter().map(|kept| (kept.shard, streamed(kept.shard)));
        if let Some((shard, _)) = slots.chain(resident).find(|(_, right)| !right) {
            return Err(SavedPlanError::Slot { n_tokens, shard });
        }
        if is_safe(&plan.slots) { Ok(()) } else { Err(SavedPlanError::Order { n_tokens }) }
    }
}

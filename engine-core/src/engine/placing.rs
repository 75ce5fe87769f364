//! Where work is done: the plans of an engine with a GPU.

use planner::{
    Bytes, BytesPerSec, Extras, MachineProfile, Method, Model, Pass, Prediction, Problem, Runtime,
    SavedPlan, Seconds, Setting, Span, Switches, Tier, TierPlan, VramUse, Workload, plan_tiers,
    predict_plan, tier_times, trace_plan,
};

use crate::backend::Backend;
use crate::error::EngineError;
use crate::executor::GpuPlans;
use crate::planned::PlannedModel;
use crate::scratch::PassLimits;
use crate::trace::TracedPass;

/// How work is placed on a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Placing {
    /// Rates of the machine.
    pub machine: MachineProfile,
    /// VRAM that everything together may take; by default all that is free.
    pub vram: Option<Bytes>,
    /// Where plans come from.
    pub plans: Plans,
    /// Tokens of the answers that plans are made for: between a prompt and its answer weights change places only where that
    /// pays within as many. [`Workload::SHORT_ANSWER`] unless answers are known to be shorter.
    pub n_gen: u32,
}

/// Where plans come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Plans {
    /// They are made.
    By(Method),
    /// They were made before.
    Saved(SavedPlan),
}

/// The plans of an engine, for passes of fewer tokens first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Planned {
    /// VRAM that everything together may take.
    pub(super) budget: Bytes,
    /// One for each tier up to the one that holds the largest pass.
    pub(super) tiers: Vec<TierPlan>,
    /// Seconds of a pass of each tier under its own plan and those after it.
    pub(super) times: Vec<Vec<Seconds>>,
    /// The machine that they are for.
    machine: MachineProfile,
    /// Tokens of the answers that they are for.
    n_gen: u32,
}

/// VRAM of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vram {
    /// What everything together may take.
    pub budget: Bytes,
    /// What is taken, from load on: as much as the largest plan needs.
    pub taken: Bytes,
    /// Of it, what the plan in use has in it.
    pub holds: VramUse,
}

impl Planned {
    /// VRAM by what it holds when it is laid out for one of the plans.
    pub(super) fn vram(&self, laid_out: Option<usize>) -> Vram {
        let totals = self.tiers.iter().map(|plan| plan.plan.vram.total());
        let holds = laid_out.map(|plan| self.tiers[plan].plan.vram).unwrap_or_default();
        Vram { budget: self.budget, taken: totals.max().unwrap_or_default(), holds }
    }

    /// What was predicted for a pass under one of the plans.
    pub(super) fn predicted(
        &self,
        model: &PlannedModel,
        n_ctx: u32,
        plan: usize,
        pass: &TracedPass,
    ) -> (Seconds, Vec<Span>) {
        let TracedPass { n_ubatches, loaded, is_cold, .. } = *pass;
        let n_tokens = pass.n_tokens.div_ceil(n_ubatches);
        // The cells in use at the end of an ubatch, on average.
        let n_kv = pass.n_kv - n_tokens * (n_ubatches - 1) / 2;
        let shards = model.shards(Pass { n_tokens, n_outputs: 1, n_kv, n_ctx });
        let extras = Extras { ubatches: n_ubatches, ..Extras::default() };
        let problem = Problem {
            shards: &shards,
            machine: &self.machine,
            vram: self.budget,
            residual: model.residual(n_tokens),
            runtime: Runtime::With(extras),
        };
        let plan = &self.tiers[plan].plan;
        let Prediction { first, seconds, .. } = predict_plan(&problem, plan);
        let time = loaded / self.h2d() + if is_cold { first } else { seconds };
        (time, trace_plan(&problem, plan))
    }

    /// The plans, with the budget without what the driver takes.
    pub(super) fn for_gpu(&self) -> GpuPlans<'_> {
        let driver = self.tiers.iter().map(|plan| plan.plan.vram.driver).max();
        let budget = self.budget.saturating_sub(driver.unwrap_or_default());
        let (n_gen, h2d) = (self.n_gen, self.h2d());
        GpuPlans { tiers: &self.tiers, times: &self.times, h2d, budget, n_gen }
    }

    fn h2d(&self) -> BytesPerSec {
        self.machine.gpu.as_ref().expect("plans for a GPU are made with its rates").link.h2d
    }
}

impl Placing {
    /// Plans for a model whose passes keep within `limits`, on a machine with this GPU.
    pub(super) fn plan(
        &self,
        model: &PlannedModel,
        limits: PassLimits,
        gpu: &dyn Backend,
    ) -> Result<Planned, EngineError> {
        let mut machine = self.machine.clone();
        let profile = machine.gpu.as_mut().ok_or_else(|| EngineError::NoGpuInProfile {
            machine: self.machine.name.clone(),
            gpu: gpu.name().to_owned(),
        })?;
        let memory = gpu.memory()?;
        profile.vram = memory.total;
        let largest = Tier::holding(limits.n_tokens).ok_or(EngineError::OptionOutOfRange {
            option: "the ubatch",
            found: limits.n_tokens,
            range: "at most 2048 tokens where a GPU takes part",
        })?;
        let budget = self.vram.unwrap_or(memory.free);
        let switches = Switches::default();
        let mut setting = Setting { model, machine: &machine, vram: budget, switches };
        let tiers = match &self.plans {
            Plans::By(method) => {
                let workload = Workload { n_gen: self.n_gen, ..Workload::halfway(limits.n_cells) };
                plan_tiers(&setting, workload, largest.n_tokens(), *method)?
            }
            Plans::Saved(saved) => {
                setting.vram = self.vram.map_or(saved.vram, |vram| vram.min(saved.vram));
                tiers_of(saved, model, limits, largest)?
            }
        };
        let times = tier_times(&setting, limits.n_cells, &tiers);
        Ok(Planned { budget: setting.vram, tiers, times, machine, n_gen: self.n_gen })
    }
}

/// The plans of a saved one up to the tier of the largest pass.
fn tiers_of(
    saved: &SavedPlan,
    model: &PlannedModel,
    limits: PassLimits,
    largest: Tier,
) -> Result<Vec<TierPlan>, EngineError> {
    let n_layer = model.n_layer();
    let last = saved.tiers.last().map(|last| last.tier);
    let fits = saved.n_layer == n_layer && saved.n_ctx == limits.n_cells && last >= Some(largest);
    if !fits {
        return Err(EngineError::PlanForOthers {
            planned: (saved.n_layer, saved.n_ctx, last.map_or(0, Tier::n_tokens)),
            asked: (n_layer, limits.n_cells, limits.n_tokens),
        });
    }
    Ok(saved.tiers.iter().filter(|plan| plan.tier <= largest).cloned().collect())
}

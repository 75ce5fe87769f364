//! The plans of an engine: one for each tier, as the engine runs them.

use crate::error::PlanError;
use crate::extras::Extras;
use crate::forecast::{LARGE_BATCH, Method, Setting, TierPlan, Workload};
use crate::placement::{Placement, Tier};
use crate::plan::predict_plan;
use crate::request::Request;
use crate::solve::{check, plan_of};
use crate::strategy::{Strategy, layers_beside_a_slot, whole_layers_layout};
use crate::units::{Bytes, Seconds};

/// The plans of all tiers up to `n_ubatch`, for a context that is half full, with what the engine has.
///
/// # Errors
/// As [`forecast`].
pub fn plan_tiers(
    setting: &Setting<'_>,
    n_ctx: u32,
    n_ubatch: u32,
    method: Method,
) -> Result<Vec<TierPlan>, PlanError> {
    let workload = Workload { n_ctx, n_prompt: n_ctx.div_ceil(2), n_gen: 1 };
    let request = Request::new(setting, workload, n_ubatch);
    let largest = Tier::holding(n_ubatch);
    let tiers = Tier::ALL.into_iter().filter(|tier| largest.is_none_or(|largest| *tier <= largest));
    let n_kv = n_ctx.div_ceil(2);
    if method == Method::Strategy(Strategy::WholeLayers) && setting.vram > Bytes::ZERO {
        return whole_layers(setting, workload, &tiers.collect::<Vec<_>>());
    }
    tiers.map(|tier| request.tier(tier, n_kv, method, Extras::default())).collect()
}

/// Whole layers as programs without plans run them: the same ones stay in VRAM for all passes; in passes of many tokens
/// the others are copied when their turn comes, into the one slot that there is for them.
fn whole_layers(
    setting: &Setting<'_>,
    workload: Workload,
    tiers: &[Tier],
) -> Result<Vec<TierPlan>, PlanError> {
    let method = Method::Strategy(Strategy::WholeLayers);
    let pass = |tier: Tier| workload.pass(tier, workload.n_ctx.div_ceil(2));
    // The largest passes leave least room for layers.
    let largest = tiers.last().copied().unwrap_or(Tier::ALL[0]);
    let pinned =
        setting.with_problem(pass(largest), Method::Search, Extras::default(), |problem| {
            check(problem)?;
            let (strategy, have) = (Strategy::WholeLayers.name(), setting.vram);
            layers_beside_a_slot(problem).ok_or(PlanError::StrategyDoesNotFit { strategy, have })
        })?;
    let plan = |&tier: &Tier| {
        let copies = tier.n_tokens() >= LARGE_BATCH;
        let rest = if copies { Placement::Streamed } else { Placement::Cpu };
        setting.with_problem(pass(tier), Method::Search, Extras::default(), |problem| {
            let plan = plan_of(problem, whole_layers_layout(problem, pinned, rest));
            TierPlan { tier, method, plan }
        })
    };
    Ok(tiers.iter().map(plan).collect())
}

/// Seconds of a pass of each tier under the plans that hold it: those of its own tier and of larger ones, in order. For
/// a context that is half full.
pub fn tier_times(setting: &Setting<'_>, n_ctx: u32, plans: &[TierPlan]) -> Vec<Vec<Seconds>> {
    let workload = Workload { n_ctx, n_prompt: n_ctx.div_ceil(2), n_gen: 1 };
    let times = |(i, TierPlan { tier, .. }): (usize, &TierPlan)| {
        let pass = workload.pass(*tier, n_ctx.div_ceil(2));
        setting.with_problem(pass, Method::Search, Extras::default(), |problem| {
            plans[i..].iter().map(|plan| predict_plan(problem, &plan.plan).seconds).collect()
        })
    };
    plans.iter().enumerate().map(times).collect()
}

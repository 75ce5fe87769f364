//! The plans of an engine: one for each tier, as the engine runs them.

use crate::error::PlanError;
use crate::extras::Extras;
use crate::forecast::{LARGE_BATCH, Method, Setting, TierPlan, Workload};
use crate::placement::{Placement, Tier};
use crate::plan::predict_plan;
use crate::request::Request;
use crate::solve::{check, fitting_plan, plan_of, solve};
use crate::strategy::{Strategy, layers_beside_a_slot, whole_layers_layout};
use crate::units::{Bytes, Seconds};

/// The plans of all tiers up to `n_ubatch`, for a context that is half full, with what the engine has. The search takes one
/// layout for all tiers where changing between the best ones takes more than they save.
///
/// # Errors
/// As [`forecast`](crate::forecast()).
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
    let tiers: Vec<Tier> = tiers.collect();
    let plans = tiers.iter().map(|&tier| request.tier(tier, n_kv, method, Extras::default()));
    let own: Vec<TierPlan> = plans.collect::<Result<_, _>>()?;
    if method != Method::Search {
        return Ok(own);
    }
    let shared = shared(setting, workload, &tiers);
    let better = |shared: &Vec<TierPlan>| {
        request_seconds(setting, workload, shared) < request_seconds(setting, workload, &own)
    };
    Ok(shared.filter(better).unwrap_or(own))
}

/// The best layout for one token at a time that leaves room for the activations of all tiers, for each of them.
fn shared(setting: &Setting<'_>, workload: Workload, tiers: &[Tier]) -> Option<Vec<TierPlan>> {
    let pass = |tier: Tier| workload.pass(tier, workload.n_ctx.div_ceil(2));
    let scratch = |tier: Tier| {
        let shards = setting.model.shards(pass(tier));
        shards.iter().map(|shard| shard.scratch).max().unwrap_or_default()
    };
    let [first, .., last] = tiers else { return None };
    let more = scratch(*last).saturating_sub(scratch(*first));
    let smaller = Setting { vram: setting.vram.saturating_sub(more), ..*setting };
    let (method, extras) = (Method::Search, Extras::default());
    let decode =
        smaller.with_problem(pass(*first), method, extras, |problem| solve(problem).ok())?;
    let plan = |&tier: &Tier| {
        setting.with_problem(pass(tier), method, extras, |problem| {
            let plan = fitting_plan(problem, &decode.layout)?;
            Some(TierPlan { tier, method, plan })
        })
    };
    tiers.iter().map(plan).collect()
}

/// Tokens of an answer that plans are chosen for.
const N_GEN: f64 = 64.0;

/// Seconds of a prompt that fills half of the context, of a short answer, and of changing to its plan and back.
fn request_seconds(setting: &Setting<'_>, workload: Workload, plans: &[TierPlan]) -> f64 {
    let [decode, ..] = plans else { return 0.0 };
    let holding = |plan: &&TierPlan| plan.tier.n_tokens() >= workload.n_prompt;
    let prefill = plans.iter().find(holding).unwrap_or(&plans[plans.len() - 1]);
    let passes = workload.n_prompt.div_ceil(prefill.tier.n_tokens());
    let seconds = |plan: &TierPlan| plan.plan.predicted.seconds.get();
    let prompt = f64::from(passes) * seconds(prefill);
    prompt + N_GEN * seconds(decode) + there_and_back(setting, workload, prefill, decode)
}

fn there_and_back(
    setting: &Setting<'_>,
    workload: Workload,
    prefill: &TierPlan,
    decode: &TierPlan,
) -> f64 {
    let Some(gpu) = &setting.machine.gpu else { return 0.0 };
    let pinned = |tier: &TierPlan, i: usize| tier.plan.layout.placements[i] == Placement::Pinned;
    let shards = setting.model.shards(workload.pass(decode.tier, workload.n_ctx.div_ceil(2)));
    let changed = (0..shards.len()).filter(|&i| pinned(prefill, i) != pinned(decode, i));
    let bytes: Bytes = changed.map(|i| shards[i].weights).sum();
    (bytes / gpu.link.h2d).get()
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

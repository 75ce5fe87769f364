//! The plans of an engine: one for each tier, as the engine runs them.

use rayon::prelude::*;

use crate::error::PlanError;
use crate::extras::Extras;
use crate::forecast::{LARGE_BATCH, Method, Setting, TierPlan, Workload, layer_major};
use crate::near::{changed, near};
use crate::placement::{Placement, Tier};
use crate::plan::{Layout, Plan, Prediction, predict, predict_plan};
use crate::price::Price;
use crate::problem::Problem;
use crate::request::Request;
use crate::solve::{Bound, check, plan_of, predict_below, solve};
use crate::strategy::{Strategy, layers_beside_a_slot, whole_layers_layout};
use crate::units::{Bytes, BytesPerSec, Seconds};

/// The plans of all tiers up to `n_ubatch`, for a context that is half full, with what the engine has. The search makes
/// them for each other: between a prompt and its answer weights change places, and that must pay within the two.
///
/// # Errors
/// As [`forecast`](crate::forecast()).
pub fn plan_tiers(
    setting: &Setting<'_>,
    workload: Workload,
    n_ubatch: u32,
    method: Method,
) -> Result<Vec<TierPlan>, PlanError> {
    let n_ctx = workload.n_ctx;
    let largest = Tier::holding(n_ubatch);
    let tiers = Tier::ALL.into_iter().filter(|tier| largest.is_none_or(|largest| *tier <= largest));
    let tiers: Vec<Tier> = tiers.collect();
    if method == Method::Strategy(Strategy::WholeLayers) && setting.vram > Bytes::ZERO {
        return whole_layers(setting, workload, &tiers);
    }
    let request = Request::new(setting, workload, n_ubatch);
    let plan = |&tier: &Tier| request.tier(tier, n_ctx.div_ceil(2), method, Extras::default());
    // In parallel, and then of several errors the first.
    let own: Vec<Result<TierPlan, PlanError>> = tiers.par_iter().map(plan).collect();
    let own: Vec<TierPlan> = own.into_iter().collect::<Result<_, _>>()?;
    let Some(gpu) = setting.machine.gpu.as_ref().filter(|_| method == Method::Search) else {
        return Ok(own);
    };
    let answers = Answers { setting, workload, own: &own, h2d: gpu.link.h2d };
    Ok(answers.best())
}

/// Changes that take less than this share of what is run between them are let be.
const LITTLE: f64 = 0.02;

/// A layout that takes up to this share more is as good.
const AS_GOOD: f64 = 0.005;

/// Plans of tiers that are run one after the other: that of a prompt, that of one token at a time, and again.
struct Answers<'a> {
    setting: &'a Setting<'a>,
    workload: Workload,
    /// The best plan of each tier by itself.
    own: &'a [TierPlan],
    h2d: BytesPerSec,
}

/// Plans around a layout for one token at a time.
struct Around {
    plans: Vec<TierPlan>,
    /// Seconds of prompts of the size of each tier but the first, with their answers and the changes between them.
    seconds: Vec<f64>,
}

impl Answers<'_> {
    fn best(&self) -> Vec<TierPlan> {
        let mut plans = self.best_one_at_a_time();
        plans.extend(self.layer_major(&plans));
        plans
    }

    /// Plans for that layout for one token at a time that serves prompts of all sizes best, and beside it.
    fn best_one_at_a_time(&self) -> Vec<TierPlan> {
        let of = |i: usize| self.own[i].plan.layout.clone();
        let first = self.for_prompts_too(of(0));
        let mut best = self.around(first);
        let least = self.at_least(self.answer(&best.plans[0].plan.predicted));
        if best.seconds.iter().zip(least).all(|(seconds, least)| *seconds <= least * (1.0 + LITTLE))
        {
            return best.plans;
        }
        for other in (1..self.own.len()).map(of).chain(self.with_room_for_all()) {
            let alone = self.with_problem(self.own[0].tier, |problem| predict(problem, &other));
            if are_less(&self.at_least(self.answer(&alone)), &best.seconds) {
                let around = self.around(other);
                if are_less(&around.seconds, &best.seconds) {
                    best = around;
                }
            }
        }
        best.plans
    }

    /// Seconds of an answer of such passes of one token.
    fn answer(&self, pass: &Prediction) -> f64 {
        seconds_of(pass, self.workload.n_gen.into())
    }

    /// Seconds of prompts of each tier's size, with their answers of `answer` seconds, if changes took no time.
    fn at_least(&self, answer: f64) -> Vec<f64> {
        let prompt = |own: &TierPlan| seconds_of(&own.plan.predicted, self.n_passes(own.tier));
        self.own[1..].iter().map(|own| answer + prompt(own)).collect()
    }

    /// Passes of a tier that a prompt takes: only of the largest they are several.
    fn n_passes(&self, tier: Tier) -> f64 {
        let is_largest = self.own.last().is_some_and(|last| last.tier == tier);
        f64::from(if is_largest { self.workload.n_prompt.div_ceil(tier.n_tokens()) } else { 1 })
    }

    fn with_problem<T>(&self, tier: Tier, look: impl FnOnce(&Problem<'_>) -> T) -> T {
        with_problem(self.setting, self.workload, tier, 1, look)
    }

    /// The best layout for one token at a time that leaves room for the activations of all tiers.
    fn with_room_for_all(&self) -> Option<Layout> {
        let scratch = |tier: Tier| {
            self.with_problem(tier, |problem| {
                problem.shards.iter().map(|shard| shard.scratch).max().unwrap_or_default()
            })
        };
        let [first, .., last] = self.own else { return None };
        let more = scratch(last.tier).saturating_sub(scratch(first.tier));
        self.with_problem(first.tier, |problem| {
            let vram = problem.vram.saturating_sub(more);
            solve(&Problem { vram, ..*problem }).ok().map(|plan| self.for_prompts_too(plan.layout))
        })
    }

    /// A layout for one token at a time with the last layer's FFN, which prompts need for one token only, exchanged for
    /// another one that is not pinned, where that is as good for one token at a time.
    fn for_prompts_too(&self, layout: Layout) -> Layout {
        self.with_problem(self.own[0].tier, |problem| {
            let last = problem.shards.len() - 2;
            let size = |i: usize| problem.shards[i].tensors().collect::<Vec<_>>();
            let is_other = |i: &usize| {
                problem.shards[*i].is_ffn() && layout.placements[*i] != Placement::Pinned
            };
            let other = (0..last).find(is_other).filter(|other| size(*other) == size(last));
            let Some(other) = other.filter(|_| layout.placements[last] == Placement::Pinned) else {
                return layout;
            };
            let mut exchanged = layout.clone();
            exchanged.placements.swap(last, other);
            let tensors = exchanged.resident.iter_mut();
            tensors.filter(|tensor| tensor.shard == other).for_each(|tensor| tensor.shard = last);
            let seconds = |layout: &Layout| predict(problem, layout).seconds.get();
            let as_good = seconds(&exchanged) <= seconds(&layout) * (1.0 + AS_GOOD);
            if as_good { exchanged } else { layout }
        })
    }

    /// Plans for a layout of one token at a time: that, and for each other tier what is best beside it.
    fn around(&self, base: Layout) -> Around {
        let (first, others) = (&self.own[0], &self.own[1..]);
        let beside: Vec<(TierPlan, f64)> =
            others.par_iter().map(|own| self.beside(&base, own)).collect();
        let plan = self.with_problem(first.tier, |problem| plan_of(problem, base));
        let answer = self.answer(&plan.predicted);
        let seconds = beside.iter().map(|(_, prompt)| answer + prompt).collect();
        let mut plans = vec![TierPlan { plan, ..*first }];
        plans.extend(beside.into_iter().map(|(plan, _)| plan));
        Around { plans, seconds }
    }

    /// The best plan for passes of a tier between passes under `base`, with the seconds of these passes, of the change
    /// to them and back.
    fn beside(&self, base: &Layout, own: &TierPlan) -> (TierPlan, f64) {
        self.with_problem(own.tier, |problem| {
            let n_passes = self.n_passes(own.tier);
            let change = self.change(problem, base, &own.plan.layout);
            let seconds = seconds_of(&own.plan.predicted, n_passes) + change;
            if change <= LITTLE * seconds {
                return (own.clone(), seconds);
            }
            match self.nearest(problem, base, n_passes, seconds) {
                Some((plan, seconds)) => (TierPlan { plan, ..*own }, seconds),
                None => (own.clone(), seconds),
            }
        })
    }

    /// A plan for several ubatches of a long prompt at a time, if that takes less than one at a time with the last of
    /// these.
    fn layer_major(&self, plans: &[TierPlan]) -> Option<TierPlan> {
        let (base, last) = (&plans[0].plan.layout, &plans[plans.len() - 1]);
        let n_ubatches = self.n_passes(last.tier);
        // The more the better, as long as the prompt has them: only their residuals take room.
        let ubatches = layer_major(self.workload.n_prompt, last.tier.n_tokens()).last()?;
        let one_at_a_time = self.with_problem(last.tier, |problem| {
            let change = self.change(problem, base, &last.plan.layout);
            seconds_of(&last.plan.predicted, n_ubatches) + change
        });
        let n_passes = (n_ubatches / f64::from(ubatches)).max(1.0);
        with_problem(self.setting, self.workload, last.tier, ubatches, |problem| {
            let (plan, _) = self.nearest(problem, base, n_passes, one_at_a_time)?;
            Some(TierPlan { ubatches, plan, ..*last })
        })
    }

    /// Seconds of a change from one layout to the other and back.
    fn change(&self, problem: &Problem<'_>, a: &Layout, b: &Layout) -> f64 {
        (changed(problem, a, b) / self.h2d).get()
    }

    /// The best layout near `base` for so many passes, if they take less than `limit` seconds with the change to it and
    /// back; with the seconds.
    fn nearest(
        &self,
        problem: &Problem<'_>,
        base: &Layout,
        n_passes: f64,
        limit: f64,
    ) -> Option<(Plan, f64)> {
        let (prices, bound) = (Price::all(problem), Bound::of(problem));
        let mut least = limit;
        let mut best = None;
        for layout in near(problem, &prices, base) {
            let change = self.change(problem, base, &layout);
            let limit = (least - change) / n_passes;
            let pass = predict_below(problem, &prices, &bound, &layout, limit);
            let Some(pass) = pass else { continue };
            let seconds = seconds_of(&pass, n_passes) + change;
            if seconds < least {
                (least, best) = (seconds, Some(layout));
            }
        }
        best.map(|layout| (plan_of(problem, layout), least))
    }
}

/// The problem of a plan for passes of so many ubatches, of as many tokens as a tier has, halfway through the context.
fn with_problem<T>(
    setting: &Setting<'_>,
    workload: Workload,
    tier: Tier,
    ubatches: u32,
    look: impl FnOnce(&Problem<'_>) -> T,
) -> T {
    let pass = workload.pass(tier, workload.n_ctx.div_ceil(2));
    let extras = Extras { ubatches, ..Extras::default() };
    setting.with_problem(pass, Method::Search, extras, look)
}

/// Whether some times are less than others, each in relation to its counterpart.
fn are_less(some: &[f64], others: &[f64]) -> bool {
    some.iter().zip(others).map(|(a, b)| (a / b).ln()).sum::<f64>() < 0.0
}

/// Seconds of so many passes, before the first of which nothing was copied ahead.
fn seconds_of(passes: &Prediction, n: f64) -> f64 {
    passes.first.get() + (n - 1.0) * passes.seconds.get()
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
            TierPlan { tier, ubatches: 1, method, plan }
        })
    };
    Ok(tiers.iter().map(plan).collect())
}

/// Seconds of a pass as large as each plan holds, under it and those after it, in order. For a context that is half full.
pub fn tier_times(setting: &Setting<'_>, n_ctx: u32, plans: &[TierPlan]) -> Vec<Vec<Seconds>> {
    let workload = Workload::halfway(n_ctx);
    let times = |(i, TierPlan { tier, ubatches, .. }): (usize, &TierPlan)| {
        with_problem(setting, workload, *tier, *ubatches, |problem| {
            plans[i..].iter().map(|plan| predict_plan(problem, &plan.plan).seconds).collect()
        })
    };
    plans.iter().enumerate().map(times).collect()
}

//! The plans of an engine: one for each tier, as the engine runs them.

use crate::arrange::Arranged;
use crate::error::PlanError;
use crate::extras::Extras;
use crate::forecast::{LARGE_BATCH, Method, Setting, TierPlan, Workload, layer_major};
use crate::near::{changed, near};
use crate::placement::{Placement, Tier};
use crate::plan::{Layout, Plan, Prediction, predict_plan};
use crate::price::Price;
use crate::problem::Problem;
use crate::request::Request;
use crate::solve::{check, plan_of, solve};
use crate::strategy::{Strategy, layers_beside_a_slot, whole_layers_layout};
use crate::units::{Bytes, BytesPerSec, Seconds};

/// The plans of all tiers up to `n_ubatch`, for a context that is half full, with what the engine has. The search makes
/// them for each other: between a prompt and its answer weights change places, and that must pay.
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
    let largest = Tier::holding(n_ubatch);
    let tiers = Tier::ALL.into_iter().filter(|tier| largest.is_none_or(|largest| *tier <= largest));
    let tiers: Vec<Tier> = tiers.collect();
    if method == Method::Strategy(Strategy::WholeLayers) && setting.vram > Bytes::ZERO {
        return whole_layers(setting, workload, &tiers);
    }
    let request = Request::new(setting, workload, n_ubatch);
    let plan = |&tier: &Tier| request.tier(tier, n_ctx.div_ceil(2), method, Extras::default());
    let own: Vec<TierPlan> = tiers.iter().map(plan).collect::<Result<_, _>>()?;
    let Some(gpu) = setting.machine.gpu.as_ref().filter(|_| method == Method::Search) else {
        return Ok(own);
    };
    let answers = Answers { setting, workload, own: &own, h2d: gpu.link.h2d };
    Ok(answers.best())
}

/// Tokens of an answer that plans are chosen for.
const N_GEN: f64 = 64.0;

/// Changes that take less than this share of what is run between them are let be.
const LITTLE: f64 = 0.01;

/// Plans of tiers that are run one after the other: that of a prompt, that of one token at a time, and again.
struct Answers<'a> {
    setting: &'a Setting<'a>,
    workload: Workload,
    /// The best plan of each tier by itself.
    own: &'a [TierPlan],
    h2d: BytesPerSec,
}

/// Plans of all tiers, and the seconds of a prompt that fills half of the context, of a short answer, and of the change
/// between them and back.
struct Rated {
    plans: Vec<TierPlan>,
    seconds: f64,
}

impl Answers<'_> {
    fn best(&self) -> Vec<TierPlan> {
        let mut plans = self.best_one_at_a_time();
        plans.extend(self.layer_major(&plans));
        plans
    }

    fn best_one_at_a_time(&self) -> Vec<TierPlan> {
        let best = self.around(self.own[0].plan.layout.clone());
        if best.seconds <= self.at_least() * (1.0 + LITTLE) {
            return best.plans;
        }
        let other = self.with_room_for_all().map(|base| self.around(base));
        let better = other.filter(|other| other.seconds < best.seconds);
        better.unwrap_or(best).plans
    }

    /// Seconds if changes took no time.
    fn at_least(&self) -> f64 {
        let prompt = &self.own[self.of_prompt()];
        let passes = self.n_passes(prompt.tier);
        seconds_of(&self.own[0].plan.predicted, N_GEN) + seconds_of(&prompt.plan.predicted, passes)
    }

    /// The plan that a prompt is run with.
    fn of_prompt(&self) -> usize {
        let holding = |own: &TierPlan| own.tier.n_tokens() >= self.workload.n_prompt;
        self.own.iter().position(holding).unwrap_or(self.own.len() - 1)
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
            solve(&Problem { vram, ..*problem }).ok().map(|plan| plan.layout)
        })
    }

    /// Plans for a layout of one token at a time: that, and for each other tier what is best beside it.
    fn around(&self, base: Layout) -> Rated {
        let first = &self.own[0];
        let decode = self.with_problem(first.tier, |problem| plan_of(problem, base));
        let mut seconds = seconds_of(&decode.predicted, N_GEN);
        let mut plans = vec![TierPlan { plan: decode, ..*first }];
        for (i, own) in self.own.iter().enumerate().skip(1) {
            let (plan, taken) = self.beside(&plans[0].plan.layout, own);
            plans.push(plan);
            if i == self.of_prompt() {
                seconds += taken;
            }
        }
        Rated { plans, seconds }
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
        let mut least = self.with_problem(last.tier, |problem| {
            let change = self.change(problem, base, &last.plan.layout);
            seconds_of(&last.plan.predicted, n_ubatches) + change
        });
        let mut best = None;
        for ubatches in layer_major(self.workload.n_prompt, last.tier.n_tokens()) {
            let n_passes = (n_ubatches / f64::from(ubatches)).max(1.0);
            let found = with_problem(self.setting, self.workload, last.tier, ubatches, |problem| {
                self.nearest(problem, base, n_passes, least)
            });
            if let Some((plan, seconds)) = found {
                least = seconds;
                best = Some(TierPlan { ubatches, plan, ..*last });
            }
        }
        best
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
        let prices = Price::all(problem);
        let mut least = limit;
        let mut best = None;
        for layout in near(problem, &prices, base) {
            let change = self.change(problem, base, &layout);
            let limit = (least - change) / n_passes;
            let Some(pass) = predict_below(problem, &prices, &layout, limit) else { continue };
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

/// What a layout does, if its ring holds each streamed shard and a pass takes less than `limit` seconds.
fn predict_below(
    problem: &Problem<'_>,
    prices: &[Price],
    layout: &Layout,
    limit: f64,
) -> Option<Prediction> {
    let arranged = Arranged::of(problem, prices, layout).filter(|_| limit > 0.0)?;
    arranged.predict_below(&arranged.chain(problem, prices), problem, prices, limit)
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
    let workload = Workload { n_ctx, n_prompt: n_ctx.div_ceil(2), n_gen: 1 };
    let times = |(i, TierPlan { tier, ubatches, .. }): (usize, &TierPlan)| {
        with_problem(setting, workload, *tier, *ubatches, |problem| {
            plans[i..].iter().map(|plan| predict_plan(problem, &plan.plan).seconds).collect()
        })
    };
    plans.iter().enumerate().map(times).collect()
}

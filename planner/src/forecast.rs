//! A whole request: the plans of its passes, time to first token, tokens per second.

use serde::{Deserialize, Serialize};

use crate::error::PlanError;
use crate::model::{Model, Pass};
use crate::placement::{Placement, Tier};
use crate::plan::{Layout, Plan, predict};
use crate::problem::{Problem, Runtime};
use crate::profile::MachineProfile;
use crate::prompt::prompt_passes;
use crate::shard::ShardCost;
use crate::solve::{plan_by, plan_of, solve};
use crate::strategy::Strategy;
use crate::units::{Bytes, Seconds};

/// Passes of a prompt are tried in these sizes.
const UBATCHES: [u32; 3] = [512, 1024, 2048];

/// What is asked of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// KV cells that there is room for.
    pub n_ctx: u32,
    /// Tokens of the prompt.
    pub n_prompt: u32,
    /// Tokens of the answer.
    pub n_gen: u32,
}

impl Workload {
    /// A prompt that fills a context but for an answer of an eighth of it, at most 256 tokens.
    pub fn filling(n_ctx: u32) -> Workload {
        let n_gen = (n_ctx / 8).clamp(1, 256);
        Workload { n_ctx, n_prompt: n_ctx.saturating_sub(n_gen).max(1), n_gen }
    }

    /// The pass that the plan of a tier is made for: `n_kv` cells are in use at its end, or as many as it has tokens.
    fn pass(self, tier: Tier, n_kv: u32) -> Pass {
        let n_tokens = tier.n_tokens().min(self.n_ctx);
        let n_kv = n_kv.max(n_tokens).min(self.n_ctx);
        Pass { n_tokens, n_outputs: 1, n_kv, n_ctx: self.n_ctx }
    }

    /// KV cells in use halfway through the prompt.
    fn kv_of_prefill(self) -> u32 {
        self.n_prompt.div_ceil(2)
    }

    /// KV cells in use halfway through the answer.
    fn kv_of_decode(self) -> u32 {
        (self.n_prompt + self.n_gen / 2).min(self.n_ctx)
    }
}

/// How layouts are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The best that the search finds.
    Search,
    /// By one rule. Whole layers are run as programs without plans run them: what is on the CPU is copied, layer by
    /// layer from memory that is not page-locked, for passes of many tokens.
    Strategy(Strategy),
    /// The best of the five strategies of pipelined sharding and of leaving the GPU alone.
    BestStrategy,
}

/// The plan for passes of one tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TierPlan {
    /// Passes of up to so many tokens.
    pub tier: Tier,
    /// The method that it came from: the rule that won, where several were asked.
    pub method: Method,
    /// The plan.
    pub plan: Plan,
}

/// What a request will take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// What was asked.
    pub workload: Workload,
    /// The budget.
    pub vram: Bytes,
    /// Tokens in a pass of the prompt.
    pub n_ubatch: u32,
    /// For passes of the prompt.
    pub prefill: TierPlan,
    /// For one token at a time.
    pub decode: TierPlan,
    /// Time to first token.
    pub ttft: Seconds,
    /// Tokens per second after the first.
    pub tps: f64,
    /// Time of the change from one plan to the other, which counts towards the second token.
    pub switch: Seconds,
    /// Every time lies inside what the profile measured.
    pub measured: bool,
}

/// A model on a machine under a budget.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// The machine.
    pub machine: &'a MachineProfile,
    /// VRAM that everything together may take; zero leaves the GPU alone.
    pub vram: Bytes,
}

impl Setting<'_> {
    /// Hands on the problem that a plan for passes like `pass` solves.
    pub(crate) fn with_problem<T>(
        &self,
        pass: Pass,
        method: Method,
        look: impl FnOnce(&Problem<'_>) -> T,
    ) -> T {
        let shards = self.model.shards(pass);
        look(&self.problem(&shards, pass.n_tokens, self.runtime(method, pass.n_tokens)))
    }

    fn problem<'a>(
        &'a self,
        shards: &'a [ShardCost],
        n_tokens: u32,
        runtime: Runtime,
    ) -> Problem<'a> {
        let Setting { model, machine, vram } = *self;
        Problem { shards, machine, vram, residual: model.residual(n_tokens), runtime }
    }

    fn runtime(&self, method: Method, n_tokens: u32) -> Runtime {
        /// Programs that copy for batches do so from this many tokens on.
        const LARGE_BATCH: u32 = 32;
        match (method, &self.machine.gpu) {
            (Method::Strategy(Strategy::WholeLayers), Some(gpu))
                if n_tokens >= LARGE_BATCH && self.vram > Bytes::ZERO =>
            {
                Runtime::CopiesForBatches { rate: gpu.link.h2d_pageable }
            }
            _ => Runtime::Baton,
        }
    }
}

impl Forecast {
    /// The pass that `prefill` was planned for.
    pub(crate) fn prefill_pass(&self) -> Pass {
        self.workload.pass(self.prefill.tier, self.workload.kv_of_prefill())
    }

    /// The pass that `decode` was planned for.
    pub(crate) fn decode_pass(&self) -> Pass {
        self.workload.pass(self.decode.tier, self.workload.kv_of_decode())
    }
}

/// Plans a request and predicts it.
///
/// # Errors
/// As [`solve`]; a strategy that has no layout within the budget.
pub fn forecast(
    setting: &Setting<'_>,
    workload: Workload,
    method: Method,
) -> Result<Forecast, PlanError> {
    let mut best: Option<Forecast> = None;
    let mut refused = None;
    let smallest = UBATCHES[0].min(workload.n_ctx);
    // A larger ubatch than holds the prompt is no different from one that just does.
    let enough = UBATCHES.into_iter().find(|n| *n >= workload.n_prompt).unwrap_or(u32::MAX);
    for n_ubatch in UBATCHES.into_iter().filter(|n| *n <= enough).map(|n| n.min(workload.n_ctx)) {
        if n_ubatch < smallest || best.as_ref().is_some_and(|best| best.n_ubatch == n_ubatch) {
            continue;
        }
        match (Request { setting, workload, n_ubatch }).forecast(method) {
            Ok(next) if best.as_ref().is_none_or(|best| next.ttft < best.ttft) => best = Some(next),
            Ok(_) => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    best.ok_or_else(|| refused.expect("the smallest ubatch was tried"))
}

/// The plans of all tiers up to `n_ubatch`, for a context that is half full.
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
    let request = Request { setting, workload, n_ubatch };
    let largest = Tier::holding(n_ubatch);
    let tiers = Tier::ALL.into_iter().filter(|tier| largest.is_none_or(|largest| *tier <= largest));
    tiers.map(|tier| request.tier(tier, n_ctx.div_ceil(2), method)).collect()
}

/// A request with its passes cut.
struct Request<'a> {
    setting: &'a Setting<'a>,
    workload: Workload,
    n_ubatch: u32,
}

impl Request<'_> {
    fn forecast(&self, method: Method) -> Result<Forecast, PlanError> {
        let prefill_tier = Tier::holding(self.n_ubatch).expect("ubatches are tiers at most");
        let prefill = self.tier(prefill_tier, self.workload.kv_of_prefill(), method)?;
        let n_kv = self.workload.kv_of_decode();
        let n_gen = f64::from(self.workload.n_gen.max(1));
        let decode = match method {
            // Programs without plans keep their layers where they are.
            Method::Strategy(Strategy::WholeLayers) => self.again(&prefill, n_kv),
            _ => self.decode(&prefill, n_kv, method)?,
        };
        let (ttft, prompt_measured) = self.ttft(&prefill);
        let switch = self.switch(&prefill, &decode);
        let token = decode.plan.predicted.seconds.get() + switch.get() / n_gen;
        let measured = prompt_measured && decode.plan.predicted.measured;
        Ok(Forecast {
            workload: self.workload,
            vram: self.setting.vram,
            n_ubatch: self.n_ubatch,
            prefill,
            decode,
            ttft,
            tps: 1.0 / token,
            switch,
            measured,
        })
    }

    /// The plan for decode: the best one, or that of the prompt where changing does not pay.
    fn decode(&self, prefill: &TierPlan, n_kv: u32, method: Method) -> Result<TierPlan, PlanError> {
        let own = self.tier(Tier::ALL[0], n_kv, method)?;
        let kept = self.again(prefill, n_kv);
        let n_gen = f64::from(self.workload.n_gen.max(1));
        let time = |plan: &TierPlan| plan.plan.predicted.seconds.get() * n_gen;
        let changed = time(&own) + self.switch(prefill, &own).get();
        Ok(if changed <= time(&kept) { own } else { kept })
    }

    /// The layout of the prompt's passes, run for one token.
    fn again(&self, prefill: &TierPlan, n_kv: u32) -> TierPlan {
        let tier = Tier::ALL[0];
        let shards = self.shards(tier.n_tokens(), n_kv);
        let problem = self.setting.problem(&shards, tier.n_tokens(), Runtime::Baton);
        // Attention that is streamed needs no less room for one token, and experts need less.
        let plan = plan_of(&problem, prefill.plan.layout.clone());
        TierPlan { tier, method: prefill.method, plan }
    }

    fn tier(&self, tier: Tier, n_kv: u32, method: Method) -> Result<TierPlan, PlanError> {
        let pass = self.workload.pass(tier, n_kv);
        self.setting.with_problem(pass, method, |problem| self.plan(problem, tier, method))
    }

    fn plan(
        &self,
        problem: &Problem<'_>,
        tier: Tier,
        method: Method,
    ) -> Result<TierPlan, PlanError> {
        let of = |strategy: Strategy| {
            let method = Method::Strategy(strategy);
            plan_by(problem, strategy).map(|plan| TierPlan { tier, method, plan })
        };
        match method {
            Method::Search => solve(problem).map(|plan| TierPlan { tier, method, plan }),
            Method::Strategy(strategy) => of(strategy),
            Method::BestStrategy => {
                let mut best = of(Strategy::CpuOnly)?;
                let plans = Strategy::ALL.into_iter().filter(|s| *s != Strategy::WholeLayers);
                for next in plans.filter_map(|strategy| of(strategy).ok()) {
                    if next.plan.predicted.seconds < best.plan.predicted.seconds {
                        best = next;
                    }
                }
                Ok(best)
            }
        }
    }

    fn shards(&self, n_tokens: u32, n_kv: u32) -> Vec<ShardCost> {
        let n_ctx = self.workload.n_ctx;
        self.setting.model.shards(Pass { n_tokens, n_outputs: 1, n_kv, n_ctx })
    }

    /// The time of all passes of the prompt, and whether all of it was measured.
    fn ttft(&self, prefill: &TierPlan) -> (Seconds, bool) {
        let Workload { n_ctx, n_prompt, .. } = self.workload;
        let mut total = self.setting.machine.request;
        let mut measured = true;
        for (i, sample) in prompt_passes(n_prompt, self.n_ubatch, n_ctx).iter().enumerate() {
            let Pass { n_tokens, n_kv, .. } = sample.pass;
            let shards = self.shards(n_tokens, n_kv);
            let runtime = self.setting.runtime(prefill.method, n_tokens);
            let problem = self.setting.problem(&shards, n_tokens, runtime);
            let predicted = predict(&problem, &prefill.plan.layout);
            total += predicted.seconds * sample.count;
            measured &= predicted.measured;
            if i == 0 {
                total += Seconds::new(predicted.first.get() - predicted.seconds.get());
            }
        }
        (total, measured)
    }

    /// The time of uploading what one plan has in VRAM and the one before had not.
    fn switch(&self, before: &TierPlan, after: &TierPlan) -> Seconds {
        let Some(gpu) = &self.setting.machine.gpu else { return Seconds::ZERO };
        let shards = self.shards(1, self.workload.n_prompt);
        let pinned = |layout: &Layout, i: usize| layout.placements[i] == Placement::Pinned;
        let (before, after) = (&before.plan.layout, &after.plan.layout);
        let new = |(i, _): &(usize, &ShardCost)| pinned(after, *i) && !pinned(before, *i);
        let shards = shards.iter().enumerate().filter(new);
        let bytes: Bytes = shards.map(|(_, cost)| cost.weights + cost.kv_used).sum();
        bytes / gpu.link.h2d
    }
}

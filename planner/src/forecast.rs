//! A whole request: the plans of its passes, time to first token, tokens per second.

use serde::{Deserialize, Serialize};

use crate::error::PlanError;
use crate::extras::{Extras, Split, Switches};
use crate::model::{Model, Pass};
use crate::placement::Tier;
use crate::plan::Plan;
use crate::problem::{Problem, Runtime};
use crate::profile::MachineProfile;
use crate::request::Request;
use crate::shard::ShardCost;
use crate::strategy::Strategy;
use crate::units::{Bytes, Seconds};

/// Passes of a prompt are tried in these sizes,
const UBATCHES: [u32; 3] = [512, 1024, 2048];

/// and with so many of them to a shard's turn.
const LAYER_MAJOR: [u32; 4] = [2, 4, 8, 16];

/// Programs that copy for batches do so from this many tokens on.
pub(crate) const LARGE_BATCH: u32 = 32;

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
    /// Tokens of a short answer.
    pub const SHORT_ANSWER: u32 = 64;

    /// A prompt that fills a context but for an answer of an eighth of it, at most 256 tokens.
    pub fn filling(n_ctx: u32) -> Workload {
        let n_gen = (n_ctx / 8).clamp(1, 256);
        Workload { n_ctx, n_prompt: n_ctx.saturating_sub(n_gen).max(1), n_gen }
    }

    /// A prompt that fills half of a context, and a short answer.
    pub fn halfway(n_ctx: u32) -> Workload {
        Workload { n_ctx, n_prompt: n_ctx.div_ceil(2), n_gen: Workload::SHORT_ANSWER }
    }

    /// The pass that the plan of a tier is made for: `n_kv` cells are in use at its end, or as many as it has tokens.
    pub(crate) fn pass(self, tier: Tier, n_kv: u32) -> Pass {
        let n_tokens = tier.n_tokens().min(self.n_ctx);
        let n_kv = n_kv.max(n_tokens).min(self.n_ctx);
        Pass { n_tokens, n_outputs: 1, n_kv, n_ctx: self.n_ctx }
    }

    /// KV cells in use halfway through the prompt.
    pub(crate) fn kv_of_prefill(self) -> u32 {
        self.n_prompt.div_ceil(2)
    }

    /// KV cells in use halfway through the answer.
    pub(crate) fn kv_of_decode(self) -> u32 {
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
    /// Ubatches of up to so many tokens.
    pub tier: Tier,
    /// Most ubatches of a pass: each shard computes all of them before the next shard's turn.
    #[serde(default = "one")]
    pub ubatches: u32,
    /// The method that it came from: the rule that won, where several were asked.
    pub method: Method,
    /// The plan.
    pub plan: Plan,
}

fn one() -> u32 {
    1
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
    /// How passes of the prompt are run,
    pub prefill_extras: Extras,
    /// and those of one token.
    pub decode_extras: Extras,
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
    /// Options that [`forecast()`] may use besides what the engine has, where layouts are searched for.
    pub switches: Switches,
}

impl Setting<'_> {
    /// Hands on the problem that a plan for passes like `pass` solves.
    pub(crate) fn with_problem<T>(
        &self,
        pass: Pass,
        method: Method,
        extras: Extras,
        look: impl FnOnce(&Problem<'_>) -> T,
    ) -> T {
        let shards = self.model.shards(pass);
        look(&self.problem(&shards, pass.n_tokens, self.runtime(method, pass.n_tokens, extras)))
    }

    pub(crate) fn problem<'a>(
        &'a self,
        shards: &'a [ShardCost],
        n_tokens: u32,
        runtime: Runtime,
    ) -> Problem<'a> {
        let Setting { model, machine, vram, .. } = *self;
        Problem { shards, machine, vram, residual: model.residual(n_tokens), runtime }
    }

    pub(crate) fn runtime(&self, method: Method, n_tokens: u32, extras: Extras) -> Runtime {
        match (method, &self.machine.gpu) {
            (Method::Strategy(Strategy::WholeLayers), Some(gpu))
                if n_tokens >= LARGE_BATCH && self.vram > Bytes::ZERO =>
            {
                Runtime::CopiesForBatches { rate: gpu.link.h2d_pageable }
            }
            _ if extras != Extras::default() => Runtime::With(extras),
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

    /// Seconds to the last token.
    fn whole(&self) -> f64 {
        self.ttft.get() + f64::from(self.workload.n_gen) / self.tps
    }
}

/// Plans a request and predicts it. Options that the setting allows are used where they bring the first token no later
/// and the last one sooner.
///
/// # Errors
/// As [`solve`](crate::solve); a strategy that has no layout within the budget.
pub fn forecast(
    setting: &Setting<'_>,
    workload: Workload,
    method: Method,
) -> Result<Forecast, PlanError> {
    let mut best: Option<Forecast> = None;
    let mut refused = None;
    for n_ubatch in ubatches(setting.model, workload) {
        match Request::new(setting, workload, n_ubatch).forecast(method) {
            Ok(next) if best.as_ref().is_none_or(|best| next.ttft < best.ttft) => best = Some(next),
            Ok(_) => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    let best = best.ok_or_else(|| refused.expect("the smallest ubatch was tried"))?;
    let searched = method == Method::Search && setting.vram > Bytes::ZERO;
    Ok(if searched { with_extras(setting, best) } else { best })
}

/// The forecast of a search, or a better one with the plans of another that was made for no more VRAM, so that neither
/// number is worse than the other's.
pub(crate) fn no_worse_than(setting: &Setting<'_>, own: Forecast, other: &Forecast) -> Forecast {
    if own.ttft <= other.ttft && own.tps >= other.tps {
        return own;
    }
    let mixed = |prompt: &Forecast, answer: &Forecast| {
        let Forecast { workload, n_ubatch, prefill_extras, .. } = *prompt;
        let decode_extras = answer.decode_extras;
        let request = Request { setting, workload, n_ubatch, prefill_extras, decode_extras };
        request.with_plans(prompt.prefill.clone(), answer.decode.clone())
    };
    let mixed = [mixed(&own, other), mixed(other, &own)].into_iter();
    mixed
        .filter(|forecast| forecast.ttft <= other.ttft && forecast.tps >= other.tps)
        .min_by(|a, b| a.whole().total_cmp(&b.whole()))
        .unwrap_or_else(|| Forecast { vram: setting.vram, ..other.clone() })
}

/// Sizes of ubatches worth trying, in rising order.
fn ubatches(model: &dyn Model, workload: Workload) -> Vec<u32> {
    if let Some(n_ubatch) = model.n_ubatch() {
        return vec![n_ubatch.min(workload.n_ctx).min(UBATCHES[2])];
    }
    // A larger ubatch than holds the prompt is no different from one that just does.
    let enough = UBATCHES.into_iter().find(|n| *n >= workload.n_prompt).unwrap_or(u32::MAX);
    let sizes = UBATCHES.into_iter().filter(|n| *n <= enough);
    let mut sizes: Vec<u32> = sizes.map(|n| n.min(workload.n_ctx)).collect();
    sizes.dedup();
    sizes
}

/// Numbers of ubatches worth trying in a pass: more than hold the prompt are no better.
pub(crate) fn layer_major(n_prompt: u32, n_ubatch: u32) -> impl Iterator<Item = u32> {
    LAYER_MAJOR.into_iter().filter(move |n| (n / 2) * n_ubatch < n_prompt)
}

/// The forecast, or a better one with passes of several ubatches and what else the setting allows.
fn with_extras(setting: &Setting<'_>, mut best: Forecast) -> Forecast {
    let workload = best.workload;
    let consider = |best: &mut Forecast, n_ubatch, prefill_extras, decode_extras| {
        let request = Request { setting, workload, n_ubatch, prefill_extras, decode_extras };
        if let Ok(next) = request.forecast(Method::Search)
            && next.ttft <= best.ttft
            && next.whole() < best.whole()
        {
            *best = next;
        }
    };
    for n_ubatch in ubatches(setting.model, workload) {
        for ubatches in layer_major(workload.n_prompt, n_ubatch) {
            let extras = Extras { ubatches, ..Extras::default() };
            consider(&mut best, n_ubatch, extras, Extras::default());
        }
    }
    if setting.switches.split_ffn {
        for split in Split::all().map(Some) {
            let Forecast { n_ubatch, prefill_extras, decode_extras, .. } = best;
            consider(&mut best, n_ubatch, Extras { split, ..prefill_extras }, decode_extras);
        }
        for split in Split::all().map(Some) {
            let Forecast { n_ubatch, prefill_extras, decode_extras, .. } = best;
            consider(&mut best, n_ubatch, prefill_extras, Extras { split, ..decode_extras });
        }
    }
    best
}

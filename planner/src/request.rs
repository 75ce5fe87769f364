//! One way to run a request: its plans, the passes of its prompt, the change from one plan to the other.

use crate::error::PlanError;
use crate::extras::Extras;
use crate::forecast::{Forecast, Method, Setting, TierPlan, Workload};
use crate::model::Pass;
use crate::placement::{Placement, Tier};
use crate::plan::{Layout, predict};
use crate::problem::Problem;
use crate::prompt::{Turns, prompt_turns};
use crate::shard::ShardCost;
use crate::solve::{plan_by, plan_of, solve};
use crate::strategy::Strategy;
use crate::units::{Bytes, Seconds};

/// A request with its passes cut, and how they are run.
pub(crate) struct Request<'a> {
    pub(crate) setting: &'a Setting<'a>,
    pub(crate) workload: Workload,
    pub(crate) n_ubatch: u32,
    pub(crate) prefill_extras: Extras,
    pub(crate) decode_extras: Extras,
}

impl<'a> Request<'a> {
    /// A request as the engine runs it.
    pub(crate) fn new(setting: &'a Setting<'a>, workload: Workload, n_ubatch: u32) -> Request<'a> {
        let (prefill_extras, decode_extras) = (Extras::default(), Extras::default());
        Request { setting, workload, n_ubatch, prefill_extras, decode_extras }
    }

    pub(crate) fn forecast(&self, method: Method) -> Result<Forecast, PlanError> {
        let prefill_tier = Tier::holding(self.n_ubatch).expect("ubatches are tiers at most");
        let n_kv = self.workload.kv_of_prefill();
        let prefill = self.tier(prefill_tier, n_kv, method, self.prefill_extras)?;
        let n_kv = self.workload.kv_of_decode();
        let decode = match method {
            // Programs without plans keep their layers where they are.
            Method::Strategy(Strategy::WholeLayers) => self.again(&prefill, n_kv),
            _ => self.decode(&prefill, n_kv, method)?,
        };
        Ok(self.with_plans(prefill, decode))
    }

    /// What the request comes to with these plans.
    pub(crate) fn with_plans(&self, prefill: TierPlan, decode: TierPlan) -> Forecast {
        let n_gen = f64::from(self.workload.n_gen.max(1));
        let (ttft, prompt_measured) = self.ttft(&prefill);
        let switch = self.switch(&prefill, &decode);
        let token = decode.plan.predicted.seconds.get() + switch.get() / n_gen;
        let measured = prompt_measured && decode.plan.predicted.measured;
        Forecast {
            workload: self.workload,
            vram: self.setting.vram,
            n_ubatch: self.n_ubatch,
            prefill,
            decode,
            ttft,
            tps: 1.0 / token,
            switch,
            measured,
            prefill_extras: self.prefill_extras,
            decode_extras: self.decode_extras,
        }
    }

    /// The plan for decode: the best one, or that of the prompt where changing does not pay.
    fn decode(&self, prefill: &TierPlan, n_kv: u32, method: Method) -> Result<TierPlan, PlanError> {
        let own = self.tier(Tier::ALL[0], n_kv, method, self.decode_extras)?;
        if self.prefill_extras.split != self.decode_extras.split {
            return Ok(own);
        }
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
        let runtime = self.setting.runtime(Method::Search, tier.n_tokens(), self.decode_extras);
        let problem = self.setting.problem(&shards, tier.n_tokens(), runtime);
        // Attention that is streamed needs no less room for one token, and experts need less.
        let plan = plan_of(&problem, prefill.plan.layout.clone());
        TierPlan { tier, ubatches: 1, method: prefill.method, plan }
    }

    pub(crate) fn tier(
        &self,
        tier: Tier,
        n_kv: u32,
        method: Method,
        extras: Extras,
    ) -> Result<TierPlan, PlanError> {
        let pass = self.workload.pass(tier, n_kv);
        self.setting.with_problem(pass, method, extras, |problem| self.plan(problem, tier, method))
    }

    fn plan(
        &self,
        problem: &Problem<'_>,
        tier: Tier,
        method: Method,
    ) -> Result<TierPlan, PlanError> {
        let ubatches = problem.extras().ubatches;
        let of = |strategy: Strategy| {
            let method = Method::Strategy(strategy);
            plan_by(problem, strategy).map(|plan| TierPlan { tier, ubatches, method, plan })
        };
        match method {
            Method::Search => solve(problem).map(|plan| TierPlan { tier, ubatches, method, plan }),
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
        let ubatches = self.prefill_extras.ubatches;
        let turns = prompt_turns(n_prompt, self.n_ubatch, ubatches, n_ctx);
        for (i, Turns { sample, ubatches }) in turns.into_iter().enumerate() {
            let Pass { n_tokens, n_kv, .. } = sample.pass;
            let shards = self.shards(n_tokens, n_kv);
            let extras = Extras { ubatches, ..self.prefill_extras };
            let runtime = self.setting.runtime(prefill.method, n_tokens, extras);
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

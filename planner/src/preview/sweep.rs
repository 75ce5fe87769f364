//! One model on one machine under several budgets and contexts.

use super::describe::{extras_in_words, in_words};
use super::what_if::{WhatIf, what_if};
use crate::error::PlanError;
use crate::extras::{Extras, Switches};
use crate::forecast::{Forecast, Method, Setting, TierPlan, Workload, forecast, no_worse_than};
use crate::model::{Model, Pass};
use crate::plan::Layout;
use crate::profile::MachineProfile;
use crate::saved::SavedPlan;
use crate::shard::ShardCost;
use crate::strategy::Strategy;
use crate::units::Bytes;

/// What is to be forecast.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// The machine.
    pub machine: &'a MachineProfile,
    /// How layouts are found.
    pub method: Method,
    /// Options that forecasts may use although the engine does not have them.
    pub switches: Switches,
}

/// For which budgets and requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Budgets; zero leaves the GPU alone. Empty for [`usual_budgets`].
    pub budgets: Vec<Bytes>,
    /// KV cells that there is room for. Empty for what the model was made for, up to 8K.
    pub contexts: Vec<u32>,
    /// Tokens of the prompt; `None` for what the answer leaves of the context.
    pub n_prompt: Option<u32>,
    /// Tokens of the answer; `None` for as many as [`Workload::filling`] has, or what a given prompt leaves of them.
    pub n_gen: Option<u32>,
}

impl Sweep {
    fn workload(&self, n_ctx: u32) -> Workload {
        let usual = Workload::filling(n_ctx);
        let left = |taken: u32| n_ctx.saturating_sub(taken).max(1);
        match (self.n_prompt, self.n_gen) {
            (None, None) => usual,
            (None, Some(n_gen)) => Workload { n_ctx, n_prompt: left(n_gen), n_gen },
            (Some(n_prompt), n_gen) => {
                let n_gen = n_gen.unwrap_or(usual.n_gen.min(left(n_prompt)));
                Workload { n_ctx, n_prompt, n_gen }
            }
        }
    }

    /// Budgets and requests, by budget.
    fn cells(&self, question: &Question<'_>) -> Vec<(Bytes, Workload)> {
        let budgets = match &self.budgets[..] {
            [] => usual_budgets(question.machine),
            budgets => budgets.to_vec(),
        };
        let contexts = match &self.contexts[..] {
            [] => &[question.model.n_ctx_train().min(USUAL_N_CTX)],
            contexts => contexts,
        };
        let workloads: Vec<Workload> = contexts.iter().map(|n_ctx| self.workload(*n_ctx)).collect();
        let pairs = |vram| workloads.iter().map(move |workload| (vram, *workload));
        budgets.into_iter().flat_map(pairs).collect()
    }
}

/// The longest context that is taken unasked.
const USUAL_N_CTX: u32 = 8192;

/// The forecasts of a sweep, and a closer look at one of them.
pub struct Preview<'a> {
    pub(super) question: Question<'a>,
    /// By budget, then by request.
    pub cells: Vec<Cell>,
    /// Index of the cell that is looked at closely: the last one with a plan.
    pub chosen: usize,
    /// What could be changed about it.
    pub what_if: WhatIf,
}

/// One budget and one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The budget.
    pub vram: Bytes,
    /// The request.
    pub workload: Workload,
    /// What comes of it.
    pub outcome: Result<Outcome, PlanError>,
}

/// What comes of a request under a budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The best that the method finds.
    pub forecast: Forecast,
    /// Where the shards live in passes of the prompt and in those of one token.
    pub placed: [Placed; 2],
    /// What whole layers (`-ngl`) under the same budget come to; `None` without a GPU or a budget.
    pub baseline: Option<Forecast>,
}

/// A layout in words.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Placed {
    /// The strategy that makes the same layout, if one does.
    pub strategy: Option<Strategy>,
    /// Few words.
    pub words: String,
}

impl Outcome {
    /// How many times faster than whole layers: time to first token, tokens per second.
    pub fn gains(&self) -> Option<[f64; 2]> {
        let baseline = self.baseline.as_ref()?;
        let ttft = baseline.ttft.get() / self.forecast.ttft.get();
        Some([ttft, self.forecast.tps / baseline.tps])
    }
}

impl<'a> Preview<'a> {
    /// Forecasts all cells. One that has no plan says why; others are shown all the same. Where layouts are searched for,
    /// what was found for less VRAM is known for more, so that no cell is slower than one of the same request with less.
    ///
    /// # Errors
    /// The first cell's, when none has a plan.
    pub fn of(question: Question<'a>, sweep: &Sweep) -> Result<Preview<'a>, PlanError> {
        let cells = question.cells(sweep.cells(&question));
        let Some(chosen) = cells.iter().rposition(|cell| cell.outcome.is_ok()) else {
            let first = cells.into_iter().next().expect("a sweep has a cell");
            return Err(first.outcome.expect_err("no cell has a plan"));
        };
        let Cell { vram, workload, .. } = cells[chosen];
        let known = cells[chosen].outcome.as_ref().ok().map(|outcome| &outcome.forecast);
        let what_if = what_if(&question.setting(vram), workload, question.method, known);
        Ok(Preview { question, cells, chosen, what_if })
    }

    /// The cell that is looked at closely.
    pub fn chosen(&self) -> &Outcome {
        self.cells[self.chosen].outcome.as_ref().expect("it was chosen because it has a plan")
    }

    /// The plans of all tiers for the setting and context of that cell.
    ///
    /// # Errors
    /// A tier that has no plan.
    pub fn save(&self) -> Result<SavedPlan, PlanError> {
        let Forecast { workload, n_ubatch, .. } = self.chosen().forecast;
        SavedPlan::of(&self.chosen_setting(), workload.n_ctx, n_ubatch, self.question.method)
    }

    /// The setting of that cell.
    pub(super) fn chosen_setting(&self) -> Setting<'a> {
        self.question.setting(self.cells[self.chosen].vram)
    }
}

impl<'a> Question<'a> {
    /// The question for one budget.
    pub(super) fn setting(&self, vram: Bytes) -> Setting<'a> {
        let Question { model, machine, switches, .. } = *self;
        Setting { model, machine, vram, switches }
    }

    /// What the FFN of this model is called.
    pub(super) fn ffn(&self) -> &'static str {
        let pass = Pass { n_tokens: 1, n_outputs: 1, n_kv: 1, n_ctx: 1 };
        let experts = self.model.shards(pass).iter().any(ShardCost::has_experts);
        if experts { "experts" } else { "FFN" }
    }

    /// The cells in the order given, forecast from the least budget up.
    fn cells(&self, wanted: Vec<(Bytes, Workload)>) -> Vec<Cell> {
        let mut order: Vec<usize> = (0..wanted.len()).collect();
        order.sort_by_key(|&i| wanted[i].0);
        let mut known: Vec<Forecast> = Vec::new();
        let mut cells = Vec::new();
        for i in order {
            let (vram, workload) = wanted[i];
            let less = known.iter().rfind(|known| known.workload == workload);
            let outcome = self.outcome(vram, workload, less);
            known.extend(outcome.iter().map(|outcome| outcome.forecast.clone()));
            cells.push((i, Cell { vram, workload, outcome }));
        }
        cells.sort_by_key(|(i, _)| *i);
        cells.into_iter().map(|(_, cell)| cell).collect()
    }

    fn outcome(
        &self,
        vram: Bytes,
        workload: Workload,
        less: Option<&Forecast>,
    ) -> Result<Outcome, PlanError> {
        let Workload { n_ctx, n_prompt, n_gen } = workload;
        if u64::from(n_prompt) + u64::from(n_gen) > u64::from(n_ctx) {
            return Err(PlanError::ContextTooSmall { n_ctx, n_prompt, n_gen });
        }
        let setting = self.setting(vram);
        let mut forecast = forecast(&setting, workload, self.method)?;
        if let Some(less) = less.filter(|_| self.method == Method::Search) {
            forecast = no_worse_than(&setting, forecast, less);
        }
        let baseline = (vram > Bytes::ZERO && self.machine.gpu.is_some())
            .then(|| self::forecast(&setting, workload, Method::Strategy(Strategy::WholeLayers)))
            .and_then(Result::ok);
        let passes = [
            (&forecast.prefill, forecast.prefill_pass(), forecast.prefill_extras),
            (&forecast.decode, forecast.decode_pass(), forecast.decode_extras),
        ];
        let placed = passes.map(|(plan, pass, extras)| self.placed(&setting, plan, pass, extras));
        Ok(Outcome { placed, forecast, baseline })
    }

    fn placed(&self, setting: &Setting<'_>, tier: &TierPlan, pass: Pass, extras: Extras) -> Placed {
        let layout = &tier.plan.layout;
        let words = in_words(layout, self.ffn()) + &extras_in_words(extras, layout, self.ffn());
        let strategy = strategy_of(setting, layout, pass).filter(|_| extras == Extras::default());
        Placed { strategy, words }
    }
}

/// The first strategy that makes this layout for such passes.
fn strategy_of(setting: &Setting<'_>, layout: &Layout, pass: Pass) -> Option<Strategy> {
    let same = |strategy: &Strategy| {
        let method = Method::Strategy(*strategy);
        let made = setting
            .with_problem(pass, method, Extras::default(), |problem| strategy.layout(problem));
        made.is_some_and(|made| made == *layout)
    };
    Strategy::ALL.into_iter().find(same)
}

/// Budgets worth a look on a machine: powers of two from 2 GiB up to the card's memory, and all of that; none but zero
/// without a card.
pub fn usual_budgets(machine: &MachineProfile) -> Vec<Bytes> {
    let Some(gpu) = &machine.gpu else { return vec![Bytes::ZERO] };
    let powers = (1..).map(|n| Bytes::gib(1 << n));
    powers.take_while(|budget| *budget < gpu.vram).chain([gpu.vram]).collect()
}

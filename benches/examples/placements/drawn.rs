//! Placements drawn by chance.

use anyhow::{Context, Result};
use engine_core::PlannedModel;
use planner::{
    Bytes, Layout, Method, Model, PLAN_SCHEMA, Pass, Placement, Problem, Runtime, SavedPlan, Tier,
    TierPlan, plan_of, vram_use,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::Bench;

/// So many are drawn, of which those are measured that are predicted best.
const DRAWN: usize = 200;

/// Those predicted best for a prompt and an answer, of many placements that are the same in all passes.
pub(super) fn best(bench: &Bench, vram: Bytes, n_prompt: u32) -> Result<Vec<SavedPlan>> {
    let options = bench.options(n_prompt, None);
    let model = PlannedModel::open(&bench.model, &options)?;
    let n_ctx = options.n_ctx.context("it is set")?;
    let table = Table { bench, model, vram, n_ctx, n_ubatch: options.n_ubatch.min(n_ctx) };
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let plans = (0..DRAWN).filter_map(|_| table.plan(&mut random));
    let mut plans: Vec<(f64, SavedPlan)> =
        plans.map(|plan| (seconds(&plan.tiers, n_prompt, bench.n_gen), plan)).collect();
    plans.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(plans.into_iter().take(bench.n_drawn).map(|(_, plan)| plan).collect())
}

/// What placements are drawn for.
struct Table<'a> {
    bench: &'a Bench,
    model: PlannedModel,
    vram: Bytes,
    n_ctx: u32,
    n_ubatch: u32,
}

impl Table<'_> {
    fn with_problem<T>(&self, tier: Tier, look: impl FnOnce(&Problem<'_>) -> T) -> T {
        let n_tokens = tier.n_tokens().min(self.n_ctx);
        let n_kv = self.n_ctx.div_ceil(2).max(n_tokens);
        let pass = Pass { n_tokens, n_outputs: 1, n_kv, n_ctx: self.n_ctx };
        let (shards, residual) = (self.model.shards(pass), self.model.residual(n_tokens));
        let (machine, runtime) = (&self.bench.machine, Runtime::Baton);
        look(&Problem { shards: &shards, machine, vram: self.vram, residual, runtime })
    }

    fn plan(&self, random: &mut ChaCha8Rng) -> Option<SavedPlan> {
        let largest = Tier::holding(self.n_ubatch)?;
        let layout = self.with_problem(largest, |problem| draw(problem, random))?;
        let tiers = Tier::ALL.into_iter().filter(|tier| *tier <= largest);
        let plan = |tier| {
            let plan = self.with_problem(tier, |problem| plan_of(problem, layout.clone()));
            TierPlan { tier, ubatches: 1, method: Method::Search, plan }
        };
        Some(SavedPlan {
            schema: PLAN_SCHEMA,
            model: self.model.name().to_owned(),
            n_layer: self.model.n_layer(),
            machine: self.bench.machine.name.clone(),
            n_ctx: self.n_ctx,
            vram: self.vram,
            tiers: tiers.map(plan).collect(),
        })
    }
}

/// A layout that fits, if one is met: of each shard it is drawn where it would best be, in an order drawn by chance, and
/// those that come last go to the CPU.
fn draw(problem: &Problem<'_>, random: &mut ChaCha8Rng) -> Option<Layout> {
    let n = problem.shards.len();
    let mut below = |n: usize| (random.next_u64() % n as u64) as usize;
    let weights = [below(5), below(5), below(5)];
    let pool = [Placement::Cpu, Placement::Pinned, Placement::Streamed].into_iter().zip(weights);
    let pool: Vec<Placement> = pool.flat_map(|(place, n)| vec![place; n]).collect();
    if pool.is_empty() {
        return None;
    }
    let n_slots = 1 + below(4) as u64;
    let mut placements: Vec<Placement> = (0..n).map(|_| pool[below(pool.len())]).collect();
    placements[0] = Placement::Cpu;
    let mut order: Vec<usize> = (1..n).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, below(i + 1));
    }
    loop {
        let slots = problem.shards.iter().zip(&placements);
        let slots = slots.filter(|(_, place)| **place == Placement::Streamed);
        let slot = slots.map(|(shard, _)| shard.weights + shard.kv).max().unwrap_or_default();
        let (placements_now, resident) = (placements.clone(), Vec::new());
        let layout = Layout { placements: placements_now, ring: slot * n_slots, resident };
        if vram_use(problem, &layout).total() <= problem.vram {
            return Some(layout);
        }
        placements[order.pop()?] = Placement::Cpu;
    }
}

/// Seconds of a prompt and an answer.
fn seconds(tiers: &[TierPlan], n_prompt: u32, n_gen: u32) -> f64 {
    let [decode, .., last] = tiers else { return f64::INFINITY };
    let prefill = tiers.iter().find(|plan| plan.tier.n_tokens() >= n_prompt).unwrap_or(last);
    let passes = f64::from(n_prompt.div_ceil(prefill.tier.n_tokens()));
    let of = |plan: &TierPlan| plan.plan.predicted.seconds.get();
    passes * of(prefill) + f64::from(n_gen - 1) * of(decode)
}

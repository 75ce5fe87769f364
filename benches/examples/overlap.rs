//! How much of a copy hides behind computing: passes of a model of which all layers are streamed, on a simulated GPU whose
//! link is set so that copying takes as long as computing, with rings of several sizes. CSV.
//!
//! ```text
//! cargo run --release -p benches --example overlap -- MODEL.gguf > overlap.csv
//! ```
//! A pass of one token reads weights about as fast as memory gives them, which leaves a simulated link nothing: for those
//! the GPU computes with plain kernels. A ring of one slot cannot be filled ahead: that is the ring switched off. Efficiency is the larger of copying and
//! computing alone over both together; 1 is all that overlap can give.

use std::env;
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result, bail};
use backend_cpu::{CpuBackend, CpuOptions, Isa, KernelTable, SimOptions, SimulatedGpu};
use benches::answers::answer;
use engine_core::backend::Backends;
use engine_core::{Engine, EngineOptions, Placing, PlannedModel, Plans};
use planner::{
    Bytes, BytesPerSec, Layout, MachineProfile, Method, Model, PLAN_SCHEMA, Pass, Placement,
    Problem, Runtime, SavedPlan, Tier, TierPlan, Workload, library, plan_of,
};

const N_CTX: u32 = 1024;

/// Passes of a prompt; the second half of them is timed.
const PASSES: u32 = 8;

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [model] = &args[..] else { bail!("give a model") };
    println!("model,n_tokens,slots,copy_s,compute_s,pass_s,efficiency");
    for n_tokens in [1, 64] {
        let bench = Bench::new(Path::new(model), n_tokens)?;
        let pinned = bench.pass(Placement::Pinned, 0, BytesPerSec::new(1e12))?;
        let link = BytesPerSec::new(bench.streamed.get() as f64 / pinned);
        for slots in [1, 2, 4, 8] {
            let pass = bench.pass(Placement::Streamed, slots, link)?;
            let copy = (bench.streamed / link).get();
            let name = bench.planned.name();
            println!(
                "{name},{n_tokens},{slots},{copy:.4},{pinned:.4},{pass:.4},{:.3}",
                copy.max(pinned) / pass
            );
        }
    }
    Ok(())
}

/// One model, run in passes of one size.
struct Bench<'a> {
    path: &'a Path,
    planned: PlannedModel,
    machine: MachineProfile,
    tier: Tier,
    options: EngineOptions,
    /// What a pass copies.
    streamed: Bytes,
}

impl<'a> Bench<'a> {
    fn new(path: &'a Path, n_tokens: u32) -> Result<Bench<'a>> {
        let options =
            EngineOptions { n_ctx: Some(N_CTX), n_ubatch: n_tokens, ..EngineOptions::default() };
        let planned = PlannedModel::open(path, &options)?;
        let machine = library::machine("rtx-4070-laptop").context("it is built in")?;
        let tier = Tier::holding(n_tokens).context("it is a tier")?;
        let mut bench = Bench { path, planned, machine, tier, options, streamed: Bytes::ZERO };
        let shards = bench.shards();
        // The embedding stays on the CPU and the output in VRAM.
        bench.streamed = shards[1..shards.len() - 1].iter().map(|shard| shard.weights).sum();
        Ok(bench)
    }

    fn shards(&self) -> Vec<planner::ShardCost> {
        let n_tokens = self.tier.n_tokens();
        self.planned.shards(Pass { n_tokens, n_outputs: 1, n_kv: N_CTX / 2, n_ctx: N_CTX })
    }

    /// Seconds of a pass with all layers placed so, in a ring of so many slots of the largest shard.
    fn pass(&self, layers: Placement, slots: u64, link: BytesPerSec) -> Result<f64> {
        let mut engine = self.load(layers, slots, link)?;
        let n_tokens = self.tier.n_tokens();
        if n_tokens == 1 {
            let stats = answer(&mut engine, 4, PASSES * 8)?.1;
            return Ok(1.0 / stats.tps().context("several tokens")?);
        }
        let half = answer(&mut engine, n_tokens * PASSES / 2, 1)?.1.prefill.get();
        let all = answer(&mut engine, n_tokens * PASSES, 1)?.1.prefill.get();
        Ok((all - half) / f64::from(PASSES / 2))
    }

    fn load(&self, layers: Placement, slots: u64, link: BytesPerSec) -> Result<Engine> {
        let shards = self.shards();
        let mut placements = vec![layers; shards.len()];
        placements[0] = Placement::Cpu;
        placements[shards.len() - 1] = Placement::Pinned;
        let slot = shards[1..shards.len() - 1].iter().map(|shard| shard.weights + shard.kv).max();
        let ring = slot.context("the model has layers")? * slots;
        let vram = Bytes::gib(2);
        let problem = Problem {
            shards: &shards,
            machine: &self.machine,
            vram,
            residual: self.planned.residual(self.tier.n_tokens()),
            runtime: Runtime::Baton,
        };
        let plan = plan_of(&problem, Layout { placements, ring, resident: Vec::new() });
        let saved = SavedPlan {
            schema: PLAN_SCHEMA,
            model: self.planned.name().to_owned(),
            n_layer: self.planned.n_layer(),
            machine: self.machine.name.clone(),
            n_ctx: N_CTX,
            vram,
            tiers: vec![TierPlan { tier: self.tier, ubatches: 1, method: Method::Search, plan }],
        };
        let one = NonZeroUsize::MIN;
        let cpu = CpuBackend::new(CpuOptions { threads: one, ..CpuOptions::default() })?;
        let mut sim = SimOptions { vram, pcie: link, threads: one, ..SimOptions::default() };
        if self.tier.n_tokens() == 1 {
            sim.kernels = KernelTable::for_isa(Isa::Scalar).context("every CPU has them")?;
        }
        let backends =
            Backends { cpu: Box::new(cpu), gpu: Some(Box::new(SimulatedGpu::new(sim)?)) };
        let machine = self.machine.clone();
        let placing = Some(Placing {
            machine,
            vram: None,
            plans: Plans::Saved(saved),
            n_gen: Workload::SHORT_ANSWER,
        });
        let options = EngineOptions { placing, ..self.options.clone() };
        Ok(Engine::load(self.path, &options, backends)?)
    }
}

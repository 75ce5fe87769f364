//! The paper's runs, replayed: the layouts that its programs had, priced by this planner.
//!
//! Layouts follow from the authors' accounting of VRAM and not from the machine's figures, so they are found once.

use std::borrow::Cow;

use planner::{
    Bytes, Layout, MachineProfile, Model, ModelShape, Pass, Placement, Problem, PromptPass,
    Runtime, Shard, ShardCost, Strategy, predict, prompt_passes, vram_use,
};

use super::data::{Baseline, Cell, n_gen, n_prompt};
use super::machine::{Build, Figures, shapes};

/// Batches are copied to the GPU from this many tokens on.
const LARGE_BATCH: u32 = 32;

/// A pass with its layout, to be priced again and again.
pub struct Replay {
    passes: Vec<(Vec<ShardCost>, f64)>,
    layout: Layout,
    /// Pinned bytes that a change of plan uploads, spread over so many tokens.
    switch: Option<(Bytes, u32)>,
    residual: Bytes,
    prefill: bool,
    /// The first pass touches the model's pages for the first time.
    first_touch: bool,
}

/// How fast the parts of one row can have been: the authors' program took the best.
pub struct Row {
    pub model: ModelShape,
    pub build: Build,
    candidates: Vec<(Replay, String)>,
}

impl Row {
    /// Seconds of the best candidate, and its name.
    pub fn best(&self, figures: &Figures) -> (f64, &str) {
        let machine = figures.profile(self.build, &shapes(std::iter::once(&self.model)));
        let times = self
            .candidates
            .iter()
            .map(|(replay, name)| (replay.seconds(&machine, figures, self.build), name.as_str()));
        times.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, "none"))
    }
}

impl Replay {
    fn seconds(&self, machine: &MachineProfile, figures: &Figures, build: Build) -> f64 {
        let link = machine.gpu.as_ref().expect("it has a GPU").link;
        let rate = if build == Build::Baseline { link.h2d_pageable } else { link.h2d };
        let mut total = if self.prefill { machine.request.get() } else { 0.0 };
        let cells = link.h2d.get() / figures.kv_copy;
        for (i, (shards, count)) in self.passes.iter().enumerate() {
            let shards = self.with_slow_cells(shards, cells);
            let mut problem = self.problem(&shards, machine);
            if self.prefill {
                problem.runtime = Runtime::CopiesForBatches { rate };
            }
            let predicted = predict(&problem, &self.layout);
            let steady =
                predicted.seconds.get() - if self.prefill { machine.pass.get() } else { 0.0 };
            total += steady * count;
            if i == 0 && self.prefill {
                total += predicted.first.get() - predicted.seconds.get();
                if self.first_touch {
                    let slow = planner::BytesPerSec::new(figures.first_touch);
                    problem.runtime = Runtime::CopiesForBatches { rate: slow };
                    total +=
                        predict(&problem, &self.layout).seconds.get() - predicted.seconds.get();
                }
            }
        }
        let switch = self.switch.map_or(0.0, |(bytes, n)| (bytes / link.h2d).get() / f64::from(n));
        total + switch
    }

    /// The shards, with KV cells of streamed attention that count `times` as much to copy.
    fn with_slow_cells<'a>(&self, shards: &'a [ShardCost], times: f64) -> Cow<'a, [ShardCost]> {
        if !self.layout.placements.contains(&Placement::Streamed) {
            return Cow::Borrowed(shards);
        }
        let mut slow = shards.to_vec();
        for (cost, placement) in slow.iter_mut().zip(&self.layout.placements) {
            if *placement == Placement::Streamed {
                cost.kv_used = Bytes::new((cost.kv_used.get() as f64 * times) as u64);
            }
        }
        Cow::Owned(slow)
    }

    fn problem<'a>(&self, shards: &'a [ShardCost], machine: &'a MachineProfile) -> Problem<'a> {
        let vram = Bytes::gib(1024);
        Problem { shards, machine, vram, residual: self.residual, runtime: Runtime::Baton }
    }
}

/// Shards of a pass, all layers alike: how much of the last one their programs leave out is not known.
fn priced(model: &ModelShape, pass: Pass) -> Vec<ShardCost> {
    let mut shards = model.shards(Pass { n_outputs: pass.n_tokens, ..pass });
    let output = model.shards(pass).pop();
    *shards.last_mut().expect("the output") = output.expect("the output");
    shards
}

/// Shards of a pass with activation space as the authors' program takes it.
fn shards(model: &ModelShape, pass: Pass) -> Vec<ShardCost> {
    let mut shards = priced(model, pass);
    let n_tokens = u64::from(pass.n_tokens);
    let heads = model.heads;
    let (n_ff, n_used) = match model.ffn {
        planner::Ffn::Dense { n_ff } => (n_ff, 1),
        planner::Ffn::Experts { n_ff, n_used, .. } => (n_ff, n_used),
    };
    let width =
        4 * model.n_embd + (heads.n_head + 2 * heads.n_kv_head) * heads.key_dim + 3 * n_ff * n_used;
    let activations = 4 * n_tokens * u64::from(width);
    let mask = 6 * u64::from(pass.n_ctx) * n_tokens.max(64);
    let logits = 4 * n_tokens * u64::from(model.n_vocab);
    for cost in &mut shards {
        let own = if cost.shard == Shard::Output { logits } else { 0 };
        cost.scratch = Bytes::new((activations + mask + own) * 3 / 2);
    }
    shards
}

/// The layouts that the authors' planner chooses among for a pass.
fn strategies(
    model: &ModelShape,
    machine: &MachineProfile,
    vram: Bytes,
    pass: Pass,
) -> Vec<(Strategy, Layout)> {
    let mut costs = shards(model, pass);
    let layout = |costs: &[ShardCost], strategy: Strategy| {
        let residual = Bytes::ZERO;
        strategy.layout(&Problem {
            shards: costs,
            machine,
            vram,
            residual,
            runtime: Runtime::Baton,
        })
    };
    for strategy in [Strategy::FullGpu, Strategy::FullGpuNoOutput] {
        if let Some(found) = layout(&costs, strategy) {
            return vec![(strategy, found)];
        }
    }
    // Measured cells of models with experts behave as if the output always stayed on the CPU.
    costs.last_mut().expect("the output").weights = Bytes::gib(1024);
    let rest = [Strategy::Static, Strategy::ShardAttention, Strategy::FullShard];
    rest.into_iter().filter_map(|s| layout(&costs, s).map(|found| (s, found))).collect()
}

/// A run with whole layers on the GPU: its decode and its prefill.
pub fn baseline(row: &Baseline, model: &ModelShape) -> [Row; 2] {
    let n_gpu = row.ngl.min(model.n_layer);
    let all = Shard::all(model.n_layer);
    let placements = all.into_iter().map(|shard| match shard {
        Shard::Attention { layer } | Shard::Ffn { layer } if layer >= model.n_layer - n_gpu => {
            Placement::Pinned
        }
        Shard::Output if row.ngl > model.n_layer => Placement::Pinned,
        _ => Placement::Cpu,
    });
    let layout =
        Layout { placements: placements.collect(), ring: Bytes::ZERO, resident: Vec::new() };
    let replay = |passes: Vec<PromptPass>, prefill: bool| Replay {
        passes: passes.iter().map(|p| (priced(model, p.pass), p.count)).collect(),
        layout: layout.clone(),
        switch: None,
        residual: Bytes::ZERO,
        prefill,
        first_touch: prefill && row.model == "qwen-235b",
    };
    let decode = vec![decode_pass(row.n_prompt, row.n_gen, row.n_ctx)];
    let prefill = prompt_passes(row.n_prompt, row.n_ubatch, row.n_ctx);
    let of = |replay| Row {
        model: model.clone(),
        build: Build::Baseline,
        candidates: vec![(replay, format!("ngl {}", row.ngl))],
    };
    [of(replay(decode, false)), of(replay(prefill, true))]
}

fn decode_pass(n_prompt: u32, n_gen: u32, n_ctx: u32) -> PromptPass {
    let pass = Pass { n_tokens: 1, n_outputs: 1, n_kv: n_prompt + n_gen / 2, n_ctx };
    PromptPass { pass, count: 1.0 }
}

/// A cell of Table 4: its decode and its prefill.
pub fn cell(cell: &Cell, model: &ModelShape, machine: &MachineProfile) -> [Row; 2] {
    let vram = Bytes::mib(cell.vram_mib.into());
    let row = |candidates| Row { model: model.clone(), build: Build::Sharding, candidates };
    [row(decodes(cell, model, machine, vram, true)), row(prefills(cell, model, machine, vram))]
}

/// The decode of a cell of Table 4 with the strategies that the authors' program seems not to have taken, too.
pub fn any_strategy(cell: &Cell, model: &ModelShape, machine: &MachineProfile) -> Row {
    let candidates = decodes(cell, model, machine, Bytes::mib(cell.vram_mib.into()), false);
    Row { model: model.clone(), build: Build::Sharding, candidates }
}

fn decodes(
    cell: &Cell,
    model: &ModelShape,
    machine: &MachineProfile,
    vram: Bytes,
    as_taken: bool,
) -> Vec<(Replay, String)> {
    let (n_prompt, n_gen) = (n_prompt(&cell.model, cell.n_ctx), n_gen(&cell.model, cell.n_ctx));
    let decode = decode_pass(n_prompt, n_gen, cell.n_ctx);
    let largest = Pass { n_tokens: 2048, n_kv: cell.n_ctx, ..decode.pass };
    let full = strategies(model, machine, vram, largest);
    let full = full.first().map(|(strategy, _)| *strategy);
    let mut found = strategies(model, machine, vram, decode.pass);
    if full == Some(Strategy::FullGpu) {
        found = strategies(model, machine, vram, largest);
    }
    let all_attention = |layout: &Layout| {
        let attention = layout.placements.iter().skip(1).step_by(2).take(model.n_layer as usize);
        attention.clone().all(|placement| *placement == Placement::Pinned)
    };
    // Where not all attention fits, dense models behaved as by the static strategy and the others as by streamed
    // attention; where it fits, streaming whole groups of experts for one token never pays.
    let experts = matches!(model.ffn, planner::Ffn::Experts { .. });
    let has_static = found.iter().any(|(strategy, _)| *strategy == Strategy::Static);
    found.retain(|(strategy, layout)| match strategy {
        Strategy::ShardAttention if experts => !all_attention(layout),
        Strategy::FullShard if experts => false,
        Strategy::ShardAttention | Strategy::FullShard => !has_static || !as_taken,
        _ => true,
    });
    let switches = !matches!(full, Some(Strategy::FullGpu | Strategy::FullGpuNoOutput));
    let costs = model.shards(Pass { n_kv: n_prompt, ..decode.pass });
    let replay = |(strategy, layout): (Strategy, Layout)| {
        let problem = Problem {
            shards: &costs,
            machine,
            vram,
            residual: Bytes::ZERO,
            runtime: Runtime::Baton,
        };
        let pinned = vram_use(&problem, &layout).weights + kv_in_use(&costs, &layout);
        let replay = Replay {
            passes: vec![(model.shards(decode.pass), 1.0)],
            layout,
            switch: switches.then_some((pinned, n_gen)),
            residual: Bytes::ZERO,
            prefill: false,
            first_touch: false,
        };
        (replay, strategy.name().to_owned())
    };
    found.into_iter().map(replay).collect()
}

fn kv_in_use(costs: &[ShardCost], layout: &Layout) -> Bytes {
    let pairs = costs.iter().zip(&layout.placements);
    pairs.filter(|(_, p)| **p == Placement::Pinned).map(|(cost, _)| cost.kv_used).sum()
}

fn prefills(
    cell: &Cell,
    model: &ModelShape,
    machine: &MachineProfile,
    vram: Bytes,
) -> Vec<(Replay, String)> {
    let n_prompt = n_prompt(&cell.model, cell.n_ctx);
    let mut candidates = Vec::new();
    for n_ubatch in [2048, 1024, 512] {
        let n_tokens = n_ubatch.min(cell.n_ctx).max(LARGE_BATCH);
        let largest = Pass { n_tokens, n_outputs: 1, n_kv: cell.n_ctx, n_ctx: cell.n_ctx };
        for (strategy, layout) in strategies(model, machine, vram, largest) {
            let passes = prompt_passes(n_prompt, n_ubatch, cell.n_ctx);
            let replay = Replay {
                passes: passes.iter().map(|p| (priced(model, p.pass), p.count)).collect(),
                layout,
                switch: None,
                residual: Bytes::ZERO,
                prefill: true,
                first_touch: false,
            };
            candidates.push((replay, format!("{strategy} ubatch {n_ubatch}")));
        }
        if n_ubatch == 1024 && !candidates.is_empty() {
            break;
        }
    }
    candidates
}

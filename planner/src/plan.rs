//! A plan: which shard lives where, what that takes, and what it is predicted to do.

use serde::{Deserialize, Serialize};

use crate::arrange::Arranged;
use crate::placement::Placement;
use crate::price::Price;
use crate::problem::Problem;
use crate::ring::Slot;
use crate::shard::Shard;
use crate::timeline::Span;
use crate::units::{Bytes, Seconds};

/// Which shard lives where.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Layout {
    /// One per shard, in running order.
    pub placements: Vec<Placement>,
    /// VRAM in which streamed shards take turns.
    pub ring: Bytes,
    /// Tensors of streamed shards that stay in VRAM, so that only the others are copied.
    pub resident: Vec<Resident>,
}

/// A tensor of a streamed shard that stays in VRAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Resident {
    /// Index of the shard.
    pub shard: usize,
    /// Index among [`ShardCost::tensors`](crate::ShardCost::tensors).
    pub tensor: usize,
    /// Its size.
    pub bytes: Bytes,
}

/// VRAM by what it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VramUse {
    /// Pinned weights.
    pub weights: Bytes,
    /// KV cells of pinned attention.
    pub kv: Bytes,
    /// The ring of streamed shards.
    pub slots: Bytes,
    /// Activations.
    pub scratch: Bytes,
    /// What the driver takes.
    pub driver: Bytes,
}

impl VramUse {
    /// All of it.
    pub fn total(&self) -> Bytes {
        self.weights + self.kv + self.slots + self.scratch + self.driver
    }
}

/// What a layout is predicted to do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// A pass that follows one like it.
    pub seconds: Seconds,
    /// The first pass, before which nothing was copied ahead.
    pub first: Seconds,
    /// Of `seconds`: the CPU computes.
    pub cpu: Seconds,
    /// Of `seconds`: the GPU computes.
    pub gpu: Seconds,
    /// Of `seconds`: both wait for a copy.
    pub waiting: Seconds,
    /// Of `seconds`: hand-offs and starting work on the GPU.
    pub handoffs: Seconds,
    /// Every time used lies inside what the profile measured.
    pub measured: bool,
}

/// What a pass takes longest for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// The CPU and its memory.
    Cpu,
    /// The GPU.
    Gpu,
    /// Copies to the GPU.
    Pcie,
    /// Hand-offs between the two.
    Handoffs,
}

impl Prediction {
    /// What the pass takes longest for.
    pub fn bottleneck(&self) -> Bottleneck {
        let shares = [
            (Bottleneck::Cpu, self.cpu),
            (Bottleneck::Gpu, self.gpu),
            (Bottleneck::Pcie, self.waiting),
            (Bottleneck::Handoffs, self.handoffs),
        ];
        let longest = shares.into_iter().max_by(|a, b| a.1.get().total_cmp(&b.1.get()));
        longest.expect("there are four").0
    }
}

/// Where each shard of a model lives in passes of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The decision.
    pub layout: Layout,
    /// The slots of streamed shards, in running order.
    pub slots: Vec<Slot>,
    /// VRAM that it takes.
    pub vram: VramUse,
    /// What it is predicted to do.
    pub predicted: Prediction,
}

/// What a layout does, by the timeline. Pure.
///
/// # Panics
/// If the layout has another number of shards than the problem, or a ring that does not hold its streamed shards.
pub fn predict(problem: &Problem<'_>, layout: &Layout) -> Prediction {
    let prices = Price::all(problem);
    let arranged = Arranged::of(problem, &prices, layout).expect("the ring holds each shard");
    arranged.predict(problem, &prices)
}

/// What a plan does in passes of the problem, which have no more tokens than those that it was made for. Pure.
///
/// # Panics
/// As [`predict`].
pub fn predict_plan(problem: &Problem<'_>, plan: &Plan) -> Prediction {
    let prices = Price::all(problem);
    Arranged::with_slots(&plan.layout, plan.slots.clone()).predict(problem, &prices)
}

/// What was busy when during the first `n` passes of a layout.
///
/// # Panics
/// As [`predict`].
pub fn trace(problem: &Problem<'_>, layout: &Layout, n: usize) -> Vec<Span> {
    let prices = Price::all(problem);
    let arranged = Arranged::of(problem, &prices, layout).expect("the ring holds each shard");
    arranged.chain(problem, &prices).spans(problem.machine, n)
}

/// What is busy when during a pass of a plan that follows one like it, from the pass's start on.
///
/// # Panics
/// As [`predict`].
pub fn trace_plan(problem: &Problem<'_>, plan: &Plan) -> Vec<Span> {
    let prices = Price::all(problem);
    let arranged = Arranged::with_slots(&plan.layout, plan.slots.clone());
    arranged.chain(problem, &prices).steady_spans(problem.machine)
}

/// VRAM that a layout takes.
pub fn vram_use(problem: &Problem<'_>, layout: &Layout) -> VramUse {
    let mut used = VramUse { slots: layout.ring, ..VramUse::default() };
    let split = problem.extras().split;
    let output_pinned = layout.placements.last() == Some(&Placement::Pinned);
    let mut gpu_computes = false;
    for (shard, &placement) in problem.shards.iter().zip(&layout.placements) {
        let rows = split.filter(|_| shard.is_ffn());
        if placement == Placement::Cpu && rows.is_none() {
            continue;
        }
        gpu_computes = true;
        used.scratch = used.scratch.max(shard.scratch);
        match placement {
            Placement::Cpu => used.weights += rows.map_or(Bytes::ZERO, |rows| rows.pinned(shard)),
            Placement::Pinned => {
                used.kv += shard.kv;
                if !(shard.shared_with_output && shard.shard == Shard::Embedding && output_pinned) {
                    used.weights += shard.weights;
                }
            }
            Placement::Streamed => {}
        }
    }
    if !gpu_computes {
        return VramUse::default();
    }
    used.scratch += problem.waiting_residuals();
    used.weights += layout.resident.iter().map(|tensor| tensor.bytes).sum();
    used.driver = problem.machine.gpu.as_ref().map_or(Bytes::ZERO, |gpu| gpu.driver);
    used
}

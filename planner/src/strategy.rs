//! Layouts with a name: the five strategies of pipelined sharding, and whole layers as engines do without it.
//!
//! Source: Ukarande et al., "Efficient, VRAM-Constrained xLM Inference on Clients", MLSys 2026.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::placement::Placement;
use crate::plan::{Layout, vram_use};
use crate::price::Price;
use crate::problem::Problem;
use crate::shard::Shard;
use crate::units::Bytes;

/// A rule that makes one layout out of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The whole model in VRAM.
    FullGpu,
    /// All layers in VRAM; the output is computed by the CPU.
    FullGpuNoOutput,
    /// Attention of as many layers as fit in VRAM, then, with experts, the output, then FFN; the rest on the CPU.
    Static,
    /// The same, but the remaining attention is streamed through one slot; once all attention fits, FFN is.
    ShardAttention,
    /// As many whole layers as fit in VRAM; all others streamed through two slots.
    FullShard,
    /// As many whole layers, counted from the last, as fit in VRAM, then the output; the rest on the CPU: `-ngl`.
    WholeLayers,
    /// Everything on the CPU.
    CpuOnly,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Strategy; 7] = [
        Strategy::FullGpu,
        Strategy::FullGpuNoOutput,
        Strategy::Static,
        Strategy::ShardAttention,
        Strategy::FullShard,
        Strategy::WholeLayers,
        Strategy::CpuOnly,
    ];

    /// Its name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::FullGpu => "full-gpu",
            Strategy::FullGpuNoOutput => "full-gpu-no-output",
            Strategy::Static => "static",
            Strategy::ShardAttention => "shard-attention",
            Strategy::FullShard => "full-shard",
            Strategy::WholeLayers => "whole-layers",
            Strategy::CpuOnly => "cpu-only",
        }
    }

    /// The strategy with this name.
    pub fn named(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|strategy| strategy.name() == name)
    }

    /// Its layout under the budget; `None` when it has none that fits.
    pub fn layout(self, problem: &Problem<'_>) -> Option<Layout> {
        let draft = Draft { problem, prices: &Price::all(problem) };
        self.layout_priced(&draft)
    }

    pub(crate) fn layout_priced(self, draft: &Draft<'_>) -> Option<Layout> {
        use Placement::{Cpu, Pinned, Streamed};
        let n = draft.n_layer();
        match self {
            Strategy::CpuOnly => Some(draft.of(|_| Cpu, 0)),
            Strategy::FullGpu => draft.fitting(draft.of(|_| Pinned, 0)),
            Strategy::FullGpuNoOutput => draft.fitting(draft.of(layers(Pinned), 0)),
            Strategy::Static => {
                let attention = |k| draft.of(attention_first(k, Cpu), 0);
                let k = draft.most(n, attention)?;
                if k < n {
                    return Some(attention(k));
                }
                draft.then_ffn(Cpu, 0)
            }
            Strategy::ShardAttention => {
                let attention = |k| draft.of(attention_first(k, Streamed), 1);
                match draft.most(n, |k| draft.of(attention_first(k, Cpu), 0)) {
                    Some(k) if k == n => draft.then_ffn(Streamed, 1),
                    _ => Some(attention(draft.most(n, attention)?)),
                }
            }
            Strategy::FullShard => {
                let whole = |k| draft.of_ring(first_layers(k, Streamed), draft.two_layers(k));
                Some(whole(draft.most(n, whole)?))
            }
            Strategy::WholeLayers => {
                let whole = |k| draft.of(last_layers(n - k), 0);
                let k = draft.most(n, whole)?;
                let with_output = draft.of(with_output(last_layers(n - k)), 0);
                let all = k == n;
                Some(if all && draft.fits(&with_output) { with_output } else { whole(k) })
            }
        }
    }
}

/// The most whole layers, counted from the last, that fit beside a slot for any one shard of the others.
pub(crate) fn layers_beside_a_slot(problem: &Problem<'_>) -> Option<u32> {
    let draft = Draft { problem, prices: &Price::all(problem) };
    let n = draft.n_layer();
    draft.most(n, |k| draft.of(layers_from(n - k, Placement::Streamed), 1))
}

/// So many whole layers pinned, counted from the last, the others at `rest`, streamed ones with one slot; the output is
/// pinned if all layers are and it fits, too.
pub(crate) fn whole_layers_layout(problem: &Problem<'_>, pinned: u32, rest: Placement) -> Layout {
    let draft = Draft { problem, prices: &Price::all(problem) };
    let first = draft.n_layer().saturating_sub(pinned);
    let whole = draft.of(layers_from(first, rest), 1);
    let all = draft.of(with_output(layers_from(first, rest)), 1);
    if first == 0 && draft.fits(&all) { all } else { whole }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// All layers at one place, embedding and output on the CPU.
fn layers(place: Placement) -> impl Fn(Shard) -> Placement {
    move |shard| match shard {
        Shard::Embedding | Shard::Output => Placement::Cpu,
        Shard::Attention { .. } | Shard::Ffn { .. } => place,
    }
}

/// Attention of the first `k` layers pinned, the other at `rest`; everything else on the CPU.
fn attention_first(k: u32, rest: Placement) -> impl Fn(Shard) -> Placement {
    move |shard| match shard {
        Shard::Attention { layer } if layer < k => Placement::Pinned,
        Shard::Attention { .. } => rest,
        _ => Placement::Cpu,
    }
}

/// The first `k` layers pinned, the other at `rest`; embedding and output on the CPU.
fn first_layers(k: u32, rest: Placement) -> impl Fn(Shard) -> Placement {
    move |shard| match shard {
        Shard::Attention { layer } | Shard::Ffn { layer } if layer < k => Placement::Pinned,
        Shard::Attention { .. } | Shard::Ffn { .. } => rest,
        Shard::Embedding | Shard::Output => Placement::Cpu,
    }
}

/// The layers from `first` on pinned, the rest on the CPU.
fn last_layers(first: u32) -> impl Fn(Shard) -> Placement {
    layers_from(first, Placement::Cpu)
}

/// The layers from `first` on pinned, the others at `rest`, embedding and output on the CPU.
fn layers_from(first: u32, rest: Placement) -> impl Fn(Shard) -> Placement {
    move |shard| match shard {
        Shard::Attention { layer } | Shard::Ffn { layer } if layer >= first => Placement::Pinned,
        Shard::Attention { .. } | Shard::Ffn { .. } => rest,
        Shard::Embedding | Shard::Output => Placement::Cpu,
    }
}

fn with_output(rule: impl Fn(Shard) -> Placement) -> impl Fn(Shard) -> Placement {
    move |shard| if shard == Shard::Output { Placement::Pinned } else { rule(shard) }
}

/// Makes layouts for one problem and asks whether they fit.
pub(crate) struct Draft<'a> {
    pub(crate) problem: &'a Problem<'a>,
    pub(crate) prices: &'a [Price],
}

impl Draft<'_> {
    fn n_layer(&self) -> u32 {
        let ffn = |shard: &&crate::shard::ShardCost| matches!(shard.shard, Shard::Ffn { .. });
        self.problem.shards.iter().filter(ffn).count() as u32
    }

    /// The layout by a rule, with a ring of so many slots of the largest streamed shard.
    pub(crate) fn of(&self, rule: impl Fn(Shard) -> Placement, n_slots: u64) -> Layout {
        let mut layout = self.of_ring(rule, Bytes::ZERO);
        layout.ring = self.largest_slot(&layout.placements) * n_slots;
        layout
    }

    fn of_ring(&self, rule: impl Fn(Shard) -> Placement, ring: Bytes) -> Layout {
        let placements = self.problem.shards.iter().map(|cost| rule(cost.shard)).collect();
        Layout { placements, ring, resident: Vec::new() }
    }

    /// The largest slot that a shard needs with these placements.
    pub(crate) fn largest_slot(&self, placements: &[Placement]) -> Bytes {
        let pairs = placements.iter().zip(self.prices);
        pairs.map(|(placement, price)| price.slot(*placement)).max().unwrap_or_default()
    }

    /// Room for the two largest neighbouring layers from layer `k` on.
    fn two_layers(&self, k: u32) -> Bytes {
        let mut layers = vec![Bytes::ZERO; self.n_layer() as usize];
        for (cost, price) in self.problem.shards.iter().zip(self.prices) {
            if let Shard::Attention { layer } | Shard::Ffn { layer } = cost.shard {
                layers[layer as usize] += price.streaming().slot;
            }
        }
        layers.into_iter().skip(k as usize).max().unwrap_or_default() * 2
    }

    pub(crate) fn fits(&self, layout: &Layout) -> bool {
        vram_use(self.problem, layout).total() <= self.problem.vram
    }

    fn fitting(&self, layout: Layout) -> Option<Layout> {
        self.fits(&layout).then_some(layout)
    }

    /// The most of `0..=most` whose layout fits.
    fn most(&self, most: u32, layout: impl Fn(u32) -> Layout) -> Option<u32> {
        (0..=most).rev().find(|&k| self.fits(&layout(k)))
    }

    /// All attention pinned, with experts the output too if it fits, then as much FFN as fits; the rest at `rest`.
    fn then_ffn(&self, rest: Placement, n_slots: u64) -> Option<Layout> {
        let rule = |output: Placement, k: u32| {
            move |shard| match shard {
                Shard::Embedding => Placement::Cpu,
                Shard::Output => output,
                Shard::Attention { .. } => Placement::Pinned,
                Shard::Ffn { layer } => {
                    if layer < k {
                        Placement::Pinned
                    } else {
                        rest
                    }
                }
            }
        };
        let layout = |output, k| self.of(rule(output, k), n_slots);
        let output_pinned = self.has_experts() && self.fits(&layout(Placement::Pinned, 0));
        let output = if output_pinned { Placement::Pinned } else { Placement::Cpu };
        Some(layout(output, self.most(self.n_layer(), |k| layout(output, k))?))
    }

    fn has_experts(&self) -> bool {
        self.problem.shards.iter().any(crate::shard::ShardCost::has_experts)
    }
}

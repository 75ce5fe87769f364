//! The time of a shard in each place, from the times of its ops.

use crate::cost::OpCost;
use crate::extras::{Rows, Split};
use crate::placement::Placement;
use crate::problem::Problem;
use crate::profile::{Kernels, MachineProfile};
use crate::shard::ShardCost;
use crate::units::Bytes;

/// Of a group of experts of which a pass is expected to touch less than this share, the chosen experts are copied once
/// it is known which; any other shard is copied whole, ahead of its use.
const COPIED_WHOLE: f64 = 0.9;

/// What one shard takes in one pass, wherever it is. Times are seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Price {
    /// Computed by the CPU.
    pub(crate) cpu: f64,
    /// What the CPU then reads from memory.
    pub(crate) cpu_reads: f64,
    /// Computed by the GPU.
    pub(crate) gpu: f64,
    /// Streamed as a whole.
    pub(crate) whole: Streaming,
    /// Streamed by what the tokens choose, once they have chosen.
    pub(crate) chosen: Option<Streaming>,
    /// What the GPU does of it when it is placed on the CPU; `cpu` is the rest then.
    pub(crate) shared: Option<Shared>,
    /// Whether each time lies inside what was measured, on the CPU and on the GPU.
    pub(crate) measured: [bool; 2],
}

/// What a streamed shard takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Streaming {
    /// Copied in a pass.
    pub(crate) copied: Bytes,
    /// VRAM of the slot.
    pub(crate) slot: Bytes,
}

/// What the GPU does of a shard that it shares with the CPU. Times are seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shared {
    /// Computed by the GPU.
    pub(crate) gpu: f64,
    /// Adding the two parts of each sum.
    pub(crate) adding: f64,
    /// VRAM of what stays there.
    pub(crate) pinned: Bytes,
    /// What is copied, to a slot of that size.
    pub(crate) streamed: Option<Bytes>,
}

impl Price {
    pub(crate) fn of(shard: &ShardCost, problem: &Problem<'_>) -> Price {
        let machine = problem.machine;
        let split = problem.extras().split.filter(|_| shard.is_ffn());
        let own = Price::of_one(shard, machine);
        // Of experts that are chosen late nothing can be copied ahead.
        let split = split.filter(|split| split.rows == Rows::Pinned || own.chosen.is_none());
        let split = split.map_or(own, |split| own.split(shard, split, problem));
        split.times(problem.extras().ubatches)
    }

    fn of_one(shard: &ShardCost, machine: &MachineProfile) -> Price {
        let (cpu, cpu_measured) = compute(&shard.ops, &machine.cpu.kernels);
        let (gpu, gpu_measured) =
            machine.gpu.as_ref().map_or((0.0, true), |gpu| compute(&shard.ops, &gpu.kernels));
        let touched = shard.touched();
        let few = (touched.get() as f64) < COPIED_WHOLE * shard.weights.get() as f64;
        // Norms and the router are copied too; experts that no token chose are not.
        let unread = |op: &OpCost| op.weights().saturating_sub(op.weights_read());
        let expected = shard.weights.saturating_sub(shard.ops.iter().map(unread).sum());
        let chosen = Streaming {
            copied: expected + shard.kv_used,
            slot: shard.weights.saturating_sub(shard.unread) + shard.kv,
        };
        Price {
            cpu,
            cpu_reads: (touched + shard.kv_used).get() as f64,
            gpu,
            whole: Streaming {
                copied: shard.weights + shard.kv_used,
                slot: shard.weights + shard.kv,
            },
            chosen: (few && shard.has_experts()).then_some(chosen),
            shared: None,
            measured: [cpu_measured, gpu_measured],
        }
    }

    /// The same shard with its rows split where it is placed on the CPU.
    fn split(self, shard: &ShardCost, split: Split, problem: &Problem<'_>) -> Price {
        let machine = problem.machine;
        let Some(gpu) = &machine.gpu else { return self };
        let ops = |share: f64| -> Vec<OpCost> {
            shard.ops.iter().map(|op| op.with_share(share)).collect()
        };
        let (cpu, cpu_measured) = compute(&ops(1.0 - split.share()), &machine.cpu.kernels);
        let (gpu, gpu_measured) = compute(&ops(split.share()), &gpu.kernels);
        // Both parts are read, and the sums written.
        let adding = machine.cpu.kernels.time(&OpCost::Light { bytes: problem.residual * 3 });
        let streamed = (split.rows == Rows::Streamed).then(|| split.of(shard.weights));
        Price {
            cpu,
            cpu_reads: self.cpu_reads * (1.0 - split.share()),
            shared: Some(Shared {
                gpu,
                adding: adding.seconds,
                pinned: split.pinned(shard),
                streamed,
            }),
            measured: [cpu_measured && gpu_measured, self.measured[1]],
            ..self
        }
    }

    /// The same shard with so many ubatches in its turn. Experts are copied whole then: few are left unread.
    fn times(self, ubatches: u32) -> Price {
        if ubatches == 1 {
            return self;
        }
        let n = f64::from(ubatches);
        let times =
            |shared: Shared| Shared { gpu: shared.gpu * n, adding: shared.adding * n, ..shared };
        Price {
            cpu: self.cpu * n,
            cpu_reads: self.cpu_reads * n,
            gpu: self.gpu * n,
            chosen: None,
            shared: self.shared.map(times),
            ..self
        }
    }

    /// The slot that a shard needs in a place.
    pub(crate) fn slot(&self, placement: Placement) -> Bytes {
        match placement {
            Placement::Cpu => self.shared.and_then(|shared| shared.streamed).unwrap_or_default(),
            Placement::Pinned => Bytes::ZERO,
            Placement::Streamed => self.streaming().slot,
        }
    }

    /// Streaming as it is done where there is room for it.
    pub(crate) fn streaming(&self) -> Streaming {
        self.chosen.unwrap_or(self.whole)
    }

    /// The prices of all shards of a problem.
    pub(crate) fn all(problem: &Problem<'_>) -> Vec<Price> {
        let mut prices: Vec<Price> = Vec::with_capacity(problem.shards.len());
        for (i, shard) in problem.shards.iter().enumerate() {
            // Layers are mostly alike: the shard two before is the same part of the layer before.
            let alike = i >= 2 && problem.shards[i - 2].costs_the_same(shard);
            let price = if alike { prices[i - 2] } else { Price::of(shard, problem) };
            prices.push(price);
        }
        prices
    }
}

impl ShardCost {
    /// Whether two shards differ in nothing but their place in the model.
    pub(crate) fn costs_the_same(&self, other: &ShardCost) -> bool {
        let sizes = |shard: &ShardCost| {
            let ShardCost { weights, unread, shared_with_output, kv, kv_used, scratch, .. } =
                *shard;
            (weights, unread, shared_with_output, kv, kv_used, scratch)
        };
        sizes(self) == sizes(other) && self.ops == other.ops
    }
}

fn compute(ops: &[OpCost], kernels: &Kernels) -> (f64, bool) {
    ops.iter().map(|op| kernels.time(op)).fold((0.0, true), |(seconds, measured), timed| {
        (seconds + timed.seconds, measured && timed.measured)
    })
}

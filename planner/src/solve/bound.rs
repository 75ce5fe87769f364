//! How fast a pass can be at best, from sums over its shards, before its timeline is known.
//!
//! The chain's work takes its time whatever the copies do. Copies take room on the way: free of charge during
//! hand-offs, and beside the CPU as long as memory gives enough for both; for a price where they slow the CPU or the
//! GPU down; and for their full time where the chain waits. The bound buys the cheapest room first.

use crate::placement::Placement;
use crate::price::Price;
use crate::problem::Problem;
use crate::shard::ShardCost;
use crate::timeline::Chain;
use crate::units::Bytes;

/// Sums over shards, in seconds and bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    cpu: f64,
    cpu_reads: f64,
    gpu: f64,
    /// Copied ahead.
    copied: f64,
    /// Of these, weights: what may stay in VRAM instead.
    weights: f64,
    /// Copied while everything waits.
    chosen: f64,
    /// Streamed shards, each a split of its own.
    splits: f64,
}

impl Totals {
    /// What one shard takes in all places at once; [`Totals::at`] chooses among it.
    pub(super) fn of(shard: &ShardCost, price: &Price) -> Totals {
        let Price { cpu, cpu_reads, gpu, .. } = *price;
        let computed = Totals { cpu, cpu_reads, gpu, splits: 1.0, ..Totals::default() };
        match price.chosen {
            Some(chosen) => Totals { chosen: chosen.copied.get() as f64, ..computed },
            None => {
                let copied = price.whole.copied.get() as f64;
                Totals { copied, weights: shard.weights.get() as f64, ..computed }
            }
        }
    }

    /// What it takes in one place.
    pub(super) fn at(&self, place: Placement) -> Totals {
        let nothing = Totals::default();
        match place {
            Placement::Cpu => Totals { cpu: self.cpu, cpu_reads: self.cpu_reads, ..nothing },
            Placement::Pinned => Totals { gpu: self.gpu, ..nothing },
            Placement::Streamed => Totals { cpu: 0.0, cpu_reads: 0.0, ..*self },
        }
    }

    /// Sums over a chain, whose hand-offs and splits are known besides.
    fn of_chain(chain: &Chain) -> (Totals, f64) {
        let mut totals = Totals::default();
        let mut fixed = 0.0;
        for step in &chain.steps {
            totals.cpu += step.cpu;
            totals.cpu_reads += step.cpu_reads;
            // Of two devices computing at once the longer one counts.
            totals.gpu += (step.gpu - step.cpu).max(0.0);
            fixed += step.fixed + step.demand;
        }
        totals.copied = chain.copies.iter().map(|copy| copy.bytes).sum();
        (totals, fixed)
    }

    pub(super) fn add(&mut self, other: &Totals) {
        self.cpu += other.cpu;
        self.cpu_reads += other.cpu_reads;
        self.gpu += other.gpu;
        self.copied += other.copied;
        self.weights += other.weights;
        self.chosen += other.chosen;
        self.splits += other.splits;
    }

    /// Seconds of computing on the GPU beside which nothing is copied, where the ring holds one of these shards at a time.
    /// Where tensors stay in VRAM, `left` bytes in all, two may fit after all: at most one for each half that stays.
    pub(super) fn alone_in_ring(&self, left: Bytes) -> f64 {
        let paired = 2.0 * left.get() as f64 / self.copied.max(1.0);
        self.gpu * (1.0 - paired).max(0.0)
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.cpu *= factor;
        self.cpu_reads *= factor;
        self.gpu *= factor;
        self.copied *= factor;
        self.weights *= factor;
        self.chosen *= factor;
        self.splits *= factor;
    }
}

/// The rates of a problem that the bound needs.
pub(crate) struct Bound {
    pub(super) driver: Bytes,
    pass: f64,
    handoff: f64,
    submit: f64,
    h2d: f64,
    h2d_while_cpu: f64,
    overlap_loss: f64,
    dram: f64,
}

impl Bound {
    pub(crate) fn of(problem: &Problem<'_>) -> Bound {
        let pass = problem.pass_overhead();
        let dram = problem.machine.cpu.dram.get();
        let Some(gpu) = &problem.machine.gpu else {
            // Nothing is copied, so that any rate will do.
            let (driver, h2d, h2d_while_cpu) = (Bytes::ZERO, 1.0, 1.0);
            let (handoff, submit, overlap_loss) = (0.0, 0.0, 0.0);
            return Bound { driver, pass, handoff, submit, h2d, h2d_while_cpu, overlap_loss, dram };
        };
        let link = &gpu.link;
        let residual = problem.residuals().get() as f64;
        Bound {
            driver: gpu.driver,
            pass,
            handoff: link.handoff.get() + residual / link.h2d.get().max(link.d2h.get()),
            submit: link.submit.get() * f64::from(problem.extras().ubatches),
            h2d: link.h2d.get(),
            h2d_while_cpu: link.h2d_while_cpu.get(),
            overlap_loss: link.overlap_loss,
            dram,
        }
    }

    /// Seconds of a pass at least, by sums alone. `left` bytes of weights that would be copied may stay in VRAM instead;
    /// `changes` layers at least have attention and FFN on different devices; beside `alone` seconds of computing on the
    /// GPU nothing is copied.
    pub(super) fn of_totals(&self, totals: &Totals, left: Bytes, changes: u32, alone: f64) -> f64 {
        let handoffs = (2.0 * f64::from(changes) - 2.0).max(0.0);
        let splits = totals.splits.max(handoffs / 2.0);
        let fixed = handoffs * self.handoff + splits * self.submit + totals.chosen / self.h2d;
        let copied = totals.copied - totals.weights.min(left.get() as f64);
        self.least(&Totals { copied, ..*totals }, fixed, alone)
    }

    /// Seconds of a pass at least, its chain being known.
    pub(super) fn of_chain(&self, chain: &Chain) -> f64 {
        let (totals, fixed) = Totals::of_chain(chain);
        self.least(&totals, fixed, 0.0)
    }

    fn least(&self, totals: &Totals, fixed: f64, alone: f64) -> f64 {
        let mut to_copy = (totals.copied - fixed * self.h2d).max(0.0);
        let mut extra = 0.0;
        let mut buy = |bytes: f64, price: f64| {
            let bought = to_copy.min(bytes);
            to_copy -= bought;
            extra += bought * price;
        };
        let beside_cpu = self.beside_cpu(totals);
        let beside_gpu = ((totals.gpu - alone) * self.h2d, self.overlap_loss / self.h2d);
        let cheapest_first = if beside_cpu.1 < beside_gpu.1 {
            [beside_cpu, beside_gpu]
        } else {
            [beside_gpu, beside_cpu]
        };
        for (bytes, price) in cheapest_first {
            if price < 1.0 / self.h2d {
                buy(bytes, price);
            }
        }
        buy(f64::INFINITY, 1.0 / self.h2d);
        self.pass + totals.cpu + totals.gpu + fixed + extra
    }

    /// What can be copied beside the CPU's work, and the seconds that a byte of it costs.
    fn beside_cpu(&self, totals: &Totals) -> (f64, f64) {
        if totals.cpu == 0.0 {
            return (0.0, 0.0);
        }
        let rate = totals.cpu_reads / totals.cpu;
        let copy = self.h2d_while_cpu;
        let speed = if rate + copy > self.dram {
            ((self.dram - copy) / rate).clamp(crate::timeline::SLOWEST_CPU, 1.0)
        } else {
            1.0
        };
        (totals.cpu / speed * copy, (1.0 - speed) / copy)
    }
}

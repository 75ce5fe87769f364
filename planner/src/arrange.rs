//! A layout with its slots given out, and the chain of steps and copies that a pass of it is.

use crate::placement::Placement;
use crate::plan::{Layout, Prediction};
use crate::price::{Price, Shared, Streaming};
use crate::problem::{Problem, Runtime};
use crate::ring::{Slot, lay_out};
use crate::shard::{Shard, ShardCost};
use crate::timeline::{Chain, Copy, Shares, Step};
use crate::units::{Bytes, Seconds};

/// A layout with its slots.
pub(crate) struct Arranged<'a> {
    layout: &'a Layout,
    slots: Vec<Slot>,
    /// Bytes of each streamed shard that need no copy.
    resident: Vec<Bytes>,
}

/// Slots of the shards that are copied ahead. Those copied by choice share one region before the ring's first slot.
fn give_slots(
    layout: &Layout,
    prices: &[Price],
    resident: &[Bytes],
    by_choice: bool,
) -> Option<Vec<Slot>> {
    let mut ahead = Vec::with_capacity(prices.len());
    let mut chosen_slot = Bytes::ZERO;
    for (i, placement) in layout.placements.iter().enumerate() {
        let chosen = prices[i].chosen.filter(|_| by_choice && *placement == Placement::Streamed);
        if let Some(chosen) = chosen {
            chosen_slot = chosen_slot.max(chosen.slot);
            continue;
        }
        let slot = match placement {
            Placement::Cpu => prices[i].slot(Placement::Cpu),
            Placement::Pinned => Bytes::ZERO,
            Placement::Streamed => prices[i].whole.slot,
        };
        // A slot is as large whatever of its shard is kept elsewhere, so that keeping more never moves slots.
        let kept = resident.get(i).copied().unwrap_or_default();
        if slot > Bytes::ZERO && kept < prices[i].whole.copied {
            ahead.push((i, slot));
        }
    }
    if chosen_slot > layout.ring {
        return None;
    }
    lay_out(layout.ring.saturating_sub(chosen_slot), &ahead)
}

/// Bytes of each shard that need no copy; empty if there are none.
fn resident_bytes(layout: &Layout) -> Vec<Bytes> {
    let n = if layout.resident.is_empty() { 0 } else { layout.placements.len() };
    let mut resident = vec![Bytes::ZERO; n];
    for tensor in &layout.resident {
        resident[tensor.shard] += tensor.bytes;
    }
    resident
}

impl<'a> Arranged<'a> {
    /// Gives out the slots; `None` when the ring is too small.
    pub(crate) fn of(
        problem: &Problem<'_>,
        prices: &[Price],
        layout: &'a Layout,
    ) -> Option<Arranged<'a>> {
        assert_eq!(layout.placements.len(), problem.shards.len(), "a placement for each shard");
        let resident = resident_bytes(layout);
        let slots = |by_choice| give_slots(layout, prices, &resident, by_choice);
        // A ring made for other passes may have no room for chosen experts besides its slots: then all are copied.
        let slots = slots(true).or_else(|| slots(false))?;
        Some(Arranged { layout, slots, resident })
    }

    /// The layout with slots that were given out for other passes.
    pub(crate) fn with_slots(layout: &'a Layout, slots: Vec<Slot>) -> Arranged<'a> {
        Arranged { layout, slots, resident: resident_bytes(layout) }
    }

    pub(crate) fn predict(&self, problem: &Problem<'_>, prices: &[Price]) -> Prediction {
        let chain = self.chain(problem, prices);
        self.predict_below(&chain, problem, prices, f64::INFINITY).expect("any time is below that")
    }

    /// What the layout does, by its own chain, if a pass takes less than `limit` seconds.
    pub(crate) fn predict_below(
        &self,
        chain: &Chain,
        problem: &Problem<'_>,
        prices: &[Price],
        limit: f64,
    ) -> Option<Prediction> {
        let passes = chain.run(problem.machine, limit - problem.pass_overhead())?;
        let pass = problem.pass_overhead();
        let Shares { cpu, gpu, waiting, handoffs } = passes.steady;
        Some(Prediction {
            seconds: Seconds::new(passes.steady.total() + pass),
            first: Seconds::new(passes.first.total() + pass),
            cpu: Seconds::new(cpu),
            gpu: Seconds::new(gpu),
            waiting: Seconds::new(waiting),
            handoffs: Seconds::new(handoffs),
            measured: self.measured(prices),
        })
    }

    fn measured(&self, prices: &[Price]) -> bool {
        let pairs = self.layout.placements.iter().zip(prices);
        pairs
            .into_iter()
            .all(|(placement, price)| price.measured[usize::from(*placement != Placement::Cpu)])
    }

    /// The steps of a pass and its copies.
    pub(crate) fn chain(&self, problem: &Problem<'_>, prices: &[Price]) -> Chain {
        let (steps, copies) =
            (Vec::with_capacity(prices.len() + 1), Vec::with_capacity(self.slots.len()));
        let mut chain = Chain { steps, copies };
        let mut builder = ChainBuilder::new(problem, &mut chain);
        let mut slots = self.slots.iter().peekable();
        for (i, (&placement, price)) in self.layout.placements.iter().zip(prices).enumerate() {
            match placement {
                Placement::Cpu => match &price.shared {
                    Some(shared) => {
                        builder.split(i, price, shared, slots.next_if(|slot| slot.shard == i));
                    }
                    None => builder.cpu(i, price, &problem.shards[i]),
                },
                Placement::Pinned => builder.gpu(i, price.gpu),
                Placement::Streamed => {
                    let kept = self.resident.get(i).copied().unwrap_or_default();
                    match (price.chosen, slots.next_if(|slot| slot.shard == i)) {
                        (_, Some(slot)) => builder.streamed(i, price, kept, slot),
                        (Some(chosen), None) => builder.chosen(i, price, chosen),
                        // All of it is there already.
                        (None, None) => builder.gpu(i, price.gpu),
                    }
                }
            }
        }
        builder.end();
        chain
    }

    pub(crate) fn into_slots(self) -> Vec<Slot> {
        self.slots
    }
}

/// Which device has the activations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    Cpu,
    Gpu,
    /// Each has a part of the sums.
    Both,
}

/// Joins shards to steps: a step ends where the device changes or a streamed shard begins.
struct ChainBuilder<'a> {
    chain: &'a mut Chain,
    holder: Holder,
    submit: f64,
    /// Time of a hand-off without what it moves.
    handoff: f64,
    /// Time of handing the activations to the GPU and back.
    to_gpu: f64,
    to_cpu: f64,
    h2d: f64,
    /// Rate at which shards placed on the CPU are copied to be computed by the GPU, if they are.
    batch_rate: Option<f64>,
}

impl<'a> ChainBuilder<'a> {
    fn new(problem: &Problem<'_>, chain: &'a mut Chain) -> ChainBuilder<'a> {
        let residual = problem.residuals().get() as f64;
        let ubatches = f64::from(problem.extras().ubatches);
        let link = problem.machine.gpu.as_ref().map(|gpu| gpu.link);
        let time = |rate: f64, fixed: f64| fixed + residual / rate;
        ChainBuilder {
            chain,
            holder: Holder::Cpu,
            submit: link.map_or(0.0, |link| link.submit.get()) * ubatches,
            handoff: link.map_or(0.0, |link| link.handoff.get()),
            to_gpu: link.map_or(0.0, |link| time(link.h2d.get(), link.handoff.get())),
            to_cpu: link.map_or(0.0, |link| time(link.d2h.get(), link.handoff.get())),
            h2d: link.map_or(1.0, |link| link.h2d.get()),
            batch_rate: match problem.runtime {
                Runtime::Baton | Runtime::With(_) => None,
                Runtime::CopiesForBatches { rate } => Some(rate.get()),
            },
        }
    }

    fn cpu(&mut self, shard: usize, price: &Price, cost: &ShardCost) {
        if let Some(rate) = self.batch_rate
            && !matches!(cost.shard, Shard::Embedding | Shard::Output)
        {
            let bytes = cost.touched() + cost.kv_used;
            return self.on_demand(shard, 0.0, price.gpu, bytes.get() as f64 / rate);
        }
        let same = self.holder == Holder::Cpu;
        let fixed = if same { 0.0 } else { self.to_cpu };
        self.holder = Holder::Cpu;
        match self.chain.steps.last_mut() {
            Some(step) if same => {
                step.cpu += price.cpu;
                step.cpu_reads += price.cpu_reads;
            }
            _ => {
                let (cpu, cpu_reads) = (price.cpu, price.cpu_reads);
                self.chain.steps.push(Step { shard, fixed, cpu, cpu_reads, ..Step::default() });
            }
        }
    }

    fn gpu(&mut self, shard: usize, seconds: f64) {
        if self.holder == Holder::Gpu
            && let Some(step) = self.chain.steps.last_mut()
            && !step.streamed
        {
            step.gpu += seconds;
            return;
        }
        let fixed = self.take();
        self.chain.steps.push(Step { shard, fixed, gpu: seconds, ..Step::default() });
    }

    /// A shard copied ahead, of which `kept` is there already.
    fn streamed(&mut self, shard: usize, price: &Price, kept: Bytes, slot: &Slot) {
        let bytes = price.whole.copied.saturating_sub(kept).get() as f64;
        let (fixed, gpu, streamed) = (self.take(), price.gpu, true);
        self.chain.steps.push(Step { shard, fixed, gpu, streamed, ..Step::default() });
        self.chain.copies.push(Copy { shard, bytes, after: slot.after });
    }

    /// A group of experts whose chosen ones are copied when the CPU has read which, and begun the rest of the work.
    fn chosen(&mut self, shard: usize, price: &Price, chosen: Streaming) {
        let reading = self.handoff + self.submit;
        self.on_demand(shard, reading, price.gpu, chosen.copied.get() as f64 / self.h2d);
    }

    /// A shard of which the CPU computes a part and the GPU another. Whoever has the activations hands them to the other.
    fn split(&mut self, shard: usize, price: &Price, shared: &Shared, slot: Option<&Slot>) {
        let handoff = match self.holder {
            Holder::Cpu => self.to_gpu,
            Holder::Gpu => self.to_cpu,
            Holder::Both => self.to_gpu + self.to_cpu,
        };
        self.holder = Holder::Both;
        let Price { cpu, cpu_reads, .. } = *price;
        let (fixed, gpu) = (handoff + self.submit + shared.adding, shared.gpu);
        let streamed = slot.is_some();
        self.chain.steps.push(Step { shard, fixed, demand: 0.0, cpu, cpu_reads, gpu, streamed });
        if let (Some(slot), Some(bytes)) = (slot, shared.streamed) {
            self.chain.copies.push(Copy { shard, bytes: bytes.get() as f64, after: slot.after });
        }
    }

    fn on_demand(&mut self, shard: usize, reading: f64, gpu: f64, demand: f64) {
        let fixed = self.take() + reading;
        self.chain.steps.push(Step { shard, fixed, demand, gpu, ..Step::default() });
    }

    /// The GPU takes over, or goes on with a new split; gives the time of that.
    fn take(&mut self) -> f64 {
        let handoff = if self.holder == Holder::Gpu { 0.0 } else { self.to_gpu };
        self.holder = Holder::Gpu;
        handoff + self.submit
    }

    /// The logits, which are few, go to the CPU.
    fn end(&mut self) {
        if self.holder != Holder::Cpu {
            let shard = self.chain.steps.last().map_or(0, |step| step.shard);
            self.chain.steps.push(Step { shard, fixed: self.handoff, ..Step::default() });
        }
    }
}

//! A plan as ordered steps: what is copied ahead, who hands over to whom, which shards run where.
//!
//! Knows places in running order and numbers of copies; neither memory nor devices nor tensors.

use std::ops::Range;

use planner::{Placement, Plan};

/// Where shards are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// Host memory, computed by the CPU.
    Cpu,
    /// VRAM, computed by the GPU.
    Gpu,
}

/// How the weights of a split come to be where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// They are there.
    Resident,
    /// By the copy of that number, made ahead into a slot of the ring.
    Copied(usize),
    /// Of a group of experts those that the tokens choose are copied once it is known which.
    Chosen,
}

/// Consecutive shards on one device: one submission of work. A streamed shard is a split of its own, since it waits for
/// its copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Who runs it.
    pub device: Device,
    /// Which shards, by their place in running order.
    pub shards: Range<usize>,
    /// Where the weights come from.
    pub source: Source,
}

/// One thing that the executor does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Starts the copy of that number into its slot, after everything that was submitted so far. It may be for the next
    /// pass: the ring goes on over the end of a pass.
    Upload(usize),
    /// Moves the activations before a shard.
    Handoff {
        /// Who takes over.
        to: Device,
        /// The shard that comes next, by its place in running order.
        before: usize,
    },
    /// Runs shards on a device.
    Run(Split),
}

/// The steps of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// What to do, in order.
    pub steps: Vec<Step>,
    /// The shard of each copy, by its place in running order.
    pub copies: Vec<usize>,
    /// Copies that are under way or made when a pass begins that follows one like it. Else they come first.
    pub ahead: usize,
    /// Who has the logits.
    pub output: Device,
}

impl Schedule {
    /// Runs all of `n_shards` shards on the CPU.
    pub fn all_cpu(n_shards: usize) -> Schedule {
        let split = Split { device: Device::Cpu, shards: 0..n_shards, source: Source::Resident };
        let steps = vec![Step::Run(split)];
        Schedule { steps, copies: Vec::new(), ahead: 0, output: Device::Cpu }
    }

    /// The steps of a plan.
    pub fn of(plan: &Plan) -> Schedule {
        let turns = Turns::of(plan);
        let copies: Vec<usize> = plan.slots.iter().map(|slot| slot.shard).collect();
        let mut builder = Builder { steps: Vec::new(), holder: Device::Cpu };
        for (shard, placement) in plan.layout.placements.iter().enumerate() {
            let copy = copies.binary_search(&shard).ok();
            match placement {
                Placement::Cpu => builder.run(Device::Cpu, shard, Source::Resident),
                Placement::Pinned => builder.run(Device::Gpu, shard, Source::Resident),
                Placement::Streamed => {
                    builder.run(Device::Gpu, shard, copy.map_or(Source::Chosen, Source::Copied));
                    let next = copy.map_or(0..0, |copy| turns.after_use[copy].clone());
                    builder.steps.extend(next.map(|m| Step::Upload(m % copies.len())));
                }
            }
        }
        Schedule { steps: builder.steps, copies, ahead: turns.ahead, output: builder.holder }
    }

    /// Whether the device takes part.
    pub fn uses(&self, device: Device) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Run(split) if split.device == device))
    }
}

struct Builder {
    steps: Vec<Step>,
    holder: Device,
}

impl Builder {
    fn run(&mut self, device: Device, shard: usize, source: Source) {
        if device != self.holder {
            // The embedding begins with the tokens, which everybody has.
            if shard > 0 {
                self.steps.push(Step::Handoff { to: device, before: shard });
            }
            self.holder = device;
        }
        match self.steps.last_mut() {
            Some(Step::Run(last))
                if last.device == device
                    && last.source == Source::Resident
                    && source == Source::Resident =>
            {
                last.shards.end = shard + 1;
            }
            _ => self.steps.push(Step::Run(Split { device, shards: shard..shard + 1, source })),
        }
    }
}

/// When each copy may begin. Copies are numbered on over the end of a pass.
struct Turns {
    /// For each copy of a pass: those that may begin as soon as its shard has been used, and not before.
    after_use: Vec<Range<usize>>,
    /// Those that may begin before anything has been used.
    ahead: usize,
}

impl Turns {
    /// From the rule that copy `m` may begin once copy `m - after` has been used, and that copies are made in order.
    fn of(plan: &Plan) -> Turns {
        let n = plan.slots.len();
        let may_begin = |m: usize, used: usize| used + plan.slots[m % n].after > m;
        let mut next = 0;
        let mut begin = |used: usize| {
            let first = next;
            while n > 0 && may_begin(next, used) {
                next += 1;
            }
            first..next
        };
        let ahead = begin(0).len();
        Turns { after_use: (1..=n).map(&mut begin).collect(), ahead }
    }
}

//! A plan as ordered steps: what is copied ahead, who hands over to whom, which shards run where.
//!
//! Knows places in running order and numbers of copies; neither memory nor devices nor tensors.

use std::ops::Range;

use planner::{Placement, Slot};

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
    /// Starts a copy into its slot, after everything that was submitted so far. Chosen experts that come next are copied
    /// first: they are waited for.
    Upload {
        /// Its number.
        copy: usize,
        /// It is for the next pass, if that is like this one: the ring goes on over the end of a pass.
        is_ahead: bool,
    },
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

    /// The steps of a plan that places shards so and gives those of them that are copied ahead these slots.
    pub fn of(placements: &[Placement], slots: &[Slot]) -> Schedule {
        let turns = Turns::of(slots);
        let copies: Vec<usize> = slots.iter().map(|slot| slot.shard).collect();
        let mut builder = Builder { steps: Vec::new(), holder: Device::Cpu };
        let mut may_begin = 0..0;
        for (shard, placement) in placements.iter().enumerate() {
            let copy = copies.binary_search(&shard).ok();
            let (device, source) = match placement {
                Placement::Cpu => (Device::Cpu, Source::Resident),
                Placement::Pinned => (Device::Gpu, Source::Resident),
                Placement::Streamed => (Device::Gpu, copy.map_or(Source::Chosen, Source::Copied)),
            };
            if source != Source::Chosen {
                builder.upload(&mut may_begin, copies.len());
            }
            builder.run(device, shard, source);
            if let Source::Copied(copy) = source {
                may_begin = turns.after_use[copy].clone();
            }
        }
        builder.upload(&mut may_begin, copies.len());
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
    /// Starts copies, of which a pass has `n`.
    fn upload(&mut self, copies: &mut Range<usize>, n: usize) {
        self.steps.extend(copies.map(|m| Step::Upload { copy: m % n, is_ahead: m >= n }));
    }

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
    fn of(slots: &[Slot]) -> Turns {
        let n = slots.len();
        let may_begin = |m: usize, used: usize| used + slots[m % n].after > m;
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

#[cfg(test)]
mod tests {
    use planner::Bytes;

    use super::*;

    /// Steps of shards that are all streamed, those in `ahead` through one slot.
    fn steps(n_shards: usize, ahead: &[usize]) -> Vec<String> {
        let slot = |&shard| Slot { shard, offset: Bytes::ZERO, size: Bytes::mib(1), after: 1 };
        let slots: Vec<Slot> = ahead.iter().map(slot).collect();
        let schedule = Schedule::of(&vec![Placement::Streamed; n_shards], &slots);
        let name = |step: &Step| match step {
            Step::Upload { copy, is_ahead: false } => format!("copy {copy}"),
            Step::Upload { copy, is_ahead: true } => format!("next pass, copy {copy}"),
            Step::Run(split) => format!("run {}", split.shards.start),
            Step::Handoff { .. } => unreachable!("one device has all"),
        };
        schedule.steps.iter().map(name).collect()
    }

    #[test]
    fn a_slot_is_filled_again_once_it_was_used() {
        let expected = ["run 0", "copy 1", "run 1", "copy 2", "run 2", "next pass, copy 0"];
        assert_eq!(steps(3, &[0, 1, 2]), expected);
    }

    #[test]
    fn chosen_experts_are_copied_before_what_is_copied_ahead() {
        let expected = ["run 0", "run 1", "copy 1", "run 2", "run 3", "next pass, copy 0"];
        assert_eq!(steps(4, &[0, 2]), expected);
    }
}

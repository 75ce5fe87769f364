//! Event simulation of passes: one chain of compute, one copy engine that runs ahead of it, one memory under both.
//!
//! The chain is a list of steps, run in order, pass after pass. The copy engine works through the streamed shards in
//! the same order, as far ahead as their slots allow, over the end of a pass into the next. What cannot be copied ahead
//! waits in the same queue for the copies begun before. While the CPU computes, copies run at the rate measured so; where
//! both ask more of the memory than it gives, the CPU slows down. While the GPU computes, a copy and the computation delay
//! each other by the measured loss.
//!
//! Not modelled: the copy back of new KV cells of streamed attention, which is small and runs the other way.

use crate::profile::{Link, MachineProfile};

/// A copy slows the CPU down at most to this share of its speed.
pub(crate) const SLOWEST_CPU: f64 = 0.25;

/// What is left of a piece of work that is done, in seconds or bytes.
const DONE: f64 = 1e-12;

/// One step of the chain: the work between two hand-offs or copies. Times are seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Step {
    /// First shard of the step, for whoever draws it.
    pub(crate) shard: usize,
    /// Before all else: hand-offs and starting work on the GPU.
    pub(crate) fixed: f64,
    /// Then: copying what cannot be copied ahead, once the copies are made that were begun before. Those that may begin
    /// now come after it.
    pub(crate) demand: f64,
    /// Then, on both devices at once: computing on the CPU,
    pub(crate) cpu: f64,
    /// which reads so many bytes,
    pub(crate) cpu_reads: f64,
    /// and computing on the GPU.
    pub(crate) gpu: f64,
    /// The GPU needs the next streamed shard.
    pub(crate) streamed: bool,
}

impl Step {
    /// Seconds that it takes at least.
    fn least(&self) -> f64 {
        self.fixed + self.demand + self.cpu.max(self.gpu)
    }
}

/// One copy ahead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Copy {
    /// The shard that is copied.
    pub(crate) shard: usize,
    /// Its size.
    pub(crate) bytes: f64,
    /// How many copies earlier the one was made that must have been used before.
    pub(crate) after: usize,
}

/// A pass as a chain of steps and the copies that they need.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain {
    pub(crate) steps: Vec<Step>,
    pub(crate) copies: Vec<Copy>,
}

/// What was busy, and from when to when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Who was busy.
    pub lane: Lane,
    /// Index of the first shard that it was busy with.
    pub shard: usize,
    /// Seconds since the start.
    pub start: f64,
    /// Seconds since the start.
    pub end: f64,
}

/// Who can be busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// The CPU computes.
    Cpu,
    /// The GPU computes.
    Gpu,
    /// A streamed shard is copied.
    Copy,
    /// Work is handed over or started.
    Handoff,
}

/// Where the time of a pass went. Seconds; they add up to the pass.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Shares {
    pub(crate) cpu: f64,
    pub(crate) gpu: f64,
    /// The chain stood still for a copy.
    pub(crate) waiting: f64,
    pub(crate) handoffs: f64,
}

impl Shares {
    pub(crate) fn total(&self) -> f64 {
        self.cpu + self.gpu + self.waiting + self.handoffs
    }
}

/// The passes of a simulation.
pub(crate) struct Passes {
    /// Nothing copied before it begins.
    pub(crate) first: Shares,
    /// Copied ahead by the pass before.
    pub(crate) steady: Shares,
}

impl Chain {
    /// Simulates a pass and the one after it, which goes as all later ones will: the ring holds a small part of a pass,
    /// so that how the first one began is long forgotten at its end. `None` once the second takes `limit` seconds.
    pub(crate) fn run(&self, machine: &MachineProfile, limit: f64) -> Option<Passes> {
        let mut simulation = Simulation::new(self, machine, |_| ());
        // The first pass takes as much longer at most as filling the ring does.
        let first = simulation.pass(limit + 2.0 * simulation.filling())?;
        if self.copies.is_empty() {
            return (first.total() < limit).then_some(Passes { first, steady: first });
        }
        let steady = simulation.pass(limit)?;
        (steady.total() < limit).then_some(Passes { first, steady })
    }

    /// What is busy when during the second pass, from its start on.
    pub(crate) fn steady_spans(&self, machine: &MachineProfile) -> Vec<Span> {
        let passes = self.run(machine, f64::INFINITY).expect("any time is below that");
        let start = passes.first.total();
        let later = self.spans(machine, 2).into_iter().filter(|span| span.end > start);
        let shifted = later.map(|span| Span {
            start: (span.start - start).max(0.0),
            end: span.end - start,
            ..span
        });
        shifted.collect()
    }

    /// What was busy when during the first `n` passes.
    pub(crate) fn spans(&self, machine: &MachineProfile, n: usize) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut simulation = Simulation::new(self, machine, |span: Span| {
            match spans.iter_mut().rev().take(4).find(|last| last.lane == span.lane) {
                Some(last) if last.shard == span.shard && last.end == span.start => {
                    last.end = span.end;
                }
                _ => spans.push(span),
            }
        });
        for _ in 0..n {
            simulation.pass(f64::INFINITY);
        }
        spans
    }
}

struct Simulation<'a, R> {
    chain: &'a Chain,
    /// Seconds that each step and those after it take at least.
    rest: Vec<f64>,
    h2d: f64,
    h2d_while_cpu: f64,
    /// While copying and GPU computing go on at once, each runs at this share of its speed.
    both: f64,
    dram: f64,
    now: f64,
    /// Copies begun, copies made, and copies whose shard has been used; counted over all passes.
    begun: usize,
    made: usize,
    used: usize,
    /// Index of the copy under way, or else of the next one.
    at: usize,
    /// What is left of the copy under way, if one is.
    copying: Option<f64>,
    record: R,
}

/// What goes on until it is all done.
struct Work {
    shard: usize,
    idle: f64,
    cpu: f64,
    /// Bytes per second that the CPU reads.
    cpu_rate: f64,
    gpu: f64,
    /// The GPU waits until so many copies are made.
    needs: usize,
}

impl<'a, R: FnMut(Span)> Simulation<'a, R> {
    fn new(chain: &'a Chain, machine: &MachineProfile, record: R) -> Simulation<'a, R> {
        let (h2d, h2d_while_cpu, loss) = match &machine.gpu {
            Some(gpu) => {
                let Link { h2d, h2d_while_cpu, overlap_loss, .. } = gpu.link;
                (h2d.get(), h2d_while_cpu.get(), overlap_loss)
            }
            None => (1.0, 1.0, 0.0),
        };
        let both = 1.0 / (1.0 + loss);
        let dram = machine.cpu.dram.get();
        let (now, begun, made, used, at, copying) = (0.0, 0, 0, 0, 0, None);
        let mut rest: Vec<f64> = chain.steps.iter().map(Step::least).collect();
        for i in (1..rest.len()).rev() {
            rest[i - 1] += rest[i];
        }
        Simulation {
            chain,
            rest,
            h2d,
            h2d_while_cpu,
            both,
            dram,
            now,
            begun,
            made,
            used,
            at,
            copying,
            record,
        }
    }

    /// Seconds of copying as much as is ever copied ahead, as slowly as copies go.
    fn filling(&self) -> f64 {
        let ahead = self.chain.copies.iter().map(|copy| copy.after).max().unwrap_or(0);
        let most = self.chain.copies.iter().map(|copy| copy.bytes).fold(0.0, f64::max);
        ahead as f64 * most / (self.h2d.min(self.h2d_while_cpu) * self.both)
    }

    /// One pass; `None` once it is certain to take `limit` seconds.
    fn pass(&mut self, limit: f64) -> Option<Shares> {
        let mut shares = Shares::default();
        let end = self.now + limit;
        let chain = self.chain;
        for (i, step) in chain.steps.iter().enumerate() {
            if self.now + self.rest[i] >= end {
                return None;
            }
            let Step { shard, fixed, demand, cpu, cpu_reads, gpu, streamed } = *step;
            let nothing = Work { shard, idle: 0.0, cpu: 0.0, cpu_rate: 0.0, gpu: 0.0, needs: 0 };
            if demand == 0.0 {
                self.begin_copies();
            }
            if fixed > 0.0 {
                self.note(Lane::Handoff, shard, self.now, self.now + fixed);
                self.until_done(Work { idle: fixed, ..nothing });
                shares.handoffs += fixed;
            }
            if demand > 0.0 {
                shares.waiting += self.until_done(Work { needs: self.begun, ..nothing });
                self.note(Lane::Copy, shard, self.now, self.now + demand);
                self.until_done(Work { idle: demand, ..nothing });
                shares.waiting += demand;
                self.begin_copies();
            }
            let start = self.now;
            let cpu_rate = if cpu > 0.0 { cpu_reads / cpu } else { 0.0 };
            let needs = if streamed { self.used + 1 } else { 0 };
            let waited = self.until_done(Work { cpu, cpu_rate, gpu, needs, ..nothing });
            let computed = self.now - start - waited;
            shares.waiting += waited;
            // Of two devices computing at once the longer one is what the pass takes.
            if cpu > gpu {
                shares.cpu += computed
            } else {
                shares.gpu += computed
            }
            if streamed {
                self.used += 1;
            }
        }
        Some(shares)
    }

    /// Lets time pass until `work` is done; gives the time during which nothing but copying went on.
    fn until_done(&mut self, mut work: Work) -> f64 {
        let mut waited = 0.0;
        loop {
            let missing = self.made < work.needs;
            let cpu_on = work.cpu > DONE;
            let gpu_on = work.gpu > DONE && !missing;
            if !cpu_on && !gpu_on && !missing && work.idle <= DONE {
                return waited;
            }
            if self.copying.is_none() && self.made < self.begun {
                self.copying = Some(self.chain.copies[self.at].bytes);
            }
            let copying = self.copying;
            let slowed = if copying.is_some() && gpu_on { self.both } else { 1.0 };
            let copy_rate = if cpu_on { self.h2d_while_cpu } else { self.h2d } * slowed;
            let mut cpu_speed = 1.0;
            if copying.is_some() && cpu_on && work.cpu_rate + copy_rate > self.dram {
                cpu_speed = ((self.dram - copy_rate) / work.cpu_rate).clamp(SLOWEST_CPU, 1.0);
            }
            let mut dt = f64::INFINITY;
            if let Some(left) = copying {
                dt = dt.min(left / copy_rate);
            }
            if cpu_on {
                dt = dt.min(work.cpu / cpu_speed);
            }
            if gpu_on {
                dt = dt.min(work.gpu / slowed);
            }
            if work.idle > DONE {
                dt = dt.min(work.idle);
            }
            assert!(dt.is_finite(), "a shard that is waited for is being copied");
            let then = self.now + dt;
            if let Some(left) = copying {
                let copies = &self.chain.copies;
                self.note(Lane::Copy, copies[self.at].shard, self.now, then);
                let left = left - dt * copy_rate;
                self.copying = (left > 1.0).then_some(left);
                if self.copying.is_none() {
                    self.made += 1;
                    self.at = if self.at + 1 < copies.len() { self.at + 1 } else { 0 };
                }
            }
            if cpu_on {
                self.note(Lane::Cpu, work.shard, self.now, then);
                work.cpu -= dt * cpu_speed;
            }
            if gpu_on {
                self.note(Lane::Gpu, work.shard, self.now, then);
                work.gpu -= dt * slowed;
            }
            if !cpu_on && !gpu_on && work.idle <= DONE {
                waited += dt;
            }
            work.idle -= dt;
            self.now = then;
        }
    }

    /// Begins the copies whose slots are free.
    fn begin_copies(&mut self) {
        let copies = &self.chain.copies;
        while !copies.is_empty() && self.used + copies[self.begun % copies.len()].after > self.begun
        {
            self.begun += 1;
        }
    }

    fn note(&mut self, lane: Lane, shard: usize, start: f64, end: f64) {
        (self.record)(Span { lane, shard, start, end });
    }
}

#[cfg(test)]
mod tests;

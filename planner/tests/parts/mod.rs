//! Random problems of many like layers, and machines with one part faster.

use planner::{
    Bytes, BytesPerSec, Kernels, MachineProfile, Plan, Problem, Runtime, Seconds, ShardCost, solve,
};

use crate::random::Random;

/// A random problem's parts.
pub struct Parts {
    pub machine: MachineProfile,
    pub shards: Vec<ShardCost>,
    pub vram: Bytes,
    n_tokens: u32,
}

impl Parts {
    /// Models of many like layers, as real ones are.
    pub fn random(seed: u64) -> Parts {
        let mut random = Random::new(seed);
        let machine = random.machine();
        let n_layer = 10 + random.below(40);
        let n_tokens = [1, 4, 64, 512][random.below(4) as usize];
        let shards = random.shards(n_layer, true, n_tokens);
        let all: Bytes = shards.iter().map(|cost| cost.weights + cost.kv).sum();
        let vram = Bytes::new((all.get() as f64 * 1.2 * random.share()) as u64) + Bytes::mib(4);
        Parts { machine, shards, vram, n_tokens }
    }

    pub fn solve(&self, machine: &MachineProfile, vram: Bytes) -> Option<Plan> {
        let residual = Bytes::new(4096 * u64::from(self.n_tokens));
        let shards = &self.shards;
        solve(&Problem { shards, machine, vram, residual, runtime: Runtime::Baton }).ok()
    }
}

fn faster(kernels: &mut Kernels, factor: f64) {
    kernels.op = kernels.op * (1.0 / factor);
    kernels.memory = kernels.memory * factor;
    let products = kernels.products.iter_mut().flat_map(|times| &mut times.points);
    products.for_each(|point| point.seconds = point.seconds * (1.0 / factor));
    let attention = kernels.attention.iter_mut().flat_map(|times| &mut times.points);
    attention.for_each(|point| point.seconds = point.seconds * (1.0 / factor));
}

/// The machine with some of its parts faster.
pub fn faster_machine(machine: &MachineProfile, part: u8, factor: f64) -> MachineProfile {
    let mut machine = machine.clone();
    let gpu = machine.gpu.as_mut().expect("it has one");
    let rate = |rate: BytesPerSec| rate * factor;
    match part {
        0 => {
            // A CPU that computes faster reads faster, too.
            faster(&mut machine.cpu.kernels, factor);
            machine.cpu.dram = rate(machine.cpu.dram);
        }
        1 => faster(&mut gpu.kernels, factor),
        2 => {
            gpu.link.handoff = Seconds::new(gpu.link.handoff.get() / factor);
            gpu.link.submit = Seconds::new(gpu.link.submit.get() / factor);
        }
        _ => {
            gpu.link.h2d = rate(gpu.link.h2d);
            gpu.link.h2d_while_cpu = rate(gpu.link.h2d_while_cpu);
            gpu.link.d2h = rate(gpu.link.d2h);
            machine.cpu.dram = rate(machine.cpu.dram);
        }
    }
    machine
}

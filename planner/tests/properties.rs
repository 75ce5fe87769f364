//! What must hold for every problem.

mod random;

use planner::{
    Bytes, BytesPerSec, Kernels, MachineProfile, Plan, Problem, Runtime, Seconds, ShardCost, solve,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use random::Random;

/// The search is not exhaustive. Of 5,964 random problems with up to twice the memory, 14 became slower with it, the
/// worst by 4.4 %; all others were as fast or faster. So the cases are the same each time.
const SEARCH: f64 = 0.05;

/// A random problem's parts.
struct Parts {
    machine: MachineProfile,
    shards: Vec<ShardCost>,
    vram: Bytes,
    n_tokens: u32,
}

impl Parts {
    /// Models of many like layers, as real ones are.
    fn random(seed: u64) -> Parts {
        let mut random = Random::new(seed);
        let machine = random.machine();
        let n_layer = 10 + random.below(40);
        let n_tokens = [1, 4, 64, 512][random.below(4) as usize];
        let shards = random.shards(n_layer, true, n_tokens);
        let all: Bytes = shards.iter().map(|cost| cost.weights + cost.kv).sum();
        let vram = Bytes::new((all.get() as f64 * 1.2 * random.share()) as u64) + Bytes::mib(4);
        Parts { machine, shards, vram, n_tokens }
    }

    fn solve(&self, machine: &MachineProfile, vram: Bytes) -> Option<Plan> {
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
fn faster_machine(machine: &MachineProfile, part: u8, factor: f64) -> MachineProfile {
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

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn never_over_budget(seed: u64) {
        let parts = Parts::random(seed);
        if let Some(plan) = parts.solve(&parts.machine, parts.vram) {
            prop_assert!(plan.vram.total() <= parts.vram);
        }
    }

    #[test]
    fn the_same_problem_gives_the_same_plan(seed: u64) {
        let parts = Parts::random(seed);
        prop_assert_eq!(
            parts.solve(&parts.machine, parts.vram),
            parts.solve(&parts.machine, parts.vram)
        );
    }

    #[test]
    fn more_vram_is_never_slower(seed: u64, more in 1.0..2.0f64) {
        let parts = Parts::random(seed);
        let larger = Bytes::new((parts.vram.get() as f64 * more) as u64);
        if let Some(plan) = parts.solve(&parts.machine, parts.vram) {
            let with_more = parts.solve(&parts.machine, larger).expect("what fits still fits");
            let (before, after) = (plan.predicted.seconds, with_more.predicted.seconds);
            prop_assert!(after.get() <= before.get() * (1.0 + SEARCH), "{after:?} after {before:?}");
        }
    }

    #[test]
    fn a_faster_machine_is_never_slower(seed: u64, part in 0..4u8, factor in 1.0..3.0f64) {
        let parts = Parts::random(seed);
        let machine = faster_machine(&parts.machine, part, factor);
        if let Some(plan) = parts.solve(&parts.machine, parts.vram) {
            let on_faster = parts.solve(&machine, parts.vram).expect("what fits still fits");
            let (before, after) = (plan.predicted.seconds, on_faster.predicted.seconds);
            prop_assert!(after.get() <= before.get() * (1.0 + SEARCH), "{after:?} after {before:?}");
        }
    }
}

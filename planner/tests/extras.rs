//! Passes of several ubatches, and options that the engine does not have yet: what they take and what they bring, and that
//! options never harm.

mod random;

use planner::{
    Bytes, BytesPerSec, Extras, Forecast, Format, Layout, MachineProfile, Method, Model, OpCost,
    Pass, Placement, Problem, Rows, Runtime, Seconds, Setting, Shard, ShardCost, Split, Switches,
    Workload, forecast, library, plan_tiers, predict, solve, vram_use,
};
use proptest::prelude::*;
use random::Random;

const LAYERS: u32 = 20;

/// Copies 10 GB/s, whatever else goes on; 1 ms a MiB of product on the CPU and a tenth of it on the GPU, at any number of
/// tokens; nothing else takes time.
fn machine() -> MachineProfile {
    let mut machine = Random::new(0).machine();
    machine.pass = Seconds::ZERO;
    machine.cpu.dram = BytesPerSec::new(1e15);
    let gpu = machine.gpu.as_mut().expect("it has one");
    gpu.link.h2d = BytesPerSec::new(10e9);
    gpu.link.h2d_while_cpu = BytesPerSec::new(10e9);
    gpu.link.d2h = BytesPerSec::new(10e9);
    gpu.link.handoff = Seconds::ZERO;
    gpu.link.submit = Seconds::ZERO;
    gpu.link.overlap_loss = 0.0;
    for (kernels, seconds) in [(&mut machine.cpu.kernels, 16e-3), (&mut gpu.kernels, 1.6e-3)] {
        kernels.op = Seconds::ZERO;
        kernels.memory = BytesPerSec::new(1e15);
        let points = kernels.products.iter_mut().flat_map(|times| &mut times.points);
        points.for_each(|point| point.seconds = Seconds::new(seconds));
    }
    machine
}

/// Attention of 1 MiB and FFN of 16 MiB in each layer, 1 MiB of scratch, an output of 1 MiB.
fn shards() -> Vec<ShardCost> {
    let all = Shard::all(LAYERS).into_iter();
    all.map(|shard| {
        let mib = if matches!(shard, Shard::Ffn { .. }) { 16 } else { 1 };
        let weights = Bytes::mib(mib);
        let product = OpCost::Product { format: Format::Q4_0, weights, n_tokens: 512 };
        let ops = if shard == Shard::Embedding { Vec::new() } else { vec![product] };
        let (kv, scratch) = (Bytes::ZERO, Bytes::mib(1));
        let shared_with_output = false;
        let unread = ShardCost::unread_by(&ops);
        ShardCost { shard, weights, unread, shared_with_output, kv, kv_used: kv, scratch, ops }
    })
    .collect()
}

fn problem<'a>(
    shards: &'a [ShardCost],
    machine: &'a MachineProfile,
    extras: Extras,
) -> Problem<'a> {
    let (vram, residual) = (Bytes::gib(64), Bytes::new(1 << 20));
    Problem { shards, machine, vram, residual, runtime: Runtime::With(extras) }
}

/// Attention and output pinned, FFN in one place.
fn layout(shards: &[ShardCost], ffn: Placement, ring: Bytes) -> Layout {
    let place = |cost: &ShardCost| match cost.shard {
        Shard::Embedding => Placement::Cpu,
        Shard::Attention { .. } | Shard::Output => Placement::Pinned,
        Shard::Ffn { .. } => ffn,
    };
    Layout { placements: shards.iter().map(place).collect(), ring, resident: Vec::new() }
}

#[track_caller]
fn about(found: Seconds, expected: f64) {
    let found = found.get();
    assert!((found / expected - 1.0).abs() < 1e-3, "{found}, not {expected}");
}

/// Seconds of the pinned attention of all layers, on the GPU, and of the output.
const ATTENTION: f64 = LAYERS as f64 * 1e-4;
const OUTPUT: f64 = 1e-4;
/// Seconds of handing over the activations of an ubatch.
const HANDOFF: f64 = 1048576.0 / 10e9;
/// Seconds of copying an FFN.
const COPY: f64 = 16.0 * 1048576.0 / 10e9;

#[test]
fn ubatches_of_one_turn_share_the_copies() {
    let (machine, shards) = (machine(), shards());
    let layout = layout(&shards, Placement::Streamed, Bytes::mib(32));
    for ubatches in [1, 2, 4, 8] {
        let problem = problem(&shards, &machine, Extras { ubatches, split: None });
        let n = f64::from(ubatches);
        // The FFN takes 1.6 ms an ubatch, about what its copy takes, so that from two on copies are hidden.
        let expected =
            (n * (HANDOFF + ATTENTION + OUTPUT + LAYERS as f64 * 1.6e-3)).max(LAYERS as f64 * COPY);
        about(predict(&problem, &layout).seconds, expected);
        assert_eq!(vram_use(&problem, &layout).scratch, Bytes::mib(u64::from(ubatches)));
    }
}

#[test]
fn a_split_ffn_takes_the_longer_of_its_parts() {
    let (machine, shards) = (machine(), shards());
    let rest = ATTENTION + OUTPUT + (1.0 + 2.0 * f64::from(LAYERS)) * HANDOFF;
    for (sixteenths, ffn) in [(4, 12e-3), (15, 1.5e-3)] {
        let split = |rows| Extras { ubatches: 1, split: Some(Split { sixteenths, rows }) };
        let pinned = layout(&shards, Placement::Cpu, Bytes::ZERO);
        let of_pinned = problem(&shards, &machine, split(Rows::Pinned));
        about(predict(&of_pinned, &pinned).seconds, rest + LAYERS as f64 * ffn);
        let weights = Bytes::mib(u64::from(LAYERS * sixteenths + LAYERS + 1));
        assert_eq!(vram_use(&of_pinned, &pinned).weights, weights);

        let streamed = layout(&shards, Placement::Cpu, Bytes::mib(32));
        let of_streamed = problem(&shards, &machine, split(Rows::Streamed));
        about(predict(&of_streamed, &streamed).seconds, rest + LAYERS as f64 * ffn);
        assert_eq!(vram_use(&of_streamed, &streamed).weights, Bytes::mib(LAYERS as u64 + 1));
    }
}

#[test]
fn the_search_keeps_what_waits_and_what_is_shared_inside_the_budget() {
    let (machine, shards) = (machine(), shards());
    let splits = [Rows::Pinned, Rows::Streamed].map(|rows| Some(Split { sixteenths: 4, rows }));
    for split in splits.into_iter().chain([None]) {
        for (ubatches, mib) in [(1, 60), (1, 150), (8, 60), (8, 150), (16, 400)] {
            let problem = problem(&shards, &machine, Extras { ubatches, split });
            let problem = Problem { vram: Bytes::mib(mib), ..problem };
            if let Ok(plan) = solve(&problem) {
                assert!(plan.vram.total() <= problem.vram, "{ubatches}, {split:?}, {mib} MiB");
                assert_eq!(predict(&problem, &plan.layout), plan.predicted);
            }
        }
    }
}

/// Layers of random sizes.
struct RandomModel {
    seed: u64,
    n_layer: u32,
}

impl Model for RandomModel {
    fn name(&self) -> &str {
        "random"
    }

    fn n_layer(&self) -> u32 {
        self.n_layer
    }

    fn n_ctx_train(&self) -> u32 {
        1 << 17
    }

    fn shards(&self, pass: Pass) -> Vec<ShardCost> {
        let mut shards = Random::new(self.seed).shards(self.n_layer, true, pass.n_tokens);
        for op in shards.iter_mut().flat_map(|cost| &mut cost.ops) {
            if let OpCost::Attention { n_kv, .. } = op {
                *n_kv = pass.n_kv;
            }
        }
        shards
    }

    fn residual(&self, n_tokens: u32) -> Bytes {
        Bytes::new(8192 * u64::from(n_tokens))
    }
}

/// Seconds to the last token.
fn whole(forecast: &Forecast) -> f64 {
    forecast.ttft.get() + f64::from(forecast.workload.n_gen) / forecast.tps
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn options_never_harm(seed: u64, share in 0.02..1.2f64) {
        let mut random = Random::new(seed);
        let machine = random.machine();
        let model = RandomModel { seed, n_layer: 4 + random.below(20) };
        let pass = Pass { n_tokens: 1, n_outputs: 1, n_kv: 4096, n_ctx: 8192 };
        let all: Bytes = model.shards(pass).iter().map(|cost| cost.weights + cost.kv).sum();
        let vram = Bytes::new((all.get() as f64 * share) as u64) + Bytes::mib(16);
        let workload = Workload { n_ctx: 8192, n_prompt: 8000, n_gen: 100 };
        let of = |switches| {
            let setting = Setting { model: &model, machine: &machine, vram, switches };
            forecast(&setting, workload, Method::Search)
        };
        let off = of(Switches::default());
        let on = of(Switches { split_ffn: true });
        prop_assert_eq!(off.is_ok(), on.is_ok());
        if let (Ok(off), Ok(on)) = (off, on) {
            prop_assert!(on.ttft <= off.ttft && whole(&on) <= whole(&off));
            prop_assert!(on.prefill.plan.vram.total().max(on.decode.plan.vram.total()) <= vram);
        }
    }
}

/// Copies bound a prompt of a large model on a laptop, where the ring holds little of it.
#[test]
fn several_ubatches_at_a_time_pay_where_copies_bound_a_prompt() {
    let machine = library::machine("rtx-4070-laptop").expect("built in");
    let model = library::model("nemo-8b-f16").expect("built in");
    let (vram, switches) = (Bytes::gib(2), Switches::default());
    let setting = Setting { model: &model, machine: &machine, vram, switches };
    let found = forecast(&setting, Workload::filling(16384), Method::Search).expect("a plan");
    assert!(found.prefill_extras.ubatches > 1);

    let tiers = plan_tiers(&setting, Workload::halfway(16384), 512, Method::Search).expect("plans");
    let [.., one, several] = &tiers[..] else { panic!("several tiers") };
    assert_eq!((one.tier, one.ubatches), (several.tier, 1));
    assert!(several.ubatches > 1 && several.plan.vram.total() <= vram);
    let per_ubatch = several.plan.predicted.seconds.get() / f64::from(several.ubatches);
    assert!(per_ubatch < 0.8 * one.plan.predicted.seconds.get());
}

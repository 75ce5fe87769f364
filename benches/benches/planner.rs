//! How long planning takes: all tiers of a large mixture of experts, and one request.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use planner::{Bytes, Method, Setting, Switches, Workload, forecast, library, plan_tiers};

fn planner(c: &mut Criterion) {
    let machine = library::machine("rtx-5090").expect("it is built in");
    let switches = Switches::default();
    let mut group = c.benchmark_group("planner");
    group.sample_size(10);
    for name in ["qwen3-235b-a22b-q2_k", "llama-3.3-70b-q4_k"] {
        let model = library::model(name).expect("it is built in");
        for gib in [4, 8, 12, 24] {
            let vram = Bytes::gib(gib);
            let setting = Setting { model: &model, machine: &machine, vram, switches };
            let plans = plan_tiers(&setting, Workload::halfway(16384), 1024, Method::Search)
                .expect("it fits");
            let mut tiers: Vec<_> = plans.iter().map(|plan| plan.tier).collect();
            tiers.dedup();
            assert_eq!(tiers.len(), 10, "tiers from 1 to 1024 tokens");
            group.bench_function(format!("tiers_to_1024/{name}/{gib}GiB"), |b| {
                b.iter(|| {
                    plan_tiers(black_box(&setting), Workload::halfway(16384), 1024, Method::Search)
                });
            });
        }
        let setting = Setting { model: &model, machine: &machine, vram: Bytes::gib(8), switches };
        let workload = Workload::filling(16384);
        group.bench_function(format!("request/{name}/8GiB"), |b| {
            b.iter(|| forecast(black_box(&setting), workload, Method::Search));
        });
    }
    group.finish();
}

criterion_group!(benches, planner);
criterion_main!(benches);

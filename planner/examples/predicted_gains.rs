//! What the general search is predicted to gain over the best of the paper's five strategies, for every cell of the
//! paper's Table 4; with the name of an option, what the search gains by it. Predictions only: nothing here is measured.
//!
//! `cargo run --release -p planner --example predicted_gains > benches/results/predicted/rtx-5090.csv`
//! `cargo run --release -p planner --example predicted_gains split-ffn > benches/results/predicted/rtx-5090-split-ffn.csv`

#[path = "../tests/paper/mod.rs"]
mod paper;

use std::collections::BTreeMap;

use paper::data;
use planner::{
    Bytes, Forecast, MachineProfile, Method, ModelShape, Seconds, Setting, Switches, Workload,
    forecast, library, typed,
};

/// A way to run plans.
struct Executor {
    name: &'static str,
    machine: MachineProfile,
}

/// The paper's, which waits for the device after every split, and one with events. The figures of the second are
/// assumptions.
fn executors() -> [Executor; 2] {
    let machine = library::machine("rtx-5090").expect("it is built in");
    let mut events = machine.clone();
    let link = &mut events.gpu.as_mut().expect("it has one").link;
    link.submit = Seconds::new(20e-6);
    link.handoff = Seconds::new(20e-6);
    link.overlap_loss = 0.1;
    [Executor { name: "as_fitted", machine }, Executor { name: "events", machine: events }]
}

fn predict(
    executor: &Executor,
    model: &ModelShape,
    cell: &data::Cell,
    way: Way,
) -> Option<Forecast> {
    let vram = Bytes::mib(cell.vram_mib.into()).min(Bytes::gib(32));
    let setting = Setting { model, machine: &executor.machine, vram, switches: way.switches };
    let (n_prompt, n_gen) =
        (data::n_prompt(&cell.model, cell.n_ctx), data::n_gen(&cell.model, cell.n_ctx));
    forecast(&setting, Workload { n_ctx: cell.n_ctx, n_prompt, n_gen }, way.method).ok()
}

/// How plans are made.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    method: Method,
    switches: Switches,
}

impl Way {
    fn of(name: &'static str, method: Method, switches: Switches) -> Way {
        Way { name, method, switches }
    }

    /// What is compared: by default the search with the five strategies, else an option with none.
    fn asked() -> [Way; 2] {
        let none = Switches::default();
        let search = Way::of("search", Method::Search, none);
        match std::env::args().nth(1) {
            None => [Way::of("best5", Method::BestStrategy, none), search],
            Some(name) => {
                let switch = typed::switch(&name).unwrap_or_else(|error| panic!("{error}"));
                [search, Way::of(switch.name(), Method::Search, Switches::from_iter([switch]))]
            }
        }
    }
}

fn main() {
    let ways = Way::asked();
    let [before, after] = ways.map(|way| way.name);
    println!("# PREDICTED, not measured: {after} over {before}, planner on rtx-5090");
    println!(
        "# as_fitted: hand-offs and overlap as fitted to the paper's program; events: 0.02 ms, loss 0.1 (assumed)"
    );
    println!(
        "executor,model,n_ctx,vram_mib,ttft_{before}_s,ttft_{after}_s,ttft_gain,tps_{before},tps_{after},tps_gain"
    );
    let mut groups: BTreeMap<(&str, String, u32), Vec<[f64; 2]>> = BTreeMap::new();
    for executor in executors() {
        for cell in data::table4() {
            let model = paper::model(&cell.model);
            let [Some(before), Some(after)] =
                ways.map(|way| predict(&executor, &model, &cell, way))
            else {
                continue;
            };
            let gains = [before.ttft.get() / after.ttft.get(), after.tps / before.tps];
            println!(
                "{},{},{},{},{:.3},{:.3},{:.3},{:.2},{:.2},{:.3}",
                executor.name,
                cell.model,
                cell.n_ctx,
                cell.vram_mib,
                before.ttft.get(),
                after.ttft.get(),
                gains[0],
                before.tps,
                after.tps,
                gains[1],
            );
            for key in [(cell.model.clone(), 0), ("all".into(), cell.vram_mib), ("all".into(), 0)] {
                groups.entry((executor.name, key.0, key.1)).or_default().push(gains);
            }
        }
    }
    println!("# geometric means; vram_mib 0: all budgets");
    println!("executor,model,vram_mib,cells,ttft_gain,tps_gain,ttft_gain_most,tps_gain_most");
    for ((executor, model, vram), gains) in groups {
        let mean = |i: usize| {
            let sum: f64 = gains.iter().map(|gain| gain[i].ln()).sum();
            (sum / gains.len() as f64).exp()
        };
        let most = |i: usize| gains.iter().map(|gain| gain[i]).fold(0.0, f64::max);
        println!(
            "{executor},{model},{vram},{},{:.3},{:.3},{:.3},{:.3}",
            gains.len(),
            mean(0),
            mean(1),
            most(0),
            most(1)
        );
    }
}

//! Fits the figures of the paper's machine to the paper's measurements and writes them down.
//!
//! `cargo run --release -p planner --example fit_paper` fits on the contexts 1K and 16K, tells the errors there and on
//! the held-out contexts 4K and 64K, and writes `tests/data/paper/figures.toml`; with `--all` it fits on everything
//! and writes `machines/rtx-5090.toml` and machines derived from it. Levenberg and Marquardt's method on the logarithms of times and figures.

mod derived;
mod least_squares;
#[path = "../../tests/paper/mod.rs"]
mod paper;

use std::path::Path;

use planner::{Kernels, MachineProfile, Seconds};

use paper::data::{self, Baseline, Cell};
use paper::machine::{Build, Figures, shapes};
use paper::replay::{self, Row};

use crate::least_squares::fit;

const DECODE: &[&str] = &[
    "cpu_f16",
    "cpu_q4",
    "cpu_q2",
    "cpu_q6",
    "cpu_op",
    "cpu_cell",
    "cpu_cell_cached",
    "cpu_kv",
    "gpu_memory",
    "gpu_op",
    "gpu_kv",
    "pass",
    "submit",
    "own_kv",
    "own_op",
    "dram",
    "kv_copy",
];

const PREFILL: &[&str] = &[
    "gpu_f16",
    "gpu_q4",
    "gpu_q2",
    "gpu_attention",
    "request",
    "pageable",
    "first_touch",
    "h2d",
    "overlap_loss",
    "own_attention",
    "kv_copy",
];

/// Runs with everything on the GPU are few, but they alone show what the GPU does.
const ALL_ON_GPU: f64 = 3.0;

/// Cells of Table 4 are fewer than baseline runs.
const TABLE: f64 = 1.5;

/// A measured time and what it is compared with.
struct Measured {
    row: Row,
    seconds: f64,
    weight: f64,
    /// The published time is rounded by so much either way.
    rounding: f64,
}

fn main() {
    let all = std::env::args().any(|arg| arg == "--all");
    let machine = Figures::start().profile(Build::Sharding, &shapes(models().iter()));
    let runs: Vec<Baseline> = data::baseline();
    let cells: Vec<Cell> = data::table4();
    let of = |n_ctx: u32| all || data::is_training(n_ctx);
    let (mut decode, mut prefill) = (Vec::new(), Vec::new());
    for run in runs.iter().filter(|run| of(run.n_ctx)) {
        let model = paper::model(&run.model);
        let on_gpu = run.ngl > model.n_layer;
        let weight = if on_gpu { ALL_ON_GPU } else { 1.0 };
        let [row_decode, row_prefill] = replay::baseline(run, &model);
        decode.push(Measured { row: row_decode, seconds: 1.0 / run.tps, weight, rounding: 0.0 });
        prefill.push(Measured { row: row_prefill, seconds: run.ttft, weight, rounding: 0.0 });
    }
    for cell in cells.iter().filter(|cell| of(cell.n_ctx)) {
        let model = paper::model(&cell.model);
        let [row_decode, row_prefill] = replay::cell(cell, &model, &machine);
        let weight = TABLE;
        decode.push(Measured { row: row_decode, seconds: 1.0 / cell.tps, weight, rounding: 0.0 });
        prefill.push(Measured { row: row_prefill, seconds: cell.ttft, weight, rounding: 0.05 });
    }
    let mut figures = Figures::start();
    for _ in 0..3 {
        figures = fit(&figures, PREFILL, &|figures| residuals(&prefill, figures));
        figures = fit(&figures, DECODE, &|figures| residuals(&decode, figures));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    if all {
        let shapes = shapes(models().iter());
        let mut profile = figures.profile(Build::Sharding, &shapes);
        profile.provenance = PROVENANCE.into();
        write_machine(profile);
        derived::DERIVED.iter().for_each(|one| write_machine(one.profile(&figures, &shapes)));
    } else {
        let text = toml::to_string(&figures).expect("numbers are TOML");
        let note = "# Made by `cargo run --release -p planner --example fit_paper`.\n";
        std::fs::write(folder.join("tests/data/paper/figures.toml"), format!("{note}{text}"))
            .expect("written");
    }
    println!("{}", toml::to_string(&figures).expect("numbers are TOML"));
    report(&figures, &runs, &cells, &machine);
}

const PROVENANCE: &str = "RTX 5090, PCIe 5 x16, 16 CPU threads, Windows: fitted by examples/fit_paper to all \
    measurements published with the pipelined-sharding paper (MLSys 2026); not measured op by op";

fn write_machine(mut profile: MachineProfile) {
    profile.cpu.kernels = rounded(profile.cpu.kernels);
    let gpu = profile.gpu.as_mut().expect("it has one");
    gpu.kernels = rounded(gpu.kernels.clone());
    profile.check().expect("a fitted machine is a machine");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines");
    let path = folder.join(&profile.name).with_extension("toml");
    std::fs::write(path, profile.to_toml()).expect("written");
}

/// Times to four digits, which is more than a fit knows.
fn rounded(mut kernels: Kernels) -> Kernels {
    let round = |time: Seconds| {
        let text = format!("{:.3e}", time.get());
        Seconds::new(text.parse().expect("it was just printed"))
    };
    for point in kernels.products.iter_mut().flat_map(|times| &mut times.points) {
        point.seconds = round(point.seconds);
    }
    for point in kernels.attention.iter_mut().flat_map(|times| &mut times.points) {
        point.seconds = round(point.seconds);
    }
    kernels
}

fn models() -> Vec<planner::ModelShape> {
    paper::model_names().map(paper::model).collect()
}

fn residuals(rows: &[Measured], figures: &Figures) -> Vec<f64> {
    rows.iter().map(|measured| measured.weight * shrunk(measured.error(figures))).collect()
}

impl Measured {
    /// Logarithm of predicted over measured time; with rounding, what lies outside of it.
    fn error(&self, figures: &Figures) -> f64 {
        let (predicted, _) = self.row.best(figures);
        if self.rounding == 0.0 {
            return (predicted / self.seconds).ln();
        }
        let outside = ((predicted - self.seconds).abs() - self.rounding).max(0.0);
        outside.copysign(predicted - self.seconds) / self.seconds
    }
}

/// Keeps a few odd runs from steering the fit.
fn shrunk(error: f64) -> f64 {
    const SOFT: f64 = 0.15;
    let size = SOFT * (2.0 * ((1.0 + (error / SOFT).powi(2)).sqrt() - 1.0)).sqrt();
    size.copysign(error)
}

fn report(figures: &Figures, runs: &[Baseline], cells: &[Cell], machine: &planner::MachineProfile) {
    for training in [true, false] {
        let half = if training { "1K and 16K" } else { "4K and 64K" };
        let (mut base, mut table) = ([vec![], vec![]], [vec![], vec![]]);
        for run in runs.iter().filter(|run| data::is_training(run.n_ctx) == training) {
            let [decode, prefill] = replay::baseline(run, &paper::model(&run.model));
            base[0].push((decode.best(figures).0 * run.tps - 1.0).abs());
            base[1].push((prefill.best(figures).0 / run.ttft - 1.0).abs());
        }
        for cell in cells.iter().filter(|cell| data::is_training(cell.n_ctx) == training) {
            let [decode, prefill] = replay::cell(cell, &paper::model(&cell.model), machine);
            let (seconds, strategy) = decode.best(figures);
            let (ttft, prefill_strategy) = prefill.best(figures);
            let outside = ((ttft - cell.ttft).abs() - 0.05).max(0.0) / cell.ttft;
            table[0].push((1.0 / seconds / cell.tps - 1.0).abs());
            table[1].push(outside);
            println!(
                "{:9} {:6} {:6} MiB  TPS {:6.1} predicted {:6.1} {:5.1} % {strategy:18}  TTFT {:6.1} predicted {:6.2} {prefill_strategy}",
                cell.model,
                cell.n_ctx,
                cell.vram_mib,
                cell.tps,
                1.0 / seconds,
                100.0 * (1.0 / seconds / cell.tps - 1.0),
                cell.ttft,
                ttft,
            );
        }
        for (what, errors) in [("baseline", &mut base), ("table 4", &mut table)] {
            let [tps, ttft] = errors.each_mut().map(|errors| summary(errors));
            println!("{half} {what}: TPS {tps}  TTFT {ttft}");
        }
    }
}

fn summary(errors: &mut [f64]) -> String {
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| 100.0 * errors[((errors.len() - 1) as f64 * share).round() as usize];
    format!("median {:.1} % p90 {:.1} % max {:.1} %", at(0.5), at(0.9), at(1.0))
}

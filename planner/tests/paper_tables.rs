//! The paper's tables, replayed with figures that were fitted on the contexts 1K and 16K only.
//!
//! `examples/fit_paper` makes the figures; nothing is fitted here. Predictions for the contexts 4K and 64K are held to
//! the measurements. The bounds are those that the planner was asked to keep.

mod paper;

use paper::data::{self, Baseline, Cell};
use paper::machine::{Build, Figures, shapes};
use paper::replay;
use planner::{Bytes, Method, Setting, Switches, Workload, forecast, library};

fn figures() -> Figures {
    toml::from_str(include_str!("data/paper/figures.toml")).expect("the fit wrote it")
}

fn machine(figures: &Figures) -> planner::MachineProfile {
    let models: Vec<_> = paper::model_names().map(paper::model).collect();
    figures.profile(Build::Sharding, &shapes(models.iter()))
}

fn held_out() -> Vec<Cell> {
    data::table4().into_iter().filter(|cell| !data::is_training(cell.n_ctx)).collect()
}

/// Median and 90th percentile, in per cent.
fn summary(mut errors: Vec<f64>) -> (f64, f64) {
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| 100.0 * errors[((errors.len() - 1) as f64 * share).round() as usize];
    (at(0.5), at(0.9))
}

#[test]
fn held_out_cells_are_predicted() {
    let figures = figures();
    let machine = machine(&figures);
    let (mut tps, mut ttft) = (Vec::new(), Vec::new());
    for cell in held_out() {
        let [decode, prefill] = replay::cell(&cell, &paper::model(&cell.model), &machine);
        tps.push((1.0 / decode.best(&figures).0 / cell.tps - 1.0).abs());
        // The table rounds to a tenth of a second.
        let off = (prefill.best(&figures).0 - cell.ttft).abs() - 0.05;
        ttft.push(off.max(0.0) / cell.ttft);
    }
    assert_eq!(tps.len(), 56);
    let ((tps_median, tps_p90), (ttft_median, ttft_p90)) = (summary(tps), summary(ttft));
    println!(
        "TPS {tps_median:.1} % and {tps_p90:.1} %, TTFT {ttft_median:.1} % and {ttft_p90:.1} %"
    );
    assert!(tps_median <= 4.0 && tps_p90 <= 15.0, "TPS {tps_median:.1} % and {tps_p90:.1} %");
    assert!(ttft_median <= 6.0 && ttft_p90 <= 27.0, "TTFT {ttft_median:.1} % and {ttft_p90:.1} %");
}

/// The baseline runs that a cell is compared with: those of its budget, or of the largest there were.
fn baseline_of(runs: &[Baseline], model: &str, n_ctx: u32, vram_mib: u32) -> Vec<Baseline> {
    let of_model = || runs.iter().filter(|run| run.model == model && run.n_ctx == n_ctx);
    let budget = vram_mib / 1024 * 1000;
    let largest = of_model().map(|run| run.vram_mb).max().expect("there are runs");
    let budget = if of_model().any(|run| run.vram_mb == budget) { budget } else { largest };
    of_model().filter(|run| run.vram_mb == budget).cloned().collect()
}

#[test]
fn winners_over_whole_layers_are_foretold() {
    let figures = figures();
    let machine = machine(&figures);
    let runs = data::baseline();
    let mut compared = 0;
    for gain in data::figure2().iter().filter(|gain| !data::is_training(gain.n_ctx)) {
        let model = paper::model(&gain.model);
        let cell = Cell {
            model: gain.model.clone(),
            n_ctx: gain.n_ctx,
            vram_mib: gain.vram_mib,
            tps: 0.0,
            ttft: 0.0,
        };
        let mut best = [f64::INFINITY; 2];
        for run in baseline_of(&runs, &gain.model, gain.n_ctx, gain.vram_mib) {
            let [decode, prefill] = replay::baseline(&run, &model);
            best = [best[0].min(decode.best(&figures).0), best[1].min(prefill.best(&figures).0)];
        }
        let [decode, prefill] = replay::cell(&cell, &model, &machine);
        let predicted = [best[0] / decode.best(&figures).0, best[1] / prefill.best(&figures).0];
        for (what, predicted, measured) in
            [("TPS", predicted[0], gain.tps), ("TTFT", predicted[1], gain.ttft)]
        {
            if measured > 1.05 {
                let Cell { model, n_ctx, vram_mib, .. } = &cell;
                let place = format!("{what} of {model}, {n_ctx} tokens, {vram_mib} MiB");
                assert!(predicted > 1.0, "{place}: {measured} measured, {predicted:.2} predicted");
                compared += 1;
            }
        }
    }
    assert!(compared > 80, "{compared} held-out cells differ by over 5 %");
}

/// Of the strategies that fit, the one that the authors' runs behave as is also the fastest predicted, but for dense
/// models whose attention does not fit: there they computed attention on the CPU, though streaming it would be faster.
#[test]
fn the_papers_own_choice_is_explained() {
    let figures = figures();
    let machine = machine(&figures);
    let mut other = 0;
    for cell in data::table4() {
        let model = paper::model(&cell.model);
        let [decode, _] = replay::cell(&cell, &model, &machine);
        let (taken, name) = decode.best(&figures);
        let all = replay::any_strategy(&cell, &model, &machine);
        let (fastest, faster_name) = all.best(&figures);
        if fastest < 0.99 * taken {
            let place = format!("{} {} {}", cell.model, cell.n_ctx, cell.vram_mib);
            assert!(cell.model.starts_with("nemo"), "{place}: {faster_name} beats {name}");
            assert_eq!(name, "static", "{place}");
            other += 1;
        }
    }
    println!("{other} cells of 112 take the static strategy where another is faster");
    assert!(other <= 20);
}

/// The smaller cards are scaled from the fitted machine by published figures of like parts, not fitted, and what else the
/// paper's smaller machines were made of is not known. So they are held to a factor only: about 40 % off at the median,
/// up to 2.1 for models with experts, and why is not known. The largest model does not fit in the memory of the
/// profiles, and is left out.
#[test]
fn smaller_cards_are_right_within_a_factor() {
    let (mut tps, mut ttft) = (Vec::new(), Vec::new());
    for cell in data::table5().into_iter().filter(|cell| cell.model != "qwen-235b") {
        let name = if cell.card_gib == 16 { "rtx-5070-ti" } else { "rtx-3060" };
        let (model, machine) = (paper::model(&cell.model), library::machine(name));
        let machine = machine.expect("it is built in");
        let (vram, switches) = (Bytes::gib(cell.card_gib.into()), Switches::default());
        let setting = Setting { model: &model, machine: &machine, vram, switches };
        let (n_prompt, n_gen) =
            (data::n_prompt(&cell.model, cell.n_ctx), data::n_gen(&cell.model, cell.n_ctx));
        let workload = Workload { n_ctx: cell.n_ctx, n_prompt, n_gen };
        let found = forecast(&setting, workload, Method::BestStrategy).expect("it fits");
        let off = |ratio: f64| ratio.max(1.0 / ratio) - 1.0;
        tps.push(off(found.tps / cell.tps));
        ttft.push(off(found.ttft.get() / cell.ttft));
    }
    assert_eq!(tps.len(), 24);
    for (what, off, median, most) in [("TPS", tps, 45.0, 1.2), ("TTFT", ttft, 40.0, 0.75)] {
        let worst = off.iter().copied().fold(0.0, f64::max);
        let (found, _) = summary(off);
        println!("{what}: {found:.0} % off at the median, {:.0} % at most", 100.0 * worst);
        assert!(found <= median && worst <= most, "{what}: {found:.0} %, {worst:.2}");
    }
}

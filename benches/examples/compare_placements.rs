//! What rows of `placements` come to: how far predictions were off, how near to the best plan the search's came, and how
//! much faster it is than whole layers (`-ngl`) and than the best of the five strategies of pipelined sharding.
//!
//! ```text
//! cargo run --release -p benches --example compare_placements -- a.csv b.csv > summary.csv
//! ```
//! A cell is one model, budget, prompt and length of the answer. Plans are compared by the whole answer, for which the search's are chosen;
//! the best of the five is the one whose whole answer is fastest.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

/// The search's plan may be slower than the best one by this share.
const NEAR: f64 = 0.05;

/// The strategies of pipelined sharding.
const FIVE: [&str; 5] =
    ["full-gpu", "full-gpu-no-output", "static", "shard-attention", "full-shard"];

fn main() -> Result<()> {
    let mut cells: BTreeMap<Cell, Vec<Row>> = BTreeMap::new();
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).with_context(|| file.clone())?;
        let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        for line in rows {
            let (cell, row) = read(line).with_context(|| format!("{file}: {line}"))?;
            cells.entry(cell).or_default().push(row);
        }
    }
    print_errors(&cells);
    print_behind(&cells)?;
    print_gains(&cells)
}

/// Model, budget in units of 0.1 MiB, tokens of the prompt and of the answer.
type Cell = (String, u64, u32, u32);

/// What one plan took, measured and predicted. Seconds and tokens per second.
struct Row {
    plan: String,
    n_gen: f64,
    ttft: [f64; 2],
    tps: [f64; 2],
}

impl Row {
    /// Seconds to the last token.
    fn whole(&self) -> f64 {
        self.ttft[0] + (self.n_gen - 1.0) / self.tps[0]
    }
}

fn read(line: &str) -> Result<(Cell, Row)> {
    let fields: Vec<&str> = line.split(',').collect();
    let [model, vram, n_prompt, n_gen, plan, figures @ ..] = &fields[..] else {
        bail!("too few fields")
    };
    let figures: Vec<f64> = figures.iter().take(4).map(|x| x.parse()).collect::<Result<_, _>>()?;
    let [ttft, predicted_ttft, tps, predicted_tps] = figures[..] else { bail!("too few figures") };
    let (vram, n_gen): (f64, u32) = (vram.parse()?, n_gen.parse()?);
    let cell = ((*model).to_owned(), (vram * 10.0).round() as u64, n_prompt.parse()?, n_gen);
    let (ttft, tps) = ([ttft, predicted_ttft], [tps, predicted_tps]);
    Ok((cell, Row { plan: (*plan).to_owned(), n_gen: n_gen.into(), ttft, tps }))
}

fn print_errors(cells: &BTreeMap<Cell, Vec<Row>>) {
    println!("figure,of,plans,median_error,p90_error");
    let all: Vec<&Row> = cells.values().flatten().collect();
    let chosen: Vec<&Row> = all.iter().copied().filter(|row| row.plan == "search").collect();
    for (whose, rows) in [("all", all), ("search", chosen)] {
        print_error("TTFT", whose, rows.iter().map(|row| row.ttft));
        print_error("TPS", whose, rows.iter().map(|row| row.tps));
    }
}

fn print_error(figure: &str, whose: &str, pairs: impl Iterator<Item = [f64; 2]>) {
    let errors = pairs.map(|[measured, predicted]| (predicted / measured - 1.0).abs());
    let mut errors: Vec<f64> = errors.collect();
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| errors[((errors.len() - 1) as f64 * share) as usize];
    println!("{figure},{whose},{},{:.4},{:.4}", errors.len(), at(0.5), at(0.9));
}

/// The row of a cell that says `plan`.
fn row<'a>(rows: &'a [Row], plan: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.plan == plan)
}

/// The row whose whole answer is fastest.
fn best<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    rows.min_by(|a, b| a.whole().total_cmp(&b.whole()))
}

fn print_behind(cells: &BTreeMap<Cell, Vec<Row>>) -> Result<()> {
    println!("model,vram_mib,n_prompt,n_gen,plans,best,behind_best");
    let mut near = 0;
    for ((model, vram, n_prompt, n_gen), rows) in cells {
        let search = row(rows, "search").context("each cell has the search's plan")?;
        let best = best(rows.iter()).context("each cell has rows")?;
        let behind = search.whole() / best.whole() - 1.0;
        near += usize::from(behind <= NEAR);
        let vram = *vram as f64 / 10.0;
        println!("{model},{vram:.1},{n_prompt},{n_gen},{},{},{behind:.4}", rows.len(), best.plan);
    }
    println!("# within {:.0} % of the best: {near} of {} cells", 100.0 * NEAR, cells.len());
    Ok(())
}

fn print_gains(cells: &BTreeMap<Cell, Vec<Row>>) -> Result<()> {
    println!("model,vram_mib,n_prompt,n_gen,over,ttft_gain,tps_gain,whole_gain");
    for ((model, vram, n_prompt, n_gen), rows) in cells {
        let search = row(rows, "search").context("each cell has the search's plan")?;
        let of_five = rows.iter().filter(|row| FIVE.contains(&row.plan.as_str()));
        for other in row(rows, "whole-layers").into_iter().chain(best(of_five)) {
            let vram = *vram as f64 / 10.0;
            println!(
                "{model},{vram:.1},{n_prompt},{n_gen},{},{:.3},{:.3},{:.3}",
                other.plan,
                other.ttft[0] / search.ttft[0],
                search.tps[0] / other.tps[0],
                other.whole() / search.whole()
            );
        }
    }
    Ok(())
}

//! A sweep as a table of text.

use std::fmt::Write;

use super::sweep::{Cell, Outcome, Placed, Preview};
use crate::forecast::Forecast;
use crate::model::{Model, Pass};
use crate::typed::tokens;
use crate::units::{Bytes, Seconds};

/// Before a time that lies outside what was measured.
const UNMEASURED: char = '~';

impl Preview<'_> {
    /// The sweep as a table, a line or two for each cell; then the chosen cell from near. ANSI colours on demand.
    pub fn text(&self, colour: bool) -> String {
        let mut text = self.heading();
        text.push_str(&self.table());
        text.push_str(&self.near(colour));
        text
    }

    /// What is shown, and that it is a prediction.
    fn heading(&self) -> String {
        let (model, machine) = (self.question.model, self.question.machine);
        let card = machine.gpu.as_ref().map_or("no GPU".to_owned(), |gpu| gpu.name.clone());
        let (name, n_layer, weights) = (model.name(), model.n_layer(), weights(model));
        let mut text = format!(
            "Predicted, not measured: {name} ({n_layer} layers, {weights}) on {} ({card})\n",
            machine.name,
        );
        let made_for = model.n_ctx_train();
        if self.cells.iter().any(|cell| cell.workload.n_ctx > made_for) {
            let made_for = tokens(made_for);
            let _ =
                writeln!(text, "Note: the model was made for contexts of up to {made_for} tokens");
        }
        text
    }

    fn table(&self) -> String {
        let mut rows = vec![HEAD.map(str::to_owned)];
        let mut ends = vec![0];
        let mut vram = None;
        for cell in &self.cells {
            let first = vram.replace(cell.vram) != Some(cell.vram);
            rows.extend(rows_of(cell, first));
            ends.push(rows.len() - 1);
        }
        let mut text = String::from("\n");
        let widths: Vec<usize> = (0..HEAD.len() - 1)
            .map(|i| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0))
            .collect();
        for row in &rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(line, "{cell:>width$}  ");
            }
            line.push_str(&row[HEAD.len() - 1]);
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push('\n');
        text.push_str(LEGEND);
        if self.cells.iter().flat_map(|cell| &cell.outcome).any(|found| !found.forecast.measured) {
            let _ =
                writeln!(text, "{UNMEASURED} a time in it lies outside what the profile measured");
        }
        text
    }
}

const HEAD: [&str; 8] = ["VRAM", "ctx", "TTFT", "", "TPS", "", "uses", "where shards live"];

const LEGEND: &str = "\
TTFT: time to first token; TPS: tokens per second after it; × how much faster than whole layers (-ngl)
pinned: stays in VRAM; streamed: copied to VRAM just in time; CPU: computed where it is, in memory
";

/// The lines of a cell: two where prompt and answer are planned differently.
fn rows_of(cell: &Cell, first: bool) -> Vec<[String; HEAD.len()]> {
    let vram = if first { gib(cell.vram) } else { String::new() };
    let ctx = tokens(cell.workload.n_ctx);
    match &cell.outcome {
        Err(error) => {
            let mut row = [const { String::new() }; HEAD.len()];
            (row[0], row[1], row[HEAD.len() - 1]) = (vram, ctx, error.to_string());
            vec![row]
        }
        Ok(outcome) => rows_of_outcome(vram, ctx, outcome),
    }
}

fn rows_of_outcome(vram: String, ctx: String, outcome: &Outcome) -> Vec<[String; HEAD.len()]> {
    let forecast = &outcome.forecast;
    let mark = if forecast.measured { String::new() } else { UNMEASURED.to_string() };
    let [ttft_gain, tps_gain] = outcome
        .gains()
        .map_or([const { String::new() }; 2], |gains| gains.map(|gain| format!("{gain:.2}×")));
    let [prefill, decode] = outcome.placed.each_ref().map(placed);
    let same = prefill == decode;
    let uses = forecast.prefill.plan.vram.total().max(forecast.decode.plan.vram.total());
    let first = [
        vram,
        ctx,
        format!("{mark}{}", seconds(forecast.ttft)),
        ttft_gain,
        format!("{mark}{}", rate(forecast.tps)),
        tps_gain,
        gib(uses),
        if same { decode.clone() } else { format!("prompt: {prefill}") },
    ];
    if same {
        return vec![first];
    }
    let mut second = [const { String::new() }; HEAD.len()];
    second[HEAD.len() - 1] = format!("answer: {decode}");
    vec![first, second]
}

/// A layout in words, behind the strategy that makes it.
pub(super) fn placed(placed: &Placed) -> String {
    match placed.strategy {
        Some(strategy) => format!("{strategy}: {}", placed.words),
        None => placed.words.clone(),
    }
}

/// Tokens in a pass of the prompt: of one ubatch, or of each of several.
pub(super) fn pass_size(forecast: &Forecast) -> String {
    let n_ubatch = tokens(forecast.n_ubatch);
    match forecast.prefill_extras.ubatches {
        1 => n_ubatch,
        ubatches => format!("{ubatches} × {n_ubatch}"),
    }
}

/// Bytes of all weights.
pub(super) fn weights(model: &dyn Model) -> Bytes {
    let pass = Pass { n_tokens: 1, n_outputs: 1, n_kv: 1, n_ctx: 1 };
    let shards = model.shards(pass);
    shards.iter().filter(|shard| !shard.shared_with_output).map(|shard| shard.weights).sum()
}

/// In GiB, so that columns compare; less than one of them as sizes are typed.
pub(super) fn gib(bytes: Bytes) -> String {
    let (n, mib) = (bytes.get() as f64 / Bytes::gib(1).get() as f64, Bytes::mib(1).get());
    let whole = |unit: Bytes| bytes.get().is_multiple_of(unit.get());
    match bytes {
        Bytes::ZERO => "0".to_owned(),
        _ if whole(Bytes::gib(1)) => format!("{n:.0} GiB"),
        _ if bytes < Bytes::gib(1) && whole(Bytes::mib(1)) => format!("{} MiB", bytes.get() / mib),
        _ => format!("{n:.2} GiB"),
    }
}

/// A time with three digits.
pub(super) fn seconds(time: Seconds) -> String {
    match time.get() {
        n if n < 0.01 => format!("{:.2} ms", n * 1e3),
        n if n < 1.0 => format!("{:.0} ms", n * 1e3),
        n if n < 10.0 => format!("{n:.2} s"),
        n if n < 100.0 => format!("{n:.1} s"),
        n => format!("{n:.0} s"),
    }
}

/// A rate with three digits.
pub(super) fn rate(per_second: f64) -> String {
    match per_second {
        n if n < 10.0 => format!("{n:.2}"),
        n if n < 100.0 => format!("{n:.1}"),
        n => format!("{n:.0}"),
    }
}

//! One cell from near: a strip of layers for each tier, VRAM by what it holds, the bottleneck, what could be changed.

use std::fmt::Write;

use super::shape::Shape;
use super::sweep::{Outcome, Preview};
use super::table::{gib, pass_size, placed, rate, seconds};
use super::what_if::Variation;
use crate::forecast::{Forecast, TierPlan};
use crate::placement::Placement;
use crate::plan::{Bottleneck, Layout, Prediction, VramUse};
use crate::typed::tokens;
use crate::units::{Bytes, Seconds};

/// How a shard is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Pinned,
    Streamed,
    /// Streamed, but for tensors that stay in VRAM.
    InPart,
    Cpu,
}

impl Mark {
    const ALL: [Mark; 4] = [Mark::Pinned, Mark::Streamed, Mark::InPart, Mark::Cpu];

    /// What it means, in words.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Mark::Pinned => "pinned",
            Mark::Streamed => "streamed",
            Mark::InPart => "streamed, but for tensors that stay",
            Mark::Cpu => "CPU",
        }
    }

    fn sign(self) -> char {
        match self {
            Mark::Pinned => '█',
            Mark::Streamed => '▒',
            Mark::InPart => '▓',
            Mark::Cpu => '·',
        }
    }

    /// Number of its colour on a terminal.
    fn ansi(self) -> u8 {
        match self {
            Mark::Pinned => 32,
            Mark::Streamed | Mark::InPart => 33,
            Mark::Cpu => 36,
        }
    }
}

impl Preview<'_> {
    /// The chosen cell from near.
    pub(super) fn near(&self, colour: bool) -> String {
        let outcome = self.chosen();
        let forecast = &outcome.forecast;
        let mut text = format!(
            "\n{} and a context of {}, for a prompt of {} and an answer of {} tokens:\n",
            match forecast.vram {
                Bytes::ZERO => "Without a GPU".to_owned(),
                vram => format!("With {} of VRAM", gib(vram)),
            },
            tokens(forecast.workload.n_ctx),
            tokens(forecast.workload.n_prompt),
            tokens(forecast.workload.n_gen),
        );
        text.push_str(&strips(outcome, self.question.ffn(), colour));
        if self.question.machine.gpu.is_some() && forecast.vram > Bytes::ZERO {
            text.push_str(&vram_table(forecast));
        }
        text.push_str(&self.changes(forecast));
        text
    }

    fn changes(&self, forecast: &Forecast) -> String {
        let mut text = String::new();
        if let Some(Variation { forecast: more }) = &self.what_if.more_vram {
            let vram = Bytes::saturating_sub(more.vram, forecast.vram);
            let _ = writeln!(text, "With {} more VRAM: {}", gib(vram), change(forecast, more));
        }
        if let Some(Variation { forecast: half }) = &self.what_if.half_ctx {
            let n_ctx = tokens(half.workload.n_ctx);
            let prompt = if half.workload.n_prompt == forecast.workload.n_prompt {
                String::new()
            } else {
                format!(" and a prompt of {}", tokens(half.workload.n_prompt))
            };
            let change = change(forecast, half);
            let _ = writeln!(text, "With a context of {n_ctx}{prompt}: {change}");
        }
        text
    }
}

/// How a changed request compares.
fn change(now: &Forecast, then: &Forecast) -> String {
    let percent = |share: f64| match ((share - 1.0) * 100.0).round() {
        0.0 => "the same".to_owned(),
        percent => format!("{percent:+.0} %"),
    };
    format!(
        "TTFT {} ({}), TPS {} ({})",
        seconds(then.ttft),
        percent(then.ttft.get() / now.ttft.get()),
        rate(then.tps),
        percent(then.tps / now.tps),
    )
}

/// Both tiers, layer by layer, and what the marks mean.
fn strips(outcome: &Outcome, ffn: &str, colour: bool) -> String {
    let Forecast { prefill, decode, .. } = &outcome.forecast;
    let [in_prefill, in_decode] = outcome.placed.each_ref().map(placed);
    let size = pass_size(&outcome.forecast);
    let mut used = Vec::new();
    let mut text = String::new();
    for (title, tier, words) in [
        (format!("Prompt, {size} tokens in a pass"), prefill, in_prefill),
        ("Answer, 1 token in a pass".to_owned(), decode, in_decode),
    ] {
        let predicted = &tier.plan.predicted;
        let _ = writeln!(
            text,
            "\n{title}: {} a pass, {}",
            seconds(predicted.seconds),
            held_up(predicted)
        );
        let _ = writeln!(text, "  {words}");
        text.push_str(&strip(tier, ffn, colour, &mut used));
    }
    text + &legend(&used, colour)
}

/// One plan, layer by layer, and what the marks mean.
pub fn plan_strip(tier: &TierPlan, colour: bool) -> String {
    let mut used = Vec::new();
    let text = strip(tier, "FFN", colour, &mut used);
    text + &legend(&used, colour)
}

fn legend(used: &[Mark], colour: bool) -> String {
    let meanings = Mark::ALL.into_iter().filter(|mark| used.contains(mark));
    let meanings: Vec<String> =
        meanings.map(|mark| format!("{} {}", paint(&[mark], colour), mark.meaning())).collect();
    format!("\n  {}   (a sign for each layer, the first one left)\n", meanings.join("   "))
}

/// The bottleneck with its share of the pass.
fn held_up(predicted: &Prediction) -> String {
    let (name, time) = match predicted.bottleneck() {
        Bottleneck::Cpu => ("the CPU computes", predicted.cpu),
        Bottleneck::Gpu => ("the GPU computes", predicted.gpu),
        Bottleneck::Pcie => ("waiting for copies", predicted.waiting),
        Bottleneck::Handoffs => ("hand-offs", predicted.handoffs),
    };
    format!("{:.0} % of it {name}", share(time, predicted.seconds))
}

fn share(part: Seconds, whole: Seconds) -> f64 {
    100.0 * part.get() / whole.get()
}

fn strip(tier: &TierPlan, ffn: &str, colour: bool, used: &mut Vec<Mark>) -> String {
    let rows = marks(&tier.plan.layout);
    used.extend(rows.iter().flatten());
    let [embedding, attention, ffns, output] = rows.map(|marks| paint(&marks, colour));
    format!(
        "  {:>9} {attention}\n  {ffn:>9} {ffns}\n  {:>9} {embedding}   output {output}\n",
        "attention", "embedding"
    )
}

/// Embedding, attention, FFN, output.
pub(super) fn marks(layout: &Layout) -> [Vec<Mark>; 4] {
    let shape = Shape::of(layout);
    let in_part = |shard: usize| layout.resident.iter().any(|tensor| tensor.shard == shard);
    let mark = |placement: Placement, shard: usize| match placement {
        Placement::Cpu => Mark::Cpu,
        Placement::Pinned => Mark::Pinned,
        Placement::Streamed if in_part(shard) => Mark::InPart,
        Placement::Streamed => Mark::Streamed,
    };
    // In running order: the embedding, then attention and FFN of each layer, then the output.
    let layers = |placements: &[Placement], first: usize| {
        let layers = placements.iter().enumerate();
        layers.map(|(layer, placement)| mark(*placement, first + 2 * layer)).collect()
    };
    [
        vec![mark(shape.embedding, 0)],
        layers(&shape.attention, 1),
        layers(&shape.ffn, 2),
        vec![mark(shape.output, layout.placements.len() - 1)],
    ]
}

/// Signs, those that are alike in one colour.
fn paint(marks: &[Mark], colour: bool) -> String {
    let mut text = String::new();
    for alike in marks.chunk_by(|a, b| a == b) {
        let signs: String = alike.iter().map(|mark| mark.sign()).collect();
        if colour {
            let _ = write!(text, "\x1b[{}m{signs}\x1b[0m", alike[0].ansi());
        } else {
            text.push_str(&signs);
        }
    }
    text
}

/// VRAM by what it holds, for both tiers.
fn vram_table(forecast: &Forecast) -> String {
    let mut text = format!(
        "\n{:<16}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
        format!("  of {}", gib(forecast.vram)),
        "weights",
        "KV",
        "slots",
        "scratch",
        "driver",
        "free"
    );
    for (name, tier) in [("  prompt, GiB", &forecast.prefill), ("  answer, GiB", &forecast.decode)]
    {
        let VramUse { weights, kv, slots, scratch, driver } = tier.plan.vram;
        let free = forecast.vram.saturating_sub(tier.plan.vram.total());
        let _ = write!(text, "{name:<16}");
        for bytes in [weights, kv, slots, scratch, driver, free] {
            let _ = write!(text, "{:>10.2}", bytes.get() as f64 / Bytes::gib(1).get() as f64);
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

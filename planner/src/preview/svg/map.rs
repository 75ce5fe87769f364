//! Where things are: VRAM by what it holds, layers by where they live.

use super::canvas::Canvas;
use super::{LEFT, RIGHT};
use crate::plan::{Layout, VramUse};
use crate::preview::strip::{Mark, marks};
use crate::preview::table::gib;
use crate::units::Bytes;

const BAR: f64 = 22.0;
const ROW: f64 = 12.0;

/// A pixel of text takes about so many pixels of width.
const PER_CHARACTER: f64 = 6.2;

/// The budget as a bar, filled by what takes it.
pub(super) fn vram(canvas: &mut Canvas, used: VramUse, budget: Bytes) {
    let scale = (RIGHT - LEFT) / budget.get() as f64;
    row_name(canvas, BAR, &format!("VRAM, {}", gib(budget)));
    canvas.rect([LEFT, RIGHT - LEFT, BAR], "track", "free");
    let VramUse { weights, kv, slots, scratch, driver } = used;
    let free = budget.saturating_sub(used.total());
    let mut x = LEFT;
    for (class, name, bytes) in [
        ("pinned", "weights", weights),
        ("kv", "KV", kv),
        ("streamed", "slots", slots),
        ("scratch", "scratch", scratch),
        ("driver", "driver", driver),
        ("", "free", free),
    ] {
        let width = bytes.get() as f64 * scale;
        let text = format!("{name} {}", gib(bytes));
        if width > 0.5 && !class.is_empty() {
            canvas.rect([x, (width - 0.8).max(0.5), BAR], class, &text);
        }
        if width > PER_CHARACTER * text.chars().count() as f64 + 6.0 {
            canvas.down(BAR - 7.0);
            canvas.text(x + 5.0, if class.is_empty() { "small" } else { "in" }, &text);
            canvas.down(7.0 - BAR);
        }
        x += width;
    }
    canvas.down(BAR + 8.0);
}

/// Attention and FFN of each layer, and the output, by where they live.
pub(super) fn layers(canvas: &mut Canvas, layout: &Layout, ffn: &str) {
    let [_, attention, ffns, output] = marks(layout);
    // The output is as wide as a layer, a layer's width away from the last one.
    let cell = (RIGHT - LEFT) / (attention.len() as f64 + 2.0);
    for (name, marks) in [("attention", &attention), (ffn, &ffns)] {
        row_name(canvas, ROW, name);
        for (layer, mark) in marks.iter().enumerate() {
            let x = LEFT + cell * layer as f64;
            let name = format!("layer {layer}: {}", mark.meaning());
            canvas.rect([x, cell * 0.86, ROW], class(*mark), &name);
        }
        canvas.down(ROW + 2.0);
    }
    let height = 2.0 * ROW + 2.0;
    canvas.down(-height - 2.0);
    let name = format!("output: {}", output[0].meaning());
    canvas.rect([RIGHT - cell, cell * 0.86, height], class(output[0]), &name);
    canvas.down(height + 12.0);
    canvas.text(LEFT, "small", "layer 0");
    canvas.text_before(RIGHT, "small", "output");
    canvas.down(8.0);
}

fn class(mark: Mark) -> &'static str {
    match mark {
        Mark::Pinned => "pinned",
        Mark::Streamed => "streamed",
        Mark::InPart => "part",
        Mark::Cpu => "cpu",
    }
}

/// The name of a row of some height that begins at the current one.
pub(super) fn row_name(canvas: &mut Canvas, height: f64, name: &str) {
    let foot = height / 2.0 + 4.0;
    canvas.down(foot);
    canvas.text_before(LEFT - 8.0, "small", name);
    canvas.down(-foot);
}

/// What the colours mean.
pub(super) fn legend(canvas: &mut Canvas) {
    canvas.down(26.0);
    for line in [
        &[
            ("cpu", "in memory, the CPU computes"),
            ("pinned", "stays in VRAM, the GPU computes"),
            ("streamed", "copied to VRAM just in time"),
            ("part", "copied but for tensors that stay"),
        ][..],
        &[
            ("handoff", "hand-off between CPU and GPU"),
            ("kv", "KV cells that stay in VRAM"),
            ("scratch", "scratch for activations"),
            ("driver", "taken by the driver"),
        ],
    ] {
        for (column, (class, words)) in line.iter().enumerate() {
            let x = 20.0 + 232.0 * column as f64;
            canvas.down(-9.0);
            canvas.rect([x, 10.0, 10.0], class, "");
            canvas.down(9.0);
            canvas.text(x + 16.0, "small", words);
        }
        canvas.down(18.0);
    }
    canvas.down(-18.0);
}

//! What is busy when: lanes of CPU, GPU and copies over the first passes, a plan's above those of whole layers.

use super::canvas::Canvas;
use super::map::row_name;
use super::{LEFT, RIGHT};
use crate::preview::table::seconds;
use crate::timeline::{Lane, Span};
use crate::units::Seconds;

/// Passes of a plan that are drawn at most.
pub(super) const MOST_PASSES: usize = 4;

const LANE: f64 = 15.0;

/// The first passes of one kind under one plan.
pub(super) struct Passes {
    spans: Vec<Span>,
    /// When each pass ends.
    ends: Vec<f64>,
}

impl Passes {
    /// From what was busy during the first one, two, … passes.
    pub(super) fn of(spans_of: impl Fn(usize) -> Vec<Span>) -> Passes {
        let ends = (1..=MOST_PASSES).map(|n| end(&spans_of(n))).collect();
        Passes { spans: spans_of(MOST_PASSES), ends }
    }

    /// Seconds of a pass.
    fn each(&self) -> f64 {
        self.ends[MOST_PASSES - 1] / MOST_PASSES as f64
    }
}

fn end(spans: &[Span]) -> f64 {
    spans.iter().map(|span| span.end).fold(0.0, f64::max)
}

/// Two ways to run the same passes, in the same time.
pub(super) struct Race {
    plan: Passes,
    baseline: Option<Passes>,
    /// Seconds that are shown.
    shown: f64,
    /// What comes of a pass, in words.
    unit: String,
}

impl Race {
    /// Shows two passes of the plan, or more where whole layers take longer for one.
    pub(super) fn of(plan: Passes, baseline: Option<Passes>, unit: String) -> Race {
        let (own, other) = (plan.each(), baseline.as_ref().map_or(0.0, Passes::each));
        let shown = other.clamp(2.0 * own, MOST_PASSES as f64 * own);
        Race { plan, baseline, shown, unit }
    }
}

pub(super) fn draw(canvas: &mut Canvas, race: &Race) {
    canvas.down(16.0);
    let top = canvas.y;
    heading(canvas, race, "this plan", &race.plan);
    lanes(canvas, &race.plan, race.shown);
    if let Some(baseline) = &race.baseline {
        canvas.down(18.0);
        heading(canvas, race, "whole layers (-ngl)", baseline);
        lanes(canvas, baseline, race.shown);
    }
    axis(canvas, top, race.shown);
}

/// Who runs, and at what pace.
fn heading(canvas: &mut Canvas, race: &Race, name: &str, passes: &Passes) {
    let each = seconds(Seconds::new(passes.each()));
    canvas.text(
        LEFT,
        "small",
        &format!("{name}: {each} for {}, from one grey bar to the next", race.unit),
    );
    canvas.down(6.0);
}

fn lanes(canvas: &mut Canvas, passes: &Passes, shown: f64) {
    let top = canvas.y;
    for (lane, name, class) in [
        (Lane::Cpu, "CPU computes", "cpu"),
        (Lane::Gpu, "GPU computes", "pinned"),
        (Lane::Copy, "copy to VRAM", "streamed"),
    ] {
        row_name(canvas, LANE, name);
        canvas.rect([LEFT, RIGHT - LEFT, LANE], "track", "");
        canvas.bars(&bars(&passes.spans, lane, shown), LANE, class);
        if lane == Lane::Gpu {
            canvas.bars(&bars(&passes.spans, Lane::Handoff, shown), LANE, "handoff");
        }
        canvas.down(LANE + 2.0);
    }
    let height = canvas.y - top;
    canvas.down(-height - 3.0);
    for end in passes.ends.iter().filter(|end| **end <= shown * 1.001) {
        canvas.fall(at(*end, shown), height + 4.0, "pass");
    }
    canvas.down(height + 3.0);
}

/// Where a time is drawn.
fn at(time: f64, shown: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * (time / shown).min(1.0)
}

/// Spans of a lane as bars, each where it begins and how wide it is; those too thin to be told apart as one.
fn bars(spans: &[Span], lane: Lane, shown: f64) -> Vec<[f64; 2]> {
    const THIN: f64 = 3.0;
    const GAP: f64 = 0.5;
    let mut bars: Vec<[f64; 2]> = Vec::new();
    for span in spans.iter().filter(|span| span.lane == lane) {
        let [start, end] = [at(span.start, shown), at(span.end, shown)];
        match bars.last_mut() {
            _ if end <= start => {}
            Some(last) if start - last[1] < GAP && (end - start).min(last[1] - last[0]) < THIN => {
                last[1] = end;
            }
            _ => bars.push([start, end]),
        }
    }
    let width = |[start, end]: [f64; 2]| [start, (end - start - GAP).max(0.3)];
    bars.into_iter().map(width).collect()
}

fn axis(canvas: &mut Canvas, top: f64, shown: f64) {
    let step = step(shown / 6.0);
    let (unit, name) = if shown < 1.0 { (1e-3, "ms") } else { (1.0, "s") };
    let height = canvas.y - top;
    canvas.down(-height);
    let ticks = (shown / step) as u32;
    for tick in 0..=ticks {
        let time = f64::from(tick) * step;
        let x = at(time, shown);
        canvas.fall(x, height + 4.0, "tick");
        canvas.down(height + 16.0);
        let digits = if step / unit < 0.1 { 2 } else { usize::from(step / unit < 1.0) };
        let label = format!("{:.digits$}", time / unit);
        // The unit stands with the last tick.
        let label = if tick == ticks { format!("{label} {name}") } else { label };
        canvas.text_around(x, "small", &label);
        canvas.down(-height - 16.0);
    }
    canvas.down(height + 18.0);
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `least`.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|n| n * power);
    steps.into_iter().find(|step| *step >= least).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        let steps = [0.9, 1.0, 1.1, 3.0, 7.0, 0.03].map(step);
        let expected = [1.0, 1.0, 2.0, 5.0, 10.0, 0.05];
        for (found, expected) in steps.into_iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        }
    }
}

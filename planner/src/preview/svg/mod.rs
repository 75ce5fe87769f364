//! The plan of one cell as a picture: VRAM by what it holds, the layers by where they live, and the first passes on a
//! time line beside those of whole layers.
//!
//! Legible on light and on dark grounds; needs no fonts and no other files.

mod canvas;
mod map;
mod timeline;

use self::canvas::Canvas;
use self::timeline::{Passes, Race};
use super::sweep::{Outcome, Preview};
use super::table::{gib, pass_size, placed, rate, seconds};
use crate::extras::Extras;
use crate::forecast::{Method, Setting, TierPlan};
use crate::model::Pass;
use crate::plan::{Layout, trace};
use crate::problem::Problem;
use crate::strategy::Strategy;
use crate::typed::tokens;

/// Pixels. Names of rows stand left of `LEFT`; what is drawn ends at `RIGHT`.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 112.0;
const RIGHT: f64 = WIDTH - 20.0;

impl Preview<'_> {
    /// The chosen cell as an SVG file.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(WIDTH);
        self.title(&mut canvas);
        let outcome = self.chosen();
        let Outcome { forecast, placed: [in_prefill, in_decode], .. } = outcome;
        self.panel(
            &mut canvas,
            &Panel {
                title: "Prompt",
                words: placed(in_prefill),
                unit: format!("each {} tokens", pass_size(forecast)),
                tier: &forecast.prefill,
                pass: forecast.prefill_pass(),
                extras: forecast.prefill_extras,
            },
        );
        self.panel(
            &mut canvas,
            &Panel {
                title: "Answer",
                words: placed(in_decode),
                unit: "each token".to_owned(),
                tier: &forecast.decode,
                pass: forecast.decode_pass(),
                extras: forecast.decode_extras,
            },
        );
        map::legend(&mut canvas);
        canvas.into_svg()
    }

    fn title(&self, canvas: &mut Canvas) {
        let outcome = self.chosen();
        let forecast = &outcome.forecast;
        let title = format!(
            "{} on {}, {} of VRAM, a context of {}",
            self.question.model.name(),
            self.question.machine.name,
            gib(forecast.vram),
            tokens(forecast.workload.n_ctx),
        );
        let [ttft_gain, tps_gain] = outcome.gains().map_or([const { String::new() }; 2], |gains| {
            gains.map(|gain| format!(" ({gain:.2}× whole layers)"))
        });
        let rates = format!(
            "Predicted, not measured: first token after {}{ttft_gain}, then {} tokens a second{tps_gain}",
            seconds(forecast.ttft),
            rate(forecast.tps),
        );
        canvas.down(30.0);
        canvas.text(20.0, "title", &title);
        canvas.down(22.0);
        canvas.text(20.0, "text", &rates);
    }

    fn panel(&self, canvas: &mut Canvas, panel: &Panel<'_>) {
        canvas.down(42.0);
        canvas.text(20.0, "head", panel.title);
        canvas.text(LEFT, "text", &panel.words);
        canvas.down(14.0);
        let setting = self.chosen_setting();
        if panel.tier.plan.vram.total().get() > 0 {
            map::vram(canvas, panel.tier.plan.vram, setting.vram);
        }
        map::layers(canvas, &panel.tier.plan.layout, self.question.ffn());
        timeline::draw(canvas, &self.race(&setting, panel));
    }

    /// The passes of a plan beside those of whole layers.
    fn race(&self, setting: &Setting<'_>, panel: &Panel<'_>) -> Race {
        let passes = |method, extras, layout: &Layout| {
            let traced = |n| {
                let trace = |problem: &Problem<'_>| trace(problem, layout, n);
                setting.with_problem(panel.pass, method, extras, trace)
            };
            Passes::of(traced)
        };
        let plan = passes(panel.tier.method, panel.extras, &panel.tier.plan.layout);
        // Passes of several ubatches are not to be held against passes of one.
        let comparable = self.chosen().baseline.as_ref().filter(|_| panel.extras.ubatches == 1);
        let baseline = comparable.and_then(|_| {
            let (method, none) = (Method::Strategy(Strategy::WholeLayers), Extras::default());
            let made_for = self.chosen().forecast.prefill_pass();
            let lay_out = |problem: &Problem<'_>| Strategy::WholeLayers.layout(problem);
            let layout = setting.with_problem(made_for, method, none, lay_out)?;
            Some(passes(method, none, &layout))
        });
        Race::of(plan, baseline, panel.unit.clone())
    }
}

/// What is drawn of one tier.
struct Panel<'a> {
    title: &'static str,
    words: String,
    /// What comes of a pass.
    unit: String,
    tier: &'a TierPlan,
    pass: Pass,
    extras: Extras,
}

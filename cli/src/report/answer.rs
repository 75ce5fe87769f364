//! How an answer went: one line for people, one object for programs.

use std::fmt;

use engine_core::{FinishReason, Speculated, Stats, Vram};
use planner::{Seconds, VramUse};
use serde::Serialize;

/// A finished answer.
#[derive(Debug)]
pub(crate) struct AnswerReport {
    pub(crate) stats: Stats,
    pub(crate) reason: FinishReason,
    pub(crate) n_ctx: u32,
    pub(crate) load: Seconds,
    pub(crate) seed: u64,
    /// Where a GPU took part.
    pub(crate) vram: Option<Vram>,
}

impl fmt::Display for AnswerReport {
    /// `prefill 412.3 TPS (38 tokens), TTFT 0.093 s, 85.2 TPS (120 tokens), load 0.080 s; end of turn; seed 7`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AnswerReport { stats, reason, load, seed, .. } = self;
        let n_run = stats.n_prompt - stats.n_reused;
        write!(f, "prefill {} TPS ({n_run} tokens), ", Rate(stats.prefill_tps()))?;
        write!(f, "TTFT {:.3} s, ", stats.ttft.get())?;
        write!(f, "{} TPS ({} tokens), ", Rate(stats.tps()), stats.n_generated)?;
        if let Some(Speculated { n_proposed, n_accepted }) = stats.speculated {
            write!(f, "lookup {n_accepted} of {n_proposed} right, ")?;
        }
        write!(f, "load {:.3} s; {}; seed {seed}", load.get(), explain(*reason))?;
        match &self.vram {
            Some(vram) => write!(f, "\n{}", Held(vram)),
            None => Ok(()),
        }
    }
}

/// VRAM by what it holds.
struct Held<'a>(&'a Vram);

impl fmt::Display for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Vram { budget, taken, holds } = self.0;
        let VramUse { weights, kv, slots, scratch, driver } = holds;
        write!(f, "VRAM {taken} of {budget}: weights {weights}, KV {kv}, slots {slots}, ")?;
        write!(f, "scratch {scratch}, driver {driver}")
    }
}

/// A rate, or a dash where there was nothing to measure.
struct Rate(Option<f64>);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rate) => write!(f, "{rate:.1}"),
            None => write!(f, "-"),
        }
    }
}

/// Why an answer ended, for people.
pub(crate) fn explain(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::EndOfTurn => "end of turn",
        FinishReason::Stop => "stop text",
        FinishReason::MaxTokens => "cut at --max-tokens",
        FinishReason::ContextFull => "cut because the context is full; --ctx makes it larger",
        FinishReason::Cancelled => "stopped",
    }
}

/// A finished answer, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct AnswerJson<'a> {
    text: &'a str,
    finish: &'static str,
    prompt_tokens: u32,
    generated_tokens: u32,
    ttft_s: f64,
    prefill_tps: Option<f64>,
    tps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proposed_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_tokens: Option<u32>,
    load_s: f64,
    n_ctx: u32,
    seed: u64,
    vram: Option<VramJson>,
}

/// VRAM, in bytes.
#[derive(Debug, Serialize)]
struct VramJson {
    budget: u64,
    taken: u64,
    weights: u64,
    kv: u64,
    slots: u64,
    scratch: u64,
    driver: u64,
}

impl From<Vram> for VramJson {
    fn from(vram: Vram) -> VramJson {
        let VramUse { weights, kv, slots, scratch, driver } = vram.holds;
        VramJson {
            budget: vram.budget.get(),
            taken: vram.taken.get(),
            weights: weights.get(),
            kv: kv.get(),
            slots: slots.get(),
            scratch: scratch.get(),
            driver: driver.get(),
        }
    }
}

impl AnswerReport {
    /// With the text, as an object for JSON.
    pub(crate) fn json<'a>(&self, text: &'a str) -> AnswerJson<'a> {
        AnswerJson {
            text,
            finish: match self.reason {
                FinishReason::EndOfTurn => "end_of_turn",
                FinishReason::Stop => "stop",
                FinishReason::MaxTokens => "max_tokens",
                FinishReason::ContextFull => "context_full",
                FinishReason::Cancelled => "cancelled",
            },
            prompt_tokens: self.stats.n_prompt,
            generated_tokens: self.stats.n_generated,
            ttft_s: self.stats.ttft.get(),
            prefill_tps: self.stats.prefill_tps(),
            tps: self.stats.tps(),
            proposed_tokens: self.stats.speculated.map(|speculated| speculated.n_proposed),
            accepted_tokens: self.stats.speculated.map(|speculated| speculated.n_accepted),
            load_s: self.load.get(),
            n_ctx: self.n_ctx,
            seed: self.seed,
            vram: self.vram.map(VramJson::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> AnswerReport {
        let stats = Stats {
            n_prompt: 40,
            n_reused: 2,
            n_generated: 11,
            ttft: Seconds::new(0.12),
            prefill: Seconds::new(0.1),
            decode: Seconds::new(0.2),
            speculated: None,
        };
        let (load, seed) = (Seconds::new(0.05), 7);
        let reason = FinishReason::MaxTokens;
        AnswerReport { stats, reason, n_ctx: 512, load, seed, vram: None }
    }

    #[test]
    fn the_line_has_rates_times_and_the_reason() {
        let line = report().to_string();
        let expected = "prefill 380.0 TPS (38 tokens), TTFT 0.120 s, 50.0 TPS (11 tokens), load 0.050 s; \
                        cut at --max-tokens; seed 7";
        assert_eq!(line, expected);
    }

    #[test]
    fn speculation_is_told_where_it_is_on() {
        let off = serde_json::to_value(report().json("Hi")).expect("JSON");
        assert_eq!(off.get("proposed_tokens"), None);
        let speculated = Some(Speculated { n_proposed: 18, n_accepted: 9 });
        let report = AnswerReport { stats: Stats { speculated, ..report().stats }, ..report() };
        assert!(report.to_string().contains("TPS (11 tokens), lookup 9 of 18 right, load"));
        let on = serde_json::to_value(report.json("Hi")).expect("JSON");
        assert_eq!((&on["proposed_tokens"], &on["accepted_tokens"]), (&18.into(), &9.into()));
    }

    #[test]
    fn what_was_not_measured_is_a_dash_and_null() {
        let stats = Stats { n_generated: 1, n_reused: 40, ..report().stats };
        let report = AnswerReport { stats, ..report() };
        assert!(report.to_string().contains("prefill - TPS (0 tokens)"), "{report}");
        let json = serde_json::to_value(report.json("Hi")).expect("JSON");
        assert_eq!((&json["text"], &json["tps"]), (&"Hi".into(), &serde_json::Value::Null));
    }
}

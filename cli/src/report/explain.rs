//! Where the time of an answer went, beside what was predicted.

use std::collections::BTreeMap;
use std::fmt;

use engine_core::trace::{Account, Stall, Trace, TracedPass};
use planner::preview::plan_strip;
use planner::{Seconds, Shard, TierPlan};

/// Most stalls that are listed.
const STALLS: usize = 5;

/// The explanation of an answer.
pub(crate) struct Explanation<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) plans: &'a [TierPlan],
    /// Seconds of each pass as predicted, where they were.
    pub(crate) predicted: &'a [Option<Seconds>],
    pub(crate) n_layer: u32,
    pub(crate) colour: bool,
}

/// Passes that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    plan: Option<usize>,
    n_tokens: u32,
    n_ubatches: u32,
}

/// What passes of one kind took together.
#[derive(Default)]
struct Passes {
    n: u32,
    measured: f64,
    predicted: f64,
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, passes) in self.kinds() {
            self.kind(f, kind, &passes)?;
        }
        let account = Account::of(self.trace);
        let ms = |time: Seconds| format!("{:.1} ms", time.get() * 1e3);
        writeln!(
            f,
            "\nIn all passes: the CPU computed {}, the GPU {};",
            ms(account.cpu),
            ms(account.gpu)
        )?;
        writeln!(
            f,
            "  copies {}, of them {} hidden behind computing and {} exposed; {} hand-offs {}",
            ms(Seconds::new(account.hidden.get() + account.exposed.get())),
            ms(account.hidden),
            ms(account.exposed),
            account.n_handoffs,
            ms(account.handoffs),
        )?;
        self.stalls(f, &account.stalls)
    }
}

impl Explanation<'_> {
    /// Passes by kind, in the order in which they first came.
    fn kinds(&self) -> Vec<(Kind, Passes)> {
        let mut order = Vec::new();
        let mut kinds: BTreeMap<Kind, Passes> = BTreeMap::new();
        for (pass, predicted) in self.trace.passes.iter().zip(self.predicted) {
            let TracedPass { plan, n_tokens, n_ubatches, .. } = *pass;
            let kind = Kind { plan, n_tokens, n_ubatches };
            if !kinds.contains_key(&kind) {
                order.push(kind);
            }
            let passes = kinds.entry(kind).or_default();
            passes.n += 1;
            passes.measured += pass.end - pass.start;
            passes.predicted += predicted.map_or(0.0, Seconds::get);
        }
        let taken = order.into_iter().map(|kind| (kind, kinds.remove(&kind).unwrap_or_default()));
        taken.collect()
    }

    fn kind(&self, f: &mut fmt::Formatter<'_>, kind: Kind, passes: &Passes) -> fmt::Result {
        let Kind { plan, n_tokens, n_ubatches } = kind;
        let n = f64::from(passes.n);
        let ms = |seconds: f64| seconds * 1e3 / n;
        let (times, tokens) = (plural(passes.n, "pass", "es"), plural(n_tokens, "token", "s"));
        let in_ubatches = match n_ubatches {
            1 => String::new(),
            n => format!(" in {n} ubatches"),
        };
        write!(f, "\n{times} of {tokens}{in_ubatches}: {:.2} ms each", ms(passes.measured))?;
        match plan.and_then(|plan| self.plans.get(plan)) {
            Some(tier) => {
                writeln!(f, ", predicted {:.2}", ms(passes.predicted))?;
                f.write_str(&plan_strip(tier, self.colour))
            }
            None => writeln!(f, ", on the CPU"),
        }
    }

    fn stalls(&self, f: &mut fmt::Formatter<'_>, stalls: &[Stall]) -> fmt::Result {
        let shards = Shard::all(self.n_layer);
        for Stall { shard, n, time } in stalls.iter().take(STALLS) {
            let name = shards.get(*shard).map_or_else(|| "?".to_owned(), ToString::to_string);
            let passes = plural(*n, "pass", "es");
            writeln!(f, "  waited for {name} in {passes}: {:.1} ms", time.get() * 1e3)?;
        }
        match stalls.len().saturating_sub(STALLS) {
            0 => Ok(()),
            more => writeln!(f, "  and for {more} more shards"),
        }
    }
}

fn plural(n: u32, word: &str, ending: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{n} {word}{ending}") }
}

#[cfg(test)]
mod tests {
    use planner::{Bytes, Lane, Span};

    use super::*;

    #[test]
    fn passes_are_told_by_their_size() {
        let pass = |n_tokens, start: f64, end| TracedPass {
            n_tokens,
            n_ubatches: n_tokens.div_ceil(512),
            n_kv: 9,
            plan: None,
            loaded: Bytes::ZERO,
            is_cold: false,
            start,
            end,
        };
        let spans = vec![Span { lane: Lane::Cpu, shard: 0, start: 0.0, end: 0.5 }];
        let passes = vec![pass(1024, 0.0, 0.5), pass(1, 0.5, 0.7), pass(1, 0.7, 1.1)];
        let trace = Trace { passes, spans };
        let predicted = [None; 3];
        let explanation = Explanation {
            trace: &trace,
            plans: &[],
            predicted: &predicted,
            n_layer: 2,
            colour: false,
        };
        let text = explanation.to_string();
        assert!(
            text.contains("1 pass of 1024 tokens in 2 ubatches: 500.00 ms each, on the CPU"),
            "{text}"
        );
        assert!(text.contains("2 passes of 1 token: 300.00 ms each"), "{text}");
        assert!(text.contains("the CPU computed 500.0 ms, the GPU 0.0 ms"), "{text}");
    }
}

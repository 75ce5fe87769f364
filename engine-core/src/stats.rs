//! What an answer took.

use planner::Seconds;

/// Counts and times of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stats {
    /// Tokens of the prompt.
    pub n_prompt: u32,
    /// Tokens of the prompt whose KV cells were still there from earlier turns, and were not run again.
    pub n_reused: u32,
    /// Tokens of the answer, an end token included.
    pub n_generated: u32,
    /// From accepting the request to the first token, tokenising and prefill inside.
    pub ttft: Seconds,
    /// In prefill passes.
    pub prefill: Seconds,
    /// From the first token to the last.
    pub decode: Seconds,
    /// What speculation did; absent where it is off.
    pub speculated: Option<Speculated>,
}

/// What speculation did for one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Speculated {
    /// Tokens proposed, and run before it was known whether they are part of the answer.
    pub n_proposed: u32,
    /// Those of them that were. An answer may end before the last of them.
    pub n_accepted: u32,
}

impl Stats {
    /// Prompt tokens run per second of prefill; absent when none were run.
    pub fn prefill_tps(&self) -> Option<f64> {
        rate(self.n_prompt - self.n_reused, self.prefill)
    }

    /// `(generated − 1) / (last − first token time)`; absent for fewer than two tokens.
    pub fn tps(&self) -> Option<f64> {
        rate(self.n_generated.saturating_sub(1), self.decode)
    }
}

fn rate(n: u32, time: Seconds) -> Option<f64> {
    (n > 0 && time.get() > 0.0).then(|| f64::from(n) / time.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_nothing_are_absent() {
        let one = Stats { n_prompt: 3, n_reused: 3, n_generated: 1, ..Stats::default() };
        assert_eq!((one.prefill_tps(), one.tps()), (None, None));
        let three = Stats { n_generated: 3, decode: Seconds::new(0.5), ..Stats::default() };
        assert_eq!(three.tps(), Some(4.0));
    }
}

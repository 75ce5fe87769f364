//! The passes that a prompt is cut into.

use crate::model::Pass;

/// So many passes of full ubatches are priced; those between them take the mean of their neighbours, which is right
/// where time grows with the KV cells in use along a straight line.
const SAMPLES: u32 = 7;

/// A pass of a prompt that stands for several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PromptPass {
    /// Its sizes.
    pub pass: Pass,
    /// How many passes it stands for.
    pub count: f64,
}

/// Passes of a prompt that go through each shard together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Turns {
    /// One of their ubatches, the middle one.
    pub(crate) sample: PromptPass,
    /// How many there are.
    pub(crate) ubatches: u32,
}

/// A prompt, `ubatches` of `n_ubatch` tokens to each turn of a shard, thinned out; what is left at its end has fewer.
pub(crate) fn prompt_turns(n_prompt: u32, n_ubatch: u32, ubatches: u32, n_ctx: u32) -> Vec<Turns> {
    let turn = n_ubatch.saturating_mul(ubatches);
    // The KV cells in use, on average over the ubatches.
    let n_kv = |start: u32, ubatches: u32| start + n_ubatch * (ubatches + 1) / 2;
    let of = |start, ubatches, count| {
        let pass = Pass { n_tokens: n_ubatch, n_outputs: 1, n_kv: n_kv(start, ubatches), n_ctx };
        Turns { sample: PromptPass { pass, count }, ubatches }
    };
    let full = sampled(n_prompt / turn).into_iter();
    let mut turns: Vec<Turns> = full.map(|(i, count)| of(i * turn, ubatches, count)).collect();
    let left = n_prompt % turn;
    if left >= n_ubatch {
        turns.push(of(n_prompt - left, left / n_ubatch, 1.0));
    }
    if !left.is_multiple_of(n_ubatch) {
        let n_tokens = left % n_ubatch;
        let pass = Pass { n_tokens, n_outputs: 1, n_kv: n_prompt, n_ctx };
        turns.push(Turns { sample: PromptPass { pass, count: 1.0 }, ubatches: 1 });
    }
    turns
}

/// The passes of a prompt of `n_prompt` tokens, `n_ubatch` at a time, thinned out. The first comes first.
pub fn prompt_passes(n_prompt: u32, n_ubatch: u32, n_ctx: u32) -> Vec<PromptPass> {
    let turns = prompt_turns(n_prompt, n_ubatch, 1, n_ctx).into_iter();
    turns.map(|turns| turns.sample).collect()
}

/// Some of the numbers below `n`, the first and the last among them, with what each counts for in a sum over all.
fn sampled(n: u32) -> Vec<(u32, f64)> {
    if n <= SAMPLES {
        return (0..n).map(|i| (i, 1.0)).collect();
    }
    let at = |k: u32| (u64::from(k) * u64::from(n - 1) / u64::from(SAMPLES - 1)) as u32;
    let mut samples: Vec<_> = (0..SAMPLES).map(|k| (at(k), 1.0)).collect();
    // What lies between two samples counts half for each.
    for k in 1..samples.len() {
        let between = f64::from(samples[k].0 - samples[k - 1].0 - 1) / 2.0;
        samples[k - 1].1 += between;
        samples[k].1 += between;
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_count_for_all() {
        for n in [0, 1, 7, 8, 63, 1000] {
            let samples = sampled(n);
            let count: f64 = samples.iter().map(|(_, count)| count).sum();
            let sum: f64 = samples.iter().map(|(i, count)| f64::from(*i) * count).sum();
            assert_eq!(count, f64::from(n));
            assert_eq!(sum, f64::from(n) * (f64::from(n) - 1.0) / 2.0, "{n}");
        }
    }

    #[test]
    fn turns_take_all_ubatches_and_the_rest_goes_alone() {
        let turns = prompt_turns(5100, 512, 4, 8192);
        let sizes: Vec<_> = turns
            .iter()
            .map(|t| (t.ubatches, t.sample.pass.n_tokens, t.sample.pass.n_kv))
            .collect();
        // Ubatches 1 to 4, 5 to 8, 9, and 492 tokens.
        assert_eq!(sizes, [(4, 512, 1280), (4, 512, 3328), (1, 512, 4608), (1, 492, 5100)]);
    }

    #[test]
    fn a_prompt_ends_with_its_rest() {
        let passes = prompt_passes(1100, 512, 2048);
        let sizes: Vec<_> = passes.iter().map(|p| (p.pass.n_tokens, p.pass.n_kv)).collect();
        assert_eq!(sizes, [(512, 512), (512, 1024), (76, 1100)]);
    }
}

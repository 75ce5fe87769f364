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

/// The passes of a prompt of `n_prompt` tokens, `n_ubatch` at a time, thinned out. The first comes first.
pub fn prompt_passes(n_prompt: u32, n_ubatch: u32, n_ctx: u32) -> Vec<PromptPass> {
    let n_full = n_prompt / n_ubatch;
    let pass = |n_tokens, n_kv| Pass { n_tokens, n_outputs: 1, n_kv, n_ctx };
    let mut passes: Vec<PromptPass> = sampled(n_full)
        .into_iter()
        .map(|(i, count)| PromptPass { pass: pass(n_ubatch, (i + 1) * n_ubatch), count })
        .collect();
    let rest = n_prompt % n_ubatch;
    if rest > 0 {
        passes.push(PromptPass { pass: pass(rest, n_prompt), count: 1.0 });
    }
    passes
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
    fn a_prompt_ends_with_its_rest() {
        let passes = prompt_passes(1100, 512, 2048);
        let sizes: Vec<_> = passes.iter().map(|p| (p.pass.n_tokens, p.pass.n_kv)).collect();
        assert_eq!(sizes, [(512, 512), (512, 1024), (76, 1100)]);
    }
}

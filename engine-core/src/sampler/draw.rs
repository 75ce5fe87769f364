//! One token after the other.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::candidates::Candidates;
use super::penalties::penalise;
use super::{SamplerError, Sampling};
use crate::tokenizer::TokenId;

/// Chooses tokens for one answer.
#[derive(Debug)]
pub struct Sampler {
    sampling: Sampling,
    random: ChaCha8Rng,
    candidates: Candidates,
}

impl Sampler {
    /// A sampler at the start of its random row.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn new(sampling: Sampling) -> Result<Sampler, SamplerError> {
        sampling.check()?;
        let random = match sampling.seed {
            Some(seed) => ChaCha8Rng::seed_from_u64(seed),
            None => ChaCha8Rng::from_os_rng(),
        };
        Ok(Sampler { sampling, random, candidates: Candidates::default() })
    }

    /// Chooses the next token. `logits` holds one per token of the vocabulary and is changed by penalties.
    ///
    /// # Errors
    /// A logit that is not a number.
    pub fn choose(
        &mut self,
        logits: &mut [f32],
        prompt: &[TokenId],
        answer: &[TokenId],
    ) -> Result<TokenId, SamplerError> {
        if let Some(token) = logits.iter().position(|logit| logit.is_nan()) {
            return Err(SamplerError::NotANumber { token: token as u32 });
        }
        penalise(&self.sampling, logits, prompt, answer);
        if self.sampling.temperature == 0.0 {
            return Ok(TokenId(largest(logits)));
        }
        Ok(TokenId(self.draw(logits)))
    }

    fn draw(&mut self, logits: &[f32]) -> u32 {
        let Sampling { temperature, top_k, top_p, min_p, .. } = self.sampling;
        self.candidates.fill(logits, top_k);
        self.candidates.weigh(temperature);
        self.candidates.keep_share(top_p);
        self.candidates.keep_near_best(min_p);
        // 53 random bits make a number in [0, 1).
        let place = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        self.candidates.at(place)
    }
}

fn largest(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (i, &logit) in logits.iter().enumerate() {
        if logit > logits[best] {
            best = i;
        }
    }
    best as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(sampling: Sampling, logits: &[f32]) -> u32 {
        choose_after(sampling, logits, &[], &[])
    }

    fn choose_after(sampling: Sampling, logits: &[f32], prompt: &[u32], answer: &[u32]) -> u32 {
        let ids = |tokens: &[u32]| tokens.iter().copied().map(TokenId).collect::<Vec<_>>();
        let mut sampler = Sampler::new(sampling).unwrap();
        sampler.choose(&mut logits.to_vec(), &ids(prompt), &ids(answer)).unwrap().0
    }

    /// Tokens seen in many draws, in order of id.
    fn drawn(sampling: Sampling, logits: &[f32]) -> Vec<u32> {
        let mut sampler = Sampler::new(Sampling { seed: Some(7), ..sampling }).unwrap();
        let mut seen = Vec::new();
        for _ in 0..3000 {
            seen.push(sampler.choose(&mut logits.to_vec(), &[], &[]).unwrap().0);
        }
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    const WARM: Sampling = Sampling { temperature: 1.0, ..Sampling::GREEDY };

    #[test]
    fn temperature_zero_is_greedy_and_prefers_the_lower_id() {
        assert_eq!(choose(Sampling::default(), &[1.0, 3.0, 3.0]), 1);
        assert_eq!(choose(Sampling::default(), &[f32::NEG_INFINITY; 3]), 0);
    }

    #[test]
    fn top_k_zero_keeps_the_whole_vocabulary() {
        assert_eq!(drawn(WARM, &[0.0, 0.1, 0.2, 0.3]), [0, 1, 2, 3]);
        assert_eq!(drawn(Sampling { top_k: 2, ..WARM }, &[0.0, 0.3, 0.1, 0.2]), [1, 3]);
        assert_eq!(drawn(Sampling { top_k: 99, ..WARM }, &[0.0, 0.3]), [0, 1]);
    }

    #[test]
    fn top_p_and_min_p_always_keep_the_best() {
        assert_eq!(drawn(Sampling { top_p: 0.0, ..WARM }, &[0.0, 0.3, 0.1]), [1]);
        assert_eq!(drawn(Sampling { min_p: 1.0, ..WARM }, &[0.0, 0.3, 0.1]), [1]);
        // Probabilities 0.5, 0.3, 0.2.
        let logits = [0.5f32.ln(), 0.3f32.ln(), 0.2f32.ln()];
        assert_eq!(drawn(Sampling { top_p: 0.6, ..WARM }, &logits), [0, 1]);
        assert_eq!(drawn(Sampling { min_p: 0.5, ..WARM }, &logits), [0, 1]);
    }

    #[test]
    fn same_seed_same_draws() {
        let logits: Vec<f32> = (0..50u8).map(|i| f32::from(i) / 50.0).collect();
        let row = |seed| {
            let mut sampler = Sampler::new(Sampling { seed: Some(seed), ..WARM }).unwrap();
            (0..20).map(|_| sampler.choose(&mut logits.clone(), &[], &[]).unwrap().0).collect()
        };
        let (a, b, c): (Vec<u32>, Vec<u32>, Vec<u32>) = (row(1), row(1), row(2));
        assert_eq!(a, b);
        assert_ne!(a, c);
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let logits = [0.7f32.ln(), 0.3f32.ln()];
        let mut sampler = Sampler::new(Sampling { seed: Some(3), ..WARM }).unwrap();
        let n = 20_000;
        let ones = (0..n)
            .filter(|_| sampler.choose(&mut logits.to_vec(), &[], &[]).unwrap().0 == 1)
            .count();
        let share = ones as f64 / f64::from(n);
        assert!((share - 0.3).abs() < 0.02, "{share}");
    }

    #[test]
    fn repeat_penalty_divides_positive_and_multiplies_negative() {
        let penalty = Sampling { repeat_penalty: 1.3, ..Sampling::default() };
        assert_eq!(choose_after(penalty, &[1.2, 1.0], &[0], &[]), 1, "prompt counts");
        assert_eq!(choose_after(penalty, &[-1.0, -1.2], &[0], &[]), 1, "negative gets smaller");
        let short = Sampling { penalty_last_n: Some(1), ..penalty };
        assert_eq!(choose_after(short, &[1.2, 1.0, 0.0], &[0], &[2]), 0, "out of the window");
    }

    #[test]
    fn presence_and_frequency_count_the_answer_only() {
        let presence = Sampling { presence_penalty: 0.5, ..Sampling::default() };
        assert_eq!(choose_after(presence, &[1.2, 1.0], &[0], &[]), 0);
        assert_eq!(choose_after(presence, &[1.2, 1.0], &[], &[0]), 1);
        let frequency = Sampling { frequency_penalty: 0.15, ..Sampling::default() };
        assert_eq!(choose_after(frequency, &[1.2, 1.0], &[], &[0]), 0);
        assert_eq!(choose_after(frequency, &[1.2, 1.0], &[], &[0, 0]), 1);
    }

    #[test]
    fn nonsense_is_refused() {
        let bad = [
            Sampling { temperature: -1.0, ..WARM },
            Sampling { temperature: f32::NAN, ..WARM },
            Sampling { top_p: 1.5, ..WARM },
            Sampling { min_p: -0.1, ..WARM },
            Sampling { repeat_penalty: 0.0, ..WARM },
            Sampling { presence_penalty: f32::INFINITY, ..WARM },
        ];
        for sampling in bad {
            let refused = Sampler::new(sampling);
            assert!(matches!(refused, Err(SamplerError::OutOfRange { .. })), "{sampling:?}");
        }
        let mut sampler = Sampler::new(Sampling::default()).unwrap();
        let result = sampler.choose(&mut [0.0, f32::NAN], &[], &[]);
        assert_eq!(result, Err(SamplerError::NotANumber { token: 1 }));
    }
}

//! Logits to a token.
//!
//! In order: penalties, temperature, top-k, top-p, min-p, then one draw. Greedy decoding (temperature 0) takes the
//! largest logit after the penalties, the lower id of equal ones, and has no random part.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use thiserror::Error;

use crate::tokenizer::TokenId;

/// How a token is chosen. The default is greedy decoding without penalties.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Divides logits before the softmax; 0 is greedy.
    pub temperature: f32,
    /// Keeps the `k` most likely tokens; 0 keeps all.
    pub top_k: u32,
    /// Keeps the most likely tokens whose probabilities first sum to at least this; at least one; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least this times as likely as the most likely one; 0 keeps all.
    pub min_p: f32,
    /// Divides positive logits, and multiplies negative ones, of every token of the prompt or the answer; 1 is off.
    /// Source: Keskar et al., "CTRL", 2019.
    pub repeat_penalty: f32,
    /// Subtracted from the logit of every token of the answer; 0 is off.
    pub presence_penalty: f32,
    /// Subtracted from a token's logit once for each time it is in the answer; 0 is off.
    pub frequency_penalty: f32,
    /// How many of the last tokens penalties look at; all when absent.
    pub penalty_last_n: Option<u32>,
    /// Start of the random row. The same seed gives the same draws; absent, each run differs.
    pub seed: Option<u64>,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repeat_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            penalty_last_n: None,
            seed: None,
        }
    }
}

/// Why a token could not be chosen.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SamplerError {
    /// A setting outside what makes sense.
    #[error("{setting} is {found}; it must be {range}")]
    OutOfRange {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: f32,
        /// What would do.
        range: &'static str,
    },
    /// The model computed something that is not a number.
    #[error(
        "the model's logits hold a value that is not a number (token {token}); its weights or sums overflowed"
    )]
    NotANumber {
        /// The first such token.
        token: u32,
    },
}

impl Sampling {
    /// Checks every setting.
    ///
    /// # Errors
    /// [`SamplerError::OutOfRange`], naming the first bad one.
    pub fn check(&self) -> Result<(), SamplerError> {
        const SHARE: &str = "from 0 to 1";
        let share = |x: f32| (0.0..=1.0).contains(&x);
        let rules = [
            ("temperature", self.temperature, self.temperature >= 0.0, "0 or more"),
            ("top-p", self.top_p, share(self.top_p), SHARE),
            ("min-p", self.min_p, share(self.min_p), SHARE),
            ("repeat penalty", self.repeat_penalty, self.repeat_penalty > 0.0, "more than 0"),
            ("presence penalty", self.presence_penalty, true, "a finite number"),
            ("frequency penalty", self.frequency_penalty, true, "a finite number"),
        ];
        for (setting, found, holds, range) in rules {
            if !holds || !found.is_finite() {
                return Err(SamplerError::OutOfRange { setting, found, range });
            }
        }
        Ok(())
    }
}

/// Chooses tokens for one answer.
#[derive(Debug)]
pub struct Sampler {
    sampling: Sampling,
    random: ChaCha8Rng,
    candidates: Vec<Candidate>,
}

/// A token that may be drawn, with its scaled logit and then its weight.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    token: u32,
    weight: f32,
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
        Ok(Sampler { sampling, random, candidates: Vec::new() })
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
        self.penalise(logits, prompt, answer);
        if self.sampling.temperature == 0.0 {
            return Ok(TokenId(largest(logits)));
        }
        self.keep_likely(logits);
        Ok(TokenId(self.draw()))
    }

    fn penalise(&self, logits: &mut [f32], prompt: &[TokenId], answer: &[TokenId]) {
        let s = &self.sampling;
        let last_n = s.penalty_last_n.map_or(usize::MAX, |n| n as usize);
        let answer = last(answer, last_n);
        let prompt = last(prompt, last_n - answer.len().min(last_n));
        if s.repeat_penalty != 1.0 {
            for token in distinct(prompt.iter().chain(answer)) {
                if let Some(logit) = logits.get_mut(token as usize) {
                    let factor =
                        if *logit > 0.0 { 1.0 / s.repeat_penalty } else { s.repeat_penalty };
                    *logit *= factor;
                }
            }
        }
        if s.presence_penalty != 0.0 {
            for token in distinct(answer.iter()) {
                if let Some(logit) = logits.get_mut(token as usize) {
                    *logit -= s.presence_penalty;
                }
            }
        }
        if s.frequency_penalty != 0.0 {
            for token in answer {
                if let Some(logit) = logits.get_mut(token.0 as usize) {
                    *logit -= s.frequency_penalty;
                }
            }
        }
    }

    /// Fills `candidates` with the tokens that pass all filters, most likely first, and their weights.
    fn keep_likely(&mut self, logits: &[f32]) {
        let Sampling { temperature, top_k, top_p, min_p, .. } = self.sampling;
        let candidates = &mut self.candidates;
        candidates.clear();
        candidates
            .extend((0u32..).zip(logits).map(|(token, &logit)| Candidate { token, weight: logit }));
        let likelier = |a: &Candidate, b: &Candidate| {
            b.weight.total_cmp(&a.weight).then(a.token.cmp(&b.token))
        };
        let k = top_k as usize;
        if k > 0 && k < candidates.len() {
            candidates.select_nth_unstable_by(k - 1, likelier);
            candidates.truncate(k);
        }
        candidates.sort_unstable_by(likelier);
        let top = candidates[0].weight;
        for candidate in candidates.iter_mut() {
            // Equal infinities differ by nothing.
            let below = if candidate.weight == top { 0.0 } else { candidate.weight - top };
            candidate.weight = (below / temperature).exp();
        }
        if top_p < 1.0 {
            let enough = top_p * candidates.iter().map(|c| c.weight).sum::<f32>();
            let mut sum = 0.0;
            let kept = candidates.iter().take_while(|c| {
                let before = sum;
                sum += c.weight;
                before < enough
            });
            let kept = kept.count().max(1);
            candidates.truncate(kept);
        }
        // The most likely token has weight 1, so this never empties the list.
        let kept = candidates.partition_point(|c| c.weight >= min_p);
        candidates.truncate(kept);
    }

    fn draw(&mut self) -> u32 {
        let total: f64 = self.candidates.iter().map(|c| f64::from(c.weight)).sum();
        // 53 random bits make a number in [0, 1).
        let unit = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut rest = unit * total;
        for candidate in &self.candidates {
            rest -= f64::from(candidate.weight);
            if rest < 0.0 {
                return candidate.token;
            }
        }
        // Rounding may leave a sliver past the end.
        self.candidates.last().expect("the most likely token is always kept").token
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

fn last(tokens: &[TokenId], n: usize) -> &[TokenId] {
    &tokens[tokens.len().saturating_sub(n)..]
}

fn distinct<'a>(tokens: impl Iterator<Item = &'a TokenId>) -> Vec<u32> {
    let mut ids: Vec<u32> = tokens.map(|token| token.0).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
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

    const WARM: Sampling = Sampling {
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        repeat_penalty: 1.0,
        presence_penalty: 0.0,
        frequency_penalty: 0.0,
        penalty_last_n: None,
        seed: None,
    };

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

//! How well a model predicts a text.
//!
//! The chunked score is defined as by llama.cpp's perplexity tool, so that numbers compare: the text is cut into
//! chunks of `n_ctx` tokens without overlap, a rest is left out; the first token of each chunk is replaced by the begin
//! token where the model wants one; only the second half of a chunk is scored, token `n_ctx / 2 + 1` being the first.

use std::ops::Range;

use crate::tokenizer::TokenId;

/// A piece of text run as one sequence, and which of its tokens are scored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Tokens to run.
    pub tokens: Vec<TokenId>,
    /// Positions whose logits are wanted; each scores the token after it, so the end is below `tokens.len()`.
    pub scored: Range<usize>,
}

/// Cuts a text into chunks as llama.cpp does. `begin` replaces the first token of each.
pub fn chunks(tokens: &[TokenId], n_ctx: usize, begin: Option<TokenId>) -> Vec<Chunk> {
    if n_ctx < 4 {
        return Vec::new();
    }
    tokens
        .chunks_exact(n_ctx)
        .map(|chunk| {
            let mut tokens = chunk.to_vec();
            if let Some(begin) = begin {
                tokens[0] = begin;
            }
            Chunk { tokens, scored: n_ctx / 2..n_ctx - 1 }
        })
        .collect()
}

/// The whole text as one chunk, every token but the first scored.
pub fn whole(tokens: &[TokenId]) -> Option<Chunk> {
    (tokens.len() > 1).then(|| Chunk { tokens: tokens.to_vec(), scored: 0..tokens.len() - 1 })
}

/// Negative natural logarithm of the probability that `logits` give to `token`.
///
/// # Panics
/// If the token is not in the vocabulary.
pub fn nll(logits: &[f32], token: TokenId) -> f64 {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit - top).exp()).sum();
    sum.ln() - f64::from(logits[token.0 as usize] - top)
}

/// Sum of scores.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Score {
    /// Scored tokens.
    pub n_tokens: u64,
    sum: f64,
    sum_of_squares: f64,
}

impl Score {
    /// Counts one token's negative log-likelihood.
    pub fn add(&mut self, nll: f64) {
        self.n_tokens += 1;
        self.sum += nll;
        self.sum_of_squares += nll * nll;
    }

    /// Mean negative log-likelihood per token; absent when nothing was scored.
    pub fn mean_nll(&self) -> Option<f64> {
        (self.n_tokens > 0).then(|| self.sum / self.n_tokens as f64)
    }

    /// `e^mean`.
    pub fn perplexity(&self) -> Option<f64> {
        self.mean_nll().map(f64::exp)
    }

    /// Standard error of the perplexity, from the spread of the tokens' scores; absent for fewer than two.
    pub fn standard_error(&self) -> Option<f64> {
        let mean = self.mean_nll()?;
        let n = self.n_tokens as f64;
        let variance = (self.sum_of_squares / n - mean * mean).max(0.0);
        (self.n_tokens > 1).then(|| (variance / (n - 1.0)).sqrt() * mean.exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_half_of_each_chunk() {
        let tokens: Vec<_> = (0..21).map(TokenId).collect();
        let chunks = chunks(&tokens, 8, Some(TokenId(99)));
        assert_eq!(chunks.len(), 2, "the rest of five tokens is left out");
        assert_eq!(chunks[1].tokens[..2], [TokenId(99), TokenId(9)]);
        assert_eq!(chunks[1].scored, 4..7);
    }

    #[test]
    fn whole_scores_all_but_the_first() {
        let tokens = [TokenId(5), TokenId(6), TokenId(7)];
        assert_eq!(whole(&tokens).unwrap().scored, 0..2);
        assert_eq!(whole(&tokens[..1]), None);
    }

    #[test]
    fn even_logits_score_the_logarithm_of_the_vocabulary() {
        let mut score = Score::default();
        for _ in 0..3 {
            score.add(nll(&[2.5; 10], TokenId(4)));
        }
        assert!((score.perplexity().unwrap() - 10.0).abs() < 1e-9);
        assert!(score.standard_error().unwrap() < 1e-6);
        assert_eq!(Score::default().mean_nll(), None);
    }
}

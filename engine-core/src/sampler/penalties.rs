//! Penalties on tokens that came before.

use std::collections::BTreeSet;

use super::Sampling;
use crate::tokenizer::TokenId;

/// Changes the logits of tokens of `prompt` and `answer`, as [`Sampling`] defines it.
pub(super) fn penalise(
    sampling: &Sampling,
    logits: &mut [f32],
    prompt: &[TokenId],
    answer: &[TokenId],
) {
    let last_n = sampling.penalty_last_n.map_or(usize::MAX, |n| n as usize);
    let answer = last(answer, last_n);
    let prompt = last(prompt, last_n - answer.len().min(last_n));
    let (repeat, presence) = (sampling.repeat_penalty, sampling.presence_penalty);
    if repeat != 1.0 {
        let seen = distinct(prompt.iter().chain(answer).copied());
        change(logits, seen, |logit| if logit > 0.0 { logit / repeat } else { logit * repeat });
    }
    if presence != 0.0 {
        change(logits, distinct(answer.iter().copied()), |logit| logit - presence);
    }
    if sampling.frequency_penalty != 0.0 {
        change(logits, answer.iter().copied(), |logit| logit - sampling.frequency_penalty);
    }
}

/// Applies `f` to the logit of each token, leaving out those that the model has none of.
fn change(logits: &mut [f32], tokens: impl IntoIterator<Item = TokenId>, f: impl Fn(f32) -> f32) {
    for token in tokens {
        if let Some(logit) = logits.get_mut(token.0 as usize) {
            *logit = f(*logit);
        }
    }
}

fn last(tokens: &[TokenId], n: usize) -> &[TokenId] {
    &tokens[tokens.len().saturating_sub(n)..]
}

fn distinct(tokens: impl Iterator<Item = TokenId>) -> BTreeSet<TokenId> {
    tokens.collect()
}

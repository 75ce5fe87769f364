//! Merges of a vocabulary that has scores instead.
//!
//! SentencePiece's BPE joins, at each step, the neighbours whose joint text has the best score. The same order as a
//! list of merges: every way to cut a token into two tokens, best score first; among equal scores, the longer left part
//! first, then the longer right part. This is the order of Hugging Face transformers' conversion of such vocabularies.

use std::cmp::Ordering;

use tokenizers::models::bpe::{Merges, Vocab};

use super::TokenizerError;
use super::vocabulary::Kind;

/// How many times the memory of their vocabulary merges may take. Those of public vocabularies take 4 to 8 times as
/// much; of a vocabulary whose tokens are all parts of one another, they would take more than its square.
const MAX_GROWTH: usize = 32;
/// Memory in bytes that merges of any vocabulary may take.
const MIN_ROOM: usize = 1 << 20;

/// The merges, best first, that build the tokens which text is made of. One kind and one score per token; `ids` has the
/// id of every token, of equal ones the last.
///
/// # Errors
/// If there are far more than a real vocabulary has.
pub(super) fn from_scores(
    tokens: &[String],
    ids: &Vocab,
    kinds: &[Kind],
    scores: &[f32],
) -> Result<Merges, TokenizerError> {
    let known = TextTokens::new(tokens, ids, kinds);
    let mut cuts = Vec::new();
    let vocabulary: usize = tokens.iter().map(|text| bytes_of::<String>(text)).sum();
    let mut room = MIN_ROOM + MAX_GROWTH * vocabulary;
    for (text, id) in tokens.iter().zip(0..).filter(|&(text, id)| known.id(text) == Some(id)) {
        let first = cuts.len();
        for cut in known.cuts(text, scores[id as usize]) {
            let left = room.checked_sub(bytes_of::<(Cut, [String; 2])>(text));
            room = left.ok_or(TokenizerError::TooManyMerges { n_tokens: tokens.len() })?;
            cuts.push(cut);
        }
        cuts[first..].sort_by_key(|cut| cut.parts);
    }
    cuts.sort_by(better_first);
    let text = |id: u32| tokens[id as usize].clone();
    Ok(cuts.into_iter().map(|cut| (text(cut.parts[0]), text(cut.parts[1]))).collect())
}

/// Memory of a `T` that holds the characters of `text`.
fn bytes_of<T>(text: &str) -> usize {
    size_of::<T>() + text.len()
}

/// One way to build a token out of two.
struct Cut {
    /// Ids of the left and the right part.
    parts: [u32; 2],
    n_chars: [u32; 2],
    score: f32,
}

/// The tokens that text is made of.
struct TextTokens<'a> {
    ids: &'a Vocab,
    kinds: &'a [Kind],
    /// Whether some token has this many bytes.
    has_length: Vec<bool>,
}

impl<'a> TextTokens<'a> {
    fn new(tokens: &[String], ids: &'a Vocab, kinds: &'a [Kind]) -> Self {
        let longest = tokens.iter().map(String::len).max().unwrap_or(0);
        let mut has_length = vec![false; longest + 1];
        for text in tokens {
            has_length[text.len()] = true;
        }
        TextTokens { ids, kinds, has_length }
    }

    fn id(&self, text: &str) -> Option<u32> {
        let is_text = |kind| matches!(kind, Kind::Normal | Kind::UserDefined | Kind::Unused);
        self.ids.get(text).copied().filter(|&id| is_text(self.kinds[id as usize]))
    }

    /// Every way to cut `text` into two tokens. Lengths are looked at first: a file may hold one very long token, and
    /// looking its parts up takes time in the square of its length.
    fn cuts(&self, text: &str, score: f32) -> impl Iterator<Item = Cut> {
        let n_chars = text.chars().count() as u32;
        let inner = text.char_indices().zip(0..).skip(1);
        let fits = |at: usize| self.has_length[at] && self.has_length[text.len() - at];
        inner.filter(move |&((at, _), _)| fits(at)).filter_map(move |((at, _), n_left)| {
            let (left, right) = text.split_at(at);
            let parts = [self.id(left)?, self.id(right)?];
            Some(Cut { parts, n_chars: [n_left, n_chars - n_left], score })
        })
    }
}

fn better_first(a: &Cut, b: &Cut) -> Ordering {
    b.score.total_cmp(&a.score).then(b.n_chars.cmp(&a.n_chars))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merges(vocabulary: &[(&str, Kind, f32)]) -> Vec<String> {
        let tokens: Vec<String> = vocabulary.iter().map(|entry| entry.0.to_owned()).collect();
        let kinds: Vec<Kind> = vocabulary.iter().map(|entry| entry.1).collect();
        let scores: Vec<f32> = vocabulary.iter().map(|entry| entry.2).collect();
        let ids: Vocab = tokens.iter().cloned().zip(0..).collect();
        let merges = from_scores(&tokens, &ids, &kinds, &scores).unwrap();
        merges.into_iter().map(|(left, right)| format!("{left} {right}")).collect()
    }

    #[test]
    fn best_score_first_then_longer_left_part() {
        let order = merges(&[
            ("a", Kind::Normal, -10.0),
            ("b", Kind::Normal, -11.0),
            ("ab", Kind::Normal, -2.0),
            ("ba", Kind::Normal, -1.0),
            ("aba", Kind::Normal, -3.0),
        ]);
        assert_eq!(order, ["b a", "a b", "ab a", "a ba"]);
    }

    #[test]
    fn only_text_takes_part() {
        let order = merges(&[
            ("<", Kind::Normal, -1.0),
            ("s>", Kind::Normal, -2.0),
            ("<s>", Kind::Control, 0.0),
            ("<s>s>", Kind::Normal, -3.0),
        ]);
        assert_eq!(order, [""; 0]);
    }

    #[test]
    fn characters_are_not_cut() {
        assert_eq!(merges(&[("é", Kind::Normal, 0.0), ("éé", Kind::Normal, -1.0)]), ["é é"]);
    }

    #[test]
    fn more_merges_than_a_vocabulary_justifies_are_an_error() {
        let runs_up_to = |longest| -> Result<usize, TokenizerError> {
            let tokens: Vec<String> = (1..=longest).map(|n| "=".repeat(n)).collect();
            let (kinds, scores) = (vec![Kind::Normal; longest], vec![0.0; longest]);
            let ids = tokens.iter().cloned().zip(0..).collect();
            from_scores(&tokens, &ids, &kinds, &scores).map(|merges| merges.len())
        };
        assert_eq!(runs_up_to(64).unwrap(), 63 * 64 / 2);
        assert!(matches!(runs_up_to(600), Err(TokenizerError::TooManyMerges { n_tokens: 600 })));
    }
}

//! Merges of a vocabulary that has scores instead.
//!
//! SentencePiece's BPE joins, at each step, the neighbours whose joint text has the best score. The same order as a
//! list of merges: every way to cut a token into two tokens, best score first; among equal scores, the longer left part
//! first, then the longer right part. This is the order of Hugging Face transformers' conversion of such vocabularies.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::TokenizerError;
use super::vocabulary::Kind;

/// How many times the memory of their vocabulary merges may take. Those of public vocabularies take 4 to 8 times as
/// much; of a vocabulary whose tokens are all parts of one another, they would take more than its square.
const MAX_GROWTH: usize = 32;
/// Memory in bytes that merges of any vocabulary may take.
const MIN_ROOM: usize = 1 << 20;

/// The merges, best first, that build the tokens which text is made of. One kind and one score per token.
///
/// # Errors
/// If there are far more than a real vocabulary has.
pub(super) fn from_scores(
    tokens: &[String],
    kinds: &[Kind],
    scores: &[f32],
) -> Result<Vec<(String, String)>, TokenizerError> {
    let known = TextTokens::new(tokens, kinds);
    let mut cuts = Vec::new();
    let vocabulary: usize = tokens.iter().map(|text| bytes_of::<String>(text)).sum();
    let mut room = MIN_ROOM + MAX_GROWTH * vocabulary;
    for (id, text) in tokens.iter().enumerate().filter(|&(id, text)| known.is_token(text, id)) {
        let first = cuts.len();
        for cut in known.cuts(text, scores[id]) {
            let left = room.checked_sub(bytes_of::<(Cut<'_>, [String; 2])>(text));
            room = left.ok_or(TokenizerError::TooManyMerges { n_tokens: tokens.len() })?;
            cuts.push(cut);
        }
        cuts[first..].sort_by_key(|cut| cut.ids);
    }
    cuts.sort_by(better_first);
    Ok(cuts.into_iter().map(|cut| (cut.left.to_owned(), cut.right.to_owned())).collect())
}

/// Memory of a `T` that holds the characters of `text`.
fn bytes_of<T>(text: &str) -> usize {
    size_of::<T>() + text.len()
}

/// One way to build a token out of two.
struct Cut<'a> {
    left: &'a str,
    right: &'a str,
    ids: [usize; 2],
    n_chars: [usize; 2],
    score: f32,
}

/// The tokens that text is made of.
struct TextTokens<'a> {
    ids: HashMap<&'a str, usize>,
    /// Whether some token has this many bytes.
    has_length: Vec<bool>,
}

impl<'a> TextTokens<'a> {
    fn new(tokens: &'a [String], kinds: &[Kind]) -> Self {
        let is_text = |kind| matches!(kind, Kind::Normal | Kind::UserDefined | Kind::Unused);
        let numbered = tokens.iter().enumerate().filter(|&(id, _)| is_text(kinds[id]));
        let ids: HashMap<&str, usize> = numbered.map(|(id, text)| (text.as_str(), id)).collect();
        let longest = ids.keys().map(|text| text.len()).max().unwrap_or(0);
        let mut has_length = vec![false; longest + 1];
        for text in ids.keys() {
            has_length[text.len()] = true;
        }
        TextTokens { ids, has_length }
    }

    /// Whether `text` is token `id`; of equal texts the last one counts.
    fn is_token(&self, text: &str, id: usize) -> bool {
        self.ids.get(text) == Some(&id)
    }

    /// Every way to cut `text` into two tokens. Lengths are looked at first: a file may hold one very long token, and
    /// looking its parts up takes time in the square of its length.
    fn cuts(&self, text: &'a str, score: f32) -> impl Iterator<Item = Cut<'a>> {
        let n_chars = text.chars().count();
        let inner = text.char_indices().enumerate().skip(1);
        let fits = |at: usize| self.has_length[at] && self.has_length[text.len() - at];
        inner.filter(move |&(_, (at, _))| fits(at)).filter_map(move |(n_left, (at, _))| {
            let (left, right) = text.split_at(at);
            let ids = [*self.ids.get(left)?, *self.ids.get(right)?];
            Some(Cut { left, right, ids, n_chars: [n_left, n_chars - n_left], score })
        })
    }
}

fn better_first(a: &Cut<'_>, b: &Cut<'_>) -> Ordering {
    b.score.total_cmp(&a.score).then(b.n_chars.cmp(&a.n_chars))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merges(vocabulary: &[(&str, Kind, f32)]) -> Vec<String> {
        let tokens: Vec<String> = vocabulary.iter().map(|entry| entry.0.to_owned()).collect();
        let kinds: Vec<Kind> = vocabulary.iter().map(|entry| entry.1).collect();
        let scores: Vec<f32> = vocabulary.iter().map(|entry| entry.2).collect();
        let merges = from_scores(&tokens, &kinds, &scores).unwrap();
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
            from_scores(&tokens, &kinds, &scores).map(|merges| merges.len())
        };
        assert_eq!(runs_up_to(64).unwrap(), 63 * 64 / 2);
        assert!(matches!(runs_up_to(600), Err(TokenizerError::TooManyMerges { n_tokens: 600 })));
    }
}

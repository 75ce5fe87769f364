//! Merges of a vocabulary that has scores instead.
//!
//! SentencePiece's BPE joins, at each step, the neighbours whose joint text has the best score. The same order as a
//! list of merges: every way to cut a token into two tokens, best score first; among equal scores, the longer left part
//! first, then the longer right part. This is the order of Hugging Face transformers' conversion of such vocabularies.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::vocabulary::Kind;

/// One way to build a token out of two.
struct Cut<'a> {
    left: &'a str,
    right: &'a str,
    score: f32,
    n_chars: (usize, usize),
}

/// The merges, best first, that build the tokens which text is made of. One kind and one score per token.
pub(super) fn from_scores(
    tokens: &[String],
    kinds: &[Kind],
    scores: &[f32],
) -> Vec<(String, String)> {
    let is_text = |kind: Kind| matches!(kind, Kind::Normal | Kind::UserDefined | Kind::Unused);
    let ids: HashMap<&str, usize> = tokens
        .iter()
        .enumerate()
        .filter(|&(id, _)| is_text(kinds[id]))
        .map(|(id, text)| (text.as_str(), id))
        .collect();
    let mut cuts = Vec::new();
    for (id, text) in tokens.iter().enumerate().filter(|&(id, _)| is_text(kinds[id])) {
        let first = cuts.len();
        cuts.extend(cuts_of(text, scores[id], |part| ids.contains_key(part)));
        cuts[first..].sort_by_key(|cut: &Cut<'_>| (ids[cut.left], ids[cut.right]));
    }
    cuts.sort_by(better_first);
    cuts.into_iter().map(|cut| (cut.left.to_owned(), cut.right.to_owned())).collect()
}

fn cuts_of<'a>(
    text: &'a str,
    score: f32,
    is_token: impl Fn(&str) -> bool,
) -> impl Iterator<Item = Cut<'a>> {
    let n_chars = text.chars().count();
    text.char_indices().enumerate().skip(1).filter_map(move |(n_left, (at, _))| {
        let (left, right) = text.split_at(at);
        (is_token(left) && is_token(right)).then_some(Cut {
            left,
            right,
            score,
            n_chars: (n_left, n_chars - n_left),
        })
    })
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
        let merges = from_scores(&tokens, &kinds, &scores);
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
}

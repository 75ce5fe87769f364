//! Proposes the tokens that followed the last words when they came before. Sees tokens only, and never how a model
//! would go on.
//!
//! Source: Saxena, "Prompt Lookup Decoding", 2023.

use crate::tokenizer::TokenId;

/// Fewest last tokens that must have come before: one alone says too little of what follows.
const FEWEST: usize = 2;

/// Most last tokens that are compared.
const MOST: usize = 4;

/// The `n` tokens that would follow if the text went on as after the longest match of its end, the latest of equally
/// long ones; nothing where its last two tokens are new. A match that reaches into the end makes a period, which is
/// taken to go on.
pub(super) fn propose(tokens: &[TokenId], n: usize) -> impl Iterator<Item = TokenId> {
    let followed = longest_match(tokens).map_or(&[][..], |end| &tokens[end..]);
    followed.iter().copied().cycle().take(n)
}

/// Where the earlier occurrence of the last tokens ends.
fn longest_match(tokens: &[TokenId]) -> Option<usize> {
    let mut longest = (FEWEST - 1, None);
    for end in (FEWEST..tokens.len()).rev() {
        let backwards = tokens[..end].iter().rev().zip(tokens.iter().rev()).take(MOST);
        let len = backwards.take_while(|(a, b)| a == b).count();
        if len > longest.0 {
            longest = (len, Some(end));
        }
        if len == MOST {
            break;
        }
    }
    longest.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed(tokens: &[u32], n: usize) -> Vec<u32> {
        let tokens: Vec<_> = tokens.iter().copied().map(TokenId).collect();
        propose(&tokens, n).map(|token| token.0).collect()
    }

    #[test]
    fn what_followed_the_last_tokens_before() {
        assert_eq!(proposed(&[1, 2, 3, 4, 5, 1, 2], 3), [3, 4, 5]);
        assert_eq!(proposed(&[1, 2, 3, 9, 1, 2, 4, 9, 1, 2], 1), [4], "the latest");
        assert_eq!(proposed(&[7, 1, 2, 3, 9, 1, 2, 4, 9, 7, 1, 2], 1), [3], "the longest");
    }

    #[test]
    fn more_than_the_longest_compared_is_as_good() {
        assert_eq!(proposed(&[1, 2, 3, 4, 5, 6, 9, 2, 3, 4, 5, 7, 1, 2, 3, 4, 5], 1), [7]);
    }

    #[test]
    fn nothing_where_the_last_two_are_new() {
        for tokens in [&[][..], &[1], &[1, 1], &[1, 2, 3], &[1, 2, 3, 2]] {
            assert!(proposed(tokens, 3).is_empty(), "{tokens:?}");
        }
        assert!(proposed(&[1, 2, 1, 2], 0).is_empty());
    }

    #[test]
    fn a_period_goes_on() {
        assert_eq!(proposed(&[1, 1, 1], 3), [1, 1, 1]);
        assert_eq!(proposed(&[1, 2, 3, 1, 2, 3, 1, 2], 7), [3, 1, 2, 3, 1, 2, 3]);
    }
}

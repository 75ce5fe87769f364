//! The `tokenizer.*` keys of GGUF metadata as typed facts. Knows nothing of how they are used.

use std::collections::BTreeSet;

use super::{TokenId, TokenizerError};
use crate::weights::{Metadata, Value};

/// What kind of token an entry is: the numbers of `tokenizer.ggml.token_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    /// Stands for characters that have no token.
    Unknown,
    /// Steers the model; never part of a text.
    Control,
    /// Found in text before anything else is.
    UserDefined,
    Unused,
    /// One byte, `<0x00>` to `<0xFF>`.
    Byte,
}

impl Kind {
    fn from_number(token: usize, kind: u64) -> Result<Self, TokenizerError> {
        match kind {
            // 0 is "undefined" in the format; files without types carry it.
            0 | 1 => Ok(Kind::Normal),
            2 => Ok(Kind::Unknown),
            3 => Ok(Kind::Control),
            4 => Ok(Kind::UserDefined),
            5 => Ok(Kind::Unused),
            6 => Ok(Kind::Byte),
            _ => Err(TokenizerError::UnknownTokenType { token, kind }),
        }
    }
}

/// Texts of tokens that end a turn, by the public documentation of the model families that use them.
const END_OF_TURN_TEXTS: [&str; 14] = [
    "</s>",
    "<eos>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<turn|>",
    "<｜end▁of▁sentence｜>",
];

/// Whether a control token of this text ends a turn in every vocabulary that has it.
pub(super) fn ends_turn(text: &str) -> bool {
    END_OF_TURN_TEXTS.contains(&text)
}

/// The tokens of a GGUF file and the ids with a meaning.
#[derive(Debug)]
pub(super) struct Vocabulary<'a> {
    pub(super) tokens: &'a [String],
    /// One per token.
    pub(super) kinds: Vec<Kind>,
    pub(super) begin: Option<TokenId>,
    pub(super) end: Option<TokenId>,
    pub(super) unknown: Option<TokenId>,
    /// Ids that the file says end a turn or the text.
    pub(super) end_of_turn: BTreeSet<TokenId>,
}

impl<'a> Vocabulary<'a> {
    pub(super) fn read(metadata: &'a Metadata) -> Result<Self, TokenizerError> {
        let tokens = strings(metadata, "tokenizer.ggml.tokens")?;
        let n_vocab = tokens.len();
        let id = |key| token_id(metadata, key, n_vocab);
        let end = id("tokenizer.ggml.eos_token_id")?;
        let mut end_of_turn = BTreeSet::from_iter(end);
        end_of_turn.extend(id("tokenizer.ggml.eot_token_id")?);
        end_of_turn.extend(id("tokenizer.ggml.eom_token_id")?);
        end_of_turn.extend(token_ids(metadata, "tokenizer.ggml.eos_token_ids", n_vocab)?);
        let begin = id("tokenizer.ggml.bos_token_id")?;
        let unknown = id("tokenizer.ggml.unknown_token_id")?;
        let listed = kinds(metadata, n_vocab)?;
        let named = begin.iter().chain(&end_of_turn);
        let kinds = with_control(listed, tokens, named);
        Ok(Vocabulary { tokens, kinds, begin, end, unknown, end_of_turn })
    }

    pub(super) fn text(&self, id: TokenId) -> &'a str {
        &self.tokens[id.0 as usize]
    }
}

/// Makes control tokens of what a file without types, or with wrong ones, leaves as text: ids that begin a text or end
/// a turn, and user-defined entries with a well-known text that does. As text they would let a message end its own turn.
fn with_control<'a>(
    listed: Option<Vec<Kind>>,
    tokens: &[String],
    named: impl Iterator<Item = &'a TokenId>,
) -> Vec<Kind> {
    let has_types = listed.is_some();
    let mut kinds = listed.unwrap_or_else(|| vec![Kind::Normal; tokens.len()]);
    for id in named {
        let kind = &mut kinds[id.0 as usize];
        // With types, an ordinary token is one: a base model may end its texts with a newline.
        if !has_types || *kind == Kind::UserDefined {
            *kind = Kind::Control;
        }
    }
    for (kind, text) in kinds.iter_mut().zip(tokens) {
        if *kind == Kind::UserDefined && ends_turn(text) {
            *kind = Kind::Control;
        }
    }
    kinds
}

/// The listed type of every token, if the file has types.
fn kinds(metadata: &Metadata, n_vocab: usize) -> Result<Option<Vec<Kind>>, TokenizerError> {
    const KEY: &str = "tokenizer.ggml.token_type";
    let numbers =
        typed(metadata, KEY, "an array of integers", |value| value.as_array()?.to_u64s())?;
    let Some(numbers) = numbers else { return Ok(None) };
    check_length(KEY, n_vocab, numbers.len())?;
    let kind = |(token, &number): (usize, &u64)| Kind::from_number(token, number);
    numbers.iter().enumerate().map(kind).collect::<Result<_, _>>().map(Some)
}

/// The text of `key`, if the key is there.
pub(super) fn optional_str<'a>(
    metadata: &'a Metadata,
    key: &'static str,
) -> Result<Option<&'a str>, TokenizerError> {
    typed(metadata, key, "a string", Value::as_str)
}

/// The truth value of `key`, if the key is there.
pub(super) fn optional_bool(
    metadata: &Metadata,
    key: &'static str,
) -> Result<Option<bool>, TokenizerError> {
    typed(metadata, key, "a truth value", Value::as_bool)
}

/// The string array `key`.
pub(super) fn strings<'a>(
    metadata: &'a Metadata,
    key: &'static str,
) -> Result<&'a [String], TokenizerError> {
    typed(metadata, key, "an array of strings", |value| value.as_array()?.as_strings())?
        .ok_or(TokenizerError::Missing { key })
}

/// The score of every token.
pub(super) fn scores(metadata: &Metadata, n_vocab: usize) -> Result<&[f32], TokenizerError> {
    const KEY: &str = "tokenizer.ggml.scores";
    let scores =
        typed(metadata, KEY, "an array of 32-bit floats", |value| value.as_array()?.as_f32s())?
            .ok_or(TokenizerError::Missing { key: KEY })?;
    check_length(KEY, n_vocab, scores.len())?;
    Ok(scores)
}

fn typed<'a, T>(
    metadata: &'a Metadata,
    key: &'static str,
    expected: &'static str,
    read: impl FnOnce(&'a Value) -> Option<T>,
) -> Result<Option<T>, TokenizerError> {
    metadata
        .get(key)
        .map(|value| read(value).ok_or(TokenizerError::WrongType { key, expected }))
        .transpose()
}

fn check_length(key: &'static str, expected: usize, got: usize) -> Result<(), TokenizerError> {
    if expected == got { Ok(()) } else { Err(TokenizerError::Length { key, expected, got }) }
}

/// The token that `key` names. A negative number is the format's way to say "none".
fn token_id(
    metadata: &Metadata,
    key: &'static str,
    n_vocab: usize,
) -> Result<Option<TokenId>, TokenizerError> {
    match metadata.get(key) {
        None | Some(Value::I8(..0) | Value::I16(..0) | Value::I32(..0) | Value::I64(..0)) => {
            Ok(None)
        }
        Some(value) => {
            let wrong = TokenizerError::WrongType { key, expected: "an integer" };
            in_range(key, value.as_u64().ok_or(wrong)?, n_vocab).map(Some)
        }
    }
}

fn token_ids(
    metadata: &Metadata,
    key: &'static str,
    n_vocab: usize,
) -> Result<Vec<TokenId>, TokenizerError> {
    typed(metadata, key, "an array of integers", |value| value.as_array()?.to_u64s())?
        .unwrap_or_default()
        .into_iter()
        .map(|id| in_range(key, id, n_vocab))
        .collect()
}

fn in_range(key: &'static str, id: u64, n_vocab: usize) -> Result<TokenId, TokenizerError> {
    u32::try_from(id)
        .ok()
        .filter(|&id| (id as usize) < n_vocab)
        .map(TokenId)
        .ok_or(TokenizerError::IdOutOfRange { key, id, n_vocab })
}

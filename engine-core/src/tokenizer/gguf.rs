//! A tokenizer from GGUF metadata.

use std::collections::BTreeSet;

use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{NFC, NormalizerWrapper, Prepend, Replace, Sequence, Strip};
use tokenizers::{AddedToken, Tokenizer as Library};

use super::codec::{Parts, Tokenizer};
use super::pieces::{Pieces, Spelling};
use super::split_rules::SplitRules;
use super::vocabulary::{Kind, Vocabulary, ends_turn, optional_bool, optional_str};
use super::vocabulary::{scores, strings};
use super::{TokenId, TokenizerError, merges};
use crate::weights::Metadata;

const MODEL: &str = "tokenizer.ggml.model";
const MODELS: &[&str] = &["gpt2", "llama"];

impl Tokenizer {
    /// The tokenizer that a GGUF file describes: byte-level BPE (`gpt2`) or SentencePiece-style BPE (`llama`).
    ///
    /// # Errors
    /// A key that is missing, of the wrong type or length, or names an algorithm or split rules that are not supported;
    /// an id outside the vocabulary; merges of tokens that do not exist.
    pub fn from_gguf(metadata: &Metadata) -> Result<Self, TokenizerError> {
        match optional_str(metadata, MODEL)?.ok_or(TokenizerError::Missing { key: MODEL })? {
            "gpt2" => byte_level(metadata),
            "llama" => sentence_piece(metadata),
            name => Err(TokenizerError::UnknownModel { name: name.to_owned(), supported: MODELS }),
        }
    }
}

fn byte_level(metadata: &Metadata) -> Result<Tokenizer, TokenizerError> {
    let rules = SplitRules::named(optional_str(metadata, "tokenizer.ggml.pre")?)?;
    let vocabulary = Vocabulary::read(metadata)?;
    let merges = split_merges(strings(metadata, "tokenizer.ggml.merges")?)?;
    let model = BPE::builder()
        .vocab_and_merges(ids_by_text(&vocabulary), merges)
        .ignore_merges(rules.ignore_merges)
        .build()
        .map_err(TokenizerError::Build)?;
    let mut library = Library::new(model);
    library.with_pre_tokenizer(Some(rules.pre_tokenizer()?));
    library.with_normalizer(rules.composes.then_some(NFC));
    assemble(
        metadata,
        &vocabulary,
        library,
        Spelling::ByteLevel,
        Habits { adds_begin: rules.adds_begin, space_prefix: false },
    )
}

fn sentence_piece(metadata: &Metadata) -> Result<Tokenizer, TokenizerError> {
    let vocabulary = Vocabulary::read(metadata)?;
    let scores = scores(metadata, vocabulary.tokens.len())?;
    let ids = ids_by_text(&vocabulary);
    let merges = merges::from_scores(vocabulary.tokens, &ids, &vocabulary.kinds, scores)?;
    let mut builder =
        BPE::builder().vocab_and_merges(ids, merges).byte_fallback(true).fuse_unk(true);
    if let Some(unknown) = vocabulary.unknown {
        builder = builder.unk_token(vocabulary.text(unknown).to_owned());
    }
    let mut library = Library::new(builder.build().map_err(TokenizerError::Build)?);
    let space_prefix = optional_bool(metadata, "tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let collapse = optional_bool(metadata, "tokenizer.ggml.remove_extra_whitespaces")?;
    library.with_normalizer(Some(spaces(space_prefix, collapse.unwrap_or(false))?));
    assemble(
        metadata,
        &vocabulary,
        library,
        Spelling::SentencePiece,
        Habits { adds_begin: true, space_prefix },
    )
}

/// What a tokenizer puts before a text.
struct Habits {
    /// A begin token, unless the file says otherwise.
    adds_begin: bool,
    space_prefix: bool,
}

fn assemble(
    metadata: &Metadata,
    vocabulary: &Vocabulary<'_>,
    mut library: Library,
    spelling: Spelling,
    habits: Habits,
) -> Result<Tokenizer, TokenizerError> {
    // In one call: the library rebuilds its matcher of all added tokens after each.
    library.add_special_tokens(&added_tokens(vocabulary));
    let adds_begin =
        optional_bool(metadata, "tokenizer.ggml.add_bos_token")?.unwrap_or(habits.adds_begin);
    Ok(Tokenizer::new(Parts {
        library,
        pieces: pieces(vocabulary, spelling),
        control: control_ids(vocabulary).collect(),
        unknown: vocabulary.unknown,
        begin: vocabulary.begin,
        end: vocabulary.end,
        adds_begin,
        end_of_turn: end_of_turn(vocabulary),
        space_prefix: habits.space_prefix,
        chat_template: optional_str(metadata, "tokenizer.chat_template")?.map(str::to_owned),
    }))
}

/// Token texts with their ids; of equal texts the last one counts, as in the format's reference implementation.
fn ids_by_text(vocabulary: &Vocabulary<'_>) -> Vocab {
    vocabulary.tokens.iter().zip(0..).map(|(text, id)| (text.clone(), id)).collect()
}

fn split_merges(merges: &[String]) -> Result<Merges, TokenizerError> {
    let split = |(index, text): (usize, &String)| {
        // A token may itself be a space: the separator is never the first character.
        let separator = text.char_indices().skip(1).find(|&(_, c)| c == ' ');
        let (at, _) =
            separator.ok_or_else(|| TokenizerError::BadMerge { index, text: text.clone() })?;
        Ok((text[..at].to_owned(), text[at + 1..].to_owned()))
    };
    merges.iter().enumerate().map(split).collect()
}

/// Spaces as SentencePiece writes them.
fn spaces(prefix: bool, collapse: bool) -> Result<NormalizerWrapper, TokenizerError> {
    let replace = |pattern: ReplacePattern, by: &str| {
        Replace::new(pattern, by).map(NormalizerWrapper::from).map_err(TokenizerError::Build)
    };
    let mut steps = Vec::new();
    if collapse {
        steps.push(Strip::new(true, true).into());
        steps.push(replace(ReplacePattern::Regex(" {2,}".to_owned()), " ")?);
    }
    if prefix {
        steps.push(Prepend::new("▁".to_owned()).into());
    }
    steps.push(replace(ReplacePattern::String(" ".to_owned()), "▁")?);
    Ok(Sequence::new(steps).into())
}

/// Every token that is found in text before words are cut.
fn added_tokens(vocabulary: &Vocabulary<'_>) -> Vec<AddedToken> {
    let token = |(text, kind): (&String, &Kind)| match kind {
        Kind::Control | Kind::Unknown => Some(AddedToken::from(text.as_str(), true)),
        Kind::UserDefined => Some(AddedToken::from(text.as_str(), false).normalized(false)),
        Kind::Normal | Kind::Unused | Kind::Byte => None,
    };
    vocabulary.tokens.iter().zip(&vocabulary.kinds).filter_map(token).collect()
}

fn pieces(vocabulary: &Vocabulary<'_>, spelling: Spelling) -> Pieces {
    let mut pieces = Pieces::with_capacity(vocabulary.tokens.len());
    for (text, kind) in vocabulary.tokens.iter().zip(&vocabulary.kinds) {
        pieces.push(|out| match kind {
            Kind::Control | Kind::Unknown | Kind::UserDefined => spelling.push_added(text, out),
            Kind::Normal | Kind::Unused | Kind::Byte => spelling.push(text, out),
        });
    }
    pieces
}

fn control_ids(vocabulary: &Vocabulary<'_>) -> impl Iterator<Item = TokenId> {
    let kinds = vocabulary.kinds.iter().zip(0..);
    kinds.filter(|&(&kind, _)| kind == Kind::Control).map(|(_, id)| TokenId(id))
}

fn end_of_turn(vocabulary: &Vocabulary<'_>) -> BTreeSet<TokenId> {
    let known = control_ids(vocabulary).filter(|&id| ends_turn(vocabulary.text(id)));
    vocabulary.end_of_turn.iter().copied().chain(known).collect()
}

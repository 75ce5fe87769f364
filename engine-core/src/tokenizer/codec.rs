//! The tokenizer itself: encode, decode, and the ids with a meaning. Knows nothing of file formats.

use std::collections::BTreeSet;
use std::fmt;

use tokenizers::tokenizer::AddedVocabulary;
use tokenizers::{Model, OffsetReferential, OffsetType, PreTokenizer};

use super::chat::StandIns;
use super::error::LibraryError;
use super::pieces::Pieces;
use super::stream::{TextStart, TextStream};
use super::{TokenId, TokenizerError};

/// What the text of a control token, such as `<|im_end|>`, means in a text to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// Text like any other: no control id comes out, whatever the text says.
    Literal,
    /// That token.
    Parse,
}

/// Whether decoding shows the text of control tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlText {
    /// Control tokens leave no trace.
    Hide,
    /// Control tokens appear by their text.
    Show,
}

/// What a model file says, in whatever format, once read.
pub(super) struct Parts {
    /// Normalizer, pre-tokenizer, model and added tokens.
    pub(super) library: tokenizers::Tokenizer,
    pub(super) pieces: Pieces,
    /// Tokens that steer the model and are never part of a text.
    pub(super) control: BTreeSet<TokenId>,
    /// Stands for characters that have no token.
    pub(super) unknown: Option<TokenId>,
    pub(super) begin: Option<TokenId>,
    pub(super) end: Option<TokenId>,
    pub(super) adds_begin: bool,
    pub(super) end_of_turn: BTreeSet<TokenId>,
    /// Whether encoding puts a space before a text, which decoding takes away again.
    pub(super) space_prefix: bool,
    pub(super) chat_template: Option<String>,
}

/// Turns text into token ids and back, as the model was trained to see it. Immutable once built.
pub struct Tokenizer {
    parts: Parts,
    /// The library's added tokens, with control tokens left to the model as ordinary text.
    literal: AddedVocabulary,
}

impl Tokenizer {
    pub(super) fn new(parts: Parts) -> Self {
        let mut literal = parts.library.get_added_vocabulary().clone();
        literal.set_encode_special_tokens(true);
        Tokenizer { parts, literal }
    }

    /// The ids of `text` alone: nothing is put before or after it.
    ///
    /// # Errors
    /// [`TokenizerError::Encode`] when the split rules give up on the text.
    pub fn encode(&self, text: &str, specials: Specials) -> Result<Vec<TokenId>, TokenizerError> {
        let added = match specials {
            Specials::Literal => &self.literal,
            Specials::Parse => self.parts.library.get_added_vocabulary(),
        };
        self.encode_with(added, text, |c| c)
    }

    /// The ids of a text that starts a sequence: [`encode`](Self::encode), then [`begun`](Self::begun). An end token is
    /// never added, even where a file asks for one: the model is to go on.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_prompt(
        &self,
        text: &str,
        specials: Specials,
    ) -> Result<Vec<TokenId>, TokenizerError> {
        self.encode(text, specials).map(|ids| self.begun(ids))
    }

    /// `ids` with exactly one begin token in front, when the model wants one.
    pub fn begun(&self, mut ids: Vec<TokenId>) -> Vec<TokenId> {
        if let (Some(begin), true) = (self.parts.begin, self.parts.adds_begin) {
            let present = ids.iter().take_while(|&&id| id == begin).count();
            ids.splice(..present, [begin]);
        }
        ids
    }

    /// The ids of a rendered conversation: control tokens are parsed, and only then do stand-ins become the characters
    /// they stand for.
    pub(super) fn encode_rendered(
        &self,
        text: &str,
        stand_ins: &StandIns,
    ) -> Result<Vec<TokenId>, TokenizerError> {
        self.encode_with(self.parts.library.get_added_vocabulary(), text, |c| stand_ins.reveal(c))
    }

    /// Cuts at `added` tokens, then maps characters, then lets the model work.
    fn encode_with(
        &self,
        added: &AddedVocabulary,
        text: &str,
        reveal: impl Fn(char) -> char,
    ) -> Result<Vec<TokenId>, TokenizerError> {
        self.try_encode(added, text, reveal)
            .map_err(|source| TokenizerError::Encode { n_bytes: text.len(), source })
    }

    fn try_encode(
        &self,
        added: &AddedVocabulary,
        text: &str,
        reveal: impl Fn(char) -> char,
    ) -> Result<Vec<TokenId>, LibraryError> {
        let library = &self.parts.library;
        let mut words = added.extract_and_normalize(library.get_normalizer(), text);
        words.normalize(|part| {
            if part.get().chars().any(|c| reveal(c) != c) {
                part.map(&reveal);
            }
            Ok(())
        })?;
        if let Some(pre_tokenizer) = library.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut words)?;
        }
        words.tokenize(|word| self.word_tokens(word.get()))?;
        let splits = words.get_splits(OffsetReferential::Normalized, OffsetType::None);
        let tokens = splits.iter().filter_map(|(_, _, tokens)| tokens.as_ref()).flatten();
        Ok(tokens.map(|token| TokenId(token.id)).collect())
    }

    /// The model's tokens of a word of plain text. Merging may spell out a control token, or the vocabulary may hold
    /// one as a whole word; such a token is spelt by its characters instead.
    fn word_tokens(&self, word: &str) -> Result<Vec<tokenizers::Token>, LibraryError> {
        let model = self.parts.library.get_model();
        let is_control = |token: &tokenizers::Token| self.is_control(TokenId(token.id));
        let tokens = model.tokenize(word)?;
        if !tokens.iter().any(is_control) {
            return Ok(tokens);
        }
        let mut plain = Vec::new();
        for token in tokens {
            if !is_control(&token) {
                plain.push(token);
                continue;
            }
            for c in token.value.chars() {
                let spelt = model.tokenize(c.encode_utf8(&mut [0; 4]))?;
                plain.extend(spelt.into_iter().filter(|token| !is_control(token)));
            }
        }
        Ok(plain)
    }

    /// The text of `ids`, with bytes that are no UTF-8 replaced by U+FFFD.
    pub fn decode(&self, ids: &[TokenId], control: ControlText) -> String {
        let mut stream = TextStream::new(TextStart::New, control);
        let mut text: String = ids.iter().map(|&id| stream.push(self, id)).collect();
        text.push_str(&stream.finish());
        text
    }

    /// The bytes that `id` stands for; a control token's are its text. None for an id beyond the vocabulary, as models
    /// with padded embeddings may give.
    pub fn piece(&self, id: TokenId) -> &[u8] {
        self.parts.pieces.get(id)
    }

    /// The token that the vocabulary lists under `text`, in the vocabulary's own spelling.
    pub fn token_id(&self, text: &str) -> Option<TokenId> {
        self.parts.library.token_to_id(text).map(TokenId)
    }

    /// Number of tokens. The model's embedding matrix may have more rows.
    pub fn n_vocab(&self) -> usize {
        self.parts.pieces.len()
    }

    /// Whether `id` steers the model and is never part of a text.
    pub fn is_control(&self, id: TokenId) -> bool {
        self.parts.control.contains(&id)
    }

    /// Whether a text shown to people leaves `id` out.
    pub(super) fn is_hidden(&self, id: TokenId) -> bool {
        self.is_control(id) || self.parts.unknown == Some(id)
    }

    /// The token that begins a sequence, if the vocabulary names one.
    pub fn begin(&self) -> Option<TokenId> {
        self.parts.begin
    }

    /// Whether the model wants [`begin`](Self::begin) in front of a sequence.
    pub fn adds_begin(&self) -> bool {
        self.parts.adds_begin
    }

    /// The token that ends a text, if the vocabulary names one.
    pub fn end(&self) -> Option<TokenId> {
        self.parts.end
    }

    /// Every token after which the model has said all it wanted: those that any of the model's files names, and control
    /// tokens well known for it.
    pub fn end_of_turn(&self) -> &BTreeSet<TokenId> {
        &self.parts.end_of_turn
    }

    /// Whether encoding puts a space before a text.
    pub(super) fn has_space_prefix(&self) -> bool {
        self.parts.space_prefix
    }

    /// Texts of all tokens that are looked for in text and are control tokens, or are not.
    fn added_texts(&self, special: bool) -> impl Iterator<Item = &str> {
        let added = self.parts.library.get_added_vocabulary().get_added_tokens_decoder();
        added
            .values()
            .filter(move |token| token.special == special)
            .map(|token| token.content.as_str())
    }

    /// Texts that become control tokens where control tokens are parsed.
    pub(crate) fn control_texts(&self) -> impl Iterator<Item = &str> {
        self.added_texts(true)
    }

    /// Texts that are always tokens of their own and no control tokens.
    pub(super) fn user_defined_texts(&self) -> impl Iterator<Item = &str> {
        self.added_texts(false)
    }

    /// The model's chat template, as written in its files.
    pub fn chat_template_source(&self) -> Option<&str> {
        self.parts.chat_template.as_deref()
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("n_vocab", &self.n_vocab())
            .field("begin", &self.parts.begin)
            .field("end_of_turn", &self.parts.end_of_turn)
            .finish_non_exhaustive()
    }
}

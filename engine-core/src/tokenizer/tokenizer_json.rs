//! A tokenizer from `tokenizer.json`, and what the files beside it in a Hugging Face folder say about ids and templates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokenizers::models::ModelWrapper;
use tokenizers::{AddedToken, Tokenizer as Library};

use super::codec::{Parts, Tokenizer};
use super::decoder::Decoder;
use super::pieces::{Pieces, Spelling};
use super::vocabulary::ends_turn;
use super::{TokenId, TokenizerError};

/// The keys of `tokenizer_config.json` that matter here.
#[derive(Debug, Default, Deserialize)]
struct TokenizerConfig {
    bos_token: Option<TokenText>,
    eos_token: Option<TokenText>,
    unk_token: Option<TokenText>,
    #[serde(default)]
    additional_special_tokens: Vec<TokenText>,
    add_bos_token: Option<bool>,
    chat_template: Option<Templates>,
}

/// A token by its text, alone or with its flags.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TokenText {
    Text(String),
    Token { content: String },
}

impl TokenText {
    fn as_str(&self) -> &str {
        match self {
            TokenText::Text(text) | TokenText::Token { content: text } => text,
        }
    }
}

/// One chat template, or several with names.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Templates {
    One(String),
    Named(Vec<NamedTemplate>),
}

#[derive(Debug, Deserialize)]
struct NamedTemplate {
    name: String,
    template: String,
}

impl Templates {
    /// The only template, or the one named "default".
    fn into_default(self) -> Option<String> {
        match self {
            Templates::One(template) => Some(template),
            Templates::Named(templates) => templates
                .into_iter()
                .find(|named| named.name == "default")
                .map(|named| named.template),
        }
    }
}

/// The keys of `generation_config.json`, and of `config.json` before there was the former, that matter here.
#[derive(Debug, Default, Deserialize)]
struct GenerationConfig {
    eos_token_id: Option<Ids>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Ids {
    One(u32),
    Several(Vec<u32>),
}

impl Ids {
    fn into_vec(self) -> Vec<u32> {
        match self {
            Ids::One(id) => vec![id],
            Ids::Several(ids) => ids,
        }
    }
}

impl Tokenizer {
    /// The tokenizer of a Hugging Face folder, by the path of its `tokenizer.json`. Of the files beside that one,
    /// `tokenizer_config.json`, `generation_config.json`, `config.json` and `chat_template.jinja` are used if present.
    ///
    /// # Errors
    /// A file that is missing, can not be read or has not the form it should have; a decoder that is not supported.
    pub fn from_tokenizer_json(path: &Path) -> Result<Self, TokenizerError> {
        let bytes = read(path)?.ok_or_else(|| TokenizerError::NoFile { path: path.to_owned() })?;
        let library = Library::from_bytes(&bytes)
            .map_err(|source| TokenizerError::BadLibraryFile { path: path.to_owned(), source })?;
        let decoder = Decoder::of_tokenizer_json(&bytes)
            .map_err(|source| TokenizerError::BadJson { path: path.to_owned(), source })?;
        let beside = Beside::read(path)?;
        assemble(library, &decoder, beside)
    }
}

/// What the other files of the folder say.
struct Beside {
    config: TokenizerConfig,
    /// The template that has a file of its own; it counts before the one in the configuration.
    template: Option<String>,
    end_of_turn: BTreeSet<TokenId>,
}

impl Beside {
    fn read(tokenizer_json: &Path) -> Result<Self, TokenizerError> {
        let beside = |name| tokenizer_json.with_file_name(name);
        let generation: GenerationConfig = optional_json(&beside("generation_config.json"))?;
        let model: GenerationConfig = optional_json(&beside("config.json"))?;
        let ids = [generation, model].into_iter().filter_map(|config| config.eos_token_id);
        Ok(Beside {
            config: optional_json(&beside("tokenizer_config.json"))?,
            template: optional_text(&beside("chat_template.jinja"))?,
            end_of_turn: ids.flat_map(Ids::into_vec).map(TokenId).collect(),
        })
    }
}

fn assemble(
    mut library: Library,
    decoder: &Decoder,
    beside: Beside,
) -> Result<Tokenizer, TokenizerError> {
    let Beside { config, template, mut end_of_turn } = beside;
    let (spelling, space_prefix) = decoder.spelling()?;
    add_named_tokens(&mut library, &config);
    let id = |text: &Option<TokenText>| library.token_to_id(text.as_ref()?.as_str()).map(TokenId);
    let unknown = id(&config.unk_token).or_else(|| unknown_of_model(&library));
    let end = id(&config.eos_token);
    let prefix = begin_ids(&library)?;
    let control = control_ids(&library, unknown);
    let is_end = |id: &TokenId| library.id_to_token(id.0).is_some_and(|text| ends_turn(&text));
    end_of_turn.extend(end.into_iter().chain(control.iter().copied().filter(is_end)));
    Ok(Tokenizer::new(Parts {
        pieces: pieces(&library, spelling)?,
        control,
        unknown,
        begin: id(&config.bos_token).or(prefix.first().copied()),
        end,
        adds_begin: config.add_bos_token.unwrap_or(!prefix.is_empty()),
        end_of_turn,
        space_prefix,
        chat_template: template.or_else(|| config.chat_template?.into_default()),
        library,
    }))
}

/// Makes sure that the tokens with a role are control tokens: older files list some as words only.
fn add_named_tokens(library: &mut Library, config: &TokenizerConfig) {
    let named = [&config.bos_token, &config.eos_token, &config.unk_token].into_iter().flatten();
    let texts = named.chain(&config.additional_special_tokens).map(TokenText::as_str);
    let is_special = |text: &str| library.get_added_vocabulary().is_special_token(text);
    let missing = texts.filter(|text| library.token_to_id(text).is_some() && !is_special(text));
    let tokens: Vec<AddedToken> = missing.map(|text| AddedToken::from(text, true)).collect();
    library.add_special_tokens(&tokens);
}

fn unknown_of_model(library: &Library) -> Option<TokenId> {
    let ModelWrapper::BPE(model) = library.get_model() else { return None };
    library.token_to_id(model.get_unk_token().as_deref()?).map(TokenId)
}

fn control_ids(library: &Library, unknown: Option<TokenId>) -> BTreeSet<TokenId> {
    let added = library.get_added_tokens_decoder();
    let special = added.iter().filter(|(_, token)| token.special).map(|(&id, _)| TokenId(id));
    special.filter(|&id| Some(id) != unknown).collect()
}

/// What the file's post-processor puts before a text.
fn begin_ids(library: &Library) -> Result<Vec<TokenId>, TokenizerError> {
    // Any text does; this one is a token, or a few, in every vocabulary.
    const TEXT: &str = "a";
    let ids = |specials| {
        let encoding = library.encode_fast(TEXT, specials);
        encoding.map(|encoding| encoding.get_ids().to_vec()).map_err(TokenizerError::Build)
    };
    let (with, without) = (ids(true)?, ids(false)?);
    let n_before = with.windows(without.len().max(1)).position(|window| window == without);
    Ok(with[..n_before.unwrap_or(0)].iter().copied().map(TokenId).collect())
}

/// The pieces of all tokens, by id.
fn pieces(library: &Library, spelling: Spelling) -> Result<Pieces, TokenizerError> {
    let added = library.get_added_tokens_decoder();
    let tokens: BTreeMap<u32, String> =
        library.get_vocab(true).into_iter().map(|(text, id)| (id, text)).collect();
    let n_tokens = tokens.len();
    let n_vocab = tokens.last_key_value().map_or(0, |(&id, _)| id as usize + 1);
    // Ids without a token are rare; a file with more of them than tokens is broken, and would need a table as large.
    if n_vocab > 2 * n_tokens {
        return Err(TokenizerError::SparseIds { n_tokens, largest: n_vocab - 1 });
    }
    let mut pieces = Pieces::with_capacity(n_vocab);
    for id in 0..n_vocab as u32 {
        pieces.push(|out| match (added.get(&id), tokens.get(&id)) {
            (Some(token), _) => spelling.push_added(&token.content, out),
            (None, Some(text)) => spelling.push(text, out),
            (None, None) => {}
        });
    }
    Ok(pieces)
}

/// The content of a file, if there is such a file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, TokenizerError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TokenizerError::Unreadable { path: path.to_owned(), source }),
    }
}

fn optional_json<T: DeserializeOwned + Default>(path: &Path) -> Result<T, TokenizerError> {
    let Some(bytes) = read(path)? else { return Ok(T::default()) };
    serde_json::from_slice(&bytes)
        .map_err(|source| TokenizerError::BadJson { path: path.to_owned(), source })
}

fn optional_text(path: &Path) -> Result<Option<String>, TokenizerError> {
    let utf8 = |bytes| {
        String::from_utf8(bytes).map_err(|_| TokenizerError::NotUtf8 { path: path.to_owned() })
    };
    read(path)?.map(utf8).transpose()
}

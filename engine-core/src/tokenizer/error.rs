//! What can be wrong with a tokenizer's description or its input.

use std::path::PathBuf;

/// An error of the `tokenizers` crate.
pub type LibraryError = Box<dyn std::error::Error + Send + Sync>;

/// Why a tokenizer could not be built or could not encode a text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A metadata key that this kind of tokenizer needs is not in the file.
    #[error("the model file has no '{key}', which its tokenizer needs")]
    Missing {
        /// The metadata key.
        key: &'static str,
    },
    /// A metadata value has another type than the key demands.
    #[error("metadata '{key}' is not {expected}")]
    WrongType {
        /// The metadata key.
        key: &'static str,
        /// The type it should have, with its article.
        expected: &'static str,
    },
    /// `tokenizer.ggml.model` names an algorithm that is not supported.
    #[error("tokenizer model '{name}' is not supported (supported: {})", supported.join(", "))]
    UnknownModel {
        /// The name in the file.
        name: String,
        /// The names that are supported.
        supported: &'static [&'static str],
    },
    /// `tokenizer.ggml.pre` names split rules that are not known.
    #[error("pre-tokenizer '{name}' is not supported (supported: {})", supported.join(", "))]
    UnknownSplitRules {
        /// The name in the file.
        name: String,
        /// The names that are supported.
        supported: Vec<&'static str>,
    },
    /// A per-token array does not have one element per token.
    #[error("metadata '{key}' has {got} elements for {expected} tokens")]
    Length {
        /// The metadata key.
        key: &'static str,
        /// Number of tokens.
        expected: usize,
        /// Number of elements.
        got: usize,
    },
    /// An id lies outside the vocabulary.
    #[error("metadata '{key}' names token {id}, but there are {n_vocab} tokens")]
    IdOutOfRange {
        /// The metadata key.
        key: &'static str,
        /// The id in the file.
        id: u64,
        /// Number of tokens.
        n_vocab: usize,
    },
    /// A token type number that the format does not define.
    #[error("token {token} has the undefined type {kind}")]
    UnknownTokenType {
        /// Index of the token.
        token: usize,
        /// The type number in the file.
        kind: u64,
    },
    /// A merge is not two tokens separated by a space.
    #[error("merge {index} is not two tokens separated by a space: {text:?}")]
    BadMerge {
        /// Index of the merge.
        index: usize,
        /// The merge in the file.
        text: String,
    },
    /// The tokens of a vocabulary with scores build one another in more ways than memory should be spent on.
    #[error("the {n_tokens} tokens build one another in more ways than in any real vocabulary")]
    TooManyMerges {
        /// Number of tokens.
        n_tokens: usize,
    },
    /// The `tokenizers` crate refused the vocabulary.
    #[error("the tokenizer's tables do not fit together")]
    Build(#[source] LibraryError),
    /// A folder has no tokenizer.
    #[error("there is no {}", path.display())]
    NoFile {
        /// The file looked for.
        path: PathBuf,
    },
    /// A file can not be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// A file is not the JSON it should be.
    #[error("{} is not valid", path.display())]
    BadJson {
        /// The file.
        path: PathBuf,
        /// Where and what.
        #[source]
        source: serde_json::Error,
    },
    /// A file is not UTF-8 text.
    #[error("{} is not UTF-8 text", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// The `tokenizers` crate refused a `tokenizer.json`.
    #[error("{} is not a valid tokenizer", path.display())]
    BadLibraryFile {
        /// The file.
        path: PathBuf,
        /// The library's reason.
        #[source]
        source: LibraryError,
    },
    /// The `decoder` of a `tokenizer.json` is neither that of a byte-level nor that of a SentencePiece vocabulary.
    #[error(
        "the decoder in tokenizer.json is not supported (supported: ByteLevel, and SentencePiece's steps)"
    )]
    UnknownDecoder,
    /// Most of the ids up to the largest have no token.
    #[error("the largest token id is {largest}, but there are only {n_tokens} tokens")]
    SparseIds {
        /// Number of tokens.
        n_tokens: usize,
        /// Largest id.
        largest: usize,
    },
    /// The `tokenizers` crate could not encode a text.
    #[error("a text of {n_bytes} bytes could not be encoded")]
    Encode {
        /// Length of the text.
        n_bytes: usize,
        /// The library's reason.
        #[source]
        source: LibraryError,
    },
}

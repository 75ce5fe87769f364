//! Text to token ids and back, by the rules the model file gives.
//!
//! Owns vocabularies, pre-tokenizers, control tokens, the streaming decoder, stop strings and chat templates. Knows
//! nothing of tensors, batches or sampling.

mod chat;
mod codec;
mod decoder;
mod error;
mod gguf;
mod merges;
mod pieces;
mod split_rules;
mod stop;
mod stream;
mod token;
mod tokenizer_json;
mod vocabulary;

pub use chat::{Chat, ChatTemplate, Clock, Message, Rendered, TemplateError};
pub use codec::{ControlText, Specials, Tokenizer};
pub use error::{LibraryError, TokenizerError};
pub use stop::{StopFilter, StopText};
pub use stream::{TextStart, TextStream, Utf8Stream};
pub use token::TokenId;

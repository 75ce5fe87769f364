//! What a caller asks for, and the same checked once.

use crate::engine::Engine;
use crate::error::EngineError;
use crate::sampler::{Sampler, Sampling};
use crate::tokenizer::{Chat, ChatTemplate, Clock, Message, Specials, TextStart, TokenId};

/// A question to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What to answer or continue.
    pub prompt: Prompt,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Texts that end the answer; they are not part of it.
    pub stop: Vec<String>,
    /// Most tokens of the answer; absent, as many as the KV cache holds.
    pub max_tokens: Option<u32>,
    /// Whether tokens are guessed and then checked several at once.
    pub speculation: Speculation,
}

/// Whether tokens are guessed and then checked several at once, which saves passes where a text repeats itself.
///
/// Each token is chosen from the same logits after the same tokens, so the answer is the same, whatever the sampling, on
/// every device that computes a row the same way in passes of any size, as the CPU does. Where a plan has passes of
/// different sizes done by devices that round differently, the choice between tokens that are almost equally likely may
/// differ, as it may between any two placements. Models whose rotations depend on the length of the sequence (dynamic
/// NTK, LongRoPE) are run without.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Speculation {
    /// Each pass runs one token.
    #[default]
    Off,
    /// What followed the last tokens where they came before is checked, 3 or 15 tokens at once, as long as that saves
    /// more time than it takes. Source: Saxena, "Prompt Lookup Decoding", 2023.
    Lookup,
    /// The same, even where it takes longer; for measurements.
    LookupAlways,
}

/// What to answer or continue.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompt {
    /// A conversation, put into the model's own chat format. Text of messages never becomes control tokens.
    Chat(Vec<Message>),
    /// Text to continue, as it is; the begin token is added where the model wants one.
    Text(String),
    /// Tokens to continue, as they are.
    Tokens(Vec<TokenId>),
}

impl Prompt {
    /// A conversation of one message by the user.
    pub fn user(text: &str) -> Prompt {
        Prompt::Chat(vec![Message::new("user", text)])
    }
}

impl From<Prompt> for Request {
    /// Greedy decoding until the model ends the answer.
    fn from(prompt: Prompt) -> Request {
        Request {
            prompt,
            sampling: Sampling::default(),
            stop: Vec::new(),
            max_tokens: None,
            speculation: Speculation::Off,
        }
    }
}

/// A request that can be met.
#[derive(Debug)]
pub(crate) struct ValidRequest {
    /// Never empty, and short enough to leave room for one more token.
    pub(crate) prompt: Vec<TokenId>,
    /// Whether the answer's text stands alone or goes on from the prompt's.
    pub(crate) text_start: TextStart,
    pub(crate) sampler: Sampler,
    pub(crate) stop: Vec<String>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) speculation: Speculation,
}

impl ValidRequest {
    /// Checks a request and tokenises its prompt.
    ///
    /// # Errors
    /// Settings out of range, a conversation that the model's template refuses, a prompt that is empty or too long,
    /// token ids that the model does not have.
    pub(crate) fn check(request: &Request, engine: &Engine) -> Result<ValidRequest, EngineError> {
        let sampler = Sampler::new(request.sampling)?;
        if request.max_tokens == Some(0) {
            let (option, range) = ("the number of tokens to generate", "1 or more");
            return Err(EngineError::OptionOutOfRange { option, found: 0, range });
        }
        let tokenizer = engine.tokenizer();
        let (prompt, text_start) = match &request.prompt {
            Prompt::Chat(messages) => {
                let template = ChatTemplate::new(tokenizer, Clock::System)?;
                let chat = Chat::to_answer(messages.clone());
                (tokenizer.encode_chat(&template, chat)?, TextStart::New)
            }
            Prompt::Text(text) => {
                (tokenizer.encode_prompt(text, Specials::Literal)?, TextStart::Continued)
            }
            Prompt::Tokens(tokens) => (tokens.clone(), TextStart::Continued),
        };
        let (n_ctx, n_vocab) = (engine.n_ctx(), engine.config().n_vocab);
        if prompt.is_empty() {
            return Err(EngineError::EmptyPrompt);
        }
        if prompt.len() >= n_ctx as usize {
            return Err(EngineError::PromptTooLong { n_prompt: prompt.len(), n_ctx });
        }
        if let Some(token) = prompt.iter().find(|token| token.0 >= n_vocab) {
            return Err(EngineError::UnknownToken { id: token.0, n_vocab });
        }
        let stop = request.stop.clone();
        let Request { max_tokens, speculation, .. } = *request;
        Ok(ValidRequest { prompt, text_start, sampler, stop, max_tokens, speculation })
    }
}

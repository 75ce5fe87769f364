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
        Request { prompt, sampling: Sampling::default(), stop: Vec::new(), max_tokens: None }
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
        let (stop, max_tokens) = (request.stop.clone(), request.max_tokens);
        Ok(ValidRequest { prompt, text_start, sampler, stop, max_tokens })
    }
}

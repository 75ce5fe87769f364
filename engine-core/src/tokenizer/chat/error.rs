//! What can go wrong between messages and token ids.

use crate::tokenizer::TokenizerError;

/// Why a chat template could not be used, or a conversation not be encoded with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The model has no template, and its vocabulary lacks the tokens of the ChatML format.
    #[error("the model has no chat template, and no tokens {} of the ChatML format", missing.join(", "))]
    NoTemplate {
        /// Control tokens of ChatML that the vocabulary lacks.
        missing: Vec<&'static str>,
    },
    /// The template is not valid Jinja.
    #[error("the chat template is not valid{}", at_line(*line))]
    Syntax {
        /// Line of the template, from 1.
        line: Option<usize>,
        /// What the template engine found.
        #[source]
        source: minijinja::Error,
    },
    /// The template rejects the conversation, in its own words.
    #[error("the chat template rejects the conversation: {message}")]
    Raised {
        /// The text that the template raised.
        message: String,
    },
    /// The template failed on this conversation.
    #[error("the chat template failed{}", at_line(*line))]
    Render {
        /// Line of the template, from 1.
        line: Option<usize>,
        /// What the template engine found.
        #[source]
        source: minijinja::Error,
    },
    /// A message is not a JSON object with a text as `role`.
    #[error("message {index} is not an object with a text as 'role'")]
    BadMessage {
        /// Index of the message in the conversation.
        index: usize,
    },
    /// A message has a part that is no text, and the template takes texts only.
    #[error("message {index} has a part of type '{kind}', which the chat template does not take")]
    UnsupportedPart {
        /// Index of the message in the conversation.
        index: usize,
        /// Type of the part.
        kind: String,
    },
    /// The conversation uses every private-use character of Unicode, of which a few are needed as stand-ins.
    #[error("the conversation uses every private-use character of Unicode")]
    NoStandIns,
    /// The rendered conversation could not be encoded.
    #[error(transparent)]
    Encode(#[from] TokenizerError),
}

fn at_line(line: Option<usize>) -> String {
    line.map(|line| format!(" at line {line}")).unwrap_or_default()
}

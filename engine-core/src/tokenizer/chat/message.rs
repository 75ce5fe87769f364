//! A conversation as templates see it.

use serde_json::{Map, Value};

use super::TemplateError;

/// One message: a JSON object with a `role` and, by role and model, `content` (text, null, or a list of parts),
/// `tool_calls`, `reasoning_content` and so on. Templates see every key.
#[derive(Debug, Clone, PartialEq)]
pub struct Message(Map<String, Value>);

impl Message {
    /// A message of plain text.
    pub fn new(role: &str, content: &str) -> Self {
        let pairs = [("role", role), ("content", content)];
        Message(pairs.map(|(key, value)| (key.to_owned(), value.into())).into_iter().collect())
    }

    /// The messages of a JSON array such as an API request carries.
    ///
    /// # Errors
    /// [`TemplateError::BadMessage`] for an element that is no object with a text as `role`.
    pub fn list(values: Vec<Value>) -> Result<Vec<Self>, TemplateError> {
        let message = |(index, value)| match value {
            Value::Object(map) if map.get("role").is_some_and(Value::is_string) => Ok(Message(map)),
            _ => Err(TemplateError::BadMessage { index }),
        };
        values.into_iter().enumerate().map(message).collect()
    }

    pub(super) fn map_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    pub(super) fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

/// A conversation to continue, with all that a template may ask for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chat {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// Descriptions of tools (JSON schemas) the model may call. None: templates see `none`.
    pub tools: Option<Value>,
    /// Documents the model may cite.
    pub documents: Option<Value>,
    /// Whether the text ends where the answer begins (else after the last message).
    pub add_generation_prompt: bool,
    /// Further variables of the template, such as `enable_thinking`.
    pub variables: Map<String, Value>,
}

impl Chat {
    /// A conversation to be answered.
    pub fn to_answer(messages: Vec<Message>) -> Self {
        Chat { messages, add_generation_prompt: true, ..Chat::default() }
    }
}

//! Which shapes of a message a template can take, found out by asking it.
//!
//! The same message has several spellings: an answer that only calls a tool has a content that is null, empty or not
//! there; content is a text or a list of parts; arguments of a call are JSON text or the value itself. A template knows
//! some of them and drops, garbles or refuses the others. It is shown each once and judged by whether what was said
//! arrives in its text; messages then come to it in a shape that it takes.

use serde_json::{Map, Value, json};

use super::python::{JsonStyle, to_json};
use super::{Chat, Message, TemplateError};

/// How a content that says nothing is spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nothing {
    Missing,
    Null,
    Empty,
}

/// What a template takes.
#[derive(Debug, Clone)]
pub(super) struct Shapes {
    /// Spellings of no content beside a tool call.
    nothing: Vec<Nothing>,
    /// Content that is a text.
    text: bool,
    /// Content that is a list of parts.
    parts: bool,
    /// Arguments of a call as a value; else as JSON text.
    argument_values: bool,
}

const SAID: &str = "probe said";
const CALLED: &str = "probe_function";
const ARGUMENT: &str = "probe_argument";

impl Shapes {
    /// Asks a template, by a function that gives the text of a conversation unless it fails.
    pub(super) fn of(render: impl Fn(Chat) -> Option<String>) -> Self {
        let (mut argument_values, mut nothing) = (true, spellings_of_nothing(&render, arguments()));
        if nothing.is_empty() {
            nothing = spellings_of_nothing(&render, arguments().to_string().into());
            argument_values = nothing.is_empty();
        }
        let said = |content: Value| {
            let message = json!({"role": "user", "content": content});
            render(Chat::to_answer(messages([message]))).unwrap_or_default()
        };
        let in_parts = said(json!([{"type": "text", "text": SAID}]));
        let is_printed = in_parts.contains("'text': ") || in_parts.contains("\"text\": ");
        Shapes {
            nothing,
            text: said(SAID.into()).contains(SAID),
            parts: in_parts.contains(SAID) && !is_printed,
            argument_values,
        }
    }

    /// `chat` in shapes that the template takes.
    ///
    /// # Errors
    /// [`TemplateError::UnsupportedPart`] for a part other than text, when the template takes no parts.
    pub(super) fn adapt(&self, mut chat: Chat) -> Result<Chat, TemplateError> {
        for (index, message) in chat.messages.iter_mut().enumerate() {
            let map = message.map_mut();
            self.adapt_calls(map);
            self.adapt_content(map, index)?;
        }
        Ok(chat)
    }

    fn adapt_calls(&self, message: &mut Map<String, Value>) {
        match message.get_mut("tool_calls") {
            Some(Value::Array(calls)) if !calls.is_empty() => {
                calls.iter_mut().filter_map(arguments_of).for_each(|arguments| {
                    self.adapt_arguments(arguments);
                });
            }
            // Templates ask whether the key is there.
            Some(_) => drop(message.shift_remove("tool_calls")),
            None => {}
        }
    }

    fn adapt_arguments(&self, arguments: &mut Value) {
        match arguments {
            Value::String(text) if self.argument_values => {
                if let Ok(value @ Value::Object(_)) = serde_json::from_str(text) {
                    *arguments = value;
                }
            }
            Value::Object(_) if !self.argument_values => {
                let value = minijinja::Value::from(minijinja::value::Serde(&*arguments));
                *arguments = to_json(&value, &JsonStyle::default()).into();
            }
            _ => {}
        }
    }

    fn adapt_content(
        &self,
        message: &mut Map<String, Value>,
        index: usize,
    ) -> Result<(), TemplateError> {
        let new = match message.get("content") {
            None => self.spell_nothing(Nothing::Missing),
            Some(Value::Null) => self.spell_nothing(Nothing::Null),
            Some(Value::Array(parts)) if !self.parts && self.text => {
                Some(joined_text(parts, index)?.into())
            }
            Some(Value::String(text)) if !self.text && self.parts => {
                Some(json!([{"type": "text", "text": text}]))
            }
            Some(_) => None,
        };
        if let Some(content) = new {
            message.insert("content".to_owned(), content);
        }
        Ok(())
    }

    /// What to say instead of a content spelt as `given`; none to leave it.
    fn spell_nothing(&self, given: Nothing) -> Option<Value> {
        if self.nothing.contains(&given) {
            return None;
        }
        let known = self.nothing.iter().copied().find(|&nothing| nothing != Nothing::Missing);
        Some(known.unwrap_or(Nothing::Empty).value().unwrap_or_default())
    }
}

impl Nothing {
    fn value(self) -> Option<Value> {
        match self {
            Nothing::Missing => None,
            Nothing::Null => Some(Value::Null),
            Nothing::Empty => Some("".into()),
        }
    }
}

fn arguments() -> Value {
    json!({ARGUMENT: 1})
}

/// The spellings of no content beside which a call with `arguments` arrives.
fn spellings_of_nothing(render: impl Fn(Chat) -> Option<String>, arguments: Value) -> Vec<Nothing> {
    let arrives = |nothing: &Nothing| {
        let text = render(call(*nothing, arguments.clone())).unwrap_or_default();
        let has = |part: &str| text.contains(part);
        // Python's spelling of a value where JSON is meant.
        let is_garbled = has(&format!("'{ARGUMENT}'")) && !has(&format!("\"{ARGUMENT}\""));
        has(CALLED) && has(ARGUMENT) && !has("None") && !is_garbled
    };
    [Nothing::Missing, Nothing::Null, Nothing::Empty].into_iter().filter(arrives).collect()
}

/// A conversation whose answer is a tool call beside no content.
fn call(nothing: Nothing, arguments: Value) -> Chat {
    // Some templates demand ids of nine letters and digits.
    let id = "probe0000";
    let function = json!({"name": CALLED, "arguments": arguments});
    let tool_calls = json!([{"id": id, "type": "function", "function": function}]);
    let mut answer = json!({"role": "assistant", "tool_calls": tool_calls});
    if let Some(content) = nothing.value() {
        answer["content"] = content;
    }
    let asked = json!({"role": "user", "content": SAID});
    let result = json!({"role": "tool", "tool_call_id": id, "name": "x", "content": "1"});
    // Some templates show calls only where there are tools. This one is another, not to be taken for the call.
    let parameters = json!({"type": "object", "properties": {"y": {"type": "integer"}}});
    let tool = json!({"name": "x", "description": "x", "parameters": parameters});
    let tools = json!([{"type": "function", "function": tool}]);
    Chat { messages: messages([asked, answer, result]), tools: Some(tools), ..Chat::default() }
}

fn messages<const N: usize>(values: [Value; N]) -> Vec<Message> {
    Message::list(values.into()).expect("every probe has a role")
}

/// The arguments of a tool call.
fn arguments_of(call: &mut Value) -> Option<&mut Value> {
    let call = call.as_object_mut()?;
    let function = if call.contains_key("function") {
        call.get_mut("function")?.as_object_mut()?
    } else {
        call
    };
    function.get_mut("arguments")
}

/// Texts of parts, one per line.
fn joined_text(parts: &[Value], index: usize) -> Result<String, TemplateError> {
    let text = |part: &Value| match part {
        Value::String(text) => Ok(text.clone()),
        part => part["text"].as_str().map(str::to_owned).ok_or_else(|| {
            let kind = part["type"].as_str().unwrap_or_default().to_owned();
            TemplateError::UnsupportedPart { index, kind }
        }),
    };
    Ok(parts.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("\n"))
}

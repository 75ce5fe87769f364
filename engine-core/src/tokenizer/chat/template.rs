//! A chat template and what comes out of it.

use std::borrow::Cow;
use std::sync::OnceLock;

use minijinja::value::Serde;
use minijinja::{Environment, Error};
use serde_json::{Map, Value};

use super::functions::{Raised, environment};
use super::shapes::Shapes;
use super::stand_ins::{Guard, StandIns};
use super::{Chat, Clock, TemplateError, literals};
use crate::tokenizer::{TokenId, Tokenizer};

/// The ChatML format, for models that have its tokens and no template.
const CHATML: &str = "{% for message in messages %}\
    {{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}\
    {% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
const CHATML_TOKENS: [&str; 2] = ["<|im_start|>", "<|im_end|>"];

/// Renders conversations for one model.
#[derive(Debug)]
pub struct ChatTemplate {
    env: Environment<'static>,
    source: String,
    is_fallback: bool,
    guard: Guard,
    /// `bos_token` and the like.
    token_texts: Map<String, Value>,
    /// What the template takes, once it was asked.
    shapes: OnceLock<Shapes>,
}

/// A rendered conversation, still knowing which of its text came from messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    text: String,
    stand_ins: StandIns,
}

impl ChatTemplate {
    /// The template of the model that `tokenizer` belongs to; ChatML if the model has none but has ChatML's tokens.
    ///
    /// # Errors
    /// [`TemplateError::NoTemplate`], or [`TemplateError::Syntax`] for a template that is not valid.
    pub fn new(tokenizer: &Tokenizer, clock: Clock) -> Result<Self, TemplateError> {
        match tokenizer.chat_template_source() {
            Some(source) => Self::from_source(source, tokenizer, clock),
            None => {
                let is_missing = |text: &&str| {
                    !tokenizer.token_id(text).is_some_and(|id| tokenizer.is_control(id))
                };
                let missing: Vec<_> = CHATML_TOKENS.into_iter().filter(is_missing).collect();
                if !missing.is_empty() {
                    return Err(TemplateError::NoTemplate { missing });
                }
                let template = Self::from_source(CHATML, tokenizer, clock)?;
                Ok(ChatTemplate { is_fallback: true, ..template })
            }
        }
    }

    /// The template `source`, for the model that `tokenizer` belongs to.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`] for a template that is not valid.
    pub fn from_source(
        source: &str,
        tokenizer: &Tokenizer,
        clock: Clock,
    ) -> Result<Self, TemplateError> {
        let source = without_generation_tags(source).into_owned();
        let env = environment(clock);
        if let Err(source) = env.template_from_str(&source) {
            return Err(TemplateError::Syntax { line: source.line(), source });
        }
        let wanted = literals::quoted(&source);
        let guard = Guard::new(
            tokenizer.control_texts(),
            wanted.into_iter().chain(tokenizer.user_defined_texts().map(str::to_owned)),
        );
        let token_texts = token_texts(tokenizer);
        Ok(ChatTemplate {
            env,
            source,
            is_fallback: false,
            guard,
            token_texts,
            shapes: OnceLock::new(),
        })
    }

    /// Whether this is the ChatML format because the model has no template of its own.
    pub fn is_fallback(&self) -> bool {
        self.is_fallback
    }

    /// The text of a conversation, as the model was trained to see it. Messages may spell what they say in any shape:
    /// content null, missing, empty or in parts; arguments of tool calls as JSON text or as a value.
    ///
    /// # Errors
    /// [`TemplateError::Raised`] when the template rejects the conversation, [`TemplateError::Render`] when it fails,
    /// [`TemplateError::UnsupportedPart`] for a part of a message that it has no place for.
    pub fn render(&self, chat: Chat) -> Result<Rendered, TemplateError> {
        let shapes = self.shapes.get_or_init(|| {
            Shapes::of(|probe| self.render_as_given(probe).ok().map(|rendered| rendered.text()))
        });
        self.render_as_given(shapes.adapt(chat)?)
    }

    fn render_as_given(&self, chat: Chat) -> Result<Rendered, TemplateError> {
        let variables = self.variables(chat);
        let values: Vec<&Value> = variables.values().collect();
        let stand_ins =
            self.guard.stand_ins(&values, &self.source).ok_or(TemplateError::NoStandIns)?;
        let mut hidden: Map<String, Value> = variables
            .into_iter()
            .map(|(name, value)| (name, self.guard.hide(value, &stand_ins)))
            .collect();
        hidden.extend(self.token_texts.clone());
        let text = self.env.render_str(&self.source, Serde(hidden)).map_err(render_error)?;
        Ok(Rendered { text, stand_ins })
    }

    /// What the template is given of a conversation.
    fn variables(&self, chat: Chat) -> Map<String, Value> {
        let mut variables = chat.variables;
        let messages = chat.messages.into_iter().map(|message| message.into_value()).collect();
        variables.insert("messages".to_owned(), messages);
        variables.insert("tools".to_owned(), chat.tools.unwrap_or_default());
        variables.insert("documents".to_owned(), chat.documents.unwrap_or_default());
        variables.insert("add_generation_prompt".to_owned(), chat.add_generation_prompt.into());
        variables
    }
}

impl Rendered {
    /// The text as the model sees it.
    pub fn text(&self) -> String {
        self.stand_ins.reveal_text(&self.text)
    }
}

impl Tokenizer {
    /// The ids of a conversation, with exactly one begin token if the model wants one. Control ids come from the
    /// template's own text only.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`] and [`Tokenizer::encode`].
    pub fn encode_chat(
        &self,
        template: &ChatTemplate,
        chat: Chat,
    ) -> Result<Vec<TokenId>, TemplateError> {
        let rendered = template.render(chat)?;
        Ok(self.begun(self.encode_rendered(&rendered.text, &rendered.stand_ins)?))
    }
}

/// The template variables that hold the texts of tokens.
fn token_texts(tokenizer: &Tokenizer) -> Map<String, Value> {
    let text = |id| String::from_utf8_lossy(tokenizer.piece(id)).into_owned();
    let tokens = [("bos_token", tokenizer.begin()), ("eos_token", tokenizer.end())];
    tokens.into_iter().filter_map(|(name, id)| Some((name.to_owned(), text(id?).into()))).collect()
}

/// `source` with the tags that mark the model's own text for training made into tags that do nothing but open a scope.
fn without_generation_tags(source: &str) -> Cow<'_, str> {
    if !source.contains("generation") {
        return source.into();
    }
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(open) = rest.find("{%") {
        let (before, tag) = rest.split_at(open + 2);
        out.push_str(before);
        let sign = tag.len() - tag.trim_start_matches(['-', '+']).len();
        let (sign, tag) = tag.split_at(sign);
        out.push_str(sign);
        rest = tag;
        for (name, by) in [("generation", " with "), ("endgeneration", " endwith ")] {
            let after = tag.trim_start().strip_prefix(name);
            if let Some(after) = after.filter(|after| is_tag_end(after)) {
                out.push_str(by);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out.into()
}

fn is_tag_end(text: &str) -> bool {
    text.trim_start().trim_start_matches(['-', '+']).starts_with("%}")
}

fn render_error(error: Error) -> TemplateError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(Raised(message)) = inner.downcast_ref() {
            return TemplateError::Raised { message: message.clone() };
        }
        cause = inner.source();
    }
    TemplateError::Render { line: error.line(), source: error }
}

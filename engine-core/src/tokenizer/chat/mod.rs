//! Conversations to token ids: chat templates, rendered as Hugging Face transformers renders them.
//!
//! Owns the one rule that keeps a conversation honest: only the template's own text yields control tokens. What a
//! message says is text, whatever it says.

mod clock;
mod error;
mod functions;
mod literals;
mod message;
mod python;
mod shapes;
mod stand_ins;
mod template;

pub use clock::Clock;
pub use error::TemplateError;
pub use message::{Chat, Message};
pub(super) use stand_ins::StandIns;
pub use template::{ChatTemplate, Rendered};

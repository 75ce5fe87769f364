//! Sessions: a sequence, and the loop that answers requests on it. Yields events.

mod answer_text;
mod event;
mod generation;
mod lookup;
mod pace;
mod sequence;
mod speculator;
mod transcript;

pub use event::{Event, FinishReason};
pub use generation::Generation;
pub use sequence::Session;

//! Loads a model, plans where its work is done, and opens sessions on it: wiring only.

mod load;
mod options;
mod placing;
mod room;

pub use load::{Engine, open_tokenizer};
pub use options::{EngineOptions, KvFormat};
pub use placing::{Placing, Plans, Vram};

//! From flags to checked settings: what the flags of a command mean together, and on this machine.

mod model;

pub(crate) use self::model::{ModelRef, known_model};

use thiserror::Error;

use self::model::known_names;

/// Flags that make no sense together or on this machine.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum UsageError {
    #[error("no model is known by the name {name}; known: {}", known_names())]
    UnknownModel { name: String },
}

//! From flags to checked settings: what the flags of a command mean together, and on this machine.

use std::env;

use thiserror::Error;

use crate::fetch::Tools;
use crate::models::{self, KnownModel};

/// Flags that make no sense on this machine or together.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub(crate) enum UsageError {
    #[error("no model is known by the name {name}; known: {}", known_names())]
    UnknownModel { name: String },
}

impl Tools {
    /// The tools of this machine.
    pub(crate) fn of_machine() -> Tools {
        let python = if cfg!(windows) { "python" } else { "python3" };
        Tools { python: python.into(), hub: env::var("HF_ENDPOINT").ok() }
    }
}

/// The known model of that name.
pub(crate) fn known_model(name: &str) -> Result<&'static KnownModel, UsageError> {
    models::find(name).ok_or_else(|| UsageError::UnknownModel { name: name.to_owned() })
}

fn known_names() -> String {
    let names: Vec<&str> = models::KNOWN.iter().map(|model| model.name).collect();
    names.join(", ")
}

//! From flags to checked settings: what the flags of a command mean together, and on this machine.

use std::env;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::cache::Cache;
use crate::failure::Failure;
use crate::fetch::{self, Tools};
use crate::interrupt::Interrupt;
use crate::models::{self, KnownModel};

/// Flags that make no sense on this machine or together.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub(crate) enum UsageError {
    #[error("no model is known by the name {name}; known: {}", known_names())]
    UnknownModel { name: String },
    #[error("no such file or folder: {path}", path = path.display())]
    MissingModel { path: PathBuf },
}

/// A model as the user named it.
#[derive(Debug, Clone)]
pub(crate) enum ModelRef {
    /// One that can be fetched.
    Known(&'static KnownModel),
    /// A file or folder that exists.
    Path(PathBuf),
}

impl ModelRef {
    /// A known name, or the path of something that exists.
    pub(crate) fn parse(text: &str) -> Result<ModelRef, UsageError> {
        let path = Path::new(text);
        if let Some(model) = models::find(text) {
            Ok(ModelRef::Known(model))
        } else if path.exists() {
            Ok(ModelRef::Path(path.to_owned()))
        } else if looks_like_path(path) {
            Err(UsageError::MissingModel { path: path.to_owned() })
        } else {
            Err(UsageError::UnknownModel { name: text.to_owned() })
        }
    }

    /// Where the model lies; a known one is fetched first if it is missing.
    pub(crate) fn locate(&self, interrupt: &Interrupt) -> Result<PathBuf, Failure> {
        let model = match self {
            ModelRef::Path(path) => return Ok(path.clone()),
            ModelRef::Known(model) => model,
        };
        let cache = Cache::of_user()?;
        match cache.find(model) {
            Some(path) => Ok(path),
            None => Ok(fetch::fetch(model, &cache, &Tools::of_machine(), interrupt)?),
        }
    }
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

/// Whether someone who typed this meant a path rather than a name.
fn looks_like_path(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gguf" || extension == "safetensors")
        || path.components().count() > 1
}

fn known_names() -> String {
    let names: Vec<&str> = models::KNOWN.iter().map(|model| model.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_a_known_name_or_an_existing_path() {
        assert!(matches!(ModelRef::parse("smollm2-135m"), Ok(ModelRef::Known(_))));
        assert!(matches!(ModelRef::parse(env!("CARGO_MANIFEST_DIR")), Ok(ModelRef::Path(_))));
    }

    #[test]
    fn a_mistyped_name_lists_the_known_ones() {
        let error = ModelRef::parse("smolm2").expect_err("unknown");
        assert!(error.to_string().contains("known: smollm2-135m"), "{error}");
    }

    #[test]
    fn a_missing_file_is_not_taken_for_a_name() {
        for path in ["no-such-model.gguf", "no/such/folder"] {
            let error = ModelRef::parse(path).expect_err("missing");
            assert_eq!(error, UsageError::MissingModel { path: path.into() });
        }
    }
}

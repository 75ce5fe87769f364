//! Which model the user meant, and where it lies.

use std::env;
use std::path::{Path, PathBuf};

use engine_core::Cancel;

use super::UsageError;
use crate::cache::Cache;
use crate::failure::Failure;
use crate::fetch::{self, Tools};
use crate::interrupt::Interrupt;
use crate::models::{self, KnownModel};

/// A model as the user named it.
#[derive(Debug, Clone)]
pub(crate) enum ModelRef {
    /// One that can be fetched.
    Known(&'static KnownModel),
    /// A file or folder, whether or not it exists.
    Path(PathBuf),
}

impl ModelRef {
    /// A known name, or else a path.
    pub(crate) fn parse(text: &str) -> Result<ModelRef, UsageError> {
        let path = Path::new(text);
        match models::find(text) {
            Some(model) => Ok(ModelRef::Known(model)),
            None if path.exists() || looks_like_path(path) => Ok(ModelRef::Path(path.to_owned())),
            None => Err(UsageError::UnknownModel { name: text.to_owned() }),
        }
    }

    /// Where the model lies; a known one is fetched first if it is missing.
    pub(crate) fn locate(&self, interrupt: &Interrupt) -> Result<PathBuf, Failure> {
        let model = match self {
            ModelRef::Path(path) => return Ok(path.clone()),
            ModelRef::Known(model) => model,
        };
        let cache = Cache::of_user()?;
        if let Some(path) = cache.find(model) {
            return Ok(path);
        }
        let cancel = Cancel::default();
        let _watch = interrupt.watch(&cancel);
        Ok(fetch::fetch(model, &cache, &Tools::of_machine(), &cancel)?)
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

/// Whether someone who typed this meant a model and not a prompt.
pub(super) fn looks_like_model(text: &str) -> bool {
    let path = Path::new(text);
    models::find(text).is_some() || is_model_file(path) || path.join("config.json").is_file()
}

/// Whether someone who typed this meant a path and not a name.
pub(super) fn looks_like_path(path: &Path) -> bool {
    is_model_file(path) || path.components().count() > 1
}

fn is_model_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gguf" || extension == "safetensors")
}

pub(super) fn known_names() -> String {
    let names: Vec<&str> = models::KNOWN.iter().map(|model| model.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_a_known_name_or_a_path() {
        assert!(matches!(ModelRef::parse("smollm2-135m"), Ok(ModelRef::Known(_))));
        for path in [env!("CARGO_MANIFEST_DIR"), "missing.gguf", "missing/folder"] {
            assert!(matches!(ModelRef::parse(path), Ok(ModelRef::Path(_))), "{path}");
        }
    }

    #[test]
    fn a_mistyped_name_lists_the_known_ones() {
        let error = ModelRef::parse("smolm2").expect_err("unknown");
        assert!(error.to_string().contains("known: smollm2-135m"), "{error}");
    }
}

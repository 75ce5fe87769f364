//! The flags that name a model.

use crate::models;

/// Which model, before the other arguments or behind a flag.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArgs {
    #[arg(value_name = "MODEL", help = model_help())]
    positional: Option<String>,
    /// The same, wherever it stands
    #[arg(short = 'm', long = "model", value_name = "MODEL", conflicts_with = "positional")]
    flag: Option<String>,
}

impl ModelArgs {
    /// Whether the user named one.
    pub(crate) fn is_given(&self) -> bool {
        self.flag.is_some() || self.positional.is_some()
    }

    /// The model as typed, or the default one.
    pub(crate) fn model(&self) -> &str {
        self.flag.as_deref().or(self.positional.as_deref()).unwrap_or(models::DEFAULT.name)
    }
}

fn model_help() -> String {
    format!("Known name, GGUF file or Hugging Face folder [default: {}]", models::DEFAULT.name)
}

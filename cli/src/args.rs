//! The flags as typed. What they mean together, with files or on this machine is `settings`' business.

use clap::{Parser, Subcommand};

use crate::models;

const NOTES: &str = "\
A MODEL is a known name (`baton pull --list`), a GGUF file (any part of a split one), or a Hugging
Face folder with config.json, tokenizer.json and *.safetensors.

Exit codes: 0 fine, 1 failure inside Baton, 2 bad input or use, 130 stopped by Ctrl-C.
Fetched models are kept in baton/models in your cache folder ($XDG_CACHE_HOME, else ~/.cache).";

/// Runs language models on ordinary PCs.
#[derive(Debug, Parser)]
#[command(name = "baton", version, after_help = NOTES, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Pull(PullArgs),
    Inspect(InspectArgs),
}

/// Which model, before the other arguments or behind a flag.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArgs {
    /// Known name, GGUF file or Hugging Face folder
    #[arg(value_name = "MODEL", default_value = models::DEFAULT.name)]
    positional: String,
    /// The same, wherever it stands
    #[arg(short = 'm', long = "model", value_name = "MODEL", conflicts_with = "positional")]
    flag: Option<String>,
}

impl ModelArgs {
    /// The model as typed, or the default one.
    pub(crate) fn model(&self) -> &str {
        self.flag.as_deref().unwrap_or(&self.positional)
    }
}

/// Fetch a known model into the cache and print its path
#[derive(Debug, clap::Args)]
pub(crate) struct PullArgs {
    /// Name of the model
    #[arg(default_value = models::DEFAULT.name)]
    pub(crate) name: String,
    /// List the known models instead
    #[arg(long)]
    pub(crate) list: bool,
}

/// Show metadata and tensors of a model, also of one that cannot run
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Print one JSON object, with all values in full
    #[arg(long)]
    pub(crate) json: bool,
}

//! The flags as typed. What depends on several flags or on files is `settings`' business.

use clap::{Parser, Subcommand};

use crate::models;

const NOTES: &str = "\
Exit codes: 0 fine, 1 failure inside Baton, 2 bad input or use, 130 stopped by Ctrl-C.
Models are kept in baton/models in your cache folder ($XDG_CACHE_HOME, else ~/.cache).";

/// Runs language models on ordinary PCs.
#[derive(Debug, Parser)]
#[command(name = "baton", version, after_help = NOTES, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Fetch a known model into the cache and print its path
    Pull(PullArgs),
    /// Show metadata and tensors of a model, also of one that cannot run
    Inspect(InspectArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct PullArgs {
    /// Name of the model
    #[arg(default_value = models::DEFAULT.name)]
    pub(crate) name: String,
    /// List the known models instead
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// A known name, or a GGUF file: any part of a split one
    #[arg(default_value = models::DEFAULT.name)]
    pub(crate) model: String,
    /// Print one JSON object, with all values in full
    #[arg(long)]
    pub(crate) json: bool,
}

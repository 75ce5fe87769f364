//! Flags of `baton plan`.

use std::path::PathBuf;

use planner::{Bytes, Method, typed};

/// Predict how fast a model would run, and where each of its shards should live
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Weights are not needed: a MODEL is what other commands take, the name of a well-known model, or its TOML
description; for any of them only sizes are read.

The table has a line or two for each budget and context. Below it, the last of them is shown from near: a
strip of layers for each of prompt and answer, VRAM by what it holds, the bottleneck, and what one more
GiB or half the context would bring.")]
pub(crate) struct PlanArgs {
    /// Known name, GGUF file, Hugging Face folder or TOML description
    pub(crate) model: String,
    /// Built-in machine or profile [default: this machine's, as `baton profile` wrote it]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) machine: Option<String>,
    /// VRAM budgets, as in 2GiB,8GiB; 0 leaves the GPU alone [default: from 2GiB up to the card's memory]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = typed::size)]
    pub(crate) vram: Vec<Bytes>,
    /// Contexts, as in 4096 or 1K,16K [default: what the model was made for, up to 8K]
    #[arg(short, long, value_name = "TOKENS", value_delimiter = ',', value_parser = typed::token_count)]
    pub(crate) ctx: Vec<u32>,
    /// Tokens of the prompt [default: what the answer leaves of the context]
    #[arg(long, value_name = "TOKENS", value_parser = typed::token_count)]
    pub(crate) prompt: Option<u32>,
    /// Tokens of the answer [default: an eighth of the context, at most 256]
    #[arg(long = "gen", value_name = "TOKENS", value_parser = typed::token_count)]
    pub(crate) generated: Option<u32>,
    /// How layouts are found: search, best-strategy, or a strategy such as static or whole-layers
    #[arg(long, value_name = "NAME", default_value = "search", value_parser = typed::method)]
    pub(crate) strategy: Method,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw the plan of the last budget and context: VRAM, layers, and the first passes
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Save the plan of the last budget and context as TOML
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
}

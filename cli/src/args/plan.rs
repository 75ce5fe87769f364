//! Flags of `baton plan`.

use planner::flags::PreviewFlags;

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
    #[command(flatten)]
    pub(crate) preview: PreviewFlags,
}

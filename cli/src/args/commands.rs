//! The flags of each command.

use std::path::PathBuf;

use planner::typed::token_count;

use super::{AnswerArgs, DeviceArgs, EngineArgs, ModelArgs, PlacingArgs};
use crate::models;

/// Answer one prompt
#[derive(Debug, clap::Args)]
#[command(
    allow_missing_positional = true,
    after_help = "The answer streams to stdout; the last line, on stderr, gives rates and times."
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// What to answer; `-` reads it from stdin
    pub(crate) prompt: String,
    /// Continue the prompt as it is, without the model's chat format
    #[arg(long, conflicts_with = "system")]
    pub(crate) raw: bool,
    /// Print one JSON object at the end instead of streaming text
    #[arg(long)]
    pub(crate) json: bool,
    /// Say at the end which plans were used and where time went
    #[arg(long)]
    pub(crate) explain: bool,
    /// Write what ran when, and what was predicted, for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Hold a conversation
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Type a message and press Enter. Ctrl-C stops the answer, Ctrl-D leaves, /help lists commands.
Messages may also come from a pipe, one a line.")]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
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

/// Show the token ids and pieces of a text, or the text of token ids
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Text is taken literally unless --special is given: it never becomes control tokens, and nothing is put
before it.")]
pub(crate) struct TokenizeArgs {
    /// Text to encode; `-` reads stdin
    #[arg(default_value = "-", conflicts_with_all = ["ids", "lines"])]
    pub(crate) text: String,
    /// Model whose tokenizer to use
    #[arg(short, long, value_name = "MODEL", default_value = models::DEFAULT.name)]
    pub(crate) model: String,
    /// Turn these ids into text instead, as in 1,2,3
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub(crate) ids: Option<Vec<u32>>,
    /// Encode each line of stdin by itself
    #[arg(long, conflicts_with = "ids")]
    pub(crate) lines: bool,
    /// Encode as the start of a prompt: control tokens are read, a begin token is added if the model wants one
    #[arg(long, conflicts_with = "ids")]
    pub(crate) special: bool,
    /// Print one JSON object a text: {"text": ..., "ids": [...]}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measure how well a model predicts a text
#[derive(Debug, clap::Args)]
#[command(after_help = "\
As llama.cpp's perplexity tool does it, so that numbers compare: the text is cut into windows, a rest is
left out, and the second half of each window is scored.")]
pub(crate) struct PerplexityArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Text to predict, in UTF-8
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Length of a window
    #[arg(short, long, value_name = "TOKENS", default_value = "512", value_parser = token_count)]
    pub(crate) ctx: u32,
    /// Score all of a text shorter than the model's context, in one pass
    #[arg(long, conflicts_with = "ctx")]
    pub(crate) whole: bool,
    /// Print one JSON object, with numbers at full precision
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the logits of each scored position: rows of 32-bit little-endian floats
    #[arg(long, value_name = "FILE")]
    pub(crate) logits: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
}

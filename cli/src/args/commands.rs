//! The flags as typed. What they mean together, with files or on this machine is `settings`' business.

mod tokens;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, Subcommand};

use self::tokens::token_count;
use crate::models;

const NOTES: &str = "\
Examples:
  baton run \"Why is the sky blue?\"           answer with the default model, fetched first if missing
  baton run model.gguf \"Name three rivers.\"  answer with a model of your own
  git log | baton run --system Summarise. -  take the prompt from stdin
  baton chat --temperature 0.7               talk; Ctrl-C stops an answer, Ctrl-D leaves
  baton inspect model.gguf                   what is in a file

A MODEL is a known name (`baton pull --list`), a GGUF file (any part of a split one), or a Hugging
Face folder with config.json, tokenizer.json and *.safetensors.

Units: token counts may end in K, 1K = 1024 tokens; TPS is tokens per second; times are in seconds.
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
    Run(RunArgs),
    Chat(ChatArgs),
    Pull(PullArgs),
    Inspect(InspectArgs),
    Tokenize(TokenizeArgs),
    Perplexity(PerplexityArgs),
}

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

/// How an answer is written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Answer")]
pub(crate) struct AnswerArgs {
    /// Instruction before the conversation
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Longest answer [default: as long as the context lasts]
    #[arg(short = 'n', long, value_name = "TOKENS", value_parser = token_count)]
    pub(crate) max_tokens: Option<u32>,
    /// End the answer before this text; may be given several times
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) stop: Vec<String>,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
}

/// How each token is chosen.
#[derive(Debug, clap::Args)]
#[command(
    next_help_heading = "Sampling (in this order: penalties, temperature, top-k, top-p, min-p)"
)]
pub(crate) struct SamplingArgs {
    /// Spread of the choice; 0 always takes the likeliest token
    #[arg(short, long, value_name = "T", default_value_t = 0.4, allow_negative_numbers = true)]
    pub(crate) temperature: f32,
    /// Choose among this many likeliest tokens; 0 for all
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) top_k: u32,
    /// Choose among the likeliest tokens that together have this probability; 1 for all
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true)]
    pub(crate) top_p: f32,
    /// Leave out tokens below this share of the likeliest one's probability; 0 for none
    #[arg(long, value_name = "P", default_value_t = 0.05, allow_negative_numbers = true)]
    pub(crate) min_p: f32,
    /// Make tokens of prompt and answer less likely: divides their score; 1 for off
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    pub(crate) repeat_penalty: f32,
    /// Make tokens of the answer less likely: taken off their score once
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) presence_penalty: f32,
    /// Make tokens of the answer less likely: taken off their score for each time they came
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) frequency_penalty: f32,
    /// Let penalties look at this many last tokens only [default: all]
    #[arg(long, value_name = "TOKENS", value_parser = token_count)]
    pub(crate) penalty_last_n: Option<u32>,
    /// Start of the random numbers; same seed, same answer [default: another one each time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// What the model runs on.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// Room for prompt and answer, as in 4096 or 16K [default: what the model was made for, up to 8K]
    #[arg(short, long, value_name = "TOKENS", value_parser = token_count)]
    pub(crate) ctx: Option<u32>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

/// What computes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct DeviceArgs {
    /// CPU threads [default: one for each fast core that this process may use]
    #[arg(short = 'j', long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// CPU kernels to use, as in scalar or avx2, for checks [default: the best for this CPU]
    #[arg(long, value_name = "SET")]
    pub(crate) isa: Option<String>,
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
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn run(words: &[&str]) -> Result<RunArgs, clap::Error> {
        let args = Args::try_parse_from([&["baton", "run"], words].concat())?;
        let Command::Run(args) = args.command else { panic!("a run") };
        Ok(args)
    }

    #[test]
    fn the_definitions_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_lone_word_is_the_prompt() {
        let args = run(&["Why?"]).expect("valid");
        assert_eq!((args.model.model(), &*args.prompt), ("smollm2-135m", "Why?"));
    }

    #[test]
    fn a_model_goes_before_the_prompt_or_behind_a_flag() {
        for words in
            [&["m.gguf", "Why?"][..], &["Why?", "--model", "m.gguf"], &["-m", "m.gguf", "Why?"]]
        {
            let args = run(words).expect("valid");
            assert_eq!((args.model.model(), &*args.prompt), ("m.gguf", "Why?"));
        }
        assert!(run(&["a.gguf", "Why?", "--model", "b.gguf"]).is_err());
    }

    #[test]
    fn numbers_are_read_with_their_sign_and_suffix() {
        let args = run(&["Why?", "--presence-penalty", "-0.5", "--ctx", "16K", "-n", "1"]);
        let args = args.expect("valid");
        assert_eq!(args.answer.sampling.presence_penalty, -0.5);
        assert_eq!((args.engine.ctx, args.answer.max_tokens), (Some(16384), Some(1)));
    }

    #[test]
    fn contradictions_are_refused() {
        assert!(run(&[]).is_err());
        assert!(run(&["Why?", "--raw", "--system", "Be brief."]).is_err());
        assert!(run(&["Why?", "--stop", ""]).is_err());
        assert!(run(&["Why?", "--threads", "0"]).is_err());
    }
}

//! The flags that say how an answer is written.

use clap::builder::NonEmptyStringValueParser;
use planner::typed::token_count;

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
    /// Where words come again, guess what follows and check several tokens at once: the same answer, sooner if it
    /// repeats or quotes; rests where that does not pay
    #[arg(long)]
    pub(crate) lookup: bool,
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

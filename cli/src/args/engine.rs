//! The flags that say what a model runs on.

use planner::typed::token_count;

use super::{DeviceArgs, PlacingArgs};

/// What the model runs on.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// Room for prompt and answer, as in 4096 or 16K [default: what the model was made for, up to 8K]
    #[arg(short, long, value_name = "TOKENS", value_parser = token_count)]
    pub(crate) ctx: Option<u32>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
}

//! The flags that say what a model runs on.

use std::num::NonZeroUsize;

use planner::typed::token_count;

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

//! The flags that say where work is done.

use std::path::PathBuf;

use planner::{Bytes, Method, typed};

/// Where work is done. Only with a GPU.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Placing (with a GPU)")]
pub(crate) struct PlacingArgs {
    /// VRAM that everything together may take, as in 4GiB [default: all that is free]
    #[arg(long, value_name = "SIZE", value_parser = typed::size)]
    pub(crate) vram: Option<Bytes>,
    /// Rates to plan with: a profile or a built-in machine [default: this machine's profile]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) machine: Option<String>,
    /// How plans are found: search, best-strategy, or a strategy such as static or whole-layers [default: search]
    #[arg(long, value_name = "NAME", value_parser = typed::method)]
    pub(crate) strategy: Option<Method>,
    /// Carry out a plan that `baton plan --save` wrote; the context is the plan's
    #[arg(long, value_name = "FILE", conflicts_with = "strategy")]
    pub(crate) plan: Option<PathBuf>,
}

//! Flags of `baton profile`.

use std::path::PathBuf;

use super::DeviceArgs;

/// Measure this machine, so that speed can be predicted and work be placed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Measure a machine at rest: whatever else runs makes the figures worse, and they are what is planned with.
A spread is half the range of the middle half of the measurements, as a share of their median.")]
pub(crate) struct ProfileArgs {
    /// Measure at more points and for longer: 9 minutes instead of 80 seconds
    #[arg(long)]
    pub(crate) full: bool,
    /// Spend about this many seconds; points that take too long are then left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=86400))]
    pub(crate) seconds: Option<u32>,
    /// Measure these formats of weights only, as in Q4_K,Q6_K [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) formats: Vec<String>,
    /// Where to write the profile [default: baton/machine.toml in your configuration folder]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print one JSON object with all figures instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

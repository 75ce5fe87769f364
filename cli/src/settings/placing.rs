//! Where work is done: from flags and files to what the engine asks for.

use engine_core::{EngineOptions, Placing, Plans};
use planner::{Method, SavedPlan, Workload};

use super::plan::machine;
use super::{UsageError, read_file};
use crate::args::{DeviceArgs, PlacingArgs};
use crate::failure::Failure;

/// Adds to `options` where work is done, if a GPU takes part, for answers of at most so many tokens, if they are limited. A
/// saved plan brings the context that it was made for.
pub(crate) fn place(
    options: EngineOptions,
    device: &DeviceArgs,
    args: &PlacingArgs,
    max_tokens: Option<u32>,
) -> Result<EngineOptions, Failure> {
    if !device.has_gpu() {
        return match unused(args) {
            Some(flag) => Err(UsageError::NoGpuAsked { flag }.into()),
            None => Ok(options),
        };
    }
    let machine = machine(args.machine.as_deref())?;
    let mut options = options;
    let plans = match &args.plan {
        None => Plans::By(args.strategy.unwrap_or(Method::Search)),
        Some(path) => {
            let saved = SavedPlan::from_toml(&read_file(path)?)
                .map_err(|source| UsageError::BadPlan { path: path.clone(), source })?;
            options.n_ctx = options.n_ctx.or(Some(saved.n_ctx));
            Plans::Saved(saved)
        }
    };
    let n_gen = max_tokens.unwrap_or(u32::MAX).min(Workload::SHORT_ANSWER);
    let placing = Placing { machine, vram: args.vram, plans, n_gen };
    Ok(EngineOptions { placing: Some(placing), ..options })
}

/// A flag that means nothing without a GPU.
fn unused(args: &PlacingArgs) -> Option<&'static str> {
    let flags = [
        ("--vram", args.vram.is_some()),
        ("--machine", args.machine.is_some()),
        ("--strategy", args.strategy.is_some()),
        ("--plan", args.plan.is_some()),
    ];
    flags.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
}

//! The flags as typed. What they mean together, with files or on this machine is `settings`' business.

mod answer;
mod commands;
mod device;
mod engine;
mod model;
mod placing;
mod plan;
mod profile;
mod program;

pub(crate) use answer::{AnswerArgs, SamplingArgs};
pub(crate) use commands::{ChatArgs, InspectArgs, PerplexityArgs, PullArgs, RunArgs, TokenizeArgs};
pub(crate) use device::{DeviceArgs, DeviceName, Rates};
pub(crate) use engine::EngineArgs;
pub(crate) use model::ModelArgs;
pub(crate) use placing::PlacingArgs;
pub(crate) use plan::PlanArgs;
pub(crate) use profile::ProfileArgs;
pub(crate) use program::{Args, Command};

//! Where each shard of a model should live, and how fast that will be: numbers in, plan out.
//!
//! This crate sees numbers only. It knows no tensors, devices, clocks or files.
#![forbid(unsafe_code)]

mod arrange;
mod cost;
mod error;
mod extras;
#[cfg(feature = "flags")]
pub mod flags;
mod forecast;
mod format;
pub mod library;
mod model;
mod near;
mod placement;
mod plan;
pub mod preview;
mod price;
mod problem;
mod profile;
mod prompt;
mod request;
mod ring;
mod saved;
mod shard;
mod solve;
mod strategy;
mod tiers;
mod timeline;
pub mod typed;
mod units;

pub use cost::{AttentionShape, OpCost};
pub use error::{ModelFileError, PlanError, ProfileError};
pub use extras::{Extras, Rows, Split, Switch, Switches};
pub use forecast::{Forecast, Method, Setting, TierPlan, Workload, forecast};
pub use format::Format;
pub use model::{Ffn, Formats, Model, ModelShape, Pass, Window};
pub use placement::{Placement, Tier};
pub use plan::{
    Bottleneck, Layout, Plan, Prediction, Resident, VramUse, predict, predict_plan, trace,
    trace_plan, vram_use,
};
pub use problem::{Problem, Runtime};
pub use profile::{
    AttentionPoint, AttentionTimes, CpuProfile, GpuProfile, Kernels, Link, MachineProfile,
    PROFILE_SCHEMA, ProductKind, ProductPoint, ProductTimes,
};
pub use prompt::{PromptPass, prompt_passes};
pub use ring::Slot;
pub use saved::{PLAN_SCHEMA, SavedPlan, SavedPlanError};
pub use shard::{Shard, ShardCost};
pub use solve::{plan_by, plan_of, solve};
pub use strategy::Strategy;
pub use tiers::{plan_tiers, tier_times};
pub use timeline::{Lane, Span};
pub use units::{Bytes, BytesPerSec, Flops, FlopsPerSec, Seconds};

//! What a model is: hyperparameters, tensors by role, shards, and how a shard becomes ops.

mod arch;
mod bind;
mod config;
mod config_gguf;
mod config_hf;
mod error;
mod load;
mod lower;
mod names;
mod rope;
mod shard;
mod tensors;

pub use arch::{AttentionScale, FAMILIES, Family, Windows};
pub use config::{ExpertsConfig, FfnConfig, LayerConfig, ModelConfig};
pub use error::{ModelError, SupportedFamilies};
pub use load::Model;
pub use lower::Lowering;
pub use names::Naming;
pub use rope::{RopeConfig, RopeScaling, Yarn};
pub use shard::{Shard, StoredMatrix};
pub use tensors::{
    AttentionTensors, FfnTensors, Gated, LayerTensors, ModelTensors, Network, Projection,
};

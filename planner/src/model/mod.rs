//! What a model costs, from its sizes alone: no weights, no files.

mod describe;
mod shape;

pub use shape::{Ffn, Formats, ModelShape, Window};

use crate::shard::ShardCost;
use crate::units::Bytes;

/// The sizes of one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pass {
    /// Tokens in it.
    pub n_tokens: u32,
    /// Tokens whose logits are wanted.
    pub n_outputs: u32,
    /// KV cells in use at its end, those of the pass among them.
    pub n_kv: u32,
    /// KV cells that there is room for.
    pub n_ctx: u32,
}

/// A model that can be planned for.
pub trait Model: Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Number of layers.
    fn n_layer(&self) -> u32;

    /// Longest sequence that it was made for, in tokens.
    fn n_ctx_train(&self) -> u32;

    /// What each shard costs in a pass, in running order.
    fn shards(&self, pass: Pass) -> Vec<ShardCost>;

    /// Activations that a hand-off moves in a pass of `n_tokens`.
    fn residual(&self, n_tokens: u32) -> Bytes;

    /// Tokens of the largest ubatch that its engine runs, if it is loaded for one.
    fn n_ubatch(&self) -> Option<u32> {
        None
    }
}

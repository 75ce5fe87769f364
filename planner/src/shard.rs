//! The pieces a model is cut into, below the layer, and what one of them costs in one pass.

use std::fmt;

use crate::cost::OpCost;
use crate::units::Bytes;

/// A piece of the model that lives in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shard {
    /// The token embedding.
    Embedding,
    /// Attention of a layer; its KV cells go with it.
    Attention {
        /// The layer.
        layer: u32,
    },
    /// FFN or experts of a layer.
    Ffn {
        /// The layer.
        layer: u32,
    },
    /// Final norm and output matrix.
    Output,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shard::Embedding => f.write_str("embedding"),
            Shard::Attention { layer } => write!(f, "attention {layer}"),
            Shard::Ffn { layer } => write!(f, "FFN {layer}"),
            Shard::Output => f.write_str("output"),
        }
    }
}

impl Shard {
    /// The shards of a model with `n_layer` layers, in the order in which they run.
    pub fn all(n_layer: u32) -> Vec<Shard> {
        let layers =
            (0..n_layer).flat_map(|layer| [Shard::Attention { layer }, Shard::Ffn { layer }]);
        std::iter::once(Shard::Embedding).chain(layers).chain([Shard::Output]).collect()
    }
}

/// What one shard needs and does in one pass.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardCost {
    /// Which one.
    pub shard: Shard,
    /// All its weights.
    pub weights: Bytes,
    /// Of them, at least so much is not read by any pass of this size, whatever its tokens choose and however many of
    /// them want logits: VRAM for a group of experts can be smaller by that.
    pub unread: Bytes,
    /// The weights are those of the output too, and are stored once where both live together.
    pub shared_with_output: bool,
    /// KV cells of a full context.
    pub kv: Bytes,
    /// KV cells in use at the end of the pass.
    pub kv_used: Bytes,
    /// Activation space while it runs.
    pub scratch: Bytes,
    /// What it computes, in order.
    pub ops: Vec<OpCost>,
}

impl ShardCost {
    /// Weights that the pass reads: all, or of a group of experts those that its tokens are expected to choose.
    pub fn touched(&self) -> Bytes {
        self.ops.iter().map(OpCost::weights_read).sum()
    }

    pub(crate) fn is_ffn(&self) -> bool {
        matches!(self.shard, Shard::Ffn { .. })
    }

    /// Weights that ops leave unread, whatever their tokens choose.
    pub fn unread_by(ops: &[OpCost]) -> Bytes {
        ops.iter().map(|op| op.weights().saturating_sub(op.weights_read_at_most())).sum()
    }

    /// Whether it is a group of experts.
    pub fn has_experts(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, OpCost::Experts { .. }))
    }

    /// The weight tensors that products read, whole groups of experts as one, in the order of the ops.
    pub fn tensors(&self) -> impl Iterator<Item = Bytes> {
        self.ops.iter().map(OpCost::weights).filter(|&bytes| bytes > Bytes::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_in_running_order() {
        let expected = [
            Shard::Embedding,
            Shard::Attention { layer: 0 },
            Shard::Ffn { layer: 0 },
            Shard::Attention { layer: 1 },
            Shard::Ffn { layer: 1 },
            Shard::Output,
        ];
        assert_eq!(Shard::all(2), expected);
    }
}

//! Hyperparameters of a model, validated: whoever holds a `ModelConfig` need not check it again.

use super::arch::{AttentionScale, Family};
use super::error::ModelError;
use super::rope::RopeConfig;

/// More layers than this is a corrupt file, seen before anything is made per layer.
pub(super) const MOST_LAYERS: u32 = 1 << 16;

/// Hyperparameters of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// What the family fixes.
    pub family: &'static Family,
    /// Values of a token's residual.
    pub n_embd: u32,
    /// Tokens in the vocabulary.
    pub n_vocab: u32,
    /// Longest sequence the model was made for, in tokens.
    pub n_ctx_train: u32,
    /// Query heads; a multiple of `n_kv_head`.
    pub n_head: u32,
    /// Key and value heads.
    pub n_kv_head: u32,
    /// Values per query or key head.
    pub key_dim: u32,
    /// Values per value head.
    pub value_dim: u32,
    /// What the FFN is made of.
    pub ffn: FfnConfig,
    /// Added to the mean square in norms.
    pub norm_eps: f32,
    /// Added to every norm weight: 1 where the file stores differences from one.
    pub norm_offset: f32,
    /// Factor on token embeddings.
    pub embedding_scale: f32,
    /// Factor on attention scores.
    pub attention_scale: f32,
    /// Bound on attention scores.
    pub attention_soft_cap: Option<f32>,
    /// Bound on logits.
    pub final_soft_cap: Option<f32>,
    /// Which values of a head rope pairs.
    pub rope_pairs: crate::op::RopePairs,
    /// The rotations in use; a layer names one by index.
    pub ropes: Vec<RopeConfig>,
    /// What differs from layer to layer.
    pub layers: Vec<LayerConfig>,
}

/// Sizes of the FFN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FfnConfig {
    /// One gated network.
    Dense {
        /// Its inner width.
        n_ff: u32,
    },
    /// A router and a group of gated networks.
    Experts(ExpertsConfig),
}

/// Sizes of a group of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertsConfig {
    /// Experts in the group.
    pub n_expert: u32,
    /// Experts that a token uses.
    pub n_used: u32,
    /// Inner width of one.
    pub n_ff: u32,
    /// Whether a token's shares are scaled to sum to 1.
    pub normalise: bool,
}

/// What differs from layer to layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerConfig {
    /// Most KV cells a token sees; all when absent.
    pub window: Option<u32>,
    /// Index into [`ModelConfig::ropes`].
    pub rope: usize,
}

impl ModelConfig {
    /// Number of layers.
    pub fn n_layer(&self) -> u32 {
        self.layers.len() as u32
    }

    /// Values of all query heads of a token.
    pub fn query_width(&self) -> u32 {
        self.n_head * self.key_dim
    }

    /// Values of all key heads of a token.
    pub fn key_width(&self) -> u32 {
        self.n_kv_head * self.key_dim
    }

    /// Values of all value heads of a token.
    pub fn value_width(&self) -> u32 {
        self.n_kv_head * self.value_dim
    }

    /// Values of all heads' results of a token.
    pub fn attention_width(&self) -> u32 {
        self.n_head * self.value_dim
    }

    /// Checks what the rest of the engine relies on.
    pub(super) fn validated(self) -> Result<ModelConfig, ModelError> {
        const LARGEST: u32 = 1 << 24;
        let bad = |key: &str, found: u32, expected: &'static str| {
            Err(ModelError::BadValue { key: key.into(), found: found.to_string(), expected })
        };
        let (n_ff, experts) = match self.ffn {
            FfnConfig::Dense { n_ff } => (n_ff, None),
            FfnConfig::Experts(experts) => (experts.n_ff, Some(experts)),
        };
        let sizes = [
            ("width of the residual", self.n_embd),
            ("size of the vocabulary", self.n_vocab),
            ("number of heads", self.n_head),
            ("number of KV heads", self.n_kv_head),
            ("head size", self.key_dim),
            ("value head size", self.value_dim),
            ("width of the FFN", n_ff),
            ("number of layers", self.n_layer()),
        ];
        for (key, found) in sizes {
            if found == 0 || found > LARGEST {
                return bad(key, found, "a number from 1 to 2^24");
            }
        }
        for width in
            [self.n_head.checked_mul(self.key_dim), self.n_head.checked_mul(self.value_dim)]
        {
            if width.is_none_or(|width| width > LARGEST) {
                return bad("head size", self.key_dim, "at most 2^24 values in all heads");
            }
        }
        if !self.n_head.is_multiple_of(self.n_kv_head) {
            return bad("number of KV heads", self.n_kv_head, "a divisor of the number of heads");
        }
        for rope in &self.ropes {
            if rope.n_rot == 0 || !rope.n_rot.is_multiple_of(2) || rope.n_rot > self.key_dim {
                return bad("rotated values", rope.n_rot, "an even number up to the head size");
            }
        }
        if let Some(experts) = experts
            && !(1..=experts.n_expert).contains(&experts.n_used)
        {
            return bad("experts used", experts.n_used, "from 1 to the number of experts");
        }
        Ok(self)
    }
}

impl AttentionScale {
    /// The factor for a model of these sizes.
    pub(super) fn factor(self, n_embd: u32, n_head: u32, key_dim: u32, n_layer: u32) -> f32 {
        let dim = match self {
            AttentionScale::KeyDimExceptLargest { n_layer: largest } if n_layer == largest => {
                n_embd / n_head.max(1)
            }
            AttentionScale::KeyDim | AttentionScale::KeyDimExceptLargest { .. } => key_dim,
        };
        (1.0 / f64::from(dim).sqrt()) as f32
    }
}

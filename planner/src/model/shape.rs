//! The sizes of a model, as written to and read from a TOML file.

use serde::{Deserialize, Serialize};

use crate::cost::AttentionShape;
use crate::error::ModelFileError;
use crate::format::Format;
use crate::units::Bytes;

/// The sizes of a model and how its weights are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelShape {
    /// Short name.
    pub name: String,
    /// Where the sizes come from.
    pub source: String,
    /// Parameters as published.
    pub parameters: f64,
    /// Layers.
    pub n_layer: u32,
    /// Values of a token's residual.
    pub n_embd: u32,
    /// Tokens in the vocabulary.
    pub n_vocab: u32,
    /// Longest sequence the model was made for, in tokens.
    pub n_ctx_train: u32,
    /// Heads of attention.
    pub heads: AttentionShape,
    /// Which layers see only the last cells.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub window: Option<Window>,
    /// Heads of q and k are normalised.
    #[serde(default)]
    pub qk_norm: bool,
    /// The output is the embedding.
    #[serde(default)]
    pub tied: bool,
    /// What follows attention in each layer.
    pub ffn: Ffn,
    /// How weights are stored.
    pub formats: Formats,
}

/// Which layers see only the last KV cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Cells that they see.
    pub n_kv: u32,
    /// Each n-th layer (the n-th, 2n-th, …) sees all cells; 0 when none does.
    pub all_but_each: u32,
}

/// What follows attention in each layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ffn {
    /// One gated network.
    Dense {
        /// Its inner width.
        n_ff: u32,
    },
    /// A router and a group of gated networks.
    Experts {
        /// Networks in the group.
        n_expert: u32,
        /// Networks that a token uses.
        n_used: u32,
        /// Inner width of one.
        n_ff: u32,
    },
}

/// How each kind of weights is stored. Norms and biases are small and are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Formats {
    /// Token embedding.
    pub embedding: Format,
    /// Queries.
    pub q: Format,
    /// Keys.
    pub k: Format,
    /// Values.
    pub v: Format,
    /// Output of attention.
    pub attention_out: Format,
    /// Gates of the FFN.
    pub gate: Format,
    /// Up projection of the FFN.
    pub up: Format,
    /// Down projection of the FFN.
    pub down: Format,
    /// Output matrix.
    pub output: Format,
}

impl ModelShape {
    /// Reads a description and checks it.
    ///
    /// # Errors
    /// Text that is no description; sizes that no model has.
    pub fn from_toml(text: &str) -> Result<ModelShape, ModelFileError> {
        let shape: ModelShape = toml::from_str(text)?;
        shape.check()?;
        Ok(shape)
    }

    /// The description as a TOML file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("tables of numbers and names are TOML")
    }

    fn check(&self) -> Result<(), ModelFileError> {
        const LARGEST: u32 = 1 << 24;
        let (n_ff, n_expert, n_used) = match self.ffn {
            Ffn::Dense { n_ff } => (n_ff, 1, 1),
            Ffn::Experts { n_expert, n_used, n_ff } => (n_ff, n_expert, n_used),
        };
        for (field, found) in [
            ("n_layer", self.n_layer),
            ("n_embd", self.n_embd),
            ("n_vocab", self.n_vocab),
            ("n_ctx_train", self.n_ctx_train),
            ("heads.n_head", self.heads.n_head),
            ("heads.n_kv_head", self.heads.n_kv_head),
            ("heads.key_dim", self.heads.key_dim),
            ("heads.value_dim", self.heads.value_dim),
            ("ffn.n_ff", n_ff),
            ("ffn.n_expert", n_expert),
            ("ffn.n_used", n_used),
        ] {
            if found == 0 || found > LARGEST {
                let expected = "a number from 1 to 2^24";
                return Err(ModelFileError::BadValue { field, found: found.into(), expected });
            }
        }
        if n_used > n_expert {
            let expected = "at most ffn.n_expert";
            let found = n_used.into();
            return Err(ModelFileError::BadValue { field: "ffn.n_used", found, expected });
        }
        if !self.heads.n_head.is_multiple_of(self.heads.n_kv_head) {
            let expected = "a divisor of heads.n_head";
            let found = self.heads.n_kv_head.into();
            return Err(ModelFileError::BadValue { field: "heads.n_kv_head", found, expected });
        }
        Ok(())
    }

    /// Parameters of the matrices.
    pub fn n_parameters(&self) -> u64 {
        let heads = self.heads;
        let width = |n: u32, dim: u32| u64::from(n) * u64::from(dim);
        let n_embd = u64::from(self.n_embd);
        let attention = n_embd
            * (width(heads.n_head, heads.key_dim + heads.value_dim)
                + width(heads.n_kv_head, heads.key_dim + heads.value_dim));
        let ffn = match self.ffn {
            Ffn::Dense { n_ff } => 3 * n_embd * u64::from(n_ff),
            Ffn::Experts { n_expert, n_ff, .. } => {
                u64::from(n_expert) * (3 * n_embd * u64::from(n_ff) + n_embd)
            }
        };
        let tables = if self.tied { 1 } else { 2 };
        u64::from(self.n_layer) * (attention + ffn) + tables * n_embd * u64::from(self.n_vocab)
    }

    /// Bytes of all weights.
    pub fn bytes(&self) -> Bytes {
        let pass = super::Pass { n_tokens: 1, n_outputs: 1, n_kv: 1, n_ctx: 1 };
        let shards = super::Model::shards(self, pass);
        let counted = shards.iter().filter(|shard| !shard.shared_with_output);
        counted.map(|shard| shard.weights).sum()
    }

    /// Cells that the layer's attention sees at most, if not all.
    pub(super) fn window_of(&self, layer: u32) -> Option<u32> {
        let window = self.window?;
        let all = window.all_but_each > 0 && (layer + 1).is_multiple_of(window.all_but_each);
        (!all).then_some(window.n_kv)
    }
}

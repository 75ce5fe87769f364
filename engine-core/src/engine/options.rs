//! How a model is loaded.

use super::placing::Placing;
use crate::error::EngineError;
use crate::weights::DType;

/// How a model is loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineOptions {
    /// Most tokens of all sequences together. Absent: what the model was made for, at most 8192, or what fits in memory.
    pub n_ctx: Option<u32>,
    /// Most tokens in a pass.
    pub n_ubatch: u32,
    /// Most tokens in a pass whose logits are wanted; room for them is taken at load.
    pub n_outputs: u32,
    /// Format of KV cells.
    pub kv: KvFormat,
    /// How work is placed on the GPU, if the engine is given one.
    pub placing: Option<Placing>,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            n_ctx: None,
            n_ubatch: 512,
            n_outputs: 16,
            kv: KvFormat::F16,
            placing: None,
        }
    }
}

/// How KV cells are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvFormat {
    /// Half precision.
    F16,
    /// Single precision: twice the memory.
    F32,
}

impl KvFormat {
    pub(crate) fn dtype(self) -> DType {
        match self {
            KvFormat::F16 => DType::F16,
            KvFormat::F32 => DType::F32,
        }
    }
}

impl EngineOptions {
    pub(super) fn check(&self) -> Result<(), EngineError> {
        let rules = [
            ("the context", self.n_ctx.unwrap_or(2), 2..=1 << 30, "from 2 to 2^30 tokens"),
            ("the ubatch", self.n_ubatch, 1..=1 << 16, "from 1 to 65536 tokens"),
            ("outputs per pass", self.n_outputs, 1..=1 << 16, "from 1 to 65536"),
        ];
        for (option, found, allowed, range) in rules {
            if !allowed.contains(&found) {
                return Err(EngineError::OptionOutOfRange { option, found, range });
            }
        }
        Ok(())
    }
}

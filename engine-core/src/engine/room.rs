//! How much context fits in memory.

use planner::Bytes;

use super::options::EngineOptions;
use crate::error::EngineError;
use crate::executor::MemoryNeed;
use crate::model::ModelConfig;
use crate::scratch::PassLimits;

/// Context taken when none is asked for, where the model and memory allow it.
const USUAL_N_CTX: u32 = 8192;

/// Memory left to the rest of the machine when a context is chosen.
const RESERVE: Bytes = Bytes::mib(256);

/// How much context fits.
pub(super) struct Room<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) options: &'a EngineOptions,
    pub(super) free: Bytes,
    /// Used in place in mapped files, whose pages the system counts as free until they are needed.
    pub(super) weights: Bytes,
}

impl Room<'_> {
    /// The limits asked for, or the largest usual ones that fit.
    pub(super) fn limits(&self) -> Result<PassLimits, EngineError> {
        match self.options.n_ctx {
            Some(n_ctx) if self.fits(n_ctx) => Ok(self.limits_of(n_ctx)),
            Some(n_ctx) => Err(self.too_large(n_ctx)),
            None => {
                let usual = self.config.n_ctx_train.clamp(2, USUAL_N_CTX);
                match self.largest_fitting(usual) {
                    0 => Err(self.too_large(usual)),
                    n_ctx => Ok(self.limits_of(n_ctx)),
                }
            }
        }
    }

    fn limits_of(&self, n_ctx: u32) -> PassLimits {
        let n_tokens = self.options.n_ubatch.min(n_ctx);
        PassLimits { n_tokens, n_outputs: self.options.n_outputs.min(n_tokens), n_cells: n_ctx }
    }

    fn need(&self, n_ctx: u32) -> MemoryNeed {
        MemoryNeed::of(self.config, self.limits_of(n_ctx), self.options.kv.dtype())
    }

    fn fits(&self, n_ctx: u32) -> bool {
        self.weights + self.need(n_ctx).total() <= self.free.saturating_sub(RESERVE)
    }

    /// The most tokens, up to `most`, that fit; 0 if two do not.
    fn largest_fitting(&self, most: u32) -> u32 {
        if self.fits(most) {
            return most;
        }
        // The need grows with the context, so halving finds the edge.
        let (mut fits, mut too_large) = (0, most);
        while too_large - fits > 1 {
            let middle = fits + (too_large - fits) / 2;
            if self.fits(middle) {
                fits = middle;
            } else {
                too_large = middle;
            }
        }
        if fits < 2 { 0 } else { fits }
    }

    fn too_large(&self, n_ctx: u32) -> EngineError {
        let need = self.need(n_ctx);
        EngineError::ContextTooLarge {
            n_ctx,
            needed: self.weights + need.total(),
            weights: self.weights,
            kv: need.kv,
            scratch: need.scratch,
            free: self.free,
            n_ctx_fitting: self.largest_fitting(n_ctx),
        }
    }
}

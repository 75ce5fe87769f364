//! What an op costs, in the terms in which machines differ. Says nothing about any machine.

use crate::format::Format;
use crate::units::Bytes;

/// The cost of one op in one pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OpCost {
    /// A product with a weight matrix.
    Product {
        /// How the matrix is stored.
        format: Format,
        /// Its size.
        weights: Bytes,
        /// Rows multiplied with it.
        n_tokens: u32,
    },
    /// Products of each token with the matrices of the experts that it chose.
    Experts {
        /// How the matrices are stored.
        format: Format,
        /// Size of one expert's matrix.
        expert: Bytes,
        /// Matrices in the group.
        n_expert: u32,
        /// Matrices that a token uses.
        n_used: u32,
        /// Tokens of the pass.
        n_tokens: u32,
    },
    /// Attention over the KV cache.
    Attention {
        /// Heads and their sizes.
        shape: AttentionShape,
        /// Tokens of the pass.
        n_tokens: u32,
        /// KV cells that the last token sees.
        n_kv: u32,
    },
    /// Anything whose time is that of passing over its memory: norms, rope, sums, gathers.
    Light {
        /// Bytes read and written.
        bytes: Bytes,
    },
}

/// Heads of an attention and their sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct AttentionShape {
    /// Query heads.
    pub n_head: u32,
    /// Key and value heads.
    pub n_kv_head: u32,
    /// Values of a query or key head.
    pub key_dim: u32,
    /// Values of a value head.
    pub value_dim: u32,
}

impl AttentionShape {
    /// Query heads that share a key head.
    pub fn group(&self) -> f64 {
        f64::from(self.n_head) / f64::from(self.n_kv_head)
    }

    /// Multiplications for one token and one KV cell.
    pub fn work(&self) -> f64 {
        f64::from(self.n_head) * f64::from(self.key_dim + self.value_dim)
    }
}

impl OpCost {
    /// Weights that the op may read.
    pub fn weights(&self) -> Bytes {
        match *self {
            OpCost::Product { weights, .. } => weights,
            OpCost::Experts { expert, n_expert, .. } => expert * u64::from(n_expert),
            OpCost::Attention { .. } | OpCost::Light { .. } => Bytes::ZERO,
        }
    }

    /// The op with so much of its weights, from 0 to 1; what reads none stays as it is.
    pub(crate) fn with_share(&self, share: f64) -> OpCost {
        let part = |bytes: Bytes| Bytes::new((bytes.get() as f64 * share).round() as u64);
        let mut op = *self;
        match &mut op {
            OpCost::Product { weights, .. } => *weights = part(*weights),
            OpCost::Experts { expert, .. } => *expert = part(*expert),
            OpCost::Attention { .. } | OpCost::Light { .. } => {}
        }
        op
    }

    /// Weights that the op is expected to read.
    pub fn weights_read(&self) -> Bytes {
        match *self {
            OpCost::Experts { expert, n_expert, n_used, n_tokens, .. } => {
                let touched = experts_touched(n_expert, n_used, n_tokens);
                Bytes::new((expert.get() as f64 * touched).round() as u64)
            }
            _ => self.weights(),
        }
    }

    /// The most weights that the op can read, whatever experts are chosen.
    pub fn weights_read_at_most(&self) -> Bytes {
        match *self {
            OpCost::Experts { expert, n_expert, n_used, n_tokens, .. } => {
                let chosen = u64::from(n_used) * u64::from(n_tokens);
                expert * chosen.min(n_expert.into())
            }
            _ => self.weights(),
        }
    }
}

/// Experts that `n_tokens` tokens are expected to choose together when each chooses `n_used` of `n_expert` evenly.
pub(crate) fn experts_touched(n_expert: u32, n_used: u32, n_tokens: u32) -> f64 {
    let missed_by_one = 1.0 - f64::from(n_used) / f64::from(n_expert);
    f64::from(n_expert) * (1.0 - missed_by_one.powf(f64::from(n_tokens)))
}

/// An expert with more tokens than this on average takes the time of the average: times are straight lines there.
const MANY_TOKENS: f64 = 32.0;

/// Tells of how many tokens how many experts are expected to be chosen, when each token chooses `n_used` of `n_expert`
/// evenly and whatever the others choose.
pub(crate) fn experts_with(
    n_expert: u32,
    n_used: u32,
    n_tokens: u32,
    mut tell: impl FnMut(f64, f64),
) {
    let (n, all, share) =
        (f64::from(n_tokens), f64::from(n_expert), f64::from(n_used) / f64::from(n_expert));
    let mean = n * share;
    if mean > MANY_TOKENS || share >= 1.0 {
        return tell(mean, all);
    }
    // So far out that less than a millionth of the experts have more.
    let most = (mean + 6.0 * mean.sqrt() + 2.0).min(n);
    let mut experts = all * (1.0 - share).powf(n);
    let mut chosen_by = 0.0;
    while chosen_by < most {
        experts *= (n - chosen_by) / (chosen_by + 1.0) * share / (1.0 - share);
        chosen_by += 1.0;
        tell(chosen_by, experts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experts_share_all_choices() {
        for (n_expert, n_used, n_tokens) in
            [(32, 4, 1), (32, 4, 24), (128, 8, 400), (8, 8, 3), (64, 6, 4096)]
        {
            let (mut choices, mut touched) = (0.0, 0.0);
            experts_with(n_expert, n_used, n_tokens, |n, experts| {
                choices += n * experts;
                touched += experts;
            });
            let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-5;
            assert!(near(choices, f64::from(n_used * n_tokens)), "{choices}");
            assert!(near(touched, experts_touched(n_expert, n_used, n_tokens)), "{touched}");
        }
    }

    #[test]
    fn one_token_touches_what_it_uses_and_many_touch_all() {
        assert!((experts_touched(128, 8, 1) - 8.0).abs() < 1e-9);
        assert!((experts_touched(128, 8, 2) - 15.5).abs() < 1e-9);
        assert!(experts_touched(128, 8, 512) > 127.99);
    }
}

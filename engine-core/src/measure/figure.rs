//! Names of what is measured, for progress and warnings.

use std::fmt;

use planner::{AttentionShape, Bytes, Format, ProductKind};

/// One thing that is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Figure {
    /// Ops that only pass over memory.
    Light {
        /// Tokens of the pass.
        n_tokens: u32,
    },
    /// What a pass takes outside of all shards.
    Pass,
    /// A product with a matrix.
    Product {
        /// How the matrix is stored.
        format: Format,
        /// What is multiplied.
        kind: ProductKind,
        /// Size of the matrix; of experts, of one.
        weights: Bytes,
        /// Rows multiplied with it.
        n_tokens: u32,
    },
    /// Attention over KV cells.
    Attention {
        /// Heads and their sizes.
        shape: AttentionShape,
        /// Tokens of the pass.
        n_tokens: u32,
        /// Cells that the last token sees.
        n_kv: u32,
    },
    /// Something about the way between two devices.
    Link(&'static str),
}

impl fmt::Display for Figure {
    /// `Q4_1 1.0 MiB, 512 tokens`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = |n: u32| format!("{n} token{}", if n == 1 { "" } else { "s" });
        match *self {
            Figure::Light { n_tokens } => write!(f, "light ops, {}", tokens(n_tokens)),
            Figure::Pass => write!(f, "fixed time of a pass"),
            Figure::Product { format, kind, weights, n_tokens } => {
                let kind = match kind {
                    ProductKind::Dense => "",
                    ProductKind::Experts => " experts",
                };
                write!(f, "{format}{kind} {weights}, {}", tokens(n_tokens))
            }
            Figure::Attention { shape, n_tokens, n_kv } => {
                let AttentionShape { n_head, n_kv_head, key_dim, .. } = shape;
                write!(
                    f,
                    "attention {n_head}/{n_kv_head} heads of {key_dim}, {} over {n_kv} cells",
                    tokens(n_tokens)
                )
            }
            Figure::Link(what) => f.write_str(what),
        }
    }
}

/// A figure whose fastest rounds of measurements lie far apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noisy {
    /// Which one.
    pub figure: Figure,
    /// Half the way from the fastest round to the next, as a share of the fastest.
    pub spread: f64,
}

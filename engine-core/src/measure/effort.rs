//! How much is measured, and how long that may take.

use std::time::Duration;

use planner::{AttentionShape, Bytes, Format};

use super::{light, pass};

/// What to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Effort {
    /// About how long everything together may take.
    pub time: Duration,
    /// How long one figure may take at most in each round, unless a single measurement takes longer.
    pub figure: Duration,
    /// Memory that weights and KV cells are taken from, one part after the other: far more than any cache holds.
    pub pool: Bytes,
    /// Formats of weights; all that a device computes with when absent.
    pub formats: Option<Vec<Format>>,
    /// Matrices of products.
    pub products: Vec<Size>,
    /// Tokens multiplied with them, rising from 1.
    pub product_tokens: Vec<u32>,
    /// Matrices of experts.
    pub experts: Vec<Size>,
    /// Tokens that each expert has, rising from 1.
    pub expert_tokens: Vec<u32>,
    /// Heads of attention.
    pub heads: Vec<AttentionShape>,
    /// Tokens that attend together, rising.
    pub attention_tokens: Vec<u32>,
    /// KV cells that the last of them sees, rising, none fewer than there are tokens.
    pub attention_cells: Vec<u32>,
}

/// A matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// About how many bytes it has, whatever its format.
    pub weights: Bytes,
    /// Values of a row.
    pub columns: u32,
}

/// The keys' or values' matrix of a model of a few hundred million parameters.
const TINY: Size = Size { weights: Bytes::new(64 << 10), columns: 512 };
/// A matrix of a model of a billion parameters.
const SMALL: Size = Size { weights: Bytes::mib(1), columns: 1024 };
/// A matrix larger than the last caches of most machines.
const LARGE: Size = Size { weights: Bytes::mib(24), columns: 4096 };

/// An expert of a model of 30 billion parameters, 3 of them active.
const EXPERT: Size = Size { weights: Bytes::mib(1), columns: 2048 };
/// An expert of a model of 100 billion parameters and more.
const LARGE_EXPERT: Size = Size { weights: Bytes::mib(8), columns: 4096 };

const fn heads(n_head: u32, n_kv_head: u32, dim: u32) -> AttentionShape {
    AttentionShape { n_head, n_kv_head, key_dim: dim, value_dim: dim }
}

impl Effort {
    /// What a plan needs, in about 80 seconds.
    pub fn quick() -> Effort {
        Effort {
            time: Duration::from_secs(80),
            figure: Duration::from_millis(400),
            pool: Bytes::mib(256),
            formats: None,
            products: vec![TINY, SMALL, LARGE],
            product_tokens: vec![1, 4, 16, 64, 256, 512],
            experts: vec![EXPERT],
            expert_tokens: vec![1, 2, 4, 5, 8, 16, 64],
            heads: vec![
                heads(8, 2, 64),
                heads(9, 3, 64),
                heads(8, 8, 128),
                heads(16, 4, 128),
                heads(16, 2, 128),
            ],
            attention_tokens: vec![1, 128, 512],
            attention_cells: vec![128, 512, 4096, 16384],
        }
    }

    /// The same with more points and more patience, in about 9 minutes.
    pub fn full() -> Effort {
        Effort {
            time: Duration::from_secs(540),
            figure: Duration::from_secs(2),
            product_tokens: vec![1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048],
            experts: vec![EXPERT, LARGE_EXPERT],
            expert_tokens: vec![1, 2, 3, 4, 5, 6, 8, 16, 32, 64, 128],
            attention_tokens: vec![1, 4, 16, 64, 128, 512, 2048],
            attention_cells: vec![128, 512, 2048, 4096, 16384, 65536],
            ..Effort::quick()
        }
    }

    /// Points of attention: each number of tokens with the numbers of cells that are enough for it.
    pub(super) fn attention_points(&self) -> impl Iterator<Item = (u32, u32)> {
        let cells = &self.attention_cells;
        self.attention_tokens.iter().flat_map(move |&n_tokens| {
            let enough = cells.iter().filter(move |&&n_kv| n_kv >= n_tokens);
            enough.map(move |&n_kv| (n_tokens, n_kv))
        })
    }

    /// Figures of one device's kernels, when it computes with `n_formats` formats.
    pub(super) fn n_kernel_figures(&self, n_formats: usize) -> usize {
        let products = self.products.len() * self.product_tokens.len();
        let experts = self.experts.len() * self.expert_tokens.len();
        let attention = self.heads.len() * self.attention_points().count();
        light::N_FIGURES + pass::N_FIGURES + n_formats * (products + experts) + attention
    }
}

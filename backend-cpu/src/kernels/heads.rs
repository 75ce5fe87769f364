//! What attention reads: queries of all heads, KV cells, and which cells each token sees.

use half::f16;

/// Inputs of attention, as the op of that name defines them. Row-major.
#[derive(Debug, Clone, Copy)]
pub struct Heads<'a> {
    /// `[n_tokens, n_head · key_dim]`.
    pub q: &'a [f32],
    /// `[n_cells, n_kv_head · key_dim]`.
    pub k: KvCells<'a>,
    /// `[n_cells, n_kv_head · value_dim]`.
    pub v: KvCells<'a>,
    /// Numbers of KV cells, in the order of their sequences.
    pub cells: &'a [i32],
    /// For each token where in `cells` the seen ones start and end.
    pub spans: &'a [[i32; 2]],
    /// Heads of `q`; a multiple of `n_kv_head`.
    pub n_head: usize,
    /// Heads of `k` and `v`.
    pub n_kv_head: usize,
    /// Values of a head of `q` and `k`.
    pub key_dim: usize,
    /// Values of a head of `v`.
    pub value_dim: usize,
    /// Factor on each score.
    pub scale: f32,
    /// Bound on each score.
    pub soft_cap: Option<f32>,
    /// Most cells a token sees.
    pub window: Option<u32>,
}

/// Keys or values of all KV cells.
#[derive(Debug, Clone, Copy)]
pub enum KvCells<'a> {
    /// In single precision.
    F32(&'a [f32]),
    /// In half precision.
    F16(&'a [f16]),
}

/// Most cells that are attended to at once on behalf of one token.
pub const PIECE: usize = 256;

impl<'a> Heads<'a> {
    /// Heads of `q` for each head of `k`.
    pub fn group(&self) -> usize {
        self.n_head / self.n_kv_head
    }

    /// Values of a partial result of one head: its sum, then the largest score and the sum of exponentials.
    pub fn partial_len(&self) -> usize {
        self.value_dim + 2
    }

    /// The query of head `head` of token `token`.
    pub fn query(&self, token: usize, head: usize) -> &'a [f32] {
        &self.q[(token * self.n_head + head) * self.key_dim..][..self.key_dim]
    }

    /// Where in `cells` the cells that `token` sees start and end.
    pub fn seen(&self, token: usize) -> [usize; 2] {
        let [start, end] =
            self.spans[token].map(|i| usize::try_from(i).expect("spans count from 0"));
        let first =
            self.window.map_or(start, |window| start.max(end.saturating_sub(window as usize)));
        [first, end]
    }
}

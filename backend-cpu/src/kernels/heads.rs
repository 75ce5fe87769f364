//! What attention reads: queries of all heads, KV cells, and which cells each token sees.

use std::ops::Range;

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

/// Cells that are attended to at once. Pieces are counted from the first cell of a sequence, so that they are the same
/// whichever tokens share a pass.
pub const PIECE: usize = 128;

/// The share of one call of an attention kernel.
#[derive(Debug, Clone)]
pub struct Share<'a> {
    /// All inputs.
    pub heads: &'a Heads<'a>,
    /// Which heads of `k` and `v`; of `q`, those of its group.
    pub kv_head: usize,
    /// Tokens of one sequence.
    pub tokens: Range<usize>,
    /// A piece of what they see, as [`Heads::pieces`] cuts it.
    pub cells: Range<usize>,
}

impl<'a> Heads<'a> {
    /// Heads of `q` for each head of `k`.
    pub fn group(&self) -> usize {
        self.n_head / self.n_kv_head
    }

    /// Values of a partial result of one row, a token and one of its heads: `[value_dim]` sums of values weighted by
    /// `e^(score − max)`, the sum of those weights, and the largest score, `max`.
    pub fn partial_len(&self) -> usize {
        self.value_dim + 2
    }

    /// Consecutive tokens of one sequence among `tokens`.
    pub fn runs(&self, tokens: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut start = tokens.start;
        self.spans[tokens].chunk_by(|a, b| a[0] == b[0]).map(move |run| {
            let end = start + run.len();
            std::mem::replace(&mut start, end)..end
        })
    }

    /// The pieces of `cells` that tokens of one sequence see anything of, in order.
    pub fn pieces(&self, run: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let sequence = self.spans[run.start].map(|i| i as usize)[0];
        let seen = run.map(|token| self.seen(token));
        let both = seen.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
        let [first, end] = both.unwrap_or([sequence; 2]);
        let start = sequence + (first - sequence) / PIECE * PIECE;
        (start..end).step_by(PIECE).map(move |at| at..end.min(at + PIECE))
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

//! What ran when, on each lane: what a trace holds, where its time went, and how it is written.

mod account;
mod perfetto;

pub use account::{Account, Stall};
pub use perfetto::perfetto;

use planner::{Bytes, Span};

/// What ran when. Times are seconds since the trace began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// In order.
    pub passes: Vec<TracedPass>,
    /// What was busy when, by its start. Shards are numbered in running order.
    pub spans: Vec<Span>,
}

/// One pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracedPass {
    /// Tokens of it.
    pub n_tokens: u32,
    /// Ubatches that they are cut into.
    pub n_ubatches: u32,
    /// KV cells of all its sequences at its end.
    pub n_kv: u32,
    /// The plan that it was run with, among the engine's; none without a GPU.
    pub plan: Option<usize>,
    /// Weights copied before it, because the pass before had another plan.
    pub loaded: Bytes,
    /// No copy was made ahead of it.
    pub is_cold: bool,
    /// When it began.
    pub start: f64,
    /// When its logits were there, or where none were wanted, when all of it was submitted.
    pub end: f64,
}

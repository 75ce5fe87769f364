//! How well a text was predicted.

use std::io::{self, Write};

use engine_core::perplexity::Score;
use serde::Serialize;

/// A finished score. Absent numbers had nothing to be computed from.
#[derive(Debug, Serialize)]
pub(crate) struct PerplexityReport {
    /// Tokens of a window.
    n_ctx: u32,
    windows: usize,
    scored_tokens: u64,
    /// Mean negative natural log-likelihood of a scored token.
    mean_nll: Option<f64>,
    perplexity: Option<f64>,
    /// Of the perplexity.
    standard_error: Option<f64>,
}

impl PerplexityReport {
    pub(crate) fn new(score: &Score, n_ctx: u32, windows: usize) -> PerplexityReport {
        PerplexityReport {
            n_ctx,
            windows,
            scored_tokens: score.n_tokens,
            mean_nll: score.mean_nll(),
            perplexity: score.perplexity(),
            standard_error: score.standard_error(),
        }
    }

    /// For people.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let PerplexityReport { n_ctx, windows, scored_tokens, .. } = self;
        if let Some(perplexity) = self.perplexity {
            write!(out, "perplexity {perplexity:.4}")?;
        }
        if let Some(error) = self.standard_error {
            write!(out, " ± {error:.4}")?;
        }
        writeln!(out, ", {scored_tokens} tokens scored in {windows} windows of {n_ctx}")
    }
}

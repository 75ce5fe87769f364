//! Speculation over one answer: proposals, how they fared, and the pace that follows from it.

use std::collections::BTreeSet;

use planner::Seconds;

use super::lookup::propose;
use super::pace::{Checked, Pace};
use crate::request::Speculation;
use crate::stats::Speculated;
use crate::tokenizer::TokenId;

/// Proposes tokens and learns from how many of them were right.
#[derive(Debug)]
pub(super) struct Speculator {
    pace: Pace,
    counts: Speculated,
}

impl Speculator {
    /// None where speculation is off.
    pub(super) fn of(speculation: Speculation) -> Option<Speculator> {
        let pace = Pace::of(speculation)?;
        Some(Speculator { pace, counts: Speculated::default() })
    }

    /// Tokens that may follow `tokens`, at most `room`, and none from one of `ends` on, after which nothing follows.
    pub(super) fn propose(
        &self,
        tokens: &[TokenId],
        room: usize,
        ends: &BTreeSet<TokenId>,
    ) -> Vec<TokenId> {
        match self.pace.n_proposed().min(room) {
            0 => Vec::new(),
            n => propose(tokens, n).take_while(|token| !ends.contains(token)).collect(),
        }
    }

    /// Learns from a pass over one token and `n_proposed` that might follow it, of which `n_accepted` did.
    pub(super) fn learn(&mut self, n_proposed: usize, n_accepted: usize, time: Seconds) {
        self.pace.learn(Checked { n_proposed, n_accepted, time });
        self.counts.n_proposed += n_proposed as u32;
        self.counts.n_accepted += n_accepted as u32;
    }

    pub(super) fn counts(&self) -> Speculated {
        self.counts
    }
}

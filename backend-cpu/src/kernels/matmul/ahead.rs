//! Asks for weights before they are needed.
//!
//! Rows side by side are as many short streams, which a CPU's own prefetcher does not follow: it was measured to reach
//! half of the memory's speed.

use super::lanes::Lanes;
use super::rows::RowGroup;

/// Least distance to what is asked for, so that it comes in time.
const LEAST_BYTES: usize = 4096;

/// Bytes that come from memory together.
const LINE: usize = 64;

/// Most bytes of a group that wait well where they push nothing else out: measured on a first-level cache of half that.
const MOST_BYTES_ONCE: usize = 64 << 10;

/// How often weights are read before others take their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// They need not stay in any cache.
    Once,
    /// They should stay.
    Again,
}

/// Goes through the rows after a group at the pace at which the group is used.
pub(super) struct Ahead {
    /// The first line that was not asked for.
    next: usize,
    /// Up to where lines are due.
    due: usize,
    bytes_per_step: usize,
    reads: Reads,
}

impl Ahead {
    /// For a group of `n_rows` rows that is gone through in `n_steps` steps.
    #[inline(always)]
    pub(super) fn new(rows: &RowGroup<'_>, n_rows: usize, n_steps: usize, reads: Reads) -> Self {
        let bytes = n_rows * rows.row_bytes();
        let next = rows.row(0).as_ptr().addr() + bytes.max(LEAST_BYTES);
        let reads = if bytes > MOST_BYTES_ONCE { Reads::Again } else { reads };
        Ahead { next, due: next, bytes_per_step: bytes / n_steps, reads }
    }

    /// Some steps are about to be made.
    #[inline(always)]
    pub(super) fn fetch<S: Lanes>(&mut self, s: S, steps: usize) {
        self.due += steps * self.bytes_per_step;
        while self.next < self.due {
            s.prefetch(self.next, self.reads);
            self.next += LINE;
        }
    }
}

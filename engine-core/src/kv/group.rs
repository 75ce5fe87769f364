//! Which cell of a group of layers holds which token.

use std::collections::{BTreeMap, VecDeque};
use std::iter::repeat_n;

use super::cells::SeqId;
use super::layout::KvGroup;

/// Cells of one group of layers.
#[derive(Debug, Clone)]
pub struct GroupCells {
    /// Tokens before the next one that it sees; all when absent.
    seen_before: Option<usize>,
    /// Free cells, the next to use last. Handed out in rising order, so that a lone sequence lies in one run.
    free: Vec<u32>,
    sequences: BTreeMap<SeqId, Held>,
}

/// Cells of one sequence.
#[derive(Debug, Clone, Default)]
struct Held {
    /// Tokens at the start whose cells were given back.
    n_forgotten: usize,
    /// Cells of the tokens after those, in order.
    cells: VecDeque<u32>,
}

impl Held {
    fn len(&self) -> usize {
        self.n_forgotten + self.cells.len()
    }
}

impl GroupCells {
    /// All cells free.
    pub(super) fn new(group: KvGroup) -> GroupCells {
        GroupCells {
            seen_before: group.window.map(|window| window.saturating_sub(1) as usize),
            free: (0..group.n_cells).rev().collect(),
            sequences: BTreeMap::new(),
        }
    }

    /// Tokens of a sequence, forgotten ones too.
    pub(super) fn len(&self, seq: SeqId) -> usize {
        self.sequences.get(&seq).map_or(0, Held::len)
    }

    /// Tokens of all sequences, forgotten ones too.
    pub(super) fn n_tokens(&self) -> usize {
        self.sequences.values().map(Held::len).sum()
    }

    /// A cell for each token of a sequence, in order. What stands for a forgotten token is another cell of the sequence:
    /// no token that is still to run sees it.
    pub fn of(&self, seq: SeqId) -> impl Iterator<Item = u32> {
        self.sequences.get(&seq).into_iter().flat_map(|held| {
            let stand_in = held.cells.front().map(|&first| repeat_n(first, held.n_forgotten));
            stand_in.into_iter().flatten().chain(held.cells.iter().copied())
        })
    }

    /// Cells that the next tokens of a sequence can have, together.
    pub(super) fn room(&self, seq: SeqId) -> usize {
        self.free.len() + self.unseen(seq)
    }

    /// Cells of a sequence that none of its next tokens sees.
    fn unseen(&self, seq: SeqId) -> usize {
        match (self.seen_before, self.sequences.get(&seq)) {
            (Some(seen_before), Some(held)) => held.cells.len().saturating_sub(seen_before),
            _ => 0,
        }
    }

    /// Gives the next `n` tokens of a sequence a cell each: free ones, then those of its oldest tokens, which none of
    /// these sees. They are not taken before, so that the sequence can still be shortened a little.
    ///
    /// # Panics
    /// If there is no room.
    pub(super) fn extend(&mut self, seq: SeqId, n: usize) {
        assert!(n <= self.room(seq), "room was checked");
        let rest = self.free.len().saturating_sub(n);
        let taken = self.free.drain(rest..).rev();
        let n_again = n - taken.len();
        let held = self.sequences.entry(seq).or_default();
        held.cells.extend(taken);
        held.cells.rotate_left(n_again);
        held.n_forgotten += n_again;
    }

    /// Whether all that the token after the first `len` sees is still there.
    pub(super) fn can_go_on_from(&self, seq: SeqId, len: usize) -> bool {
        let first_seen = self.seen_before.map_or(0, |seen_before| len.saturating_sub(seen_before));
        self.sequences.get(&seq).is_none_or(|held| held.n_forgotten <= first_seen)
    }

    /// Shortens a sequence to its first `len` tokens; does nothing when it is not longer.
    pub(super) fn truncate(&mut self, seq: SeqId, len: usize) {
        let Some(held) = self.sequences.get_mut(&seq) else { return };
        let n_kept = len.saturating_sub(held.n_forgotten).min(held.cells.len());
        self.free.extend(held.cells.drain(n_kept..));
        self.free.sort_unstable_by(|a, b| b.cmp(a));
        if len == 0 {
            self.sequences.remove(&seq);
        }
    }
}

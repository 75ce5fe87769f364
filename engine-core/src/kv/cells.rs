//! Which cells hold which sequence, in all groups of layers.

use std::collections::BTreeMap;

use thiserror::Error;

use super::group::GroupCells;
use super::layout::KvGroups;

/// Number of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeqId(pub u32);

/// Why a sequence cannot grow.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum KvError {
    /// There are fewer free cells than tokens to store.
    #[error("the KV cache has {free} of {n_cells} cells free; {asked} are needed")]
    Full {
        /// Cells asked for.
        asked: u32,
        /// Cells free.
        free: u32,
        /// Cells in all.
        n_cells: u32,
    },
}

/// Which cell holds which token of which sequence.
#[derive(Debug, Clone)]
pub struct KvCells {
    n_ctx: u32,
    groups: Vec<GroupCells>,
}

impl KvCells {
    /// Free cells for `n_ctx` tokens of all sequences together.
    pub fn new(groups: &KvGroups, n_ctx: u32) -> KvCells {
        let groups = groups.all().iter().copied().map(GroupCells::new).collect();
        KvCells { n_ctx, groups }
    }

    /// The cells of each group of layers.
    pub fn groups(&self) -> &[GroupCells] {
        &self.groups
    }

    /// Tokens of a sequence.
    pub fn len(&self, seq: SeqId) -> usize {
        self.groups.first().map_or(0, |group| group.len(seq))
    }

    /// How long each of some sequences is.
    pub fn lengths(&self, seqs: impl Iterator<Item = SeqId>) -> BTreeMap<SeqId, usize> {
        seqs.map(|seq| (seq, self.len(seq))).collect()
    }

    /// Gives the next `n` tokens of a sequence a cell each, for one pass: what the first of them sees stays.
    ///
    /// # Errors
    /// [`KvError::Full`]; the sequence is then as it was.
    pub fn extend(&mut self, seq: SeqId, n: u32) -> Result<(), KvError> {
        let n_tokens = self.groups.first().map_or(0, GroupCells::n_tokens);
        let rooms = self.groups.iter().map(|group| group.room(seq));
        let free = rooms.fold(self.n_ctx as usize - n_tokens, usize::min) as u32;
        if free < n {
            return Err(KvError::Full { asked: n, free, n_cells: self.n_ctx });
        }
        for group in &mut self.groups {
            group.extend(seq, n as usize);
        }
        Ok(())
    }

    /// Shortens a sequence to its first `len` tokens, or to none where a layer has forgotten cells that the token after
    /// them would see. Gives the length it has then.
    pub fn truncate(&mut self, seq: SeqId, len: usize) -> usize {
        let len = len.min(self.len(seq));
        let whole = self.groups.iter().all(|group| group.can_go_on_from(seq, len));
        let kept = if whole { len } else { 0 };
        for group in &mut self.groups {
            group.truncate(seq, kept);
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LayerConfig;
    use crate::scratch::PassLimits;

    const A: SeqId = SeqId(0);
    const B: SeqId = SeqId(1);

    /// Cells of layers with these windows, for passes of up to two tokens.
    fn cells(windows: &[Option<u32>], n_ctx: u32) -> KvCells {
        let layers: Vec<_> =
            windows.iter().map(|&window| LayerConfig { window, rope: 0 }).collect();
        let limits = PassLimits { n_tokens: 2, n_outputs: 1, n_cells: n_ctx };
        KvCells::new(&KvGroups::of(&layers, limits), n_ctx)
    }

    fn of(cells: &KvCells, group: usize, seq: SeqId) -> Vec<u32> {
        cells.groups()[group].of(seq).collect()
    }

    #[test]
    fn sequences_share_the_cells() {
        let mut cells = cells(&[None], 6);
        cells.extend(A, 2).unwrap();
        cells.extend(B, 2).unwrap();
        cells.extend(A, 1).unwrap();
        assert_eq!((of(&cells, 0, A), of(&cells, 0, B)), (vec![0, 1, 4], vec![2, 3]));
        assert_eq!(cells.truncate(A, 1), 1);
        cells.extend(B, 2).unwrap();
        assert_eq!(of(&cells, 0, B), [2, 3, 1, 4]);
    }

    #[test]
    fn a_full_cache_changes_nothing() {
        let mut cells = cells(&[None, Some(2)], 4);
        cells.extend(A, 2).unwrap();
        cells.extend(A, 1).unwrap();
        assert_eq!(cells.extend(A, 2), Err(KvError::Full { asked: 2, free: 1, n_cells: 4 }));
        // The windowed layer's three cells hold the first sequence; the second cannot have them.
        assert_eq!(cells.extend(B, 1), Err(KvError::Full { asked: 1, free: 0, n_cells: 4 }));
        assert_eq!((cells.len(A), cells.len(B)), (3, 0));
        cells.truncate(A, 0);
        cells.extend(B, 2).unwrap();
        assert_eq!([of(&cells, 0, B), of(&cells, 1, B)], [[0, 1], [0, 1]]);
    }

    #[test]
    fn the_context_bounds_sequences_where_every_layer_has_a_window() {
        let mut cells = cells(&[Some(2)], 5);
        cells.extend(A, 2).unwrap();
        cells.extend(A, 2).unwrap();
        assert_eq!(cells.extend(A, 2), Err(KvError::Full { asked: 2, free: 1, n_cells: 5 }));
        cells.extend(A, 1).unwrap();
        assert_eq!(of(&cells, 0, A), [2, 2, 2, 0, 1]);
    }

    #[test]
    fn what_a_window_lets_be_seen_stays() {
        // Any lengths of passes: the cells of what the first token of each sees are those of the passes before.
        let mut cells = cells(&[Some(3), None], 40);
        let mut before: Vec<u32> = Vec::new();
        for n in [2, 1, 1, 2, 2, 1, 2, 1, 1, 1, 2] {
            let start = before.len();
            cells.extend(A, n).unwrap();
            let now = of(&cells, 0, A);
            let seen = start.saturating_sub(2);
            assert_eq!(now[seen..start], before[seen..]);
            let mut own = now[seen..].to_vec();
            own.sort_unstable();
            own.dedup();
            assert_eq!(own.len(), now.len() - seen, "no two seen tokens share a cell");
            assert_eq!(of(&cells, 1, A).len(), now.len());
            before = now;
        }
    }

    #[test]
    fn a_sequence_is_shortened_to_what_it_can_go_on_from() {
        // Four cells: the last four tokens are there, and the next one sees two before itself.
        let run = || {
            let mut cells = cells(&[None, Some(3)], 40);
            (0..10).for_each(|_| cells.extend(A, 1).unwrap());
            cells
        };
        for (len, kept) in [(12, 10), (10, 10), (9, 9), (8, 8), (7, 0), (2, 0), (0, 0)] {
            let mut cells = run();
            assert_eq!((cells.truncate(A, len), cells.len(A)), (kept, kept), "to {len}");
            assert_eq!(of(&cells, 0, A).len(), kept);
            assert_eq!(of(&cells, 1, A).len(), kept);
        }
    }

    #[test]
    fn the_rest_of_a_pass_can_always_be_given_back() {
        // Passes of four whose first token at least is kept: what is left was once there, and is what is seen.
        let layers =
            [None, Some(1), Some(3), Some(9)].map(|window| LayerConfig { window, rope: 0 });
        let limits = PassLimits { n_tokens: 4, n_outputs: 4, n_cells: 400 };
        let mut cells = KvCells::new(&KvGroups::of(&layers, limits), 400);
        for i in 0..200 {
            let (len, n) = (cells.len(A), 1 + i * i % 4);
            cells.extend(A, n as u32).unwrap();
            let before: Vec<_> = (0..4).map(|group| of(&cells, group, A)).collect();
            let kept = len + 1 + i % n;
            assert_eq!(cells.truncate(A, kept), kept, "pass {i}");
            for (group, (before, window)) in before.iter().zip([400, 1, 3, 9]).enumerate() {
                let seen = (kept + 1).saturating_sub(window)..kept;
                assert_eq!(of(&cells, group, A)[seen.clone()], before[seen]);
            }
        }
    }
}

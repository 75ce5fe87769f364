//! The KV cache: how cells are laid out in a buffer, and which cell holds which token. No device calls.
//!
//! A cell is room for one token in every layer; cell `c` of a layer is row `c` of its K and V arrays. Sequences hold
//! lists of cells, so several share one cache without owning fixed parts of it.

use std::collections::BTreeMap;

use planner::Bytes;
use thiserror::Error;

use crate::backend::BufferId;
use crate::model::ModelConfig;
use crate::op::View;
use crate::weights::DType;

/// Number of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeqId(pub u32);

/// K and V of one layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KvViews {
    /// `[n_cells, n_kv_head · key_dim]`.
    pub k: View,
    /// `[n_cells, n_kv_head · value_dim]`.
    pub v: View,
}

impl KvViews {
    /// Lays out all layers in `buffer`; gives the views and the size that the buffer must have.
    ///
    /// `dtype` is F16 or F32.
    pub fn layout(
        config: &ModelConfig,
        n_cells: u32,
        dtype: DType,
        buffer: BufferId,
    ) -> (Vec<KvViews>, Bytes) {
        let mut end = Bytes::ZERO;
        let mut place = |columns: u32| {
            let view = View { buffer, offset: end, shape: [n_cells, columns], dtype };
            end = (end + view.bytes()).align_up(64);
            view
        };
        let views = (0..config.n_layer())
            .map(|_| KvViews { k: place(config.key_width()), v: place(config.value_width()) })
            .collect();
        (views, end)
    }
}

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
    n_cells: u32,
    /// Free cells, the next to use last. Handed out in rising order, so that a lone sequence lies in one run.
    free: Vec<u32>,
    sequences: BTreeMap<SeqId, Vec<u32>>,
}

impl KvCells {
    /// `n_cells` free cells.
    pub fn new(n_cells: u32) -> KvCells {
        KvCells { n_cells, free: (0..n_cells).rev().collect(), sequences: BTreeMap::new() }
    }

    /// Room left.
    pub fn n_free(&self) -> u32 {
        self.free.len() as u32
    }

    /// The cells of a sequence, in the order of its tokens.
    pub fn of(&self, seq: SeqId) -> &[u32] {
        self.sequences.get(&seq).map_or(&[], Vec::as_slice)
    }

    /// How long each of some sequences is.
    pub fn lengths(&self, seqs: impl Iterator<Item = SeqId>) -> BTreeMap<SeqId, usize> {
        seqs.map(|seq| (seq, self.of(seq).len())).collect()
    }

    /// Gives the next `n` tokens of a sequence a cell each.
    ///
    /// # Errors
    /// [`KvError::Full`]; the sequence is then as it was.
    pub fn extend(&mut self, seq: SeqId, n: u32) -> Result<(), KvError> {
        let Some(rest) = self.free.len().checked_sub(n as usize) else {
            return Err(KvError::Full { asked: n, free: self.n_free(), n_cells: self.n_cells });
        };
        let cells = self.free.drain(rest..).rev();
        self.sequences.entry(seq).or_default().extend(cells);
        Ok(())
    }

    /// Shortens a sequence to its first `len` tokens; does nothing when it is not longer.
    pub fn truncate(&mut self, seq: SeqId, len: usize) {
        let Some(cells) = self.sequences.get_mut(&seq) else { return };
        let dropped = cells.drain(len.min(cells.len())..);
        self.free.extend(dropped);
        self.free.sort_unstable_by(|a, b| b.cmp(a));
        if len == 0 {
            self.sequences.remove(&seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SeqId = SeqId(0);
    const B: SeqId = SeqId(1);

    #[test]
    fn sequences_share_the_cells() {
        let mut cells = KvCells::new(6);
        cells.extend(A, 2).unwrap();
        cells.extend(B, 2).unwrap();
        cells.extend(A, 1).unwrap();
        assert_eq!((cells.of(A), cells.of(B)), (&[0, 1, 4][..], &[2, 3][..]));
        cells.truncate(A, 1);
        cells.extend(B, 2).unwrap();
        assert_eq!(cells.of(B), [2, 3, 1, 4]);
    }

    #[test]
    fn a_full_cache_changes_nothing() {
        let mut cells = KvCells::new(3);
        cells.extend(A, 2).unwrap();
        assert_eq!(cells.extend(B, 2), Err(KvError::Full { asked: 2, free: 1, n_cells: 3 }));
        assert_eq!((cells.of(B).len(), cells.n_free()), (0, 1));
        cells.truncate(A, 0);
        assert_eq!(cells.n_free(), 3);
    }
}

//! Moves of single shards, for models whose layers differ or are few.

use super::Search;
use crate::placement::Placement;
use crate::plan::Layout;
use crate::units::Bytes;

const PLACES: [Placement; 3] = [Placement::Cpu, Placement::Pinned, Placement::Streamed];

/// With this many shards or fewer, pairs of moves are tried: that many squared.
const PAIRS_UP_TO: usize = 24;

impl Search<'_> {
    /// Moves shards, alone and in pairs, and the size of the ring, as long as that helps.
    pub(super) fn search_moves(&mut self) {
        while self.move_once() {}
    }

    /// One round of all moves from the best layout; whether it found a better one.
    fn move_once(&mut self) -> bool {
        let Some((from, _)) = self.best.clone() else { return false };
        let n = from.placements.len();
        let mut better = false;
        for i in 1..n {
            for place in PLACES {
                better |= self.try_rings(&from, &[(i, place)]);
            }
        }
        if better || n > PAIRS_UP_TO {
            return better;
        }
        for i in 1..n {
            for j in i + 1..n {
                for (a, b) in PLACES.iter().flat_map(|a| PLACES.map(|b| (*a, b))) {
                    if a != from.placements[i] && b != from.placements[j] {
                        better |= self.try_rings(&from, &[(i, a), (j, b)]);
                    }
                }
            }
        }
        better
    }

    /// Tries some moves with rings of several sizes.
    fn try_rings(&mut self, from: &Layout, moves: &[(usize, Placement)]) -> bool {
        let mut layout = from.clone();
        for &(i, place) in moves {
            layout.placements[i] = place;
        }
        // The output is never streamed: it is needed once a pass, for few tokens.
        if layout.placements.last() == Some(&Placement::Streamed) {
            return false;
        }
        let slot = self.draft.largest_slot(&layout.placements);
        let streamed = layout.placements.iter().filter(|p| **p == Placement::Streamed).count();
        let mut better = false;
        for n_slots in [1, 2, 3, 4] {
            layout.ring = if slot == Bytes::ZERO { slot } else { slot * n_slots };
            better |= self.try_layout(layout.clone()).is_some();
            if n_slots as usize >= streamed {
                break;
            }
        }
        better
    }
}

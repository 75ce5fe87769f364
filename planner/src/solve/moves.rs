//! Moves of single shards, for models whose layers differ or are few.

use super::Search;
use crate::placement::Placement;
use crate::plan::{Layout, Prediction};

const PLACES: [Placement; 3] = [Placement::Cpu, Placement::Pinned, Placement::Streamed];

/// With this many shards or fewer, pairs of moves are tried, that many squared, and from several beginnings.
const FEW_SHARDS: usize = 24;

/// Rings of these many slots of the largest streamed shard are tried.
const RINGS: [u64; 4] = [1, 2, 3, 4];

impl Search<'_> {
    /// Moves shards, alone and in pairs, and the size of the ring, as long as that helps.
    pub(super) fn search_moves(&mut self) {
        let n = self.problem.shards.len();
        let Some((best, _)) = self.best.clone() else { return };
        let mut beginnings = vec![best];
        if n <= FEW_SHARDS {
            let all = |place| {
                let mut placements = vec![place; n];
                placements[0] = Placement::Cpu;
                placements
            };
            let streamed = self.with_ring(all(Placement::Streamed), 1);
            beginnings.extend([self.with_ring(all(Placement::Cpu), 0), streamed]);
            let two = self.with_ring(all(Placement::Streamed), 2);
            beginnings.push(two);
        }
        for beginning in beginnings {
            self.climb(beginning);
        }
    }

    /// Moves away from a layout as long as that helps, and keeps where it ends if that is the best known.
    fn climb(&mut self, beginning: Layout) {
        if !self.draft.fits(&beginning) {
            return;
        }
        let Some(predicted) = self.price(&beginning, f64::INFINITY) else { return };
        let mut here = (beginning, predicted);
        while let Some(next) = self.best_move(&here) {
            here = next;
        }
        if here.1.seconds.get() < self.limit() {
            self.best = Some(here);
        }
    }

    /// The best of all moves from a layout, if one helps: of single shards, else of pairs.
    fn best_move(&self, here: &(Layout, Prediction)) -> Option<(Layout, Prediction)> {
        let n = here.0.placements.len();
        let mut best = None;
        for i in 1..n {
            for place in PLACES {
                self.try_moves(here, &[(i, place)], &mut best);
            }
        }
        if best.is_some() || n > FEW_SHARDS {
            return best;
        }
        let pairs = (1..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        for (i, j) in pairs {
            for (a, b) in PLACES.iter().flat_map(|a| PLACES.map(|b| (*a, b))) {
                if a != here.0.placements[i] && b != here.0.placements[j] {
                    self.try_moves(here, &[(i, a), (j, b)], &mut best);
                }
            }
        }
        best
    }

    /// Tries some moves at once, with rings of several sizes.
    fn try_moves(
        &self,
        here: &(Layout, Prediction),
        moves: &[(usize, Placement)],
        best: &mut Option<(Layout, Prediction)>,
    ) {
        let mut placements = here.0.placements.clone();
        for &(i, place) in moves {
            placements[i] = place;
        }
        let streamed = placements.iter().filter(|place| **place == Placement::Streamed).count();
        for n_slots in RINGS {
            let layout = self.with_ring(placements.clone(), n_slots);
            let limit = best.as_ref().unwrap_or(here).1.seconds.get();
            if self.draft.fits(&layout)
                && let Some(predicted) = self.price(&layout, limit)
                && predicted.seconds.get() < limit
            {
                *best = Some((layout, predicted));
            }
            if n_slots as usize >= streamed {
                break;
            }
        }
    }

    fn with_ring(&self, placements: Vec<Placement>, n_slots: u64) -> Layout {
        let ring = self.draft.largest_slot(&placements) * n_slots;
        Layout { placements, ring, resident: Vec::new() }
    }
}

//! The search in the lattice: the grid in the order of its bounds, then from the best of several kinds in ever smaller
//! steps.

use std::collections::BTreeMap;

use super::Search;
use super::counts::Counts;
use super::lattice::Lattice;

/// The search goes on from members of the grid that take up to this share more than the best one takes.
const FAR_BEHIND: f64 = 0.3;

/// From so many of them at most.
const CLIMBERS: usize = 5;

impl Search<'_> {
    pub(super) fn search_lattice(&mut self, lattice: &Lattice<'_>) {
        let grid = lattice.grid();
        let mut members: Vec<(f64, Counts)> =
            grid.into_iter().map(|counts| (lattice.bound(&counts), counts)).collect();
        members.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The best of each kind, if it is not far behind.
        let mut kinds: BTreeMap<[bool; 4], (f64, Counts)> = BTreeMap::new();
        for (bound, counts) in &members {
            let far = self.limit() * (1.0 + FAR_BEHIND);
            if *bound >= far {
                break;
            }
            let known = kinds.get(&counts.kind()).map_or(far, |known| known.0.min(far));
            if *bound < known
                && let Some(seconds) = self.price_counts(lattice, counts, known)
            {
                kinds.insert(counts.kind(), (seconds, *counts));
            }
        }
        let mut climbers: Vec<(f64, Counts)> = kinds.into_values().collect();
        climbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        climbers.truncate(CLIMBERS);
        self.climb_lattice(lattice, climbers);
    }

    /// Goes on from some members in ever smaller steps, as long as that helps; at each size only from those that are so
    /// near the best that steps of that size may bring them there.
    fn climb_lattice(&mut self, lattice: &Lattice<'_>, mut climbers: Vec<(f64, Counts)>) {
        let largest = lattice.largest_step();
        let mut size = largest;
        while size > 0 {
            let near = 1.0 + FAR_BEHIND * f64::from(size) / f64::from(largest);
            for here in &mut climbers {
                if here.0 < self.limit() * near {
                    self.climb_steps(lattice, here, size);
                }
            }
            size /= 2;
        }
    }

    /// Steps of one size, as long as that helps.
    fn climb_steps(&mut self, lattice: &Lattice<'_>, here: &mut (f64, Counts), size: u32) {
        loop {
            let from = here.1;
            for counts in lattice.steps(&from, size) {
                if lattice.bound(&counts) < here.0
                    && let Some(seconds) = self.price_counts(lattice, &counts, here.0)
                {
                    *here = (seconds, counts);
                }
            }
            if here.1 == from {
                return;
            }
        }
    }

    /// The seconds of a member, with pinned shards first or spread, if they are below `limit`.
    fn price_counts(
        &mut self,
        lattice: &Lattice<'_>,
        counts: &Counts,
        mut limit: f64,
    ) -> Option<f64> {
        // Steps lead to the same member again and again.
        if self.least.get(counts).is_some_and(|least| *least >= limit) {
            return None;
        }
        let mut found = None;
        let streams = counts.n_slots > 0;
        for spread in if streams { &[false, true][..] } else { &[false] } {
            let Some(layout) = lattice.layout(counts, *spread, self.prices) else { continue };
            let Some(predicted) = self.price(&layout, limit) else { continue };
            let seconds = predicted.seconds.get();
            if seconds < limit {
                limit = seconds;
                found = Some(seconds);
            }
            if seconds < self.limit() {
                self.best = Some((layout, predicted));
            }
        }
        self.least.insert(*counts, limit);
        found
    }
}

//! The search in the lattice: the grid in the order of its bounds, from the best of several kinds on in ever smaller
//! steps, and then what else could be better. The fewer shards a model has, and so the less a price costs, the more is
//! tried.

use std::collections::{BTreeMap, HashSet};

use super::Search;
use super::counts::Counts;
use super::lattice::Lattice;
use super::ridge::Lowest;

/// The search goes on from members of the grid that take up to this share more than the best one takes.
const FAR_BEHIND: f64 = 0.3;

/// From so many of them at most,
const CLIMBERS: usize = 5;

/// and from more where a model has fewer shards than the largest have: with these times its shards.
const MORE_CLIMBERS: usize = 970;

/// One of so many of those more takes combined steps at the end.
const POLISHED: usize = 6;

/// So many members are priced at the end in the order of their bounds, times the square of how many climbers more there
/// are.
const PRICES: usize = 30;

impl Search<'_> {
    pub(super) fn search_lattice(&mut self, lattice: &Lattice<'_>) {
        let bounded = lattice.grid().into_iter().map(|counts| (lattice.bound(&counts), counts));
        let mut grid: Vec<(f64, Counts)> = bounded.collect();
        grid.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut climbers = self.best_of_kinds(lattice, &grid);
        let ridge = if self.n_more() > 0 { lattice.ridge() } else { Vec::new() };
        climbers.extend(self.lowest_of_kinds(lattice, &ridge));
        climbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        climbers.truncate(CLIMBERS + self.n_more());
        self.climb_lattice(lattice, climbers);
        self.price_lowest(lattice, &ridge);
    }

    /// Climbers for which there is time besides.
    fn n_more(&self) -> usize {
        (MORE_CLIMBERS / self.problem.shards.len()).saturating_sub(CLIMBERS)
    }

    /// The best of each kind, if it is not far behind, from members in the order of their bounds.
    fn best_of_kinds(
        &mut self,
        lattice: &Lattice<'_>,
        grid: &[(f64, Counts)],
    ) -> Vec<(f64, Counts)> {
        let mut kinds: BTreeMap<[bool; 4], (f64, Counts)> = BTreeMap::new();
        for (bound, counts) in grid {
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
        kinds.into_values().collect()
    }

    /// The members of each fine kind whose bound is lowest.
    fn lowest_of_kinds(&mut self, lattice: &Lattice<'_>, ridge: &[Lowest]) -> Vec<(f64, Counts)> {
        let mut kinds = HashSet::new();
        let mut found = Vec::new();
        for (bound, counts) in ridge.iter().map(|lowest| lowest.member) {
            let far = self.limit() * (1.0 + FAR_BEHIND);
            if bound >= far || found.len() == 3 * self.n_more() {
                break;
            }
            if kinds.insert(counts.fine_kind(lattice.n_layer()))
                && let Some(seconds) = self.price_counts(lattice, &counts, far)
            {
                found.push((seconds, counts));
            }
        }
        found
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
                    self.climb_steps(lattice, here, |from| lattice.steps(from, size));
                }
            }
            size /= 2;
        }
        climbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        climbers.truncate(self.n_more() / POLISHED);
        for here in &mut climbers {
            self.climb_steps(lattice, here, |from| lattice.combined_steps(from));
        }
    }

    /// Steps as long as that helps.
    fn climb_steps(
        &mut self,
        lattice: &Lattice<'_>,
        here: &mut (f64, Counts),
        steps: impl Fn(&Counts) -> Vec<Counts>,
    ) {
        loop {
            let from = here.1;
            for counts in steps(&from) {
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

    /// Prices those members whose bounds are lowest.
    fn price_lowest(&mut self, lattice: &Lattice<'_>, ridge: &[Lowest]) {
        let most = PRICES * self.n_more().pow(2);
        let is_new = |counts: &Counts| !self.least.contains_key(counts);
        let mut lowest =
            ridge.iter().map(|lowest| lowest.member).filter(|(_, counts)| is_new(counts));
        // So many are lower than this one, and no more are priced.
        let last = lowest.nth(most).map_or(f64::INFINITY, |(bound, _)| bound);
        let mut members = lattice.below(ridge, self.limit().min(last));
        members.retain(|(_, counts)| is_new(counts));
        for (bound, counts) in members.into_iter().take(most) {
            let limit = self.limit();
            if bound >= limit {
                break;
            }
            self.price_counts(lattice, &counts, limit);
        }
    }

    /// The seconds of a member, its shards ordered in the best way, if they are below `limit`.
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
        for &order in lattice.orders(counts, self.n_more() > 0) {
            let Some(layout) = lattice.layout(counts, order, self.prices) else { continue };
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

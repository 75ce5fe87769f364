//! Members of the lattice in the order of their bounds.
//!
//! On a path only the number of streamed shards of one list changes, and the bound has one lowest member, which is found
//! by walking downhill. The lowest members of many paths are the ridge; all members on them whose bound is below a limit
//! lie around it. A linear program of as few constraints as memory, copies and computing has its optimum where most
//! counts are zero. So on the paths either attention is in two of the three places at most, or FFN is.

use super::counts::{Counts, Part};
use super::lattice::Lattice;
use crate::placement::Placement;
use crate::units::Bytes;

/// Rings of up to so many slots.
const MOST_SLOTS: u32 = 4;

/// A member with its bound, in seconds.
type Bounded = (f64, Counts);

/// Members that differ in how many shards of one list are streamed.
#[derive(Clone, Copy)]
struct Path {
    /// The one with none.
    start: Counts,
    list: Walked,
    /// As much FFN is pinned as the budget holds, besides what is in the counts.
    full: bool,
}

/// The list along which a path goes.
#[derive(Clone, Copy)]
enum Walked {
    Attention,
    Ffn,
}

/// The lowest member of a path, and where it is.
pub(super) struct Lowest {
    path: Path,
    streamed: u32,
    pub(super) member: Bounded,
}

impl Lattice<'_> {
    /// The lowest members of the paths that the budget has room for, in the order of their bounds.
    pub(super) fn ridge(&self) -> Vec<Lowest> {
        let mut ridge = Vec::new();
        for output in [Placement::Pinned, Placement::Cpu, Placement::Streamed] {
            for n_slots in 1..=MOST_SLOTS {
                let start = Counts { output, attention: Part::NONE, ffn: Part::NONE, n_slots };
                for full in [true, false] {
                    self.walk_ffn(Path { start, list: Walked::Ffn, full }, &mut ridge);
                }
                self.walk_attention(start, &mut ridge);
            }
        }
        ridge.sort_by(|a, b| a.member.0.total_cmp(&b.member.0));
        ridge
    }

    /// Along FFN, with attention in two places at most.
    fn walk_ffn(&self, path: Path, ridge: &mut Vec<Lowest>) {
        let n = self.n_layer();
        let edges: [fn(u32, u32) -> Part; 3] = [
            |k, _| Part { pinned: k, streamed: 0 },
            |k, _| Part { pinned: 0, streamed: k },
            |k, n| Part { pinned: n - k, streamed: k },
        ];
        for edge in edges {
            let with_attention = |attention| Counts { attention, ..path.start };
            let starts = (0..=n).map(|k| with_attention(edge(k, n)));
            self.add_lowest(starts.map(|start| Path { start, ..path }), ridge);
        }
    }

    /// Along attention, with all FFN that is not pinned in one place.
    fn walk_attention(&self, start: Counts, ridge: &mut Vec<Lowest>) {
        for streamed in [0, self.n_ffn()] {
            let ffn = Part { pinned: 0, streamed };
            let with_pinned =
                |pinned| Counts { attention: Part { pinned, streamed: 0 }, ffn, ..start };
            let starts = (0..=self.n_layer()).map(with_pinned);
            let path = |start| Path { start, list: Walked::Attention, full: true };
            self.add_lowest(starts.map(path), ridge);
        }
    }

    /// Adds the lowest members of paths that lie side by side, so that each one's is near that of the one before.
    fn add_lowest(&self, paths: impl Iterator<Item = Path>, ridge: &mut Vec<Lowest>) {
        let mut near = 1;
        for path in paths {
            let none = self.on(path, 0);
            ridge.extend(none.map(|member| Lowest { path, streamed: 0, member }));
            if let Some(lowest) = self.lowest(path, near) {
                near = lowest.streamed;
                ridge.push(lowest);
            }
        }
    }

    /// The lowest member of a path of those with streams, walking downhill. What a ring takes sets them apart from the
    /// one without.
    fn lowest(&self, path: Path, near: u32) -> Option<Lowest> {
        let at = |streamed| Some((streamed, self.on(path, streamed)?));
        let mut here = at(near.min(self.longest(path))).or_else(|| at(1))?;
        let begun = here.0;
        let lower = |streamed, than: f64| at(streamed).filter(|(_, there)| there.0 < than);
        while let Some(there) = lower(here.0 + 1, here.1.0) {
            here = there;
        }
        while here.0 <= begun
            && here.0 > 1
            && let Some(there) = lower(here.0 - 1, here.1.0)
        {
            here = there;
        }
        Some(Lowest { path, streamed: here.0, member: here.1 })
    }

    /// The members of the ridge and around it whose bound is below `limit`, in the order of their bounds.
    pub(super) fn below(&self, ridge: &[Lowest], limit: f64) -> Vec<Bounded> {
        let mut found = Vec::new();
        let is_below = |there: &Bounded| there.0 < limit;
        for Lowest { path, streamed, member } in
            ridge.iter().take_while(|low| is_below(&low.member))
        {
            found.push(*member);
            if *streamed > 0 {
                let at = |streamed| self.on(*path, streamed);
                found.extend((streamed + 1..).map_while(at).take_while(is_below));
                found.extend((1..*streamed).rev().map_while(at).take_while(is_below));
            }
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Paths cross.
        found.dedup();
        found
    }

    /// The most that can be streamed on a path.
    fn longest(&self, path: Path) -> u32 {
        match path.list {
            Walked::Attention => self.n_layer() - path.start.attention.pinned,
            Walked::Ffn => self.n_ffn(),
        }
    }

    /// A member of a path, if there is one that the budget holds.
    fn on(&self, path: Path, streamed: u32) -> Option<Bounded> {
        if streamed > self.longest(path) {
            return None;
        }
        let mut counts = path.start;
        match path.list {
            Walked::Attention => counts.attention.streamed = streamed,
            Walked::Ffn => counts.ffn.streamed = streamed,
        }
        if self.ring(&counts) == Bytes::ZERO {
            // Slots of nothing make no difference.
            if counts.n_slots > 1 {
                return None;
            }
            counts.n_slots = 0;
        }
        let held = if path.full {
            self.filled(counts).filter(|held| held.attention == counts.attention)
        } else {
            Some(counts).filter(|counts| self.fits(counts))
        };
        held.map(|counts| (self.bound(&counts), counts))
    }
}

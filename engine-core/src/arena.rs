//! Where things lie in one region of VRAM: a layout for each plan, alike where they can be, so that a change of plan
//! moves little. Knows sizes only.
//!
//! What stays from pass to pass fills the region from its start; scratch is at its end, and the ring before that.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use planner::Bytes;

/// What a plan keeps in VRAM from pass to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Item {
    /// All weights of a shard, by its place in running order.
    Weights(usize),
    /// What one product of a streamed shard reads: the shard, and the place among its products.
    Product(usize, usize),
    /// KV cells of a layer.
    Kv(usize),
}

/// What one plan needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Needs {
    pub(crate) items: BTreeMap<Item, Bytes>,
    pub(crate) ring: Bytes,
    pub(crate) scratch: Bytes,
}

impl Needs {
    pub(crate) fn total(&self) -> Bytes {
        self.items.values().copied().sum::<Bytes>() + self.ring + self.scratch
    }
}

/// Where what one plan needs begins.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    pub(crate) items: BTreeMap<Item, Bytes>,
    pub(crate) ring: Bytes,
    pub(crate) scratch: Bytes,
}

/// Places for plans that are used one at a time in a region of `size`, which holds each of them.
pub(crate) fn arrange(size: Bytes, plans: &[Needs]) -> Vec<Places> {
    let ring = |needs: &Needs| size.saturating_sub(needs.scratch).saturating_sub(needs.ring);
    // Lowest lies what some plan has that leaves least room below its ring, then what most plans have, then what is large.
    let rank = |(item, size): &(Item, Bytes)| {
        let with = plans.iter().filter(|plan| plan.items.contains_key(item));
        let room = with.clone().map(ring).min();
        (room, Reverse(with.count()), Reverse(*size), *item)
    };
    // Where an item was put first: other plans keep it there if they can. The first plan is that of an answer, which all
    // others are changed from and to.
    let mut known: BTreeMap<Item, Bytes> = BTreeMap::new();
    let arrange_one = |needs: &Needs| {
        let mut order: Vec<(Item, Bytes)> = needs.items.iter().map(|(&i, &n)| (i, n)).collect();
        order.sort_by_cached_key(rank);
        let items = place(&order, &known, ring(needs));
        for (item, start) in &items {
            known.entry(*item).or_insert(*start);
        }
        Places { items, ring: ring(needs), scratch: size.saturating_sub(needs.scratch) }
    };
    plans.iter().map(arrange_one).collect()
}

/// Keeps items that are known where they were, as many as leave gaps for the others: from the highest on they move.
fn place(
    order: &[(Item, Bytes)],
    known: &BTreeMap<Item, Bytes>,
    end: Bytes,
) -> BTreeMap<Item, Bytes> {
    let ends = order.iter().filter_map(|(item, size)| Some(*known.get(item)? + *size));
    let mut limits: Vec<Bytes> = ends.filter(|known_end| *known_end <= end).collect();
    limits.sort_unstable();
    limits.dedup();
    let tries = limits.into_iter().rev().chain([Bytes::ZERO]);
    let mut placed = tries.filter_map(|limit| place_beside(order, known, limit, end));
    placed.next().expect("with nothing kept all lie one after the other")
}

/// Keeps known items that end by `limit`, the others in the gaps; `None` where one finds no gap.
fn place_beside(
    order: &[(Item, Bytes)],
    known: &BTreeMap<Item, Bytes>,
    limit: Bytes,
    end: Bytes,
) -> Option<BTreeMap<Item, Bytes>> {
    let mut taken = Taken::default();
    let mut places = BTreeMap::new();
    for &(item, size) in order {
        if let Some(&start) = known.get(&item)
            && taken.take(start..start + size, limit)
        {
            places.insert(item, start);
        }
    }
    for &(item, size) in order {
        if let Entry::Vacant(place) = places.entry(item) {
            let start = taken.gap(size, end)?;
            taken.take(start..start + size, end);
            place.insert(start);
        }
    }
    Some(places)
}

/// Ranges in use, by their start.
#[derive(Default)]
struct Taken(BTreeMap<Bytes, Bytes>);

impl Taken {
    /// Takes a range, unless some of it is taken or lies past `end`.
    fn take(&mut self, range: Range<Bytes>, end: Bytes) -> bool {
        let before = self.0.range(..range.end).next_back();
        let free = range.end <= end && before.is_none_or(|(_, &taken)| taken <= range.start);
        if free && !range.is_empty() {
            self.0.insert(range.start, range.end);
        }
        free
    }

    /// Where the first gap of so many bytes begins.
    fn gap(&self, size: Bytes, end: Bytes) -> Option<Bytes> {
        let mut start = Bytes::ZERO;
        for (&taken, &until) in &self.0 {
            if start + size <= taken {
                break;
            }
            start = start.max(until);
        }
        (start + size <= end).then_some(start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn needs(items: &[(usize, u64)], ring: u64, scratch: u64) -> Needs {
        Needs {
            items: items.iter().map(|&(i, n)| (Item::Weights(i), Bytes::new(n))).collect(),
            ring: Bytes::new(ring),
            scratch: Bytes::new(scratch),
        }
    }

    fn starts(places: &Places) -> Vec<(usize, u64)> {
        let starts = places.items.iter().map(|(item, start)| match item {
            Item::Weights(i) => (*i, start.get()),
            other => panic!("{other:?}"),
        });
        starts.collect()
    }

    #[test]
    fn what_two_plans_share_stays() {
        let plans = [needs(&[(1, 10), (2, 20), (3, 30)], 0, 5), needs(&[(2, 20), (4, 8)], 20, 10)];
        let [first, second] = &arrange(Bytes::new(90), &plans)[..] else { panic!("two plans") };
        assert_eq!(starts(first), [(1, 50), (2, 0), (3, 20)]);
        assert_eq!(starts(second), [(2, 0), (4, 20)]);
        assert_eq!((second.ring, second.scratch), (Bytes::new(60), Bytes::new(80)));
    }

    #[test]
    fn where_gaps_are_too_small_the_highest_are_moved() {
        let plans = [
            needs(&[(1, 10), (2, 10), (3, 10)], 0, 0),
            needs(&[(1, 10), (3, 10), (4, 10)], 0, 0),
            needs(&[(1, 10), (2, 20)], 0, 0),
        ];
        let [first, second, third] = &arrange(Bytes::new(30), &plans)[..] else { panic!("three") };
        assert_eq!(starts(first), [(1, 0), (2, 10), (3, 20)]);
        assert_eq!(starts(second), [(1, 0), (3, 20), (4, 10)]);
        assert_eq!(starts(third), [(1, 0), (2, 10)]);
    }

    #[test]
    fn a_larger_ring_drives_out_nothing_that_its_plan_keeps() {
        let plans = [
            needs(&[(1, 10), (2, 10), (3, 40)], 0, 0),
            needs(&[(1, 10), (2, 10)], 0, 0),
            needs(&[(3, 40)], 20, 0),
        ];
        let [first, _, third] = &arrange(Bytes::new(60), &plans)[..] else { panic!("three") };
        assert_eq!(starts(first), [(1, 40), (2, 50), (3, 0)]);
        assert_eq!(starts(third), [(3, 0)]);
    }

    proptest! {
        #[test]
        fn nothing_overlaps(
            plans in prop::collection::vec(
                (prop::collection::vec((0usize..20, 0u64..50), 0..12), 0u64..60, 0u64..40),
                1..6,
            ),
        ) {
            let plans: Vec<Needs> =
                plans.iter().map(|(items, ring, scratch)| needs(items, *ring, *scratch)).collect();
            let size = plans.iter().map(Needs::total).max().unwrap();
            for (plan, places) in plans.iter().zip(arrange(size, &plans)) {
                let mut ranges: Vec<Range<Bytes>> = places
                    .items
                    .iter()
                    .map(|(item, &start)| start..start + plan.items[item])
                    .chain([
                        places.ring..places.ring + plan.ring,
                        places.scratch..places.scratch + plan.scratch,
                    ])
                    .filter(|range| !range.is_empty())
                    .collect();
                ranges.sort_by_key(|range| range.start);
                prop_assert!(ranges.is_sorted_by(|a, b| a.end <= b.start));
                prop_assert!(ranges.last().is_none_or(|last| last.end <= size));
                prop_assert_eq!(places.items.len(), plan.items.len());
            }
        }
    }
}

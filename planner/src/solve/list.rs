//! The shards of one kind: in which order they are pinned, what some of them take, and where some of them are.

use super::bound::Totals;
use super::counts::Part;
use crate::placement::Placement;
use crate::price::Price;
use crate::problem::Problem;
use crate::units::Bytes;

/// The shards of one kind in the order in which they are pinned.
pub(super) struct List {
    /// Indices of the shards.
    pub(super) shards: Vec<usize>,
    /// VRAM of the first so many when pinned.
    pub(super) pinned: Vec<Bytes>,
    pub(super) slot: Bytes,
    pub(super) scratch: Bytes,
    /// VRAM that one takes that is placed on the CPU and shared with the GPU: for what stays, and in the ring.
    pub(super) shared_pinned: Bytes,
    pub(super) shared_slot: Bytes,
    /// What one shard takes, on average.
    pub(super) each: Totals,
    pub(super) alike: bool,
}

impl List {
    pub(super) fn of(problem: &Problem<'_>, prices: &[Price], mut shards: Vec<usize>) -> List {
        let h2d = problem.machine.gpu.as_ref().map_or(1.0, |gpu| gpu.link.h2d.get());
        let bytes = |i: usize| problem.shards[i].weights + problem.shards[i].kv;
        let saved_per_byte = |i: usize| {
            let price = &prices[i];
            let copy = price.streaming().copied.get() as f64 / h2d;
            (price.cpu.min(copy) - price.gpu) / bytes(i).get() as f64
        };
        let differ =
            |pair: &[usize]| !problem.shards[pair[0]].costs_the_same(&problem.shards[pair[1]]);
        let first_other = shards.windows(2).position(differ);
        // The FFN of the last layer has fewer tokens than the others.
        let alike = first_other.is_none_or(|i| i + 2 == shards.len());
        if first_other.is_some() {
            shards
                .sort_by(|&a, &b| saved_per_byte(b).total_cmp(&saved_per_byte(a)).then(a.cmp(&b)));
        }
        let mut pinned = vec![Bytes::ZERO];
        let mut each = Totals::default();
        for &i in &shards {
            pinned.push(*pinned.last().expect("it begins with zero") + bytes(i));
            each.add(&Totals::of(&problem.shards[i], &prices[i]));
        }
        each.scale(1.0 / shards.len().max(1) as f64);
        let slot = shards.iter().map(|&i| prices[i].streaming().slot).max().unwrap_or_default();
        let scratch = shards.iter().map(|&i| problem.shards[i].scratch).max().unwrap_or_default();
        let shared = shards.iter().filter_map(|&i| prices[i].shared);
        let shared_pinned = shared.map(|shared| shared.pinned).max().unwrap_or_default();
        let on_cpu = shards.iter().map(|&i| prices[i].slot(Placement::Cpu));
        let shared_slot = on_cpu.max().unwrap_or_default();
        List { shards, pinned, slot, scratch, shared_pinned, shared_slot, each, alike }
    }

    pub(super) fn len(&self) -> u32 {
        self.shards.len() as u32
    }

    pub(super) fn on_cpu(&self, part: Part) -> u32 {
        self.len() - part.pinned - part.streamed
    }

    pub(super) fn slot_if(&self, part: Part) -> Bytes {
        let streamed = if part.streamed > 0 { self.slot } else { Bytes::ZERO };
        let shared = if self.on_cpu(part) > 0 { self.shared_slot } else { Bytes::ZERO };
        streamed.max(shared)
    }

    pub(super) fn scratch_if(&self, part: Part) -> Bytes {
        let shared = self.on_cpu(part) > 0 && self.shared_pinned + self.shared_slot > Bytes::ZERO;
        if shared || part.streamed + part.pinned > 0 { self.scratch } else { Bytes::ZERO }
    }

    pub(super) fn totals(&self, part: Part) -> Totals {
        let mut totals = self.each.at(Placement::Cpu);
        totals.scale(self.on_cpu(part).into());
        for (place, n) in [(Placement::Pinned, part.pinned), (Placement::Streamed, part.streamed)] {
            let mut some = self.each.at(place);
            some.scale(n.into());
            totals.add(&some);
        }
        totals
    }

    pub(super) fn place(&self, part: Part, order: Order, placements: &mut [Placement]) {
        match order {
            Order::Turns => self.place_in_turns(part, placements),
            Order::First | Order::Spread => {
                self.place_pinned_and_rest(part, order == Order::Spread, placements);
            }
        }
    }

    fn place_pinned_and_rest(&self, part: Part, spread: bool, placements: &mut [Placement]) {
        let (n, pinned) = (self.shards.len(), part.pinned as usize);
        let mut rest: Vec<usize> = Vec::with_capacity(n - pinned);
        let mut chosen = Evenly::new(pinned, n);
        for (k, &i) in self.shards.iter().enumerate() {
            let is_pinned = if spread { chosen.next() } else { k < pinned };
            if is_pinned {
                placements[i] = Placement::Pinned;
            } else {
                rest.push(i);
            }
        }
        if !rest.is_sorted() {
            rest.sort_unstable();
        }
        let mut chosen = Evenly::new(part.streamed as usize, rest.len());
        for &i in &rest {
            if chosen.next() {
                placements[i] = Placement::Streamed;
            }
        }
    }

    /// Each shard goes where most is missing of what there should be by then.
    fn place_in_turns(&self, part: Part, placements: &mut [Placement]) {
        let n = i64::from(self.len());
        let places = [
            (Placement::Streamed, i64::from(part.streamed)),
            (Placement::Cpu, i64::from(self.on_cpu(part))),
            (Placement::Pinned, i64::from(part.pinned)),
        ];
        let mut missing = [0; 3];
        for &i in &self.shards {
            for (missing, (_, some)) in missing.iter_mut().zip(places) {
                *missing += some;
            }
            let most = (0..3).rev().max_by_key(|&k| missing[k]).expect("there are three");
            missing[most] -= n;
            placements[i] = places[most].0;
        }
    }
}

/// Which shards are where, when their numbers are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The first ones are pinned, and those streamed are spread over the rest.
    First,
    /// Pinned ones are spread over all, and those streamed over the rest.
    Spread,
    /// All three kinds are spread over all.
    Turns,
}

/// Chooses some of `n` places in a row, spread evenly.
struct Evenly {
    some: usize,
    n: usize,
    sum: usize,
}

impl Evenly {
    fn new(some: usize, n: usize) -> Evenly {
        Evenly { some, n, sum: 0 }
    }

    /// Whether the next place is chosen.
    fn next(&mut self) -> bool {
        self.sum += self.some;
        let chosen = self.sum >= self.n;
        if chosen {
            self.sum -= self.n;
        }
        chosen
    }
}

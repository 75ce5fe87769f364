//! The layouts that are considered for models of many like layers: all counts of pinned and streamed shards.
//!
//! A member is a few numbers ([`Counts`]); which shards they mean follows from what pinning each saves per byte.

use super::bound::{Bound, Totals};
use crate::placement::Placement;
use crate::plan::{Layout, Resident, vram_use};
use crate::price::Price;
use crate::problem::Problem;
use crate::shard::Shard;
use crate::units::Bytes;

/// A layout in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Counts {
    pub(super) output: Placement,
    pub(super) attention: Part,
    pub(super) ffn: Part,
    /// Slots of the largest streamed shard in the ring.
    pub(super) n_slots: u32,
}

impl Counts {
    /// What two members differ in that no few steps lead over.
    pub(super) fn kind(&self) -> [bool; 4] {
        let Counts { output, attention, ffn, n_slots } = self;
        [*output == Placement::Pinned, attention.streamed > 0, ffn.streamed > 0, *n_slots > 1]
    }
}

/// How many shards of a list are pinned, and of the others streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Part {
    pub(super) pinned: u32,
    pub(super) streamed: u32,
}

/// Rings of these many slots are in the grid.
const RINGS: [u32; 3] = [1, 2, 4];

/// With this many shards or fewer single moves are worth their time even where layers are alike.
const FEW_SHARDS: usize = 20;

impl Part {
    /// So many pinned, or as many as leave the streamed ones in peace. Where all others are streamed they still are.
    fn with_pinned(self, pinned: u32, n: u32) -> Part {
        if self.streamed > 0 && self.pinned + self.streamed == n {
            return Part { pinned, streamed: n - pinned };
        }
        Part { pinned: pinned.min(n - self.streamed), ..self }
    }

    fn with_one_less(self, n: u32) -> Part {
        self.with_pinned(self.pinned.saturating_sub(1), n)
    }

    /// Parts of `n` shards a step of `size` away.
    fn steps(self, size: u32, n: u32) -> [Part; 6] {
        let Part { pinned, streamed } = self;
        let (less, more) = (pinned.saturating_sub(size), pinned + size);
        let steps = [
            Part { pinned: less, streamed },
            Part { pinned: less, streamed: streamed + (pinned - less) },
            Part { pinned: more, streamed },
            Part { pinned: more, streamed: streamed.saturating_sub(size) },
            Part { pinned, streamed: streamed.saturating_sub(size) },
            Part { pinned, streamed: streamed + size },
        ];
        steps.map(|part| {
            let pinned = part.pinned.min(n);
            Part { pinned, streamed: part.streamed.min(n - pinned) }
        })
    }
}

/// The shards of one kind in the order in which they are pinned.
struct List {
    /// Indices of the shards.
    shards: Vec<usize>,
    /// VRAM of the first so many when pinned.
    pinned: Vec<Bytes>,
    slot: Bytes,
    scratch: Bytes,
    /// VRAM that one takes that is placed on the CPU and shared with the GPU: for what stays, and in the ring.
    shared_pinned: Bytes,
    shared_slot: Bytes,
    /// What one shard takes, on average.
    each: Totals,
    alike: bool,
}

/// All layouts of a problem that are considered.
pub(super) struct Lattice<'a> {
    problem: &'a Problem<'a>,
    attention: List,
    ffn: List,
    output: Totals,
    output_slot: Bytes,
    /// The smallest tensor.
    pub(super) least_tensor: Bytes,
    bound: Bound,
}

impl<'a> Lattice<'a> {
    pub(super) fn of(problem: &'a Problem<'a>, prices: &[Price]) -> Lattice<'a> {
        let list = |wanted: fn(Shard) -> bool| {
            let all = problem.shards.iter().enumerate();
            let shards = all.filter(|(_, cost)| wanted(cost.shard)).map(|(i, _)| i).collect();
            List::of(problem, prices, shards)
        };
        let output = prices.last().expect("the last shard is the output");
        let tensors = problem.shards.iter().flat_map(|cost| cost.tensors());
        Lattice {
            problem,
            attention: list(|shard| matches!(shard, Shard::Attention { .. })),
            ffn: list(|shard| matches!(shard, Shard::Ffn { .. })),
            output: Totals::of(output),
            output_slot: output.whole.slot,
            least_tensor: tensors.min().unwrap_or_default(),
            bound: Bound::of(problem),
        }
    }

    /// Whether layers are alike and many, so that counts say all.
    pub(super) fn is_plain(&self) -> bool {
        self.attention.alike && self.ffn.alike && self.problem.shards.len() > FEW_SHARDS
    }

    /// Members to begin with, each with as much FFN pinned as the budget holds, and with none.
    pub(super) fn grid(&self) -> Vec<Counts> {
        let n_attention = self.attention.len();
        let mut grid = Vec::new();
        for output in [Placement::Pinned, Placement::Cpu] {
            let mut quarters: Vec<u32> = (0..=4).map(|k| n_attention * k / 4).collect();
            quarters.push(self.most_attention(output));
            quarters.sort_unstable();
            quarters.dedup();
            for pinned in quarters {
                let rest = n_attention - pinned;
                for streamed in if rest == 0 { vec![0] } else { vec![0, rest] } {
                    self.add_to_grid(output, Part { pinned, streamed }, &mut grid);
                }
            }
        }
        grid
    }

    fn add_to_grid(&self, output: Placement, attention: Part, grid: &mut Vec<Counts>) {
        let n_ffn = self.ffn.len();
        for eighths in [0, 1, 2, 3, 4, 6, 8] {
            let ffn = Part { pinned: 0, streamed: n_ffn * eighths / 8 };
            let streams = Counts { output, attention, ffn, n_slots: 1 };
            let none = self.ring(&streams) == Bytes::ZERO;
            for n_slots in if none { &[0][..] } else { &RINGS[..] } {
                let counts = Counts { output, attention, ffn, n_slots: *n_slots };
                grid.extend(self.filled(counts));
                // Where the GPU is no faster than the CPU, more of it is no better.
                grid.extend(Some(counts).filter(|counts| self.need(counts) <= self.problem.vram));
            }
        }
    }

    /// The most attention that the budget holds, with nothing streamed.
    fn most_attention(&self, output: Placement) -> u32 {
        let counts = |pinned| Counts {
            output,
            attention: Part { pinned, streamed: 0 },
            ffn: Part { pinned: 0, streamed: 0 },
            n_slots: 0,
        };
        let held = |pinned: &u32| self.need(&counts(*pinned)) <= self.problem.vram;
        (0..=self.attention.len()).rev().find(held).unwrap_or(0)
    }

    /// The counts with as much FFN pinned as the budget holds, and with less attention if it does not hold that;
    /// `None` when it does not even hold what is streamed.
    fn filled(&self, mut counts: Counts) -> Option<Counts> {
        counts.ffn = counts.ffn.with_pinned(0, self.ffn.len());
        let room = |counts: &Counts| self.problem.vram.get().checked_sub(self.need(counts).get());
        while room(&counts).is_none() {
            let pinned = counts.attention.pinned.checked_sub(1)?;
            counts.attention = counts.attention.with_pinned(pinned, self.attention.len());
        }
        let left = room(&counts)?;
        let held = |pinned: &Bytes| pinned.get() <= left;
        let most = (self.ffn.pinned.partition_point(held) - 1) as u32;
        counts.ffn = counts.ffn.with_pinned(most, self.ffn.len());
        // Scratch may have grown.
        room(&counts).map(|_| counts)
    }

    pub(super) fn largest_step(&self) -> u32 {
        (self.ffn.len() / 8).next_power_of_two()
    }

    /// Members a step of `size` away that the budget holds: as they are, and with as much FFN pinned as it holds.
    pub(super) fn steps(&self, from: &Counts, size: u32) -> Vec<Counts> {
        let mut steps = Vec::new();
        let attention = from.attention.steps(size, self.attention.len());
        let ffn = from.ffn.steps(size, self.ffn.len());
        for (attention, ffn) in attention.into_iter().zip(ffn) {
            steps.push(Counts { attention, ..*from });
            steps.push(Counts { ffn, ..*from });
            steps.push(Counts { attention, ffn, ..*from });
        }
        for output in [Placement::Cpu, Placement::Pinned, Placement::Streamed] {
            steps.push(Counts { output, ..*from });
        }
        for n_slots in [from.n_slots.saturating_sub(1).max(1), from.n_slots + 1, from.n_slots + 2] {
            steps.push(Counts { n_slots, ..*from });
        }
        let streams = |counts: &Counts| self.ring(counts) > Bytes::ZERO;
        for counts in &mut steps {
            counts.n_slots = counts.n_slots.max(1);
            counts.n_slots = if streams(counts) { counts.n_slots } else { 0 };
        }
        steps.retain(|counts| counts != from);
        let full: Vec<Counts> = steps.iter().filter_map(|counts| self.filled(*counts)).collect();
        let fits = |counts: &Counts| self.need(counts) <= self.problem.vram;
        let less_attention = |counts: &Counts| Counts {
            attention: counts.attention.with_one_less(self.attention.len()),
            ..*counts
        };
        let fewer_layers = |counts: &Counts| Counts {
            ffn: counts.ffn.with_one_less(self.ffn.len()),
            ..less_attention(counts)
        };
        let mut room_made = Vec::new();
        for counts in steps.iter().filter(|counts| !fits(counts)) {
            room_made.extend(self.until_it_fits(*counts, less_attention));
            room_made.extend(self.until_it_fits(*counts, fewer_layers));
        }
        steps.retain(fits);
        steps.extend(full);
        steps.extend(room_made);
        steps
    }

    /// The counts with less and less pinned until the budget holds them; `None` when nothing more can be taken away.
    fn until_it_fits(
        &self,
        mut counts: Counts,
        with_less: impl Fn(&Counts) -> Counts,
    ) -> Option<Counts> {
        while self.need(&counts) > self.problem.vram {
            let less = with_less(&counts);
            if less == counts {
                return None;
            }
            counts = less;
        }
        Some(counts)
    }

    /// Seconds that no member with these counts takes less than.
    pub(super) fn bound(&self, counts: &Counts) -> f64 {
        let left = self.problem.vram.saturating_sub(self.need(counts));
        let mut totals = self.attention.totals(counts.attention);
        totals.add(&self.ffn.totals(counts.ffn));
        totals.add(&self.output.at(counts.output));
        let on_gpu = |part: Part| part.pinned + part.streamed;
        let changes = on_gpu(counts.attention).abs_diff(on_gpu(counts.ffn));
        self.bound.of_totals(&totals, left, changes)
    }

    fn need(&self, counts: &Counts) -> Bytes {
        let output = self.problem.shards.last().expect("the last shard is the output");
        let mut scratch =
            self.attention.scratch_if(counts.attention).max(self.ffn.scratch_if(counts.ffn));
        if counts.output != Placement::Cpu {
            scratch = scratch.max(output.scratch);
        }
        if scratch == Bytes::ZERO {
            return Bytes::ZERO;
        }
        scratch += self.problem.waiting_residuals();
        let pinned = self.attention.pinned[counts.attention.pinned as usize]
            + self.ffn.pinned[counts.ffn.pinned as usize];
        let output = if counts.output == Placement::Pinned { output.weights } else { Bytes::ZERO };
        let shared = self.ffn.shared_pinned * u64::from(self.ffn.on_cpu(counts.ffn));
        self.bound.driver + pinned + shared + output + self.ring(counts) + scratch
    }

    fn ring(&self, counts: &Counts) -> Bytes {
        let mut slot = self.attention.slot_if(counts.attention).max(self.ffn.slot_if(counts.ffn));
        if counts.output == Placement::Streamed {
            slot = slot.max(self.output_slot);
        }
        slot * u64::from(counts.n_slots)
    }

    /// The layout that counts mean, with what is left of the budget put to use. Pinned shards are spread over the layers,
    /// so that copies of those between them hide behind their work; or they are the first of their list, so that there
    /// are few hand-offs.
    /// `None` where the budget does not hold it, as can be where layers differ.
    pub(super) fn layout(&self, counts: &Counts, spread: bool, prices: &[Price]) -> Option<Layout> {
        let mut placements = vec![Placement::Cpu; self.problem.shards.len()];
        self.attention.place(counts.attention, spread, &mut placements);
        self.ffn.place(counts.ffn, spread, &mut placements);
        *placements.last_mut().expect("the last shard is the output") = counts.output;
        let mut layout = Layout { placements, ring: self.ring(counts), resident: Vec::new() };
        let used = vram_use(self.problem, &layout).total();
        let left = Bytes::new(self.problem.vram.get().checked_sub(used.get())?);
        fill(self.problem, prices, &mut layout, left, self.least_tensor);
        Some(layout)
    }
}

/// Puts what is left of the budget to use: for tensors of streamed shards, so that less is copied; where nothing is
/// streamed, for the embedding, so that tokens are handed over instead of activations.
pub(super) fn fill(
    problem: &Problem<'_>,
    prices: &[Price],
    layout: &mut Layout,
    mut left: Bytes,
    least_tensor: Bytes,
) {
    let streamed = layout.placements.contains(&Placement::Streamed);
    if !streamed && layout.placements.get(1) == Some(&Placement::Pinned) {
        let embedding = &problem.shards[0];
        let shared =
            embedding.shared_with_output && layout.placements.last() == Some(&Placement::Pinned);
        if shared || embedding.weights <= left {
            layout.placements[0] = Placement::Pinned;
        }
        return;
    }
    for (i, placement) in layout.placements.iter().enumerate() {
        if left < least_tensor {
            break;
        }
        if *placement != Placement::Streamed || prices[i].chosen.is_some() {
            continue;
        }
        for (tensor, bytes) in problem.shards[i].tensors().enumerate() {
            if bytes <= left {
                left = left.saturating_sub(bytes);
                layout.resident.push(Resident { shard: i, tensor, bytes });
            }
        }
    }
}

impl List {
    fn of(problem: &Problem<'_>, prices: &[Price], mut shards: Vec<usize>) -> List {
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
            each.add(&Totals::of(&prices[i]));
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

    fn len(&self) -> u32 {
        self.shards.len() as u32
    }

    fn on_cpu(&self, part: Part) -> u32 {
        self.len() - part.pinned - part.streamed
    }

    fn slot_if(&self, part: Part) -> Bytes {
        let streamed = if part.streamed > 0 { self.slot } else { Bytes::ZERO };
        let shared = if self.on_cpu(part) > 0 { self.shared_slot } else { Bytes::ZERO };
        streamed.max(shared)
    }

    fn scratch_if(&self, part: Part) -> Bytes {
        let shared = self.on_cpu(part) > 0 && self.shared_pinned + self.shared_slot > Bytes::ZERO;
        if shared || part.streamed + part.pinned > 0 { self.scratch } else { Bytes::ZERO }
    }

    fn totals(&self, part: Part) -> Totals {
        let mut totals = self.each.at(Placement::Cpu);
        totals.scale(self.on_cpu(part).into());
        for (place, n) in [(Placement::Pinned, part.pinned), (Placement::Streamed, part.streamed)] {
            let mut some = self.each.at(place);
            some.scale(n.into());
            totals.add(&some);
        }
        totals
    }

    fn place(&self, part: Part, spread: bool, placements: &mut [Placement]) {
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

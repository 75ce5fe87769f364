//! The layouts that are considered for models of many like layers: all counts of pinned and streamed shards.
//!
//! A member is a few numbers ([`Counts`]); which shards they mean follows from what pinning each saves per byte.

use super::bound::{Bound, Totals};
use super::counts::{Counts, Part};
use super::fill::fill;
use super::list::{List, Order};
use crate::placement::Placement;
use crate::plan::{Layout, vram_use};
use crate::price::Price;
use crate::problem::Problem;
use crate::shard::Shard;
use crate::units::Bytes;

/// Rings of these many slots are in the grid.
const RINGS: [u32; 3] = [1, 2, 4];

/// With this many shards or fewer single moves are worth their time even where layers are alike.
const FEW_SHARDS: usize = 20;

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
        let last = problem.shards.len() - 1;
        let output = &prices[last];
        let tensors = problem.shards.iter().flat_map(|cost| cost.tensors());
        Lattice {
            problem,
            attention: list(|shard| matches!(shard, Shard::Attention { .. })),
            ffn: list(|shard| matches!(shard, Shard::Ffn { .. })),
            output: Totals::of(&problem.shards[last], output),
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
                grid.extend(Some(counts).filter(|counts| self.fits(counts)));
            }
        }
    }

    /// The most attention that the budget holds, with nothing streamed.
    fn most_attention(&self, output: Placement) -> u32 {
        let counts = |pinned| Counts {
            output,
            attention: Part { pinned, streamed: 0 },
            ffn: Part::NONE,
            n_slots: 0,
        };
        let held = |pinned: &u32| self.fits(&counts(*pinned));
        (0..=self.attention.len()).rev().find(held).unwrap_or(0)
    }

    /// The counts with as much FFN pinned as the budget holds, and with less attention if it does not hold that;
    /// `None` when it does not even hold what is streamed.
    pub(super) fn filled(&self, mut counts: Counts) -> Option<Counts> {
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

    /// The number of layers.
    pub(super) fn n_layer(&self) -> u32 {
        self.attention.len()
    }

    pub(super) fn n_ffn(&self) -> u32 {
        self.ffn.len()
    }

    pub(super) fn largest_step(&self) -> u32 {
        (self.ffn.len() / 8).next_power_of_two()
    }

    /// Members a step of `size` away that the budget holds: as they are, and with as much FFN pinned as it holds.
    pub(super) fn steps(&self, from: &Counts, size: u32) -> Vec<Counts> {
        let mut steps = self.single_steps(from, size);
        self.complete(from, &mut steps);
        steps
    }

    /// Members a step of one in attention, FFN and slots away, in all of them at once or in some.
    pub(super) fn combined_steps(&self, from: &Counts) -> Vec<Counts> {
        let attention = from.attention.steps(1, self.attention.len());
        let ffn = from.ffn.steps(1, self.ffn.len());
        let slots = [1, from.n_slots.saturating_sub(1).max(1), from.n_slots, from.n_slots + 1];
        let mut steps = Vec::new();
        for attention in attention.into_iter().chain([from.attention]) {
            for ffn in ffn.into_iter().chain([from.ffn]) {
                steps.extend(slots.map(|n_slots| Counts { attention, ffn, n_slots, ..*from }));
            }
        }
        self.complete(from, &mut steps);
        steps
    }

    fn single_steps(&self, from: &Counts, size: u32) -> Vec<Counts> {
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
        steps
    }

    /// Makes members of counts: with slots where there are streams, and with what the budget holds: as they are, with as
    /// much FFN pinned, or with less of all.
    fn complete(&self, from: &Counts, steps: &mut Vec<Counts>) {
        let streams = |counts: &Counts| self.ring(counts) > Bytes::ZERO;
        for counts in steps.iter_mut() {
            counts.n_slots = counts.n_slots.max(1);
            counts.n_slots = if streams(counts) { counts.n_slots } else { 0 };
        }
        steps.retain(|counts| counts != from);
        let full: Vec<Counts> = steps.iter().filter_map(|counts| self.filled(*counts)).collect();
        let less_attention = |counts: &Counts| Counts {
            attention: counts.attention.with_one_less(self.attention.len()),
            ..*counts
        };
        let fewer_layers = |counts: &Counts| Counts {
            ffn: counts.ffn.with_one_less(self.ffn.len()),
            ..less_attention(counts)
        };
        let mut room_made = Vec::new();
        for counts in steps.iter().filter(|counts| !self.fits(counts)) {
            room_made.extend(self.until_it_fits(*counts, less_attention));
            room_made.extend(self.until_it_fits(*counts, fewer_layers));
        }
        steps.retain(|counts| self.fits(counts));
        steps.extend(full);
        steps.extend(room_made);
    }

    /// The counts with less and less pinned until the budget holds them; `None` when nothing more can be taken away.
    fn until_it_fits(
        &self,
        mut counts: Counts,
        with_less: impl Fn(&Counts) -> Counts,
    ) -> Option<Counts> {
        while !self.fits(&counts) {
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
        self.bound.of_totals(&totals, left, changes, self.alone_in_ring(counts, left))
    }

    /// Seconds of computing on the GPU beside which nothing is copied: that of streamed shards of one kind that fill the
    /// ring one at a time.
    fn alone_in_ring(&self, counts: &Counts, left: Bytes) -> f64 {
        let (list, n) = match (counts.attention.streamed, counts.ffn.streamed) {
            (n, 0) => (&self.attention, n),
            (0, n) => (&self.ffn, n),
            _ => return 0.0,
        };
        if counts.output == Placement::Streamed || self.ring(counts) >= list.slot * 2 {
            return 0.0;
        }
        let mut streamed = list.each.at(Placement::Streamed);
        streamed.scale(n.into());
        streamed.alone_in_ring(left)
    }

    /// Whether the budget holds a member.
    pub(super) fn fits(&self, counts: &Counts) -> bool {
        self.need(counts) <= self.problem.vram
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

    pub(super) fn ring(&self, counts: &Counts) -> Bytes {
        let mut slot = self.attention.slot_if(counts.attention).max(self.ffn.slot_if(counts.ffn));
        if counts.output == Placement::Streamed {
            slot = slot.max(self.output_slot);
        }
        slot * u64::from(counts.n_slots)
    }

    /// How the shards of a member may be ordered: with the pinned ones first, so that there are few hand-offs, or spread
    /// over the layers, so that copies of those between them hide behind their work; and in turns, if there is time for
    /// `more`.
    pub(super) fn orders(&self, counts: &Counts, more: bool) -> &'static [Order] {
        let all_three =
            |list: &List, part: Part| part.pinned > 0 && part.streamed > 0 && list.on_cpu(part) > 0;
        if counts.n_slots == 0 {
            &[Order::First]
        } else if more
            && (all_three(&self.attention, counts.attention) || all_three(&self.ffn, counts.ffn))
        {
            &[Order::First, Order::Spread, Order::Turns]
        } else {
            &[Order::First, Order::Spread]
        }
    }

    /// The layout that counts mean, with what is left of the budget put to use.
    /// `None` where the budget does not hold it, as can be where layers differ.
    pub(super) fn layout(&self, counts: &Counts, order: Order, prices: &[Price]) -> Option<Layout> {
        let mut placements = vec![Placement::Cpu; self.problem.shards.len()];
        self.attention.place(counts.attention, order, &mut placements);
        self.ffn.place(counts.ffn, order, &mut placements);
        *placements.last_mut().expect("the last shard is the output") = counts.output;
        let mut layout = Layout { placements, ring: self.ring(counts), resident: Vec::new() };
        let used = vram_use(self.problem, &layout).total();
        let left = Bytes::new(self.problem.vram.get().checked_sub(used.get())?);
        fill(self.problem, prices, &mut layout, left, self.least_tensor);
        Some(layout)
    }
}

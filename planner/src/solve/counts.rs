//! Layouts by counts: how much of attention and FFN is pinned and streamed, and which shards that means.

use crate::placement::Placement;
use crate::plan::Layout;
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
    /// Pinned shards are spread over the layers, so that copies of those between them hide behind their work; or they
    /// are the first of their list, so that there are few hand-offs.
    pub(super) spread: bool,
    /// What is left of the budget is filled with FFN, or with attention.
    pub(super) fill: Fill,
}

/// How many shards of a list are pinned, and of the others streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Part {
    pub(super) pinned: u32,
    pub(super) streamed: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Fill {
    Ffn,
    Attention,
    /// As counted.
    Nothing,
}

/// The shards of one kind in the order in which they are pinned.
struct List {
    /// Indices of the shards.
    shards: Vec<usize>,
    /// VRAM of the first so many when pinned.
    pinned: Vec<Bytes>,
    slot: Bytes,
    scratch: Bytes,
}

/// All shards by kind.
pub(super) struct Lists {
    attention: List,
    ffn: List,
    output: usize,
    output_bytes: Bytes,
    output_scratch: Bytes,
    driver: Bytes,
    plain: bool,
}

/// With this many shards or fewer single moves are worth their time even where layers are alike.
const FEW_SHARDS: usize = 20;

impl Lists {
    pub(super) fn of(problem: &Problem<'_>, prices: &[Price]) -> Lists {
        let kind = |wanted: fn(Shard) -> bool| {
            let all = problem.shards.iter().enumerate();
            let shards = all.filter(|(_, cost)| wanted(cost.shard)).map(|(i, _)| i).collect();
            List::of(problem, prices, shards)
        };
        let attention = kind(|shard| matches!(shard, Shard::Attention { .. }));
        let ffn = kind(|shard| matches!(shard, Shard::Ffn { .. }));
        let output = problem.shards.len() - 1;
        let alike = |list: &List| {
            let mut pairs = list.shards.windows(2);
            pairs.all(|pair| problem.shards[pair[0]].costs_the_same(&problem.shards[pair[1]]))
        };
        let plain = alike(&attention) && alike(&ffn) && problem.shards.len() > FEW_SHARDS;
        Lists {
            attention,
            ffn,
            output,
            output_bytes: problem.shards[output].weights,
            output_scratch: problem.shards[output].scratch,
            driver: problem.machine.gpu.as_ref().map_or(Bytes::ZERO, |gpu| gpu.driver),
            plain,
        }
    }

    /// Whether layers are alike and many, so that counts say all.
    pub(super) fn are_plain(&self) -> bool {
        self.plain
    }

    /// Counts to begin with.
    pub(super) fn grid(&self) -> Vec<Counts> {
        let (n_attention, n_ffn) = (self.attention.len(), self.ffn.len());
        let mut grid = Vec::new();
        for output in [Placement::Pinned, Placement::Cpu] {
            for fifth in (0..=4).rev() {
                let pinned = n_attention * fifth / 4;
                for streamed in [0, n_attention - pinned] {
                    for eighths in [0, 1, 2, 4, 8] {
                        for spread in [false, true] {
                            let attention = Part { pinned, streamed };
                            let ffn = Part { pinned: 0, streamed: n_ffn * eighths / 8 };
                            let some_streamed = streamed + ffn.streamed > 0;
                            let n_slots = if some_streamed { 3 } else { 0 };
                            let fill = if fifth == 4 { Fill::Ffn } else { Fill::Nothing };
                            let counts = Counts { output, attention, ffn, n_slots, spread, fill };
                            grid.push(counts);
                            if fifth < 4 {
                                grid.push(Counts { fill: Fill::Ffn, ..counts });
                                grid.push(Counts { fill: Fill::Attention, ..counts });
                            }
                        }
                    }
                }
            }
        }
        grid
    }

    pub(super) fn largest_step(&self) -> u32 {
        (self.ffn.len() / 8).next_power_of_two().max(1)
    }

    /// Counts one step of `size` away.
    pub(super) fn steps(&self, from: Counts, size: u32) -> Vec<Counts> {
        let mut steps = Vec::new();
        for fill in [Fill::Ffn, Fill::Attention, Fill::Nothing] {
            let from = Counts { fill, ..from };
            steps.push(from);
            for output in [Placement::Cpu, Placement::Pinned, Placement::Streamed] {
                steps.push(Counts { output, ..from });
            }
            steps.push(Counts { spread: !from.spread, ..from });
            for n_slots in [from.n_slots.saturating_sub(1), from.n_slots + 1, from.n_slots + 3] {
                steps.push(Counts { n_slots, ..from });
            }
            for attention in from.attention.steps(size, self.attention.len()) {
                steps.push(Counts { attention, ..from });
            }
            for ffn in from.ffn.steps(size, self.ffn.len()) {
                steps.push(Counts { ffn, ..from });
            }
        }
        steps
    }

    /// The counts with what is left of the budget filled; `None` when they do not fit as they are.
    pub(super) fn filled(&self, mut counts: Counts, vram: Bytes) -> Option<Counts> {
        let some_streamed = self.slot(&counts) > Bytes::ZERO;
        counts.n_slots = if some_streamed { counts.n_slots.max(1) } else { 0 };
        let left = |counts: &Counts| {
            let need = self.need(counts);
            (need <= vram).then(|| vram.saturating_sub(need))
        };
        let room = left(&counts)?;
        match counts.fill {
            Fill::Nothing => {}
            Fill::Ffn => counts.ffn = self.ffn.filled(counts.ffn, room),
            Fill::Attention => counts.attention = self.attention.filled(counts.attention, room),
        }
        // Scratch may grow by what was filled in.
        left(&counts).map(|_| Counts { fill: Fill::Nothing, ..counts })
    }

    fn need(&self, counts: &Counts) -> Bytes {
        let pinned = self.attention.pinned[counts.attention.pinned as usize]
            + self.ffn.pinned[counts.ffn.pinned as usize];
        let mut scratch =
            self.attention.scratch_if(counts.attention).max(self.ffn.scratch_if(counts.ffn));
        if counts.output != Placement::Cpu {
            scratch = scratch.max(self.output_scratch);
        }
        let output =
            if counts.output == Placement::Pinned { self.output_bytes } else { Bytes::ZERO };
        self.driver + pinned + output + self.slot(counts) * u64::from(counts.n_slots) + scratch
    }

    /// The largest slot that a streamed shard needs.
    fn slot(&self, counts: &Counts) -> Bytes {
        let layers = self.attention.slot_if(counts.attention).max(self.ffn.slot_if(counts.ffn));
        if counts.output == Placement::Streamed { layers.max(self.output_bytes) } else { layers }
    }

    /// The layout that counts mean.
    pub(super) fn layout(&self, counts: Counts, n_shards: usize) -> Layout {
        let mut placements = vec![Placement::Cpu; n_shards];
        self.attention.place(counts.attention, counts.spread, &mut placements);
        self.ffn.place(counts.ffn, counts.spread, &mut placements);
        placements[self.output] = counts.output;
        let ring = self.slot(&counts) * u64::from(counts.n_slots);
        Layout { placements, ring, resident: Vec::new() }
    }
}

impl Part {
    /// Parts of `n` shards one step away.
    fn steps(self, size: u32, n: u32) -> impl Iterator<Item = Part> {
        let Part { pinned, streamed } = self;
        let (less, more) = (pinned.saturating_sub(size), pinned + size);
        [
            Part { pinned: less, streamed },
            Part { pinned: less, streamed: streamed + (pinned - less) },
            Part { pinned: more, streamed },
            Part { pinned: more, streamed: streamed.saturating_sub(size) },
            Part { pinned, streamed: streamed.saturating_sub(size) },
            Part { pinned, streamed: streamed + size },
            Part { pinned, streamed: n.saturating_sub(pinned) },
            Part { pinned, streamed: 0 },
        ]
        .into_iter()
        .filter(move |part| part.pinned <= n)
        .map(move |part| Part { streamed: part.streamed.min(n - part.pinned), ..part })
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
        shards.sort_by(|&a, &b| saved_per_byte(b).total_cmp(&saved_per_byte(a)).then(a.cmp(&b)));
        let mut pinned = vec![Bytes::ZERO];
        for &i in &shards {
            pinned.push(*pinned.last().expect("it begins with zero") + bytes(i));
        }
        let slot = shards.iter().map(|&i| prices[i].streaming().slot).max().unwrap_or_default();
        let scratch = shards.iter().map(|&i| problem.shards[i].scratch).max().unwrap_or_default();
        List { shards, pinned, slot, scratch }
    }

    fn len(&self) -> u32 {
        self.shards.len() as u32
    }

    fn slot_if(&self, part: Part) -> Bytes {
        if part.streamed > 0 { self.slot } else { Bytes::ZERO }
    }

    fn scratch_if(&self, part: Part) -> Bytes {
        if part.streamed + part.pinned > 0 { self.scratch } else { Bytes::ZERO }
    }

    /// The part with as many more shards pinned as `room` holds; those left over stay as they are.
    fn filled(&self, part: Part, room: Bytes) -> Part {
        let limit = self.pinned[part.pinned as usize] + room;
        let pinned = (self.pinned.partition_point(|&bytes| bytes <= limit) - 1) as u32;
        // Where all others were streamed, all others still are; else as many as before.
        let streamed = part.streamed.min(self.len() - pinned);
        Part { pinned, streamed }
    }

    fn place(&self, part: Part, spread: bool, placements: &mut [Placement]) {
        let n = self.shards.len();
        let pinned = part.pinned as usize;
        let is_pinned = |k: usize| if spread { evenly(k, pinned, n) } else { k < pinned };
        // Spread over layers, not over the order of pinning.
        let mut by_layer: Vec<usize> = self.shards.clone();
        if spread {
            by_layer.sort_unstable();
        }
        let mut rest: Vec<usize> = Vec::with_capacity(n - pinned);
        for (k, &i) in by_layer.iter().enumerate() {
            if is_pinned(k) {
                placements[i] = Placement::Pinned;
            } else {
                rest.push(i);
            }
        }
        rest.sort_unstable();
        let streamed = part.streamed as usize;
        for (k, &i) in rest.iter().enumerate() {
            if evenly(k, streamed, rest.len()) {
                placements[i] = Placement::Streamed;
            }
        }
    }
}

/// Whether place `k` of `n` is one of `some` spread evenly.
fn evenly(k: usize, some: usize, n: usize) -> bool {
    k * some / n != (k + 1) * some / n
}

//! Layouts near another one: what that has in VRAM stays there as far as there is room, so that changing between the two
//! copies little.

use crate::placement::Placement;
use crate::plan::{Layout, Resident};
use crate::price::Price;
use crate::problem::Problem;
use crate::shard::Shard;
use crate::strategy::Draft;
use crate::units::Bytes;

/// Rings of so many slots of the largest streamed shard are tried.
const RINGS: [u64; 2] = [1, 2];

/// What a layout has in VRAM from pass to pass.
#[derive(Debug, Clone, Copy)]
enum Kept {
    Shard(usize),
    Tensor(Resident),
}

/// Which of the shards that are not pinned are streamed; the others are the CPU's.
type Streams = fn(Shard) -> bool;

const STREAMS: [Streams; 3] = [
    |shard| matches!(shard, Shard::Attention { .. } | Shard::Ffn { .. }),
    |shard| matches!(shard, Shard::Ffn { .. }),
    |shard| matches!(shard, Shard::Attention { .. }),
];

/// `base`, if it fits, and layouts that keep as much of it in VRAM as fits beside what they stream.
pub(crate) fn near(problem: &Problem<'_>, prices: &[Price], base: &Layout) -> Vec<Layout> {
    let draft = Draft { problem, prices };
    let mut layouts = vec![base.clone()];
    for last_layers_first in [true, false] {
        let order = keeping_order(problem, base, last_layers_first);
        for (streams, n_slots) in STREAMS.iter().flat_map(|s| RINGS.map(|n_slots| (s, n_slots))) {
            let keep = |n: usize| keep(&draft, &order[..n], *streams, n_slots);
            layouts.push(keep(most(order.len(), |n| draft.fits(&keep(n)))));
        }
    }
    layouts.retain(|layout| draft.fits(layout));
    layouts
}

/// The most of `0..=n` for which something holds that holds for all less, or 0.
fn most(n: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut most, mut too_many) = (0, n + 1);
    while too_many - most > 1 {
        let middle = most + (too_many - most) / 2;
        *(if holds(middle) { &mut most } else { &mut too_many }) = middle;
    }
    most
}

/// What `base` has in VRAM, in the order in which it stays there when room gets scarce: what is needed only for a
/// prompt's last token leaves first, then the last layers, or their FFN before any attention.
fn keeping_order(problem: &Problem<'_>, base: &Layout, last_layers_first: bool) -> Vec<Kept> {
    let pinned = |(i, place): (usize, &Placement)| {
        (*place == Placement::Pinned).then_some((i, Kept::Shard(i)))
    };
    let pinned = base.placements.iter().enumerate().filter_map(pinned);
    let tensors = base.resident.iter().map(|tensor| (tensor.shard, Kept::Tensor(*tensor)));
    let mut order: Vec<(usize, Kept)> = pinned.chain(tensors).collect();
    order.sort_by_key(|(i, _)| {
        let shard = problem.shards[*i].shard;
        let is_end = matches!(shard, Shard::Embedding | Shard::Output);
        (is_end, !last_layers_first && matches!(shard, Shard::Ffn { .. }), *i)
    });
    order.into_iter().map(|(_, kept)| kept).collect()
}

/// The layout that keeps these things and streams of the rest what `streams` says.
fn keep(draft: &Draft<'_>, kept: &[Kept], streams: Streams, n_slots: u64) -> Layout {
    let rest = |shard| if streams(shard) { Placement::Streamed } else { Placement::Cpu };
    let mut placements: Vec<Placement> =
        draft.problem.shards.iter().map(|cost| rest(cost.shard)).collect();
    let mut resident = Vec::new();
    for kept in kept {
        match kept {
            Kept::Shard(i) => placements[*i] = Placement::Pinned,
            Kept::Tensor(tensor) => resident.push(*tensor),
        }
    }
    resident.retain(|tensor| placements[tensor.shard] == Placement::Streamed);
    let ring = draft.largest_slot(&placements) * n_slots;
    Layout { placements, ring, resident }
}

/// Bytes that a change from one of two layouts to the other and back copies.
pub(crate) fn changed(problem: &Problem<'_>, a: &Layout, b: &Layout) -> Bytes {
    let pinned = |layout: &Layout, i: usize| layout.placements[i] == Placement::Pinned;
    let shards = problem.shards.iter().enumerate();
    let shards = shards.filter(|(i, _)| pinned(a, *i) != pinned(b, *i));
    let shards: Bytes = shards.map(|(_, cost)| cost.weights).sum();
    let tensors = |a: &Layout, b: &Layout| -> Bytes {
        let missing = a.resident.iter().filter(|tensor| !b.resident.contains(tensor));
        missing.map(|tensor| tensor.bytes).sum()
    };
    shards + tensors(a, b) + tensors(b, a)
}

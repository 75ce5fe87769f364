//! What is drawn at random, in terms that fit any model.

use planner::Placement;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::testing::Call;

/// More shards than any model here has.
const MOST_SHARDS: usize = 20;

/// Plans for passes of 1, 4 and 16 tokens; the last is always there.
#[derive(Debug, Clone)]
pub(super) struct DrawnPlans {
    pub(super) small: [Option<DrawnPlan>; 2],
    pub(super) largest: DrawnPlan,
    /// Ubatches that the last takes in a pass.
    pub(super) n_ubatches: u32,
}

#[derive(Debug, Clone)]
pub(super) struct DrawnPlan {
    /// By place in running order.
    pub(super) placements: Vec<Placement>,
    /// 0 for the least ring that does, 1 for room for everything.
    pub(super) ring: f64,
    /// Which tensors of a streamed shard stay, by bits.
    pub(super) resident: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(super) struct DrawnPass {
    /// Whether a sequence is cut first: which, and what share of it is left.
    pub(super) cut: Option<(u32, f64)>,
    /// Tokens of some sequences, in turns.
    pub(super) seqs: Vec<u32>,
    /// Which want their logits, by bits; of several ubatches only those of the last one.
    pub(super) wants: u16,
    /// Ubatches that the tokens are cut into, if there are as many.
    pub(super) n_ubatches: usize,
    /// Ubatches like them that are said to follow.
    pub(super) n_after: u32,
    /// Whether the pass is first tried and cancelled at once.
    pub(super) is_cancelled: bool,
}

#[derive(Debug, Clone)]
pub(super) struct DrawnFault {
    pub(super) on_gpu: bool,
    pub(super) call: Call,
    /// Calls before the one that fails.
    pub(super) n: usize,
    /// Whether a pass that failed is not run again.
    pub(super) gives_up: bool,
}

fn plan() -> impl Strategy<Value = DrawnPlan> {
    let weights = prop_oneof![Just([1, 1, 1]), Just([1, 1, 6]), Just([1, 6, 1]), Just([0, 1, 1])];
    let placements = weights.prop_flat_map(|[cpu, pinned, streamed]| {
        let one = prop_oneof![
            cpu => Just(Placement::Cpu),
            pinned => Just(Placement::Pinned),
            streamed => Just(Placement::Streamed),
        ];
        vec(one, MOST_SHARDS)
    });
    let ring = prop_oneof![2 => Just(0.0), 3 => 0.0..1.0, 1 => Just(1.0)];
    let resident = prop_oneof![vec(Just(0u8), MOST_SHARDS), vec(any::<u8>(), MOST_SHARDS)];
    (placements, ring, resident).prop_map(|(placements, ring, resident)| DrawnPlan {
        placements,
        ring,
        resident,
    })
}

pub(super) fn plans() -> impl Strategy<Value = DrawnPlans> {
    let small = [prop::option::of(plan()), prop::option::of(plan())];
    let n_ubatches = prop_oneof![Just(1), 2..4u32];
    (small, plan(), n_ubatches).prop_map(|(small, largest, n_ubatches)| DrawnPlans {
        small,
        largest,
        n_ubatches,
    })
}

pub(super) fn passes() -> impl Strategy<Value = Vec<DrawnPass>> {
    let n_tokens = prop_oneof![3 => Just(1usize), 2 => 2..5usize, 2 => 5..17usize];
    let seqs = n_tokens.prop_flat_map(|n| prop_oneof![vec(Just(0u32), n), vec(0..3u32, n)]);
    let cut = prop::option::weighted(0.2, (0..3u32, 0.0..1.0));
    let wants = prop_oneof![1 => Just(0), 3 => any::<u16>()];
    let is_cancelled = prop::bool::weighted(0.1);
    let n_ubatches = prop_oneof![2 => Just(1), 1 => 2..6usize];
    let pass = (cut, seqs, wants, n_ubatches, 0..2u32, is_cancelled);
    let pass = pass.prop_map(|(cut, seqs, wants, n_ubatches, n_after, is_cancelled)| DrawnPass {
        cut,
        seqs,
        wants,
        n_ubatches,
        n_after,
        is_cancelled,
    });
    vec(pass, 1..10)
}

pub(super) fn faults() -> impl Strategy<Value = Vec<DrawnFault>> {
    let call = prop::sample::select(&Call::ALL[1..]);
    let n = prop_oneof![0..4usize, 0..40usize];
    let fault = (prop::bool::weighted(0.8), call, n, any::<bool>());
    let fault =
        fault.prop_map(|(on_gpu, call, n, gives_up)| DrawnFault { on_gpu, call, n, gives_up });
    vec(fault, 10)
}

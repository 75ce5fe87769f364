//! What is left of a budget is put to use.

use crate::placement::Placement;
use crate::plan::{Layout, Resident};
use crate::price::Price;
use crate::problem::Problem;
use crate::units::Bytes;

/// Puts what is left of the budget to use: for tensors of streamed shards, so that less is copied; where nothing is
/// streamed, for the embedding where the GPU is faster at it, so that tokens are handed over instead of activations.
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
        if prices[0].gpu <= prices[0].cpu && (shared || embedding.weights <= left) {
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

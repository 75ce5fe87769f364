//! A layout by what its shards are.

use crate::placement::Placement;
use crate::plan::Layout;
use crate::shard::Shard;

/// Placements in the order of layers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(super) struct Shape {
    pub(super) embedding: Placement,
    pub(super) attention: Vec<Placement>,
    pub(super) ffn: Vec<Placement>,
    pub(super) output: Placement,
}

impl Shape {
    pub(super) fn of(layout: &Layout) -> Shape {
        let n_layer = n_layer(layout);
        let mut shape = Shape {
            embedding: Placement::Cpu,
            attention: Vec::with_capacity(n_layer as usize),
            ffn: Vec::with_capacity(n_layer as usize),
            output: Placement::Cpu,
        };
        for (shard, &placement) in Shard::all(n_layer).into_iter().zip(&layout.placements) {
            match shard {
                Shard::Embedding => shape.embedding = placement,
                Shard::Attention { .. } => shape.attention.push(placement),
                Shard::Ffn { .. } => shape.ffn.push(placement),
                Shard::Output => shape.output = placement,
            }
        }
        shape
    }
}

/// Layers of the model that a layout is for: two shards each, besides embedding and output.
pub(super) fn n_layer(layout: &Layout) -> u32 {
    let n_shards = u32::try_from(layout.placements.len()).expect("models have few shards");
    n_shards.saturating_sub(2) / 2
}

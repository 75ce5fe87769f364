//! Rotation by position.

use engine_core::op::{Rope, RopePairs};

use super::task::{Bench, cut_rows};
use crate::table::KernelTable;
use crate::threads::{Conflict, Tiles};

/// Axes of a position.
const AXES: usize = 3;

pub(crate) struct Rotation<'m> {
    x: Tiles<'m, f32>,
    cos: Vec<f32>,
    sin: Vec<f32>,
    n_pairs: usize,
    head_dim: usize,
    pairs: RopePairs,
}

impl<'m> Rotation<'m> {
    pub(super) fn prepare(op: &Rope, bench: &Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        let head_dim = op.head_dim as usize;
        assert!(op.x.columns().is_multiple_of(op.head_dim), "rows of whole heads");
        assert_eq!(op.positions.shape, [op.x.rows(), AXES as u32], "a position for each token");
        assert!(op.inv_freq.rows() as usize <= AXES, "no more axes than a position has");
        let positions = bench.arena.i32s(&op.positions)?;
        let inv_freq = bench.arena.f32s(&op.inv_freq)?;
        let x = bench.arena.f32s_mut(&op.x)?;
        let n_pairs = op.inv_freq.columns() as usize;
        let (cos, sin) = angles(positions, inv_freq, n_pairs)
            .map(|angle| (op.magnitude * angle.cos(), op.magnitude * angle.sin()))
            .unzip();
        let x = cut_rows(x, bench.crew.size());
        Ok(Rotation { x, cos, sin, n_pairs, head_dim, pairs: op.pairs })
    }

    pub(super) fn work(&self, kernels: KernelTable) {
        while let Some(mut tile) = self.x.take() {
            for token in tile.rows() {
                let pairs = token * self.n_pairs..(token + 1) * self.n_pairs;
                let (cos, sin) = (&self.cos[pairs.clone()], &self.sin[pairs]);
                for head in tile.row(token).chunks_exact_mut(self.head_dim) {
                    kernels.rotate(head, cos, sin, self.pairs);
                }
            }
        }
    }
}

/// The angle of every pair of every token.
fn angles(positions: &[i32], inv_freq: &[f32], n_pairs: usize) -> impl Iterator<Item = f32> {
    positions.chunks_exact(AXES).flat_map(move |position| {
        (0..n_pairs).map(move |pair| {
            let turns = position.iter().zip(inv_freq.chunks_exact(n_pairs));
            turns.map(|(&position, inv_freq)| position as f32 * inv_freq[pair]).sum()
        })
    })
}

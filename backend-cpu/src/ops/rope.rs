//! Rotation by position.

use engine_core::op::{Rope, RopePairs};

use super::task::{Bench, cut_rows};
use crate::table::KernelTable;
use crate::threads::{Conflict, Tiles};

/// Axes of a position.
const AXES: usize = 3;

pub(crate) struct Rotation<'m> {
    x: Tiles<'m, f32>,
    /// `[n_tokens, n_rot]`: what each value is multiplied by, and what the other value of its pair.
    cos: Vec<f32>,
    sin: Vec<f32>,
    n_rot: usize,
    head_dim: usize,
    pairs: RopePairs,
}

impl<'m> Rotation<'m> {
    pub(super) fn prepare(op: &Rope, bench: &Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        let head_dim = op.head_dim as usize;
        let n_rot = 2 * op.inv_freq.columns() as usize;
        assert!(op.x.columns().is_multiple_of(op.head_dim), "rows of whole heads");
        assert!(n_rot <= head_dim, "no more pairs than a head has");
        assert_eq!(op.positions.shape, [op.x.rows(), AXES as u32], "a position for each token");
        assert!(op.inv_freq.rows() as usize <= AXES, "no more axes than a position has");
        let positions = bench.arena.i32s(&op.positions)?;
        let inv_freq = bench.arena.f32s(&op.inv_freq)?;
        let x = cut_rows(bench.arena.f32s_mut(&op.x)?, bench.crew.size());
        let [mut cos, mut sin] = [0, 1].map(|_| vec![0.0; op.x.rows() as usize * n_rot]);
        for (token, position) in positions.chunks_exact(AXES).enumerate() {
            for pair in 0..n_rot / 2 {
                let (s, c) = angle(position, inv_freq, n_rot / 2, pair).sin_cos();
                let [first, second] = values_of(pair, n_rot, op.pairs).map(|i| token * n_rot + i);
                cos[first] = op.magnitude * c;
                cos[second] = op.magnitude * c;
                sin[first] = -op.magnitude * s;
                sin[second] = op.magnitude * s;
            }
        }
        Ok(Rotation { x, cos, sin, n_rot, head_dim, pairs: op.pairs })
    }

    pub(super) fn work(&self, kernels: KernelTable) {
        while let Some(mut tile) = self.x.take() {
            for token in tile.rows() {
                let factors = token * self.n_rot..(token + 1) * self.n_rot;
                let (cos, sin) = (&self.cos[factors.clone()], &self.sin[factors]);
                for head in tile.row(token).chunks_exact_mut(self.head_dim) {
                    kernels.rotate(head, cos, sin, self.pairs);
                }
            }
        }
    }
}

/// The angle of a pair, in single precision as the reference computes it.
fn angle(position: &[i32], inv_freq: &[f32], n_pairs: usize, pair: usize) -> f32 {
    let turns = position.iter().zip(inv_freq.chunks_exact(n_pairs));
    turns.map(|(&position, inv_freq)| position as f32 * inv_freq[pair]).sum()
}

/// The two values of a pair.
fn values_of(pair: usize, n_rot: usize, pairs: RopePairs) -> [usize; 2] {
    match pairs {
        RopePairs::Adjacent => [2 * pair, 2 * pair + 1],
        RopePairs::Halves => [pair, pair + n_rot / 2],
    }
}

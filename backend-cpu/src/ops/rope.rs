//! Rotation by position.

use engine_core::op::{Rope, RopePairs, View};

use super::cut::cut_rows;
use super::kept::{Kept, KeptId};
use super::task::Bench;
use crate::table::KernelTable;
use crate::threads::{Conflict, Crew, MatrixMut, Tiles};

/// Axes of a position.
const AXES: usize = 3;

/// For each token `[2, n_rot]` factors: what each value of a head is multiplied by, then what the other value of its pair
/// is multiplied by.
pub(super) type Angles = Kept<Key, Vec<f32>>;

/// What factors are computed from.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Key {
    positions: View,
    inv_freq: View,
    pairs: RopePairs,
    magnitude: f32,
}

impl Key {
    pub(super) fn views(&self) -> [View; 2] {
        [self.positions, self.inv_freq]
    }
}

pub(crate) struct Rotation<'m> {
    x: Tiles<'m, f32>,
    factors: KeptId,
    n_rot: usize,
    head_dim: usize,
    pairs: RopePairs,
}

impl<'m> Rotation<'m> {
    pub(super) fn prepare(op: &Rope, bench: &mut Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        let Rope { positions, inv_freq, pairs, magnitude, .. } = *op;
        let head_dim = op.head_dim as usize;
        let n_rot = 2 * inv_freq.columns() as usize;
        assert!(op.x.columns().is_multiple_of(op.head_dim), "rows of whole heads");
        assert!(n_rot <= head_dim, "no more pairs than a head has");
        assert_eq!(positions.shape, [op.x.rows(), AXES as u32], "a position for each token");
        assert!(inv_freq.rows() as usize <= AXES, "no more axes than a position has");
        let x = cut_rows(bench.arena.f32s_mut(&op.x)?, bench.crew.size());
        let values = (bench.arena.i32s(&positions)?, bench.arena.f32s(&inv_freq)?);
        let key = Key { positions, inv_freq, pairs, magnitude };
        let compute = |factors: &mut Vec<f32>| compute(&key, values, factors, bench.crew);
        let factors = bench.shared.angles.entry(key, compute);
        Ok(Rotation { x, factors, n_rot, head_dim, pairs })
    }

    pub(super) fn work(&self, kernels: KernelTable, angles: &Angles) {
        let factors = angles.get(self.factors);
        while let Some(mut tile) = self.x.take() {
            for token in tile.rows() {
                let row = &factors[token * 2 * self.n_rot..][..2 * self.n_rot];
                let (cos, sin) = row.split_at(self.n_rot);
                for head in tile.row(token).chunks_exact_mut(self.head_dim) {
                    kernels.rotate(head, cos, sin, self.pairs);
                }
            }
        }
    }
}

/// Tokens whose factors a thread computes at a time.
const TILE_TOKENS: usize = 16;

fn compute(
    key: &Key,
    (positions, inv_freq): (&[i32], &[f32]),
    factors: &mut Vec<f32>,
    crew: &mut Crew<'_>,
) {
    let n_pairs = key.inv_freq.columns() as usize;
    let n_rot = 2 * n_pairs;
    let n_tokens = positions.len() / AXES;
    factors.resize(n_tokens * 2 * n_rot, 0.0);
    let tiles = MatrixMut::new(factors, 2 * n_rot).cut(TILE_TOKENS, 2 * n_rot);
    // About 20 ns for a sine and a cosine.
    crew.run(20.0 * (n_tokens * n_pairs) as f64, &|_| {
        while let Some(mut tile) = tiles.take() {
            for token in tile.rows() {
                let position = &positions[token * AXES..][..AXES];
                let (cos, sin) = tile.row(token).split_at_mut(n_rot);
                for pair in 0..n_pairs {
                    let (s, c) = angle(position, inv_freq, n_pairs, pair).sin_cos();
                    let [first, second] = values_of(pair, n_rot, key.pairs);
                    [cos[first], cos[second]] = [c * key.magnitude; 2];
                    [sin[first], sin[second]] = [-s * key.magnitude, s * key.magnitude];
                }
            }
        }
    });
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

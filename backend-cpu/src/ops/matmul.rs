//! Products with a weight matrix.

use engine_core::op::{MatMul, View};

use super::cut::cut_columns;
use super::kept::{Kept, KeptId};
use super::task::Bench;
use crate::kernels::activations::{Activations, BLOCK, Form, Q8Block, Rows};
use crate::kernels::args::{TokenRows, WeightRows};
use crate::table::KernelTable;
use crate::threads::{Conflict, Crew, MatrixMut, Tiles};

/// Activations rounded to bytes.
pub(super) type Quantised = Kept<View, Vec<Q8Block>>;

pub(crate) struct Product<'m> {
    x: Input<'m>,
    w: WeightRows<'m>,
    n_tokens: usize,
    y: Tiles<'m, f32>,
}

impl<'m> Product<'m> {
    pub(super) fn prepare(op: &MatMul, bench: &mut Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        assert_eq!(
            op.y.shape,
            [op.x.rows(), op.w.rows()],
            "a row for each token, a column for each weight row"
        );
        let w = weights(&op.w, bench)?;
        let y = cut_columns(bench.arena.f32s_mut(&op.y)?, bench.crew.size());
        let x = Input::prepare(&op.x, w, bench)?;
        Ok(Product { x, w, n_tokens: op.x.rows() as usize, y })
    }

    pub(super) fn work(&self, kernels: KernelTable, quantised: &Quantised) {
        let x = self.x.activations(self.w.k(), quantised);
        while let Some(mut tile) = self.y.take() {
            let w = self.w.rows(tile.columns());
            kernels.matmul(w, x, TokenRows::First(self.n_tokens), &mut tile.columns_mut());
        }
    }
}

/// The activations of a product.
pub(super) enum Input<'m> {
    F32(&'m [f32]),
    Q8(KeptId),
}

impl<'m> Input<'m> {
    /// Activations `view` in the form that `w` multiplies with.
    ///
    /// # Panics
    /// If rows of the two differ in length or there is no arithmetic for the weights.
    pub(super) fn prepare(
        view: &View,
        w: WeightRows<'m>,
        bench: &mut Bench<'m, '_, '_>,
    ) -> Result<Self, Conflict> {
        assert_eq!(view.columns() as usize, w.k(), "rows of activations and weights are alike");
        let x = bench.arena.f32s(view)?;
        Ok(match Form::of(w.dtype()) {
            Some(Form::F32) => Input::F32(x),
            Some(Form::Q8) => {
                let Bench { kernels, ref mut crew, ref mut shared, .. } = *bench;
                let round = |blocks: &mut Vec<_>| quantise(x, blocks, kernels, crew);
                Input::Q8(shared.quantised.entry(*view, round))
            }
            None => panic!("there is no arithmetic for {}", w.dtype()),
        })
    }

    /// Rows of `k` values.
    pub(super) fn activations<'a>(&'a self, k: usize, quantised: &'a Quantised) -> Activations<'a> {
        match self {
            Input::F32(x) => Activations::F32(Rows::new(x, k)),
            Input::Q8(id) => Activations::Q8(Rows::new(quantised.get(*id), k / BLOCK)),
        }
    }
}

/// The rows of a weight matrix.
pub(super) fn weights<'m>(
    view: &View,
    bench: &Bench<'m, '_, '_>,
) -> Result<WeightRows<'m>, Conflict> {
    Ok(WeightRows::new(bench.arena.bytes(view)?, view.dtype, view.columns() as usize))
}

/// Blocks that a thread rounds at a time.
const TILE_BLOCKS: usize = 64;

fn quantise(x: &[f32], blocks: &mut Vec<Q8Block>, kernels: KernelTable, crew: &mut Crew<'_>) {
    blocks.resize(x.len() / BLOCK, bytemuck::Zeroable::zeroed());
    let tiles = MatrixMut::new(blocks, 1).cut(TILE_BLOCKS, 1);
    // About 4 values in a nanosecond.
    crew.run(x.len() as f64 / 4.0, &|_| {
        while let Some(mut tile) = tiles.take() {
            let values = tile.rows().start * BLOCK..tile.rows().end * BLOCK;
            kernels.quantise(&x[values], tile.values());
        }
    });
}

//! Ops on single values.

use std::borrow::Cow;

use engine_core::op::{Activation, Add, AddBias, Glu, SoftCap};

use super::cut::cut_any;
use super::norm::weight_row;
use super::task::Bench;
use crate::table::KernelTable;
use crate::threads::{Conflict, Tile, Tiles};

pub(crate) struct Gating<'m> {
    /// None when `y` holds the gate.
    gate: Option<&'m [f32]>,
    /// None when `y` holds the values that are gated.
    up: Option<&'m [f32]>,
    y: Tiles<'m, f32>,
    columns: usize,
    activation: Activation,
}

impl<'m> Gating<'m> {
    pub(super) fn prepare(op: &Glu, bench: &Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        assert!(op.gate.shape == op.y.shape && op.up.shape == op.y.shape, "arrays of one shape");
        let input = |x| if x == op.y { Ok(None) } else { bench.arena.f32s(&x).map(Some) };
        let gate = input(op.gate)?;
        let up = input(op.up)?;
        let y = cut_any(bench.arena.f32s_mut(&op.y)?, bench.crew.size());
        let columns = op.y.columns() as usize;
        Ok(Gating { gate, up, y, columns, activation: op.activation })
    }

    pub(super) fn work(&self, kernels: KernelTable, scratch: &mut Vec<f32>) {
        while let Some(mut tile) = self.y.take() {
            for row in tile.rows() {
                let range = in_rows(&tile, row, self.columns);
                let y = tile.row(row);
                let gate = match self.gate {
                    Some(gate) => &gate[range.clone()],
                    None => {
                        scratch.clear();
                        scratch.extend_from_slice(y);
                        &scratch[..]
                    }
                };
                if let Some(up) = self.up {
                    y.copy_from_slice(&up[range]);
                }
                kernels.glu(self.activation, gate, y);
            }
        }
    }
}

pub(crate) struct Addition<'m> {
    x: Cow<'m, [f32]>,
    y: Tiles<'m, f32>,
    /// Values from one row of `x` to the next; 0 for a bias.
    stride: usize,
}

impl<'m> Addition<'m> {
    pub(super) fn prepare(op: &Add, bench: &Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        assert_eq!(op.x.shape, op.y.shape, "arrays of one shape");
        let x = Cow::Borrowed(bench.arena.f32s(&op.x)?);
        let y = cut_any(bench.arena.f32s_mut(&op.y)?, bench.crew.size());
        Ok(Addition { x, y, stride: op.x.columns() as usize })
    }

    pub(super) fn prepare_bias(op: &AddBias, bench: &Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        assert_eq!(op.bias.shape, [1, op.y.columns()], "a bias for each column");
        let x = weight_row(bench.arena, &op.bias)?;
        let y = cut_any(bench.arena.f32s_mut(&op.y)?, bench.crew.size());
        Ok(Addition { x, y, stride: 0 })
    }

    pub(super) fn work(&self, kernels: KernelTable) {
        while let Some(mut tile) = self.y.take() {
            for row in tile.rows() {
                let range = in_rows(&tile, row, self.stride);
                kernels.add_scaled(1.0, &self.x[range], tile.row(row));
            }
        }
    }
}

pub(crate) struct Capping<'m> {
    y: Tiles<'m, f32>,
    cap: f32,
}

impl<'m> Capping<'m> {
    pub(super) fn prepare(op: &SoftCap, bench: &Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        let y = cut_any(bench.arena.f32s_mut(&op.y)?, bench.crew.size());
        Ok(Capping { y, cap: op.cap })
    }

    pub(super) fn work(&self, kernels: KernelTable) {
        while let Some(mut tile) = self.y.take() {
            kernels.soft_cap(tile.values(), self.cap);
        }
    }
}

/// Where the tile's part of a row lies in an array whose rows are `stride` apart.
fn in_rows(tile: &Tile<'_, f32>, row: usize, stride: usize) -> std::ops::Range<usize> {
    let columns = tile.columns();
    row * stride + columns.start..row * stride + columns.end
}

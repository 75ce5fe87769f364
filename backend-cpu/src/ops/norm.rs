//! Normalising rows.

use std::borrow::Cow;

use engine_core::op::{RmsNorm, View};
use engine_core::weights::DType;

use super::cut::cut_rows;
use super::task::Bench;
use crate::arena::Arena;
use crate::kernels::dequant::dequantise_row;
use crate::table::KernelTable;
use crate::threads::{Conflict, Tiles};

pub(crate) struct Norm<'m> {
    /// None when `y` holds the rows to normalise.
    x: Option<&'m [f32]>,
    weight: Cow<'m, [f32]>,
    y: Tiles<'m, f32>,
    eps: f32,
    weight_offset: f32,
}

impl<'m> Norm<'m> {
    pub(super) fn prepare(op: &RmsNorm, bench: &Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        assert_eq!(op.x.shape, op.y.shape, "rows in and out are alike");
        let weight = weight_row(bench.arena, &op.weight)?;
        assert_eq!(weight.len(), op.x.columns() as usize, "a weight for each column");
        let x = if op.x == op.y { None } else { Some(bench.arena.f32s(&op.x)?) };
        let y = bench.arena.f32s_mut(&op.y)?;
        let y = cut_rows(y, bench.crew.size());
        Ok(Norm { x, weight, y, eps: op.eps, weight_offset: op.weight_offset })
    }

    pub(super) fn work(&self, kernels: KernelTable) {
        let columns = self.weight.len();
        while let Some(mut tile) = self.y.take() {
            for row in tile.rows() {
                let y = tile.row(row);
                if let Some(x) = self.x {
                    y.copy_from_slice(&x[row * columns..][..columns]);
                }
                kernels.rms_norm(y, &self.weight, self.weight_offset, self.eps);
            }
        }
    }
}

/// A row of weights as f32: in place where it is stored so and aligned, else turned into it.
pub(super) fn weight_row<'m>(arena: &'m Arena, view: &View) -> Result<Cow<'m, [f32]>, Conflict> {
    let bytes = arena.bytes(view)?;
    if view.dtype == DType::F32
        && let Ok(values) = bytemuck::try_cast_slice(bytes)
    {
        return Ok(Cow::Borrowed(values));
    }
    let mut values = vec![0.0; view.len() as usize];
    dequantise_row(view.dtype, bytes, &mut values);
    Ok(Cow::Owned(values))
}

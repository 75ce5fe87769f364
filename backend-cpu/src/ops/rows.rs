//! Picking rows from a table and putting rows into one.

use engine_core::op::{GatherRows, ScatterRows};
use engine_core::weights::DType;
use half::f16;

use super::task::{Bench, index};
use crate::kernels::args::WeightRows;
use crate::kernels::dequant::dequantise_row;
use crate::table::KernelTable;
use crate::threads::{Conflict, Tiles};

pub(crate) struct Gather<'m> {
    table: WeightRows<'m>,
    rows: &'m [i32],
    y: Tiles<'m, f32>,
    scale: f32,
}

impl<'m> Gather<'m> {
    pub(super) fn prepare(op: &GatherRows, bench: &Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        let arena = bench.arena;
        let table =
            WeightRows::new(arena.bytes(&op.table)?, op.table.dtype, op.table.columns() as usize);
        let rows = arena.i32s(&op.rows)?;
        let y = arena.f32s_mut(&op.y)?;
        assert!(y.rows() == rows.len() && y.columns() == table.k(), "a row of the table each");
        // Whole rows: blocks of a format are turned into f32 by the row.
        let columns = y.columns();
        Ok(Gather { table, rows, y: y.cut(1, columns), scale: op.scale })
    }

    pub(super) fn work(&self, kernels: KernelTable) {
        while let Some(mut tile) = self.y.take() {
            let row = self.table.row(index(self.rows[tile.rows().start]));
            dequantise_row(self.table.dtype(), row, tile.values());
            if self.scale != 1.0 {
                kernels.scale(self.scale, tile.values());
            }
        }
    }
}

pub(crate) struct Scatter<'m> {
    x: &'m [f32],
    rows: &'m [i32],
    table: Table<'m>,
}

/// A table that is written, in tiles of some columns of all rows.
enum Table<'m> {
    F32(Tiles<'m, f32>),
    F16(Tiles<'m, f16>),
}

impl<'m> Scatter<'m> {
    pub(super) fn prepare(op: &ScatterRows, bench: &Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        let arena = bench.arena;
        let x = arena.f32s(&op.x)?;
        let rows = arena.i32s(&op.rows)?;
        assert_eq!(op.x.shape, [rows.len() as u32, op.table.columns()], "a row of the table each");
        let [all, columns] = op.table.shape.map(|n| n.max(1) as usize);
        // Tiles of columns, because the rows may come in any order.
        let width = columns.div_ceil(bench.crew.size()).next_multiple_of(32);
        let table = match op.table.dtype {
            DType::F32 => Table::F32(arena.f32s_mut(&op.table)?.cut(all, width)),
            DType::F16 => Table::F16(arena.f16s_mut(&op.table)?.cut(all, width)),
            dtype => panic!("rows cannot be put into a table of {dtype}"),
        };
        Ok(Scatter { x, rows, table })
    }

    pub(super) fn work(&self, kernels: KernelTable) {
        match &self.table {
            Table::F32(tiles) => self.fill(tiles, |x, y| y.copy_from_slice(x)),
            Table::F16(tiles) => self.fill(tiles, |x, y| kernels.to_f16(x, y)),
        }
    }

    fn fill<T>(&self, tiles: &Tiles<'_, T>, convert: impl Fn(&[f32], &mut [T])) {
        let columns = self.x.len() / self.rows.len().max(1);
        while let Some(mut tile) = tiles.take() {
            for (x, &row) in self.x.chunks_exact(columns.max(1)).zip(self.rows) {
                convert(&x[tile.columns()], tile.row(index(row)));
            }
        }
    }
}

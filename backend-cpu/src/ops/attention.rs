//! Attention to KV cells.

use engine_core::op::{Attention, View};
use engine_core::weights::DType;

use super::task::Bench;
use crate::arena::Arena;
use crate::kernels::heads::{Heads, KvCells};
use crate::table::KernelTable;
use crate::threads::{Conflict, Tiles};

pub(crate) struct Attending<'m> {
    heads: Heads<'m>,
    out: Tiles<'m, f32>,
}

/// Tokens times heads of a group that share a pass over their cells.
const TILE_ROWS: usize = 48;

impl<'m> Attending<'m> {
    pub(super) fn prepare(op: &Attention, bench: &Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        let heads = resolve(op, bench.arena)?;
        let out = bench.arena.f32s_mut(&op.out)?;
        let tokens = (TILE_ROWS / heads.group()).max(1);
        let out = out.cut(tokens, heads.group() * heads.value_dim);
        Ok(Attending { heads, out })
    }

    pub(super) fn work(&self, kernels: KernelTable, scratch: &mut Vec<f32>) {
        let columns = self.heads.group() * self.heads.value_dim;
        while let Some(mut tile) = self.out.take() {
            let kv_head = tile.columns().start / columns;
            let tokens = tile.rows();
            kernels.attend_tokens(&self.heads, kv_head, tokens, &mut tile.columns_mut(), scratch);
        }
    }
}

fn resolve<'m>(op: &Attention, arena: &'m Arena) -> Result<Heads<'m>, Conflict> {
    assert!(op.n_kv_head > 0 && op.n_head.is_multiple_of(op.n_kv_head), "heads in whole groups");
    let dim = |view: &View, heads: u32| {
        assert!(view.columns().is_multiple_of(heads), "rows of whole heads");
        (view.columns() / heads) as usize
    };
    let [key_dim, value_dim] = [dim(&op.q, op.n_head), dim(&op.out, op.n_head)];
    assert_eq!(key_dim, dim(&op.k, op.n_kv_head), "queries and keys are alike");
    assert_eq!(value_dim, dim(&op.v, op.n_kv_head), "results and values are alike");
    assert_eq!(op.k.rows(), op.v.rows(), "a key and a value in each cell");
    assert_eq!(op.q.rows(), op.out.rows(), "a result for each query");
    assert_eq!(op.spans.shape, [op.q.rows(), 2], "a span for each query");
    Ok(Heads {
        q: arena.f32s(&op.q)?,
        k: kv_cells(arena, &op.k)?,
        v: kv_cells(arena, &op.v)?,
        cells: arena.i32s(&op.cells)?,
        spans: bytemuck::cast_slice(arena.i32s(&op.spans)?),
        n_head: op.n_head as usize,
        n_kv_head: op.n_kv_head as usize,
        key_dim,
        value_dim,
        scale: op.scale,
        soft_cap: op.soft_cap,
        window: op.window,
    })
}

fn kv_cells<'m>(arena: &'m Arena, view: &View) -> Result<KvCells<'m>, Conflict> {
    Ok(match view.dtype {
        DType::F32 => KvCells::F32(arena.f32s(view)?),
        DType::F16 => KvCells::F16(arena.f16s(view)?),
        dtype => panic!("there is no attention to cells of {dtype}"),
    })
}

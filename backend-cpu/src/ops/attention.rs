//! Attention to KV cells.
//!
//! A token's cells are taken in pieces, one after the other or by several threads at once; their results are put together
//! in the same order either way.

use std::ops::Range;

use engine_core::op::{Attention, View};
use engine_core::weights::DType;

use super::task::Bench;
use crate::arena::Arena;
use crate::kernels::heads::{Heads, KvCells, Share};
use crate::table::KernelTable;
use crate::threads::{Conflict, Crew, MatrixMut, Tiles};

pub(crate) struct Attending<'m> {
    heads: Heads<'m>,
    /// A tile is the heads of one group for some tokens.
    out: Tiles<'m, f32>,
    /// Partial results of all pieces, where tiles are so few that threads share the pieces instead.
    ahead: Option<Ahead>,
}

/// Tokens times heads of a group that share a pass over their cells.
const TILE_ROWS: usize = 48;

/// Tiles for each thread from which on threads share tiles.
const TILES_PER_THREAD: usize = 4;

impl<'m> Attending<'m> {
    pub(super) fn prepare(op: &Attention, bench: &mut Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        let heads = resolve(op, bench.arena)?;
        let out = bench.arena.f32s_mut(&op.out)?;
        let tokens = (TILE_ROWS / heads.group()).max(1);
        let tiles = out.rows().div_ceil(tokens) * heads.n_kv_head;
        let few = tiles < bench.crew.size() * TILES_PER_THREAD;
        let ahead = few.then(|| Ahead::compute(&heads, tokens, bench.kernels, bench.crew));
        let out = out.cut(tokens, heads.group() * heads.value_dim);
        Ok(Attending { heads, out, ahead })
    }

    pub(super) fn work(&self, kernels: KernelTable, scratch: &mut Vec<f32>) {
        let heads = &self.heads;
        let row = heads.group() * heads.partial_len();
        while let Some(mut tile) = self.out.take() {
            let kv_head = tile.columns().start / tile.columns().len();
            for run in heads.runs(tile.rows()) {
                let mut results = vec![0.0; run.len() * row];
                results.chunks_exact_mut(heads.partial_len()).for_each(|result| {
                    *result.last_mut().expect("the largest score") = f32::MIN;
                });
                if let Some(ahead) = &self.ahead {
                    for partials in ahead.partials(&run, kv_head) {
                        kernels.merge(heads.value_dim, &partials[..results.len()], &mut results);
                    }
                } else {
                    let mut partials = vec![0.0; results.len()];
                    for cells in heads.pieces(run.clone()) {
                        let share = Share { heads, kv_head, tokens: run.clone(), cells };
                        kernels.attend(share, &mut partials, scratch);
                        kernels.merge(heads.value_dim, &partials, &mut results);
                    }
                }
                for (token, results) in run.zip(results.chunks_exact(row)) {
                    finish(heads, results, tile.row(token), kernels);
                }
            }
        }
    }
}

/// Divides the sums of each head by the sum of its weights. A token that sees nothing gets zeros.
fn finish(heads: &Heads<'_>, results: &[f32], out: &mut [f32], kernels: KernelTable) {
    let results = results.chunks_exact(heads.partial_len());
    for (out, result) in out.chunks_exact_mut(heads.value_dim).zip(results) {
        let (sums, total) = (&result[..heads.value_dim], result[heads.value_dim]);
        out.copy_from_slice(sums);
        if total != 0.0 {
            kernels.scale(1.0 / total, out);
        }
    }
}

/// Partial results of pieces of cells.
struct Ahead {
    /// In the order of tokens, then of cells.
    pieces: Vec<Piece>,
    /// For each piece its results, first of the first group of heads, then of the others.
    partials: Vec<f32>,
    /// Values from the results of one group to those of the next.
    stride: usize,
    n_kv_head: usize,
}

#[derive(Clone)]
struct Piece {
    run: Range<usize>,
    cells: Range<usize>,
}

impl Ahead {
    /// Attention of all tokens, `tokens` at a time, to all pieces of cells that they see.
    fn compute(
        heads: &Heads<'_>,
        tokens: usize,
        kernels: KernelTable,
        crew: &mut Crew<'_>,
    ) -> Ahead {
        let n_tokens = heads.spans.len();
        let groups = (0..n_tokens).step_by(tokens).map(|at| at..n_tokens.min(at + tokens));
        let runs = groups.flat_map(|group| heads.runs(group));
        let pieces: Vec<Piece> = runs
            .flat_map(|run| {
                heads.pieces(run.clone()).map(move |cells| Piece { run: run.clone(), cells })
            })
            .collect();
        let row = heads.group() * heads.partial_len();
        let stride = tokens.min(n_tokens) * row;
        let mut partials = vec![0.0; pieces.len() * heads.n_kv_head * stride];
        let columns = heads.n_kv_head * stride;
        let tiles = MatrixMut::new(&mut partials, columns).cut(1, stride);
        // About 4 values of keys and values in a nanosecond.
        let cells: usize = pieces.iter().map(|piece| piece.cells.len()).sum();
        let values = cells * heads.n_kv_head * (heads.key_dim + heads.value_dim);
        crew.run(values as f64 / 4.0, &|scratch| {
            while let Some(mut tile) = tiles.take() {
                let Piece { run: tokens, cells } = pieces[tile.rows().start].clone();
                let kv_head = tile.columns().start / stride;
                let partials = &mut tile.values()[..tokens.len() * row];
                kernels.attend(Share { heads, kv_head, tokens, cells }, partials, scratch);
            }
        });
        Ahead { pieces, partials, stride, n_kv_head: heads.n_kv_head }
    }

    /// Results of some tokens and the heads of one group, a slice for each piece. They may be longer than the tokens need.
    fn partials(&self, run: &Range<usize>, kv_head: usize) -> impl Iterator<Item = &[f32]> {
        let start = self.pieces.partition_point(|piece| piece.run.start < run.start);
        let of_run = self.pieces[start..].iter().take_while(|piece| piece.run.start == run.start);
        let count = of_run.count();
        (start..start + count).map(move |piece| {
            &self.partials[(piece * self.n_kv_head + kv_head) * self.stride..][..self.stride]
        })
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

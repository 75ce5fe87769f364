//! Attention to KV cells.
//!
//! Tokens by themselves have their cells cut into pieces, so that threads share a long sequence; the pieces are put
//! together afterwards. They are of one size whatever the number of threads, which so cannot change the result.

use engine_core::op::{Attention, View};
use engine_core::weights::DType;

use super::task::Bench;
use crate::arena::Arena;
use crate::kernels::heads::{Heads, KvCells, PIECE};
use crate::table::KernelTable;
use crate::threads::{Conflict, MatrixMut, Tiles};

pub(crate) struct Attending<'m> {
    heads: Heads<'m>,
    out: Tiles<'m, f32>,
    how: How,
}

enum How {
    /// Tokens of a tile together.
    Tokens,
    /// By partial results of pieces, a row for each; those of token `t` are `first[t]..first[t + 1]`.
    Pieces { partials: Vec<f32>, first: Vec<usize> },
}

/// Tokens times heads of a group that share a pass over their cells.
const TILE_ROWS: usize = 48;

impl<'m> Attending<'m> {
    pub(super) fn prepare(op: &Attention, bench: &mut Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        let heads = resolve(op, bench.arena)?;
        let out = bench.arena.f32s_mut(&op.out)?;
        // No two tokens of one sequence.
        let apart = heads.spans.windows(2).all(|pair| pair[0][0] != pair[1][0]);
        if apart {
            let (partials, first) = attend_pieces(&heads, bench);
            let columns = out.columns();
            return Ok(Attending {
                heads,
                out: out.cut(1, columns),
                how: How::Pieces { partials, first },
            });
        }
        let tokens = (TILE_ROWS / heads.group()).max(1);
        let out = out.cut(tokens, heads.group() * heads.value_dim);
        Ok(Attending { heads, out, how: How::Tokens })
    }

    pub(super) fn work(&self, kernels: KernelTable, scratch: &mut Vec<f32>) {
        let columns = self.heads.group() * self.heads.value_dim;
        while let Some(mut tile) = self.out.take() {
            match &self.how {
                How::Tokens => {
                    let kv_head = tile.columns().start / columns;
                    let tokens = tile.rows();
                    let out = &mut tile.columns_mut();
                    kernels.attend_tokens(&self.heads, kv_head, tokens, out, scratch);
                }
                How::Pieces { partials, first } => {
                    let row = self.heads.n_head * self.heads.partial_len();
                    let token = tile.rows().start;
                    let pieces = &partials[first[token] * row..first[token + 1] * row];
                    combine(&self.heads, pieces, tile.values(), kernels);
                }
            }
        }
    }
}

/// Attention of every token to pieces of its cells: partial results of all heads, a row for each piece, and the first
/// row of each token.
fn attend_pieces(heads: &Heads<'_>, bench: &mut Bench<'_, '_, '_>) -> (Vec<f32>, Vec<usize>) {
    let mut pieces = Vec::new();
    let mut first = vec![0];
    for token in 0..heads.spans.len() {
        let [start, end] = heads.seen(token);
        pieces.extend((start..end).step_by(PIECE).map(|at| (token, at..end.min(at + PIECE))));
        first.push(pieces.len());
    }
    let row = heads.n_head * heads.partial_len();
    let group = heads.group() * heads.partial_len();
    let mut partials = vec![0.0; pieces.len() * row];
    let tiles = MatrixMut::new(&mut partials, row).cut(1, group);
    let kernels = bench.kernels;
    bench.crew.run(&|_| {
        while let Some(mut tile) = tiles.take() {
            let (token, cells) = pieces[tile.rows().start].clone();
            let kv_head = tile.columns().start / group;
            kernels.attend_cells(heads, kv_head, token, cells, tile.values());
        }
    });
    (partials, first)
}

/// Puts the partial results of one token's pieces together.
fn combine(heads: &Heads<'_>, pieces: &[f32], out: &mut [f32], kernels: KernelTable) {
    let Heads { value_dim, n_head, .. } = *heads;
    out.fill(0.0);
    for (head, out) in out.chunks_exact_mut(value_dim).enumerate() {
        let partials = pieces.chunks_exact(heads.partial_len()).skip(head).step_by(n_head);
        let max = partials.clone().map(|partial| partial[value_dim]).fold(f32::MIN, f32::max);
        let mut total = 0.0;
        for partial in partials {
            let factor = (partial[value_dim] - max).exp();
            total += factor * partial[value_dim + 1];
            kernels.add_scaled(factor, &partial[..value_dim], out);
        }
        if total != 0.0 {
            kernels.scale(1.0 / total, out);
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

//! Mixtures of experts: choosing them, multiplying by theirs, summing what they give.

use std::sync::Mutex;

use engine_core::op::{CombineExperts, MatMulExperts, RouteExperts};
use planner::{Bytes, Flops};

use super::cut::{cut_any, cut_columns};
use super::matmul::{Input, Quantised, weights};
use super::task::{Bench, index};
use crate::kernels::args::{TokenRow, TokenRows, WeightRows};
use crate::table::KernelTable;
use crate::threads::{Conflict, MatrixMut, Tiles};

pub(crate) struct Routing<'m> {
    logits: &'m [f32],
    n_expert: usize,
    /// The choices. One thread makes them all: they are few, and ops beside this one keep the others busy.
    chosen: Mutex<Option<Chosen<'m>>>,
    normalise: bool,
}

struct Chosen<'m> {
    experts: MatrixMut<'m, i32>,
    shares: MatrixMut<'m, f32>,
}

impl<'m> Routing<'m> {
    pub(super) fn prepare(op: &RouteExperts, bench: &Bench<'m, '_, '_>) -> Result<Self, Conflict> {
        assert_eq!(op.experts.shape, op.shares.shape, "a share for each choice");
        assert_eq!(op.experts.rows(), op.logits.rows(), "choices for each token");
        assert!(op.experts.columns() <= op.logits.columns(), "no expert is chosen twice");
        let logits = bench.arena.f32s(&op.logits)?;
        let experts = bench.arena.i32s_mut(&op.experts)?;
        let shares = bench.arena.f32s_mut(&op.shares)?;
        let chosen = Mutex::new(Some(Chosen { experts, shares }));
        let n_expert = op.logits.columns() as usize;
        Ok(Routing { logits, n_expert, chosen, normalise: op.normalise })
    }

    pub(super) fn work(&self, kernels: KernelTable, scratch: &mut Vec<f32>) {
        let chosen = self.chosen.lock().expect("nothing panics with this lock held").take();
        let Some(Chosen { mut experts, mut shares }) = chosen else { return };
        let n_used = experts.columns();
        let rows = self.logits.chunks_exact(self.n_expert);
        let experts = experts.values().chunks_exact_mut(n_used);
        let shares = shares.values().chunks_exact_mut(n_used);
        for ((logits, experts), shares) in rows.zip(experts).zip(shares) {
            scratch.clear();
            scratch.extend_from_slice(logits);
            kernels.softmax(scratch);
            choose(scratch, experts, shares);
            if self.normalise {
                let sum: f32 = shares.iter().sum();
                kernels.scale(1.0 / sum, shares);
            }
        }
    }
}

/// The largest of `all`, best first, equal ones by lower number.
fn choose(all: &[f32], experts: &mut [i32], shares: &mut [f32]) {
    let n = shares.len();
    let mut found = 0;
    for (expert, &share) in all.iter().enumerate() {
        // What is already there came earlier, so it stays before an equal one.
        let place = shares[..found].partition_point(|&better| better >= share);
        if place == n {
            continue;
        }
        found = n.min(found + 1);
        shares.copy_within(place..found - 1, place + 1);
        experts.copy_within(place..found - 1, place + 1);
        shares[place] = share;
        experts[place] = expert as i32;
    }
}

pub(crate) struct Products<'m> {
    x: Input<'m>,
    k: usize,
    /// Each expert that a token chose, with the rows that it has to do.
    experts: Vec<(WeightRows<'m>, Vec<TokenRow>)>,
    y: Tiles<'m, f32>,
}

impl<'m> Products<'m> {
    pub(super) fn prepare(
        op: &MatMulExperts,
        bench: &mut Bench<'m, '_, '_>,
    ) -> Result<Self, Conflict> {
        let [n_tokens, n_used] = op.experts.shape;
        let n_rows = n_tokens * n_used;
        assert_eq!(op.y.rows(), n_rows, "a row for each choice");
        let row_each = op.x.rows() == n_rows;
        assert!(row_each || op.x.rows() == n_tokens, "a row for each token or each choice");
        let experts = bench.arena.i32s(&op.experts)?;
        let y = cut_columns(bench.arena.f32s_mut(&op.y)?, bench.crew.size());
        let mut rows = vec![Vec::new(); op.w.len()];
        for (y, &expert) in (0..).zip(experts) {
            rows[index(expert)].push(TokenRow { x: if row_each { y } else { y / n_used }, y });
        }
        let touched = rows.into_iter().zip(op.w.iter()).filter(|(rows, _)| !rows.is_empty());
        let experts: Vec<_> = touched
            .map(|(rows, view)| {
                assert_eq!(op.y.columns(), view.rows(), "a column for each weight row");
                Ok((weights(view, bench)?, rows))
            })
            .collect::<Result<_, Conflict>>()?;
        let any = experts.first().expect("each token has an expert").0;
        let x = Input::prepare(&op.x, any, bench)?;
        Ok(Products { x, k: any.k(), experts, y })
    }

    /// What the product with each expert reads of its weights, and computes.
    pub(crate) fn each(&self) -> impl Iterator<Item = (Bytes, Flops)> {
        self.experts.iter().map(|(w, rows)| {
            let flops = 2.0 * w.n() as f64 * w.k() as f64 * rows.len() as f64;
            (w.bytes().len().into(), Flops::new(flops))
        })
    }

    pub(super) fn work(&self, kernels: KernelTable, quantised: &Quantised) {
        let x = self.x.activations(self.k, quantised);
        while let Some(mut tile) = self.y.take() {
            for (w, rows) in &self.experts {
                let w = w.rows(tile.columns());
                kernels.matmul(w, x, TokenRows::Listed(rows), &mut tile.columns_mut());
            }
        }
    }
}

pub(crate) struct Combination<'m> {
    x: &'m [f32],
    shares: &'m [f32],
    n_used: usize,
    columns: usize,
    y: Tiles<'m, f32>,
}

impl<'m> Combination<'m> {
    pub(super) fn prepare(
        op: &CombineExperts,
        bench: &Bench<'m, '_, '_>,
    ) -> Result<Self, Conflict> {
        let [n_tokens, n_used] = op.shares.shape;
        assert_eq!(op.x.shape, [n_tokens * n_used, op.y.columns()], "a row for each choice");
        assert_eq!(op.y.rows(), n_tokens, "a row for each token");
        let x = bench.arena.f32s(&op.x)?;
        let shares = bench.arena.f32s(&op.shares)?;
        let y = cut_any(bench.arena.f32s_mut(&op.y)?, bench.crew.size());
        let [n_used, columns] = [n_used as usize, op.y.columns() as usize];
        Ok(Combination { x, shares, n_used, columns, y })
    }

    pub(super) fn work(&self, kernels: KernelTable) {
        while let Some(mut tile) = self.y.take() {
            let columns = tile.columns();
            for token in tile.rows() {
                let y = tile.row(token);
                y.fill(0.0);
                for choice in token * self.n_used..(token + 1) * self.n_used {
                    let x = &self.x[choice * self.columns..][columns.clone()];
                    kernels.add_scaled(self.shares[choice], x, y);
                }
            }
        }
    }
}

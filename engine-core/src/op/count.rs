//! What ops cost at least: arithmetic and memory. The cost model prices these counts.

use planner::{Bytes, Flops};

use super::Op;

impl Op {
    /// Multiplications and additions of the matrix products and of attention; zero for ops bound by memory alone.
    ///
    /// Attention counts for every token all cells that the pass names, or as many as a window has: an upper bound.
    pub fn flops(&self) -> Flops {
        let count = match self {
            Op::MatMul(op) => 2.0 * op.w.len() as f64 * f64::from(op.x.rows()),
            Op::MatMulExperts(op) => {
                op.w.first().map_or(0.0, |w| 2.0 * w.len() as f64 * f64::from(op.y.rows()))
            }
            Op::Attention(op) => {
                let per_cell = op.q.columns() + op.out.columns();
                let seen = op.cells.columns().min(op.window.unwrap_or(u32::MAX));
                2.0 * f64::from(op.q.rows()) * f64::from(seen) * f64::from(per_cell)
            }
            Op::GatherRows(_)
            | Op::ScatterRows(_)
            | Op::RmsNorm(_)
            | Op::Rope(_)
            | Op::Glu(_)
            | Op::Add(_)
            | Op::AddBias(_)
            | Op::SoftCap(_)
            | Op::RouteExperts(_)
            | Op::CombineExperts(_) => 0.0,
        };
        Flops::new(count)
    }

    /// Bytes read and written at least, with everything touched once.
    pub fn bytes(&self) -> Bytes {
        match self {
            Op::GatherRows(op) => op.table.row_bytes() * op.y.rows().into() + op.y.bytes(),
            Op::ScatterRows(op) => op.x.bytes() + op.table.row_bytes() * op.x.rows().into(),
            Op::MatMul(op) => op.x.bytes() + op.w.bytes() + op.y.bytes(),
            Op::RmsNorm(op) => op.x.bytes() + op.y.bytes(),
            Op::Rope(op) => op.x.bytes() * 2,
            Op::Attention(op) => {
                let cell = op.k.row_bytes() + op.v.row_bytes();
                // Of one sequence, all tokens but the last see one cell more each.
                let in_windows = op.window.map(|window| window.saturating_add(op.q.rows() - 1));
                let seen = op.cells.columns().min(in_windows.unwrap_or(u32::MAX));
                op.q.bytes() + cell * seen.into() + op.out.bytes()
            }
            Op::Glu(op) => op.gate.bytes() + op.up.bytes() + op.y.bytes(),
            Op::Add(op) => op.x.bytes() + op.y.bytes() * 2,
            Op::AddBias(op) => op.y.bytes() * 2,
            Op::SoftCap(op) => op.y.bytes() * 2,
            Op::RouteExperts(op) => op.logits.bytes() + op.experts.bytes() + op.shares.bytes(),
            Op::MatMulExperts(op) => {
                let touched = op.y.rows().min(op.w.len() as u32);
                let weights = op.w.first().map_or(Bytes::ZERO, |w| w.bytes() * touched.into());
                op.x.bytes() + weights + op.y.bytes()
            }
            Op::CombineExperts(op) => op.x.bytes() + op.y.bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BufferId;
    use crate::op::{Attention, View};
    use crate::weights::DType;

    #[test]
    fn attention_counts_what_a_window_lets_be_seen() {
        let view = |shape, dtype| View { buffer: BufferId(0), offset: Bytes::ZERO, shape, dtype };
        let attention = |window| {
            Op::Attention(Attention {
                q: view([10, 64], DType::F32),
                k: view([5000, 32], DType::F16),
                v: view([5000, 32], DType::F16),
                cells: view([1, 1000], DType::I32),
                spans: view([10, 2], DType::I32),
                out: view([10, 64], DType::F32),
                n_head: 4,
                n_kv_head: 2,
                scale: 1.0,
                soft_cap: None,
                window,
            })
        };
        // Ten tokens, two products of 64 values with each cell seen; a cell is 128 bytes.
        let arrays = 2 * 10 * 64 * 4;
        for (window, seen, read) in
            [(None, 1000, 1000), (Some(300), 300, 309), (Some(2000), 1000, 1000)]
        {
            let op = attention(window);
            assert_eq!(op.flops(), Flops::new(f64::from(10 * seen * 2 * 2 * 64)));
            assert_eq!(op.bytes(), Bytes::new(arrays + read * 128));
        }
    }
}

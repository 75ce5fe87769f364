//! What an op costs, in the planner's terms. Knows no device: the planner has the rates.

use planner::{AttentionShape, Bytes, Format, OpCost};

use crate::op::{Attention, MatMulExperts, Op};
use crate::scratch::ALIGNMENT;
use crate::weights::DType;

/// The planner's name of a format; `None` where no engine computes with it.
pub(crate) fn format(dtype: DType) -> Option<Format> {
    Format::named(dtype.name())
}

impl From<&Op> for OpCost {
    /// # Panics
    /// If the op multiplies by weights of a format without arithmetic, or attends with heads that do not fill its rows.
    /// No backend supports such an op.
    fn from(op: &Op) -> OpCost {
        match op {
            Op::MatMul(op) => OpCost::Product {
                format: known_format(op.w.dtype),
                weights: in_vram(op.w.bytes()),
                n_tokens: op.x.rows(),
            },
            Op::MatMulExperts(op) => experts(op),
            Op::Attention(op) => attention(op),
            Op::GatherRows(_)
            | Op::ScatterRows(_)
            | Op::RmsNorm(_)
            | Op::Rope(_)
            | Op::Glu(_)
            | Op::Add(_)
            | Op::AddBias(_)
            | Op::SoftCap(_)
            | Op::RouteExperts(_)
            | Op::CombineExperts(_) => OpCost::Light { bytes: op.bytes() },
        }
    }
}

fn known_format(dtype: DType) -> Format {
    format(dtype).unwrap_or_else(|| panic!("no backend multiplies by {dtype}"))
}

fn experts(op: &MatMulExperts) -> OpCost {
    let [n_tokens, n_used] = op.experts.shape;
    let one = op.w.first().expect("a group has experts");
    OpCost::Experts {
        format: known_format(one.dtype),
        expert: in_vram(one.bytes()),
        n_expert: op.w.len() as u32,
        n_used,
        n_tokens,
    }
}

/// The room that a tensor takes in VRAM.
pub(crate) fn in_vram(tensor: Bytes) -> Bytes {
    tensor.align_up(ALIGNMENT)
}

/// The cells that the op names are taken for those of one sequence, of which the last token sees all but what its window
/// leaves out.
fn attention(op: &Attention) -> OpCost {
    let n_cells = op.cells.columns();
    OpCost::Attention {
        shape: AttentionShape {
            n_head: op.n_head,
            n_kv_head: op.n_kv_head,
            key_dim: op.q.columns() / op.n_head,
            value_dim: op.out.columns() / op.n_head,
        },
        n_tokens: op.q.rows(),
        n_kv: op.window.map_or(n_cells, |window| window.min(n_cells)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BufferId;
    use crate::op::{Add, MatMul, View};

    fn view(rows: u32, columns: u32, dtype: DType) -> View {
        View { buffer: BufferId(0), offset: Bytes::ZERO, shape: [rows, columns], dtype }
    }

    #[test]
    fn a_product_costs_its_weights() {
        let x = view(3, 64, DType::F32);
        let w = view(8, 64, DType::Q4_1);
        let op = Op::MatMul(MatMul { x, w, y: view(3, 8, DType::F32) });
        let weights = Bytes::new(8 * 2 * 20);
        let cost = OpCost::Product { format: Format::Q4_1, weights, n_tokens: 3 };
        assert_eq!(OpCost::from(&op), cost);
    }

    #[test]
    fn a_light_op_costs_its_memory() {
        let x = view(2, 8, DType::F32);
        let op = Op::Add(Add { x, y: x });
        assert_eq!(OpCost::from(&op), OpCost::Light { bytes: Bytes::new(3 * 2 * 8 * 4) });
    }

    #[test]
    fn a_window_bounds_the_cells_that_are_seen() {
        let q = view(2, 4 * 16, DType::F32);
        let kv = view(100, 2 * 16, DType::F16);
        let op = |window| Attention {
            q,
            k: kv,
            v: kv,
            cells: view(1, 40, DType::I32),
            spans: view(2, 2, DType::I32),
            out: q,
            n_head: 4,
            n_kv_head: 2,
            scale: 1.0,
            soft_cap: None,
            window,
        };
        let seen = |window| match attention(&op(window)) {
            OpCost::Attention { n_kv, n_tokens: 2, shape } => (n_kv, shape.key_dim),
            other => panic!("{other:?}"),
        };
        assert_eq!((seen(None), seen(Some(8)), seen(Some(64))), ((40, 16), (8, 16), (40, 16)));
    }
}

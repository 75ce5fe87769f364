//! Which memory an op touches.

use super::{Op, View};

impl Op {
    /// Every view that is read, those among them that are changed in place. Of tables read by row, and of groups of
    /// experts, all: what is in the numbers that choose is not known here.
    pub fn reads(&self) -> Vec<View> {
        match self {
            Op::GatherRows(op) => vec![op.table, op.rows],
            Op::ScatterRows(op) => vec![op.x, op.rows],
            Op::MatMul(op) => vec![op.x, op.w],
            Op::RmsNorm(op) => vec![op.x, op.weight],
            Op::Rope(op) => vec![op.x, op.positions, op.inv_freq],
            Op::Attention(op) => vec![op.q, op.k, op.v, op.cells, op.spans],
            Op::Glu(op) => vec![op.gate, op.up],
            Op::Add(op) => vec![op.x, op.y],
            Op::AddBias(op) => vec![op.bias, op.y],
            Op::SoftCap(op) => vec![op.y],
            Op::RouteExperts(op) => vec![op.logits],
            Op::MatMulExperts(op) => [op.x, op.experts].into_iter().chain(op.w.to_vec()).collect(),
            Op::CombineExperts(op) => vec![op.x, op.shares],
        }
    }

    /// Every view that is written, some rows of it at least.
    pub fn writes(&self) -> Vec<View> {
        match self {
            Op::GatherRows(op) => vec![op.y],
            Op::ScatterRows(op) => vec![op.table],
            Op::MatMul(op) => vec![op.y],
            Op::RmsNorm(op) => vec![op.y],
            Op::Rope(op) => vec![op.x],
            Op::Attention(op) => vec![op.out],
            Op::Glu(op) => vec![op.y],
            Op::Add(op) => vec![op.y],
            Op::AddBias(op) => vec![op.y],
            Op::SoftCap(op) => vec![op.y],
            Op::RouteExperts(op) => vec![op.experts, op.shares],
            Op::MatMulExperts(op) => vec![op.y],
            Op::CombineExperts(op) => vec![op.y],
        }
    }
}

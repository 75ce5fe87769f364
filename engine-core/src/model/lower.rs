//! Turns a shard and the views of one pass into a list of ops. The same list is run and priced.

use std::sync::Arc;

use super::config::{FfnConfig, LayerConfig, ModelConfig};
use super::shard::Shard;
use super::tensors::{AttentionTensors, Gated, ModelTensors, Network, Projection};
use crate::kv::KvViews;
use crate::op::{
    Add, AddBias, Attention, CombineExperts, GatherRows, Glu, MatMul, MatMulExperts, Op, RmsNorm,
    Rope, RouteExperts, ScatterRows, SoftCap, View,
};
use crate::scratch::{FfnViews, PassViews};

/// Everything a shard's ops may touch on one device in one pass.
#[derive(Debug, Clone, Copy)]
pub struct Lowering<'a> {
    /// Hyperparameters.
    pub config: &'a ModelConfig,
    /// Weights, as the device sees them.
    pub tensors: &'a ModelTensors<View>,
    /// KV cells of each layer.
    pub kv: &'a [KvViews],
    /// Activations and inputs, cut to the size of the pass.
    pub pass: &'a PassViews,
}

/// Rows that go through an FFN: those of all tokens, or in the last layer of those whose logits are wanted.
#[derive(Clone, Copy)]
struct FfnRows {
    residual: View,
    /// The FFN's input, then its result.
    hidden: View,
    inner: FfnViews,
}

impl Lowering<'_> {
    /// Appends the ops of `shard`.
    pub fn lower(&self, shard: Shard, ops: &mut Vec<Op>) {
        match shard {
            Shard::Embedding => ops.push(Op::GatherRows(GatherRows {
                table: self.tensors.embedding,
                rows: self.pass.token_ids,
                y: self.pass.residual,
                scale: self.config.embedding_scale,
            })),
            Shard::Attention { layer } => self.attention(layer as usize, ops),
            Shard::Ffn { layer } if layer + 1 < self.config.n_layer() => {
                let PassViews { residual, hidden, ffn, .. } = *self.pass;
                self.ffn(layer, FfnRows { residual, hidden, inner: ffn }, ops);
            }
            // No layer sees what these give, so they run for the tokens whose logits are wanted, if there are any.
            Shard::Ffn { .. } | Shard::Output if self.pass.logits.is_empty() => {}
            Shard::Ffn { layer } => self.last_ffn(layer, ops),
            Shard::Output => self.output(ops),
        }
    }

    fn attention(&self, layer: usize, ops: &mut Vec<Op>) {
        let (config, pass) = (self.config, self.pass);
        let tensors = &self.tensors.layers[layer].attention;
        let layer_config = config.layers[layer];
        let kv = self.kv[layer];
        let cells = pass.cells[kv.group];
        ops.push(self.norm(pass.residual, tensors.norm, pass.hidden));
        project(pass.hidden, &tensors.q, pass.q, ops);
        project(pass.hidden, &tensors.k, pass.k, ops);
        project(pass.hidden, &tensors.v, pass.v, ops);
        self.norm_heads(tensors, ops);
        ops.push(self.rope(pass.q, layer_config));
        ops.push(self.rope(pass.k, layer_config));
        for (x, table) in [(pass.k, kv.k), (pass.v, kv.v)] {
            ops.push(Op::ScatterRows(ScatterRows { x, rows: cells.written, table }));
        }
        ops.push(Op::Attention(Attention {
            q: pass.q,
            k: kv.k,
            v: kv.v,
            cells: cells.seen,
            spans: pass.spans,
            out: pass.heads,
            n_head: config.n_head,
            n_kv_head: config.n_kv_head,
            scale: config.attention_scale,
            soft_cap: config.attention_soft_cap,
            window: layer_config.window,
        }));
        project(pass.heads, &tensors.out, pass.hidden, ops);
        self.add_to_residual(pass.hidden, tensors.post_norm, pass.residual, ops);
    }

    /// Normalises each head of q and k, where the family does.
    fn norm_heads(&self, tensors: &AttentionTensors<View>, ops: &mut Vec<Op>) {
        let Some([q_norm, k_norm]) = tensors.qk_norm else { return };
        let key_dim = self.config.key_dim;
        for (x, weight) in [(self.pass.q, q_norm), (self.pass.k, k_norm)] {
            let heads = x.reshape(x.rows() * (x.columns() / key_dim), key_dim);
            ops.push(self.norm(heads, weight, heads));
        }
    }

    fn rope(&self, x: View, layer: LayerConfig) -> Op {
        Op::Rope(Rope {
            x,
            positions: self.pass.positions,
            inv_freq: self.pass.inv_freq[layer.rope],
            head_dim: self.config.key_dim,
            pairs: self.config.rope_pairs,
            magnitude: self.config.ropes[layer.rope].magnitude(),
        })
    }

    fn last_ffn(&self, layer: u32, ops: &mut Vec<Op>) {
        let PassViews { hidden, ffn, output_residual: residual, .. } = *self.pass;
        ops.push(Op::GatherRows(GatherRows {
            table: self.pass.residual,
            rows: self.pass.output_rows,
            y: residual,
            scale: 1.0,
        }));
        let n_outputs = residual.rows();
        let (hidden, inner) = (hidden.first_rows(n_outputs), ffn.cut(n_outputs));
        self.ffn(layer, FfnRows { residual, hidden, inner }, ops);
    }

    fn ffn(&self, layer: u32, rows: FfnRows, ops: &mut Vec<Op>) {
        let tensors = &self.tensors.layers[layer as usize].ffn;
        ops.push(self.norm(rows.residual, tensors.norm, rows.hidden));
        match &tensors.network {
            Network::Dense(gated) => self.dense(gated, rows, ops),
            Network::Experts { router, experts } => self.experts(*router, experts, rows, ops),
        }
        self.add_to_residual(rows.hidden, tensors.post_norm, rows.residual, ops);
    }

    fn dense(&self, gated: &Gated<View>, rows: FfnRows, ops: &mut Vec<Op>) {
        let FfnRows { hidden, inner, .. } = rows;
        ops.push(Op::MatMul(MatMul { x: hidden, w: gated.gate, y: inner.gate }));
        ops.push(Op::MatMul(MatMul { x: hidden, w: gated.up, y: inner.up }));
        ops.push(self.glu(inner));
        ops.push(Op::MatMul(MatMul { x: inner.gate, w: gated.down, y: hidden }));
    }

    fn experts(&self, router: View, all: &Gated<Arc<[View]>>, rows: FfnRows, ops: &mut Vec<Op>) {
        let FfnConfig::Experts(config) = self.config.ffn else {
            unreachable!("expert tensors are bound only for a config with experts")
        };
        let FfnRows { hidden, inner, .. } = rows;
        let routing = inner.routing.expect("scratch of a config with experts has routing views");
        ops.push(Op::MatMul(MatMul { x: hidden, w: router, y: routing.logits }));
        ops.push(Op::RouteExperts(RouteExperts {
            logits: routing.logits,
            experts: routing.experts,
            shares: routing.shares,
            normalise: config.normalise,
        }));
        let product = |x, w: &Arc<[View]>, y| {
            Op::MatMulExperts(MatMulExperts { x, w: w.clone(), experts: routing.experts, y })
        };
        ops.push(product(hidden, &all.gate, inner.gate));
        ops.push(product(hidden, &all.up, inner.up));
        ops.push(self.glu(inner));
        ops.push(product(inner.gate, &all.down, routing.down));
        ops.push(Op::CombineExperts(CombineExperts {
            x: routing.down,
            shares: routing.shares,
            y: hidden,
        }));
    }

    fn output(&self, ops: &mut Vec<Op>) {
        let pass = self.pass;
        let rows = pass.output_residual;
        ops.push(self.norm(rows, self.tensors.output_norm, rows));
        ops.push(Op::MatMul(MatMul { x: rows, w: self.tensors.output, y: pass.logits }));
        if let Some(cap) = self.config.final_soft_cap {
            ops.push(Op::SoftCap(SoftCap { y: pass.logits, cap }));
        }
    }

    fn norm(&self, x: View, weight: View, y: View) -> Op {
        Op::RmsNorm(RmsNorm {
            x,
            weight,
            y,
            eps: self.config.norm_eps,
            weight_offset: self.config.norm_offset,
        })
    }

    fn glu(&self, inner: FfnViews) -> Op {
        Op::Glu(Glu {
            gate: inner.gate,
            up: inner.up,
            y: inner.gate,
            activation: self.config.family.activation,
        })
    }

    /// Adds the hidden state, normalised first where the family does, to the residual.
    fn add_to_residual(
        &self,
        hidden: View,
        post_norm: Option<View>,
        residual: View,
        ops: &mut Vec<Op>,
    ) {
        if let Some(weight) = post_norm {
            ops.push(self.norm(hidden, weight, hidden));
        }
        ops.push(Op::Add(Add { x: hidden, y: residual }));
    }
}

/// `y = x · wᵀ + b`.
fn project(x: View, projection: &Projection<View>, y: View, ops: &mut Vec<Op>) {
    ops.push(Op::MatMul(MatMul { x, w: projection.weight, y }));
    if let Some(bias) = projection.bias {
        ops.push(Op::AddBias(AddBias { bias, y }));
    }
}

//! Turns the sizes of a model into what each shard costs: the same ops that an engine lowers the shard to.

use super::shape::{Ffn, ModelShape};
use super::{Model, Pass};
use crate::cost::OpCost;
use crate::format::Format;
use crate::shard::{Shard, ShardCost};
use crate::units::Bytes;

/// Tokens of the largest pass of an engine, where not said otherwise.
const N_UBATCH: u32 = 512;
/// Bytes of an activation.
const F32: u64 = 4;

/// Bytes of a value in a KV cell.
const F16: u64 = 2;

impl Model for ModelShape {
    fn name(&self) -> &str {
        &self.name
    }

    fn n_layer(&self) -> u32 {
        self.n_layer
    }

    fn n_ctx_train(&self) -> u32 {
        self.n_ctx_train
    }

    fn shards(&self, pass: Pass) -> Vec<ShardCost> {
        let costs = Costs { shape: self, pass };
        Shard::all(self.n_layer).into_iter().map(|shard| costs.of(shard)).collect()
    }

    fn residual(&self, n_tokens: u32) -> Bytes {
        Bytes::new(F32 * u64::from(n_tokens) * u64::from(self.n_embd))
    }
}

/// The shards of one model in one pass.
#[derive(Clone, Copy)]
struct Costs<'a> {
    shape: &'a ModelShape,
    pass: Pass,
}

impl Costs<'_> {
    fn of(&self, shard: Shard) -> ShardCost {
        let (ops, kv, kv_used) = match shard {
            Shard::Embedding => (vec![self.light(2, self.shape.n_embd)], 0, 0),
            Shard::Attention { layer } => {
                let seen = self.seen(layer, self.pass.n_kv);
                (self.attention(layer), self.kv(self.cells(layer)), self.kv(seen))
            }
            Shard::Ffn { layer } => (self.ffn(layer), 0, 0),
            Shard::Output => (self.output(), 0, 0),
        };
        let shared_with_output = shard == Shard::Embedding && self.shape.tied;
        let weights = match shard {
            Shard::Embedding => self.table(self.shape.formats.embedding),
            _ => ops.iter().map(OpCost::weights).sum(),
        };
        let scratch = self.scratch(shard);
        let (kv, kv_used) = (Bytes::new(kv), Bytes::new(kv_used));
        let unread = ShardCost::unread_by(&ops);
        ShardCost { shard, weights, unread, shared_with_output, kv, kv_used, scratch, ops }
    }

    fn attention(&self, layer: u32) -> Vec<OpCost> {
        let (shape, heads, formats) = (self.shape, self.shape.heads, self.shape.formats);
        let query_width = heads.n_head * heads.key_dim;
        let key_width = heads.n_kv_head * heads.key_dim;
        let value_width = heads.n_kv_head * heads.value_dim;
        let mut ops = vec![
            self.light(2, shape.n_embd),
            self.product(formats.q, query_width, shape.n_embd),
            self.product(formats.k, key_width, shape.n_embd),
            self.product(formats.v, value_width, shape.n_embd),
        ];
        if shape.qk_norm {
            ops.extend([self.light(2, query_width), self.light(2, key_width)]);
        }
        ops.extend([
            self.light(2, query_width),
            self.light(2, key_width),
            self.light(1, key_width),
            self.light(1, value_width),
            OpCost::Attention {
                shape: heads,
                n_tokens: self.pass.n_tokens,
                n_kv: self.seen(layer, self.pass.n_kv),
            },
            self.product(formats.attention_out, shape.n_embd, heads.n_head * heads.value_dim),
            self.light(3, shape.n_embd),
        ]);
        ops
    }

    fn ffn(&self, layer: u32) -> Vec<OpCost> {
        let (n_embd, formats) = (self.shape.n_embd, self.shape.formats);
        // After the last attention only tokens whose logits are wanted matter.
        let last = layer + 1 == self.shape.n_layer;
        let pass = Pass {
            n_tokens: if last { self.pass.n_outputs } else { self.pass.n_tokens },
            ..self.pass
        };
        let this = Costs { pass, ..*self };
        match self.shape.ffn {
            Ffn::Dense { n_ff } => vec![
                this.light(2, n_embd),
                this.product(formats.gate, n_ff, n_embd),
                this.product(formats.up, n_ff, n_embd),
                this.light(3, n_ff),
                this.product(formats.down, n_embd, n_ff),
                this.light(3, n_embd),
            ],
            Ffn::Experts { n_expert, n_used, n_ff } => {
                let experts = |format: Format| OpCost::Experts {
                    format,
                    expert: format.bytes(u64::from(n_ff) * u64::from(n_embd)),
                    n_expert,
                    n_used,
                    n_tokens: pass.n_tokens,
                };
                vec![
                    this.light(2, n_embd),
                    this.product(Format::F32, n_expert, n_embd),
                    this.light(1, n_expert),
                    experts(formats.gate),
                    experts(formats.up),
                    this.light(3, n_ff * n_used),
                    experts(formats.down),
                    this.light(1, n_embd * (n_used + 1)),
                    this.light(3, n_embd),
                ]
            }
        }
    }

    fn output(&self) -> Vec<OpCost> {
        let n_tokens = self.pass.n_outputs;
        let weights = self.table(self.shape.formats.output);
        let row = Bytes::new(F32 * u64::from(self.shape.n_embd) * u64::from(n_tokens));
        vec![
            OpCost::Light { bytes: row * 2 },
            OpCost::Light { bytes: row * 2 },
            OpCost::Product { format: self.shape.formats.output, weights, n_tokens },
        ]
    }

    fn product(&self, format: Format, rows: u32, columns: u32) -> OpCost {
        let weights = format.bytes(u64::from(rows) * u64::from(columns));
        OpCost::Product { format, weights, n_tokens: self.pass.n_tokens }
    }

    /// An op that reads or writes rows of `width` so many times.
    fn light(&self, times: u64, width: u32) -> OpCost {
        let row = times * F32 * u64::from(width);
        OpCost::Light { bytes: Bytes::new(row * u64::from(self.pass.n_tokens)) }
    }

    fn table(&self, format: Format) -> Bytes {
        format.bytes(u64::from(self.shape.n_vocab) * u64::from(self.shape.n_embd))
    }

    /// Of `n_kv` cells those that the layer's attention sees.
    fn seen(&self, layer: u32, n_kv: u32) -> u32 {
        self.shape.window_of(layer).map_or(n_kv, |window| window.min(n_kv))
    }

    /// Cells that the layer has room for: a window keeps those that the tokens of the largest pass still see.
    fn cells(&self, layer: u32) -> u32 {
        let n_tokens = self.pass.n_tokens.max(N_UBATCH);
        let kept = |window: u32| (window - 1).saturating_add(n_tokens).min(self.pass.n_ctx);
        self.shape.window_of(layer).map_or(self.pass.n_ctx, kept)
    }

    fn kv(&self, n_cells: u32) -> u64 {
        let heads = self.shape.heads;
        F16 * u64::from(n_cells)
            * u64::from(heads.n_kv_head)
            * u64::from(heads.key_dim + heads.value_dim)
    }

    /// Activations of the pass, all of which have room of their own; the output needs logits besides.
    fn scratch(&self, shard: Shard) -> Bytes {
        let shape = self.shape;
        let heads = shape.heads;
        let n_embd = u64::from(shape.n_embd);
        let attention =
            u64::from(heads.n_head + heads.n_kv_head) * u64::from(heads.key_dim + heads.value_dim);
        let ffn = match shape.ffn {
            Ffn::Dense { n_ff } => 2 * u64::from(n_ff),
            Ffn::Experts { n_expert, n_used, n_ff } => {
                u64::from(n_used) * (2 * u64::from(n_ff) + n_embd + 2) + u64::from(n_expert)
            }
        };
        let per_token = 2 * n_embd + attention + ffn;
        let mut values = per_token * u64::from(self.pass.n_tokens);
        if shard == Shard::Output {
            values += (n_embd + u64::from(shape.n_vocab)) * u64::from(self.pass.n_outputs);
        }
        let indices = u64::from(self.pass.n_ctx) + 8 * u64::from(self.pass.n_tokens);
        Bytes::new(F32 * (values + indices))
    }
}

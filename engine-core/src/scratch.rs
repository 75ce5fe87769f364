//! Activation space of one device: which array lies where, laid out once for the largest pass.
//!
//! Knows sizes only; the owner of the buffer says which one it is.

use planner::Bytes;

use crate::backend::BufferId;
use crate::kv::KvGroups;
use crate::model::{FfnConfig, ModelConfig};
use crate::op::View;
use crate::weights::DType;

/// Arrays start at multiples of this, so that vector loads never cross a cache line.
pub(crate) const ALIGNMENT: u64 = 64;

/// Limits of any one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassLimits {
    /// Tokens.
    pub n_tokens: u32,
    /// Tokens whose logits are wanted.
    pub n_outputs: u32,
    /// KV cells seen by all sequences together.
    pub n_cells: u32,
}

/// Views of a pass: inputs written by the host, activations, results.
#[derive(Debug, Clone, PartialEq)]
pub struct PassViews {
    /// `[1, n_tokens]` I32.
    pub token_ids: View,
    /// `[n_tokens, 3]` I32.
    pub positions: View,
    /// For each group of layers.
    pub cells: Vec<CellViews>,
    /// `[n_tokens, 2]` I32: each token's range of the cells seen, the same in all groups.
    pub spans: View,
    /// `[1, n_outputs]` I32: tokens whose logits are wanted.
    pub output_rows: View,
    /// `[1, n_rot / 2]` f32 for each rotation of the model.
    pub inv_freq: Vec<View>,
    /// `[n_tokens, n_embd]`.
    pub residual: View,
    /// `[n_tokens, n_embd]`: input of a block, then its result.
    pub hidden: View,
    /// `[n_tokens, n_head · key_dim]`.
    pub q: View,
    /// `[n_tokens, n_kv_head · key_dim]`.
    pub k: View,
    /// `[n_tokens, n_kv_head · value_dim]`.
    pub v: View,
    /// `[n_tokens, n_head · value_dim]`.
    pub heads: View,
    /// Within an FFN.
    pub ffn: FfnViews,
    /// `[n_outputs, n_embd]`: the residual of the tokens whose logits are wanted, from the last FFN on.
    pub output_residual: View,
    /// `[n_outputs, n_vocab]`.
    pub logits: View,
}

/// KV cells of one group of layers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellViews {
    /// `[1, n_tokens]` I32: the cell of each token.
    pub written: View,
    /// `[1, n_cells]` I32: cells of all sequences of the pass, each sequence in order.
    pub seen: View,
}

/// What an FFN computes between its input and its result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FfnViews {
    /// `[n_tokens, n_ff]`, with experts `[n_tokens · n_used, n_ff]`.
    pub gate: View,
    /// Like `gate`.
    pub up: View,
    /// Present in models with experts.
    pub routing: Option<RoutingViews>,
}

/// Views that only models with experts need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoutingViews {
    /// `[n_tokens, n_expert]` f32.
    pub logits: View,
    /// `[n_tokens, n_used]` I32.
    pub experts: View,
    /// `[n_tokens, n_used]` f32.
    pub shares: View,
    /// `[n_tokens · n_used, n_embd]` f32.
    pub down: View,
}

/// Where in which buffer something begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The buffer.
    pub buffer: BufferId,
    /// Bytes before it.
    pub offset: Bytes,
}

impl Place {
    /// The start of a buffer.
    pub fn start_of(buffer: BufferId) -> Place {
        Place { buffer, offset: Bytes::ZERO }
    }

    /// A place for what is not there: an op that used it would be refused by any backend.
    pub const NOWHERE: Place = Place { buffer: BufferId(u32::MAX), offset: Bytes::ZERO };
}

/// Places arrays one after the other.
pub(crate) struct Layout {
    next: Place,
}

impl Layout {
    pub(crate) fn new(start: Place) -> Layout {
        Layout { next: start }
    }

    /// Where the next array would begin.
    pub(crate) fn end(&self) -> Bytes {
        self.next.offset
    }

    pub(crate) fn place(&mut self, rows: u32, columns: u32, dtype: DType) -> View {
        let Place { buffer, offset } = self.next;
        let view = View { buffer, offset, shape: [rows, columns], dtype };
        self.next.offset = (offset + view.bytes()).align_up(ALIGNMENT);
        view
    }

    fn f32(&mut self, rows: u32, columns: u32) -> View {
        self.place(rows, columns, DType::F32)
    }

    fn i32(&mut self, rows: u32, columns: u32) -> View {
        self.place(rows, columns, DType::I32)
    }
}

impl PassViews {
    /// Lays out the largest pass of a model whose KV cells are in `groups`, from `start` on; gives the views and the room
    /// that they take.
    pub fn layout(
        config: &ModelConfig,
        groups: &KvGroups,
        limits: PassLimits,
        start: Place,
    ) -> (PassViews, Bytes) {
        let mut layout = Layout::new(start);
        let n = limits.n_tokens;
        let n_kv_groups = groups.all().len();
        let views = PassViews {
            token_ids: layout.i32(1, n),
            positions: layout.i32(n, 3),
            cells: (0..n_kv_groups)
                .map(|_| CellViews {
                    written: layout.i32(1, n),
                    seen: layout.i32(1, limits.n_cells),
                })
                .collect(),
            spans: layout.i32(n, 2),
            output_rows: layout.i32(1, limits.n_outputs),
            inv_freq: config.ropes.iter().map(|rope| layout.f32(1, rope.n_rot / 2)).collect(),
            residual: layout.f32(n, config.n_embd),
            hidden: layout.f32(n, config.n_embd),
            q: layout.f32(n, config.query_width()),
            k: layout.f32(n, config.key_width()),
            v: layout.f32(n, config.value_width()),
            heads: layout.f32(n, config.attention_width()),
            ffn: FfnViews::layout(config, n, &mut layout),
            output_residual: layout.f32(limits.n_outputs, config.n_embd),
            logits: layout.f32(limits.n_outputs, config.n_vocab),
        };
        (views, layout.end().saturating_sub(start.offset))
    }

    /// From `start` on the residuals of ubatches that wait while another one is computed, and the room that they take.
    pub fn waiting(&self, n_ubatches: u32, start: Place) -> (Vec<View>, Bytes) {
        let mut layout = Layout::new(start);
        let [rows, columns] = self.residual.shape;
        let views = (0..n_ubatches).map(|_| layout.f32(rows, columns)).collect();
        (views, layout.end().saturating_sub(start.offset))
    }

    /// The same arrays with the residual elsewhere.
    pub fn with_residual(self, residual: View) -> PassViews {
        PassViews { residual: residual.first_rows(self.residual.rows()), ..self }
    }

    /// The same arrays cut to the size of one pass.
    pub fn cut(&self, pass: PassLimits) -> PassViews {
        let PassLimits { n_tokens, n_outputs, n_cells } = pass;
        let columns = |view: View, n: u32| View { shape: [1, n], ..view };
        PassViews {
            token_ids: columns(self.token_ids, n_tokens),
            positions: self.positions.first_rows(n_tokens),
            cells: self
                .cells
                .iter()
                .map(|group| CellViews {
                    written: columns(group.written, n_tokens),
                    seen: columns(group.seen, n_cells),
                })
                .collect(),
            spans: self.spans.first_rows(n_tokens),
            output_rows: columns(self.output_rows, n_outputs),
            inv_freq: self.inv_freq.clone(),
            residual: self.residual.first_rows(n_tokens),
            hidden: self.hidden.first_rows(n_tokens),
            q: self.q.first_rows(n_tokens),
            k: self.k.first_rows(n_tokens),
            v: self.v.first_rows(n_tokens),
            heads: self.heads.first_rows(n_tokens),
            ffn: self.ffn.cut(n_tokens),
            output_residual: self.output_residual.first_rows(n_outputs),
            logits: self.logits.first_rows(n_outputs),
        }
    }
}

impl FfnViews {
    fn layout(config: &ModelConfig, n_tokens: u32, layout: &mut Layout) -> FfnViews {
        let (n_rows, n_ff, experts) = match config.ffn {
            FfnConfig::Dense { n_ff } => (n_tokens, n_ff, None),
            FfnConfig::Experts(experts) => (n_tokens * experts.n_used, experts.n_ff, Some(experts)),
        };
        FfnViews {
            gate: layout.f32(n_rows, n_ff),
            up: layout.f32(n_rows, n_ff),
            routing: experts.map(|experts| RoutingViews {
                logits: layout.f32(n_tokens, experts.n_expert),
                experts: layout.i32(n_tokens, experts.n_used),
                shares: layout.f32(n_tokens, experts.n_used),
                down: layout.f32(n_rows, config.n_embd),
            }),
        }
    }

    /// The same arrays cut to some tokens.
    pub fn cut(self, n_tokens: u32) -> FfnViews {
        // With experts, a token has several rows.
        let n_rows = self.routing.map_or(1, |routing| routing.experts.columns()) * n_tokens;
        FfnViews {
            gate: self.gate.first_rows(n_rows),
            up: self.up.first_rows(n_rows),
            routing: self.routing.map(|routing| RoutingViews {
                logits: routing.logits.first_rows(n_tokens),
                experts: routing.experts.first_rows(n_tokens),
                shares: routing.shares.first_rows(n_tokens),
                down: routing.down.first_rows(n_rows),
            }),
        }
    }
}

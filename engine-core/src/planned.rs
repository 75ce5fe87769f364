//! A model as the planner sees it: the ops of each shard, priced, without reading weights or asking a device.

use std::path::Path;

use planner::{Bytes, OpCost, Pass, Shard, ShardCost};

use crate::cost::{format, in_vram};
use crate::engine::EngineOptions;
use crate::error::EngineError;
use crate::kv::{KvGroups, KvViews};
use crate::model::{Lowering, Model, ModelError, ModelTensors, StoredMatrix};
use crate::op::View;
use crate::scratch::{PassLimits, PassViews, Place};
use crate::weights::{DType, ModelFiles};

/// Sizes of a model and of the arrays that running it takes, from the header of its files.
///
/// The ops that it prices are those that the executor would run, and its bytes those that it would take.
#[derive(Debug)]
pub struct PlannedModel {
    name: String,
    model: Model,
    /// In no buffer: nothing is ever computed with them.
    tensors: ModelTensors<View>,
    kv_dtype: DType,
    n_ubatch: u32,
    n_outputs: u32,
}

impl PlannedModel {
    /// The model at `path`, as an engine with these options would run it.
    ///
    /// # Errors
    /// Files that cannot be read or hold no supported model.
    pub fn open(path: &Path, options: &EngineOptions) -> Result<PlannedModel, EngineError> {
        let files = ModelFiles::open(path)?;
        let bad_model = |error| EngineError::Model { path: path.to_owned(), error };
        let model = Model::of(&files).map_err(bad_model)?;
        PlannedModel::of(path, model, options).map_err(bad_model)
    }

    /// The model that was read from `path`.
    ///
    /// # Errors
    /// Tensors in a format that no engine computes with.
    pub(crate) fn of(
        path: &Path,
        model: Model,
        options: &EngineOptions,
    ) -> Result<PlannedModel, ModelError> {
        let unknown = model.matrices().find(|(_, stored)| format(stored.dtype).is_none());
        if let Some((name, StoredMatrix { dtype, .. })) = unknown {
            return Err(ModelError::TensorType { name: name.into(), dtype });
        }
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let tensors = model.tensors.map(|stored| View {
            buffer: Place::NOWHERE.buffer,
            offset: stored.offset,
            shape: stored.shape,
            dtype: stored.dtype,
        });
        let EngineOptions { n_ubatch, n_outputs, .. } = *options;
        Ok(PlannedModel { name, model, tensors, kv_dtype: options.kv.dtype(), n_ubatch, n_outputs })
    }

    /// The model itself.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Layers that share KV cells, in an engine that runs passes like this one among others.
    fn kv_groups(&self, pass: Pass) -> KvGroups {
        let n_tokens = self.n_ubatch.max(pass.n_tokens).min(pass.n_ctx);
        let n_outputs = self.n_outputs;
        let limits = PassLimits { n_tokens, n_outputs, n_cells: pass.n_ctx };
        KvGroups::of(&self.model.config.layers, limits)
    }
}

impl planner::Model for PlannedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn n_layer(&self) -> u32 {
        self.model.config.n_layer()
    }

    fn n_ctx_train(&self) -> u32 {
        self.model.config.n_ctx_train
    }

    fn shards(&self, pass: Pass) -> Vec<ShardCost> {
        let Pass { n_tokens, n_outputs, n_kv, n_ctx } = pass;
        let config = &self.model.config;
        let groups = self.kv_groups(pass);
        let (kv, _) = KvViews::layout(config, &groups, self.kv_dtype, Place::NOWHERE.buffer);
        let limits =
            PassLimits { n_tokens, n_outputs: self.n_outputs.min(n_tokens), n_cells: n_ctx };
        let (views, scratch) = PassViews::layout(config, &groups, limits, Place::NOWHERE);
        let n_outputs = n_outputs.min(limits.n_outputs);
        let usual = views.cut(PassLimits { n_tokens, n_outputs, n_cells: n_kv });
        let lowering = |pass| Lowering { config, tensors: &self.tensors, kv: &kv, pass };
        let costs = Shard::all(config.n_layer()).into_iter().map(|shard| ShardCost {
            // Another pass may want more logits.
            unread: ShardCost::unread_by(&priced(shard, &lowering(&views))),
            ..self.cost(shard, &lowering(&usual), scratch)
        });
        costs.collect()
    }

    fn residual(&self, n_tokens: u32) -> Bytes {
        let row = DType::F32.row_bytes(self.model.config.n_embd.into());
        row.expect("floats fill any row") * n_tokens.into()
    }

    fn n_ubatch(&self) -> Option<u32> {
        Some(self.n_ubatch)
    }
}

impl PlannedModel {
    fn cost(&self, shard: Shard, lowering: &Lowering<'_>, scratch: Bytes) -> ShardCost {
        let ops = priced(shard, lowering);
        let (kv, kv_used) = match shard {
            Shard::Attention { layer } => {
                let kv = lowering.kv[layer as usize];
                let cell = kv.k.row_bytes() + kv.v.row_bytes();
                (kv.room(), cell * cells_seen(&ops).into())
            }
            Shard::Embedding | Shard::Ffn { .. } | Shard::Output => (Bytes::ZERO, Bytes::ZERO),
        };
        let tied = self.model.tensors.embedding == self.model.tensors.output;
        ShardCost {
            shard,
            weights: self.weights(shard),
            unread: ShardCost::unread_by(&ops),
            shared_with_output: tied && shard == Shard::Embedding,
            kv,
            kv_used,
            scratch,
            ops,
        }
    }

    /// All tensors of a shard, norms and biases with them.
    fn weights(&self, shard: Shard) -> Bytes {
        let tensors = self.model.tensors.of_shard(shard);
        tensors.iter().map(|stored| in_vram(stored.bytes())).sum()
    }
}

/// What a shard's ops cost: the list that the executor runs.
fn priced(shard: Shard, lowering: &Lowering<'_>) -> Vec<OpCost> {
    let mut ops = Vec::new();
    lowering.lower(shard, &mut ops);
    ops.iter().map(OpCost::from).collect()
}

/// KV cells that the attention among `ops` reads.
fn cells_seen(ops: &[OpCost]) -> u32 {
    let seen = ops.iter().filter_map(|op| match *op {
        OpCost::Attention { n_kv, .. } => Some(n_kv),
        _ => None,
    });
    seen.max().unwrap_or(0)
}

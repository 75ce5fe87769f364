//! A model as the planner sees it: the ops of each shard, priced, without reading weights or asking a device.

use std::path::Path;

use planner::{Bytes, OpCost, Pass, Shard, ShardCost};

use crate::backend::BufferId;
use crate::cost::format;
use crate::engine::KvFormat;
use crate::error::EngineError;
use crate::executor::MemoryNeed;
use crate::kv::{KvGroups, KvViews};
use crate::model::{Lowering, Model, ModelError, ModelTensors, StoredMatrix};
use crate::op::View;
use crate::scratch::{PassLimits, PassViews};
use crate::weights::{DType, ModelFiles};

/// Views of a planned model lie in no buffer: nothing is ever computed with them.
const NOWHERE: BufferId = BufferId(0);

/// Sizes of a model and of the arrays that running it takes, from the header of its files.
///
/// The ops that it prices are those that the executor would run.
#[derive(Debug)]
pub struct PlannedModel {
    name: String,
    model: Model,
    tensors: ModelTensors<View>,
    kv_dtype: DType,
}

impl PlannedModel {
    /// The model at `path`, its KV cells stored as `kv`.
    ///
    /// # Errors
    /// Files that cannot be read or hold no supported model.
    pub fn open(path: &Path, kv: KvFormat) -> Result<PlannedModel, EngineError> {
        let files = ModelFiles::open(path)?;
        let bad_model = |error| EngineError::Model { path: path.to_owned(), error };
        let model = Model::of(&files).map_err(bad_model)?;
        let unknown = model.matrices().find(|(_, stored)| format(stored.dtype).is_none());
        if let Some((name, StoredMatrix { dtype, .. })) = unknown {
            return Err(bad_model(ModelError::TensorType { name: name.into(), dtype }));
        }
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let tensors = model.tensors.map(|stored| View {
            buffer: NOWHERE,
            offset: stored.offset,
            shape: stored.shape,
            dtype: stored.dtype,
        });
        Ok(PlannedModel { name, model, tensors, kv_dtype: kv.dtype() })
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
        let largest =
            PassLimits { n_tokens: pass.n_tokens, n_outputs: pass.n_outputs, n_cells: pass.n_ctx };
        let config = &self.model.config;
        let (views, _) = PassViews::layout(config, largest, NOWHERE);
        let groups = KvGroups::of(&config.layers, largest);
        let (kv, _) = KvViews::layout(config, &groups, self.kv_dtype, NOWHERE);
        let views = views.cut(PassLimits { n_cells: pass.n_kv, ..largest });
        let lowering = Lowering { config, tensors: &self.tensors, kv: &kv, pass: &views };
        let scratch = MemoryNeed::of(config, largest, self.kv_dtype).scratch;
        let shards = Shard::all(config.n_layer());
        shards.into_iter().map(|shard| self.cost(shard, &lowering, scratch)).collect()
    }

    fn residual(&self, n_tokens: u32) -> Bytes {
        let limits = PassLimits { n_tokens, n_outputs: 1, n_cells: 1 };
        PassViews::layout(&self.model.config, limits, NOWHERE).0.residual.bytes()
    }
}

impl PlannedModel {
    fn cost(&self, shard: Shard, lowering: &Lowering<'_>, scratch: Bytes) -> ShardCost {
        let ops = priced(shard, lowering);
        let (kv, kv_used) = match shard {
            Shard::Attention { layer } => {
                let KvViews { k, v, .. } = lowering.kv[layer as usize];
                let cell = k.row_bytes() + v.row_bytes();
                (k.bytes() + v.bytes(), cell * cells_seen(&ops).into())
            }
            Shard::Embedding | Shard::Ffn { .. } | Shard::Output => (Bytes::ZERO, Bytes::ZERO),
        };
        let tied = self.model.tensors.embedding == self.model.tensors.output;
        ShardCost {
            shard,
            weights: self.weights(shard),
            shared_with_output: tied && shard == Shard::Embedding,
            kv,
            kv_used,
            scratch,
            ops,
        }
    }

    /// All tensors of a shard, norms and biases with them.
    fn weights(&self, shard: Shard) -> Bytes {
        let tensors = &self.model.tensors;
        let mut sum = Bytes::ZERO;
        let mut add = |stored: &StoredMatrix| sum += stored.bytes();
        match shard {
            Shard::Embedding => add(&tensors.embedding),
            Shard::Attention { layer } => {
                tensors.layers[layer as usize].attention.map(&mut add);
            }
            Shard::Ffn { layer } => {
                tensors.layers[layer as usize].ffn.map(&mut add);
            }
            Shard::Output => {
                add(&tensors.output_norm);
                add(&tensors.output);
            }
        }
        sum
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

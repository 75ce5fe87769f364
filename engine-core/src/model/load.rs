//! A model as its files describe it: hyperparameters, and where each tensor lies.

use planner::Bytes;

use super::bind::{Bound, bind};
use super::config::ModelConfig;
use super::error::ModelError;
use super::names::Naming;
use super::shard::StoredMatrix;
use super::tensors::ModelTensors;
use super::{config_gguf, config_hf};
use crate::backend::{Backend, BufferId};
use crate::op::{GatherRows, MatMul, Op, View};
use crate::weights::{Checkpoint, DType, Gguf, ModelFiles, Weights};

/// A model whose files hold all that it needs.
#[derive(Debug)]
pub struct Model {
    /// Hyperparameters.
    pub config: ModelConfig,
    /// Where each tensor lies.
    pub tensors: ModelTensors<StoredMatrix>,
    /// Names of the tensors in use, for messages.
    named: Vec<(String, StoredMatrix)>,
}

impl Model {
    /// Reads hyperparameters and finds all tensors.
    ///
    /// # Errors
    /// An unknown architecture, missing or contradictory metadata, missing or misshapen tensors.
    pub fn of(files: &ModelFiles) -> Result<Model, ModelError> {
        match files {
            ModelFiles::Gguf(gguf) => Model::of_gguf(gguf),
            ModelFiles::Checkpoint(checkpoint) => Model::of_hf(checkpoint),
        }
    }

    fn of_gguf(gguf: &Gguf) -> Result<Model, ModelError> {
        let divisors = rope_divisors(&gguf.weights)?;
        let config = config_gguf::from_gguf(&gguf.metadata, divisors)?;
        let bound = bind(&gguf.weights, Naming::Gguf, &config)?;
        Ok(Model::new(config, bound))
    }

    fn of_hf(checkpoint: &Checkpoint) -> Result<Model, ModelError> {
        let config = config_hf::from_hf(&checkpoint.config)?;
        let bound = bind(&checkpoint.weights, Naming::HuggingFace, &config)?;
        Ok(Model::new(config, bound))
    }

    fn new(config: ModelConfig, bound: Bound) -> Model {
        let Bound { tensors, named } = bound;
        Model { config, tensors, named }
    }

    /// The matrices and their names in the files; vectors have one row and are left out.
    pub(crate) fn matrices(&self) -> impl Iterator<Item = (&str, StoredMatrix)> {
        let matrices = self.named.iter().filter(|(_, stored)| stored.shape[0] > 1);
        matrices.map(|(name, stored)| (name.as_str(), *stored))
    }

    /// Asks a backend whether it can compute with every tensor.
    ///
    /// # Errors
    /// [`ModelError::TensorType`] for the first tensor that it cannot compute with.
    pub fn check_supported(&self, backend: &dyn Backend) -> Result<(), ModelError> {
        for (name, stored) in &self.named {
            if !probes(*stored).iter().all(|op| backend.supports(op)) {
                return Err(ModelError::TensorType { name: name.clone(), dtype: stored.dtype });
            }
        }
        Ok(())
    }
}

/// The ops that read a tensor of this kind, on one token. The norms' vectors were checked when they were bound.
fn probes(stored: StoredMatrix) -> Vec<Op> {
    let [rows, columns] = stored.shape;
    if rows == 1 {
        return Vec::new();
    }
    let view = |shape, dtype| View { buffer: BufferId(0), offset: Bytes::ZERO, shape, dtype };
    let w = view(stored.shape, stored.dtype);
    let x = view([1, columns], DType::F32);
    vec![
        Op::MatMul(MatMul { x, w, y: view([1, rows], DType::F32) }),
        Op::GatherRows(GatherRows { table: w, rows: view([1, 1], DType::I32), y: x, scale: 1.0 }),
    ]
}

/// Divisors of the rope frequencies, when the file has them as a tensor.
fn rope_divisors(weights: &Weights) -> Result<Option<Vec<f32>>, ModelError> {
    let Some(tensor) = weights.get("rope_freqs.weight") else { return Ok(None) };
    match tensor.dtype()? {
        DType::F32 => {
            let bytes = weights.slice(tensor)?;
            let (numbers, _) = bytes.bytes().as_chunks::<4>();
            Ok(Some(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()))
        }
        dtype => Err(ModelError::TensorType { name: tensor.name().into(), dtype }),
    }
}

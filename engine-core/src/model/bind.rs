//! Finds every tensor of a model in its files, by the names of the files' kind, and checks its shape.

use std::collections::HashSet;

use super::config::{ExpertsConfig, FfnConfig, ModelConfig};
use super::error::ModelError;
use super::names::{Naming, Role};
use super::shard::StoredMatrix;
use super::tensors::{
    AttentionTensors, FfnTensors, Gated, LayerTensors, ModelTensors, Network, Projection,
};
use crate::weights::{DType, TensorInfo, Weights};

/// Finds all tensors of a model.
///
/// # Errors
/// A tensor that is missing, has another shape than the hyperparameters ask for, or is in an unknown format; and one
/// that the family has no use for, since leaving it out would give wrong answers in silence.
pub(super) fn bind(
    weights: &Weights,
    naming: Naming,
    config: &ModelConfig,
) -> Result<Bound, ModelError> {
    let mut binder = Binder { weights, naming, config, named: Vec::new() };
    let tensors = binder.model()?;
    binder.refuse_unused()?;
    Ok(Bound { tensors, named: binder.named })
}

/// The tensors of a model, found.
#[derive(Debug)]
pub(super) struct Bound {
    /// By role.
    pub(super) tensors: ModelTensors<StoredMatrix>,
    /// By name in the file.
    pub(super) named: Vec<(String, StoredMatrix)>,
}

struct Binder<'a> {
    weights: &'a Weights,
    naming: Naming,
    config: &'a ModelConfig,
    named: Vec<(String, StoredMatrix)>,
}

impl<'a> Binder<'a> {
    fn model(&mut self) -> Result<ModelTensors<StoredMatrix>, ModelError> {
        let config = self.config;
        let vocabulary = [config.n_vocab, config.n_embd];
        let embedding = self.matrix(Role::Embedding, 0, vocabulary)?;
        let layers =
            (0..config.n_layer()).map(|layer| self.layer(layer)).collect::<Result<_, _>>()?;
        let output_norm = self.vector(Role::OutputNorm, 0, config.n_embd)?;
        // A model without an output matrix of its own uses the embedding for it.
        let output = if self.has(Role::Output, 0) {
            self.matrix(Role::Output, 0, vocabulary)?
        } else {
            embedding
        };
        Ok(ModelTensors { embedding, layers, output_norm, output })
    }

    fn layer(&mut self, layer: u32) -> Result<LayerTensors<StoredMatrix>, ModelError> {
        Ok(LayerTensors { attention: self.attention(layer)?, ffn: self.ffn(layer)? })
    }

    fn attention(&mut self, layer: u32) -> Result<AttentionTensors<StoredMatrix>, ModelError> {
        let config = self.config;
        let n_embd = config.n_embd;
        Ok(AttentionTensors {
            norm: self.vector(Role::AttentionNorm, layer, n_embd)?,
            q: self.projection(Role::Q, layer, [config.query_width(), n_embd])?,
            k: self.projection(Role::K, layer, [config.key_width(), n_embd])?,
            v: self.projection(Role::V, layer, [config.value_width(), n_embd])?,
            qk_norm: if config.family.qk_norm {
                let [q, k] = [Role::QNorm, Role::KNorm];
                Some([
                    self.vector(q, layer, config.key_dim)?,
                    self.vector(k, layer, config.key_dim)?,
                ])
            } else {
                None
            },
            out: self.projection(Role::AttentionOut, layer, [n_embd, config.attention_width()])?,
            post_norm: self.post_norm(Role::AttentionPostNorm, layer)?,
        })
    }

    fn ffn(&mut self, layer: u32) -> Result<FfnTensors<StoredMatrix>, ModelError> {
        Ok(FfnTensors {
            norm: self.vector(Role::FfnNorm, layer, self.config.n_embd)?,
            network: match self.config.ffn {
                FfnConfig::Dense { n_ff } => Network::Dense(self.dense(layer, n_ff)?),
                FfnConfig::Experts(experts) => self.experts(layer, experts)?,
            },
            post_norm: self.post_norm(Role::FfnPostNorm, layer)?,
        })
    }

    fn dense(&mut self, layer: u32, n_ff: u32) -> Result<Gated<StoredMatrix>, ModelError> {
        let n_embd = self.config.n_embd;
        Ok(Gated {
            gate: self.matrix(Role::Gate, layer, [n_ff, n_embd])?,
            up: self.matrix(Role::Up, layer, [n_ff, n_embd])?,
            down: self.matrix(Role::Down, layer, [n_embd, n_ff])?,
        })
    }

    fn experts(
        &mut self,
        layer: u32,
        experts: ExpertsConfig,
    ) -> Result<Network<StoredMatrix>, ModelError> {
        let (n_embd, n_ff) = (self.config.n_embd, experts.n_ff);
        let mut all = |role, shape| self.expert_matrices(role, layer, experts.n_expert, shape);
        let gated = Gated {
            gate: all(Role::ExpertsGate, [n_ff, n_embd])?.into(),
            up: all(Role::ExpertsUp, [n_ff, n_embd])?.into(),
            down: all(Role::ExpertsDown, [n_embd, n_ff])?.into(),
        };
        let router = self.matrix(Role::Router, layer, [experts.n_expert, n_embd])?;
        Ok(Network::Experts { router, experts: gated })
    }

    /// A matrix per expert: stacked in one tensor in GGUF, a tensor each in Hugging Face folders.
    fn expert_matrices(
        &mut self,
        role: Role,
        layer: u32,
        n_expert: u32,
        [rows, columns]: [u32; 2],
    ) -> Result<Vec<StoredMatrix>, ModelError> {
        match self.naming {
            Naming::Gguf => {
                let name = self.name(role, layer);
                let stack = self.stored(&name, &[n_expert, rows, columns])?;
                let one = StoredMatrix { shape: [rows, columns], ..stack };
                let bytes = one.bytes();
                Ok((0..u64::from(n_expert))
                    .map(|i| StoredMatrix { offset: one.offset + bytes * i, ..one })
                    .collect())
            }
            Naming::HuggingFace => (0..n_expert)
                .map(|expert| {
                    let name = format!("{}.weight", Naming::hf_expert(role, layer, expert));
                    self.stored(&name, &[rows, columns])
                })
                .collect(),
        }
    }

    fn post_norm(&mut self, role: Role, layer: u32) -> Result<Option<StoredMatrix>, ModelError> {
        self.config
            .family
            .post_norms
            .then(|| self.vector(role, layer, self.config.n_embd))
            .transpose()
    }

    fn projection(
        &mut self,
        role: Role,
        layer: u32,
        shape: [u32; 2],
    ) -> Result<Projection<StoredMatrix>, ModelError> {
        let weight = self.matrix(role, layer, shape)?;
        let bias = format!("{}.bias", self.stem(role, layer));
        let bias = self
            .weights
            .get(&bias)
            .is_some()
            .then(|| self.stored_vector(&bias, shape[0]))
            .transpose()?;
        Ok(Projection { weight, bias })
    }

    fn matrix(
        &mut self,
        role: Role,
        layer: u32,
        shape: [u32; 2],
    ) -> Result<StoredMatrix, ModelError> {
        let name = self.name(role, layer);
        self.stored(&name, &shape)
    }

    fn vector(&mut self, role: Role, layer: u32, len: u32) -> Result<StoredMatrix, ModelError> {
        let name = self.name(role, layer);
        self.stored_vector(&name, len)
    }

    fn stored_vector(&mut self, name: &str, len: u32) -> Result<StoredMatrix, ModelError> {
        let vector = self.stored(name, &[len])?;
        match vector.dtype {
            DType::F32 | DType::F16 | DType::BF16 => Ok(vector),
            dtype => Err(ModelError::TensorType { name: name.into(), dtype }),
        }
    }

    fn has(&self, role: Role, layer: u32) -> bool {
        self.weights.get(&self.name(role, layer)).is_some()
    }

    fn stem(&self, role: Role, layer: u32) -> String {
        self.naming.stem(role, layer, self.config.family)
    }

    fn name(&self, role: Role, layer: u32) -> String {
        format!("{}.weight", self.stem(role, layer))
    }

    /// A tensor of exactly this shape, slowest dimension first; as one matrix, all but the last dimension joined.
    fn stored(&mut self, name: &str, shape: &[u32]) -> Result<StoredMatrix, ModelError> {
        let tensor = self
            .weights
            .get(name)
            .ok_or_else(|| ModelError::MissingTensor { name: name.into() })?;
        let expected: Vec<u64> = shape.iter().copied().map(u64::from).collect();
        let matrix = tensor.shape().matrix().filter(|_| tensor.shape().dims() == expected);
        let Some(shape) = matrix else {
            return Err(ModelError::TensorShape {
                name: name.into(),
                found: tensor.shape().dims().to_vec(),
                expected,
            });
        };
        let dtype = tensor.dtype()?;
        let stored =
            StoredMatrix { region: tensor.region(), offset: tensor.offset().into(), shape, dtype };
        self.named.push((name.into(), stored));
        Ok(stored)
    }

    fn refuse_unused(&self) -> Result<(), ModelError> {
        let used: HashSet<&str> = self.named.iter().map(|(name, _)| name.as_str()).collect();
        let unused = self
            .weights
            .tensors()
            .iter()
            .map(TensorInfo::name)
            .find(|name| !used.contains(*name) && !self.is_idle(name));
        match unused {
            Some(name) => Err(ModelError::UnusedTensor {
                name: name.into(),
                family: self.config.family.gguf_name,
            }),
            None => Ok(()),
        }
    }

    /// Whether a tensor takes no part in decoding: constants that are computed here or were read with the
    /// hyperparameters, and blocks past the last layer, which predict several tokens ahead.
    fn is_idle(&self, name: &str) -> bool {
        self.naming.layer_of(name).is_some_and(|layer| layer >= self.config.n_layer())
            || name == "rope_freqs.weight"
            || name.ends_with("rotary_emb.inv_freq")
    }
}

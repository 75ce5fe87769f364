//! The tensors of a model by their part in it, generic over what stands for a tensor: its place in a file, or the
//! view of it that a device computes with.

use std::sync::Arc;

/// All tensors of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTensors<T> {
    /// `[n_vocab, n_embd]`.
    pub embedding: T,
    /// In order.
    pub layers: Vec<LayerTensors<T>>,
    /// `[1, n_embd]`.
    pub output_norm: T,
    /// `[n_vocab, n_embd]`; the embedding again where the model ties the two.
    pub output: T,
}

/// Tensors of one layer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerTensors<T> {
    /// Its attention shard.
    pub attention: AttentionTensors<T>,
    /// Its FFN shard.
    pub ffn: FfnTensors<T>,
}

/// Tensors of a layer's attention.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionTensors<T> {
    /// `[1, n_embd]`.
    pub norm: T,
    /// `[n_head · key_dim, n_embd]`.
    pub q: Projection<T>,
    /// `[n_kv_head · key_dim, n_embd]`.
    pub k: Projection<T>,
    /// `[n_kv_head · value_dim, n_embd]`.
    pub v: Projection<T>,
    /// `[1, key_dim]` each: norms of the heads of q and k.
    pub qk_norm: Option<[T; 2]>,
    /// `[n_embd, n_head · value_dim]`.
    pub out: Projection<T>,
    /// `[1, n_embd]`.
    pub post_norm: Option<T>,
}

/// A weight matrix `[n, k]`, with a bias `[1, n]` where the file has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection<T> {
    /// The matrix.
    pub weight: T,
    /// Added to each row of the product.
    pub bias: Option<T>,
}

/// Tensors of a layer's FFN or group of experts.
#[derive(Debug, Clone, PartialEq)]
pub struct FfnTensors<T> {
    /// `[1, n_embd]`.
    pub norm: T,
    /// The network itself.
    pub network: Network<T>,
    /// `[1, n_embd]`.
    pub post_norm: Option<T>,
}

/// A gated network, or many of them behind a router.
#[derive(Debug, Clone, PartialEq)]
pub enum Network<T> {
    /// One gated network.
    Dense(Gated<T>),
    /// A router `[n_expert, n_embd]`, and a matrix per expert.
    Experts {
        /// Scores the experts.
        router: T,
        /// Their matrices.
        experts: Gated<Arc<[T]>>,
    },
}

/// The three matrices of a gated network.
#[derive(Debug, Clone, PartialEq)]
pub struct Gated<T> {
    /// `[n_ff, n_embd]`.
    pub gate: T,
    /// `[n_ff, n_embd]`.
    pub up: T,
    /// `[n_embd, n_ff]`.
    pub down: T,
}

impl<T> ModelTensors<T> {
    /// The same model with every tensor replaced by what `f` makes of it.
    pub fn map<U>(&self, mut f: impl FnMut(&T) -> U) -> ModelTensors<U> {
        ModelTensors {
            embedding: f(&self.embedding),
            layers: self
                .layers
                .iter()
                .map(|layer| LayerTensors {
                    attention: layer.attention.map(&mut f),
                    ffn: layer.ffn.map(&mut f),
                })
                .collect(),
            output_norm: f(&self.output_norm),
            output: f(&self.output),
        }
    }
}

impl<T> AttentionTensors<T> {
    /// The same attention with every tensor replaced by what `f` makes of it.
    pub fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> AttentionTensors<U> {
        AttentionTensors {
            norm: f(&self.norm),
            q: self.q.map(f),
            k: self.k.map(f),
            v: self.v.map(f),
            qk_norm: self.qk_norm.as_ref().map(|[q, k]| [f(q), f(k)]),
            out: self.out.map(f),
            post_norm: self.post_norm.as_ref().map(f),
        }
    }
}

impl<T> Projection<T> {
    fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> Projection<U> {
        Projection { weight: f(&self.weight), bias: self.bias.as_ref().map(f) }
    }
}

impl<T> FfnTensors<T> {
    /// The same FFN with every tensor replaced by what `f` makes of it.
    pub fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> FfnTensors<U> {
        FfnTensors {
            norm: f(&self.norm),
            network: match &self.network {
                Network::Dense(gated) => Network::Dense(gated.map(&mut *f)),
                Network::Experts { router, experts } => Network::Experts {
                    router: f(router),
                    experts: experts.map(|all| all.iter().map(&mut *f).collect()),
                },
            },
            post_norm: self.post_norm.as_ref().map(f),
        }
    }
}

impl<T> Gated<T> {
    fn map<U>(&self, mut f: impl FnMut(&T) -> U) -> Gated<U> {
        Gated { gate: f(&self.gate), up: f(&self.up), down: f(&self.down) }
    }
}

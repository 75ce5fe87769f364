//! How a model is cut, below the layer so that attention and FFN can live in different places, and where its pieces lie
//! in its files.

use planner::Bytes;
pub use planner::Shard;

use super::tensors::{ModelTensors, Network};

/// Where a matrix or vector lies in the model's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoredMatrix {
    /// Which of the mapped files.
    pub region: usize,
    /// Where in the file it starts.
    pub offset: Bytes,
    /// Rows and columns, in values; a vector is one row.
    pub shape: [u32; 2],
    /// How its values are stored.
    pub dtype: crate::weights::DType,
}

impl StoredMatrix {
    /// Bytes of the whole matrix.
    pub fn bytes(&self) -> Bytes {
        let row = self.dtype.row_bytes(self.shape[1].into());
        row.expect("rows were checked to be whole blocks when the file was read")
            * u64::from(self.shape[0])
    }
}

impl<T: Copy> ModelTensors<T> {
    /// All tensors of a shard. Those of all shards in running order are visited so by [`map`](ModelTensors::map).
    pub fn of_shard(&self, shard: Shard) -> Vec<T> {
        let mut all = Vec::new();
        let mut add = |tensor: &T| all.push(*tensor);
        match shard {
            Shard::Embedding => add(&self.embedding),
            Shard::Attention { layer } => {
                self.layers[layer as usize].attention.map(&mut add);
            }
            Shard::Ffn { layer } => {
                self.layers[layer as usize].ffn.map(&mut add);
            }
            Shard::Output => {
                add(&self.output_norm);
                add(&self.output);
            }
        }
        all
    }

    /// The matrices that each product of a shard reads, in the order of its ops: one, or those of a group of experts.
    pub fn products(&self, shard: Shard) -> Vec<Vec<T>> {
        match shard {
            Shard::Embedding => Vec::new(),
            Shard::Attention { layer } => {
                let attention = &self.layers[layer as usize].attention;
                let projections = [&attention.q, &attention.k, &attention.v, &attention.out];
                projections.map(|projection| vec![projection.weight]).into()
            }
            Shard::Ffn { layer } => match &self.layers[layer as usize].ffn.network {
                Network::Dense(gated) => [gated.gate, gated.up, gated.down].map(|w| vec![w]).into(),
                Network::Experts { router, experts } => {
                    let groups = [&experts.gate, &experts.up, &experts.down];
                    let groups = groups.into_iter().map(|group| group.to_vec());
                    std::iter::once(vec![*router]).chain(groups).collect()
                }
            },
            Shard::Output => vec![vec![self.output]],
        }
    }
}

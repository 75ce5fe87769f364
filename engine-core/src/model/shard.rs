//! How a model is cut: below the layer, so that attention and FFN can live in different places.

use planner::Bytes;

/// A piece of the model that lives in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shard {
    /// The token embedding.
    Embedding,
    /// Attention of a layer; its KV cells go with it.
    Attention {
        /// The layer.
        layer: u32,
    },
    /// FFN or experts of a layer.
    Ffn {
        /// The layer.
        layer: u32,
    },
    /// Final norm and output matrix.
    Output,
}

impl Shard {
    /// The shards of a model with `n_layer` layers, in the order in which they run.
    pub fn all(n_layer: u32) -> Vec<Shard> {
        let layers =
            (0..n_layer).flat_map(|layer| [Shard::Attention { layer }, Shard::Ffn { layer }]);
        std::iter::once(Shard::Embedding).chain(layers).chain([Shard::Output]).collect()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_in_running_order() {
        let expected = [
            Shard::Embedding,
            Shard::Attention { layer: 0 },
            Shard::Ffn { layer: 0 },
            Shard::Attention { layer: 1 },
            Shard::Ffn { layer: 1 },
            Shard::Output,
        ];
        assert_eq!(Shard::all(2), expected);
    }
}

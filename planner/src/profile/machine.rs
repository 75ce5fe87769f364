//! What was measured on a machine, as written to and read from a TOML file.

use serde::{Deserialize, Serialize};

use crate::cost::AttentionShape;
use crate::format::Format;
use crate::units::{Bytes, BytesPerSec, Seconds};

/// Version of the file's layout.
pub const PROFILE_SCHEMA: u32 = 1;

/// The measured rates of one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineProfile {
    /// Version of the layout, [`PROFILE_SCHEMA`].
    pub schema: u32,
    /// Short name.
    pub name: String,
    /// What it is, and how and when its figures came about.
    pub provenance: String,
    /// Fixed time of a pass outside of all shards: building it, choosing a token.
    pub pass: Seconds,
    /// Fixed time of a request before its first pass.
    pub request: Seconds,
    /// The CPU and its memory.
    pub cpu: CpuProfile,
    /// The GPU, if there is one, and the way to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuProfile>,
}

/// The CPU and its memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuProfile {
    /// Name of the processor.
    pub name: String,
    /// Threads that computed.
    pub threads: u32,
    /// Memory of the machine.
    pub ram: Bytes,
    /// What memory gives to the CPU and to copies together.
    pub dram: BytesPerSec,
    /// What it takes to compute.
    pub kernels: Kernels,
}

/// The GPU and the way to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuProfile {
    /// Name of the card.
    pub name: String,
    /// Its memory.
    pub vram: Bytes,
    /// What the driver takes of it before anything is stored: context, modules, workspace.
    pub driver: Bytes,
    /// Copies and hand-offs.
    pub link: Link,
    /// What it takes to compute.
    pub kernels: Kernels,
}

/// The way between host memory and VRAM.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Host to device from page-locked memory, nothing else running.
    pub h2d: BytesPerSec,
    /// The same while the CPU computes.
    pub h2d_while_cpu: BytesPerSec,
    /// Host to device from memory that is not page-locked.
    pub h2d_pageable: BytesPerSec,
    /// Device to host, nothing else running.
    pub d2h: BytesPerSec,
    /// The same while the CPU computes.
    pub d2h_while_cpu: BytesPerSec,
    /// Fixed time of a hand-off between CPU and GPU.
    pub handoff: Seconds,
    /// Fixed time of starting a split on the GPU.
    pub submit: Seconds,
    /// Of copying and GPU computing at once: the share of the shorter of the two that is not hidden, from 0 to 1.
    pub overlap_loss: f64,
}

/// What it takes a device to compute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernels {
    /// Fixed time of an op. The times of products and attention below do not contain it.
    pub op: Seconds,
    /// Rate of ops that only pass over memory.
    pub memory: BytesPerSec,
    /// Products with weights.
    pub products: Vec<ProductTimes>,
    /// Attention.
    pub attention: Vec<AttentionTimes>,
}

/// What is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProductKind {
    /// One matrix with all tokens.
    Dense,
    /// The matrices of experts, each with its tokens.
    Experts,
}

/// Times of products with a matrix of one format and size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProductTimes {
    /// How the matrix is stored.
    pub format: Format,
    /// What is multiplied.
    pub kind: ProductKind,
    /// Size of the matrix; of experts, of one.
    pub weights: Bytes,
    /// In rising order of tokens, the first for one token.
    pub points: Vec<ProductPoint>,
}

/// One measured product, in a file `[n_tokens, seconds]` or `[n_tokens, seconds, spread]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "ProductRow", into = "ProductRow")]
pub struct ProductPoint {
    /// Rows multiplied with the matrix.
    pub n_tokens: u32,
    /// Time of the product.
    pub seconds: Seconds,
    /// Half the range of the middle half of the measurements, as a share of the time.
    pub spread: Option<f64>,
}

/// Times of attention of one shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttentionTimes {
    /// Heads and their sizes.
    pub shape: AttentionShape,
    /// In rising order of tokens, then of cells.
    pub points: Vec<AttentionPoint>,
}

/// One measured attention, in a file `[n_tokens, n_kv, seconds]` or `[n_tokens, n_kv, seconds, spread]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "AttentionRow", into = "AttentionRow")]
pub struct AttentionPoint {
    /// Tokens of the pass.
    pub n_tokens: u32,
    /// KV cells that the last token sees.
    pub n_kv: u32,
    /// Time of the attention.
    pub seconds: Seconds,
    /// As for products.
    pub spread: Option<f64>,
}

/// A point as it stands in a file: a line of its own for each would make profiles long.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ProductRow {
    Spread(u32, Seconds, f64),
    Plain(u32, Seconds),
}

impl From<ProductRow> for ProductPoint {
    fn from(row: ProductRow) -> ProductPoint {
        let (n_tokens, seconds, spread) = match row {
            ProductRow::Spread(n_tokens, seconds, spread) => (n_tokens, seconds, Some(spread)),
            ProductRow::Plain(n_tokens, seconds) => (n_tokens, seconds, None),
        };
        ProductPoint { n_tokens, seconds, spread }
    }
}

impl From<ProductPoint> for ProductRow {
    fn from(point: ProductPoint) -> ProductRow {
        let ProductPoint { n_tokens, seconds, spread } = point;
        match spread {
            Some(spread) => ProductRow::Spread(n_tokens, seconds, spread),
            None => ProductRow::Plain(n_tokens, seconds),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum AttentionRow {
    Spread(u32, u32, Seconds, f64),
    Plain(u32, u32, Seconds),
}

impl From<AttentionRow> for AttentionPoint {
    fn from(row: AttentionRow) -> AttentionPoint {
        let (n_tokens, n_kv, seconds, spread) = match row {
            AttentionRow::Spread(n_tokens, n_kv, seconds, spread) => {
                (n_tokens, n_kv, seconds, Some(spread))
            }
            AttentionRow::Plain(n_tokens, n_kv, seconds) => (n_tokens, n_kv, seconds, None),
        };
        AttentionPoint { n_tokens, n_kv, seconds, spread }
    }
}

impl From<AttentionPoint> for AttentionRow {
    fn from(point: AttentionPoint) -> AttentionRow {
        let AttentionPoint { n_tokens, n_kv, seconds, spread } = point;
        match spread {
            Some(spread) => AttentionRow::Spread(n_tokens, n_kv, seconds, spread),
            None => AttentionRow::Plain(n_tokens, n_kv, seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_rows_of_numbers() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct File {
            products: Vec<ProductPoint>,
            attention: Vec<AttentionPoint>,
        }
        let text = "products = [[1, 0.5], [4, 2.0, 0.01]]\nattention = [[1, 512, 0.25, 0.5]]\n";
        let file: File = toml::from_str(text).expect("two lists");
        assert_eq!(file.products[1].spread, Some(0.01));
        assert_eq!(file.attention[0].seconds, Seconds::new(0.25));
        assert_eq!(toml::to_string(&file).expect("written"), text);
    }
}

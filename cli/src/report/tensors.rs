//! Tensors of a model, one by one and summed by format.

use std::collections::BTreeMap;

use engine_core::weights::TensorInfo;
use planner::Bytes;
use serde::Serialize;

/// One tensor, for JSON.
#[derive(Debug, Serialize)]
pub(crate) struct TensorRow<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    format: String,
    /// Slowest dimension first.
    shape: &'a [u64],
    /// Absent when the format, and so the size, is not known.
    bytes: Option<Bytes>,
}

impl<'a> TensorRow<'a> {
    pub(crate) fn new(tensor: &'a TensorInfo) -> TensorRow<'a> {
        TensorRow {
            name: tensor.name(),
            format: tensor.stored_as().to_string(),
            shape: tensor.shape().dims(),
            bytes: tensor.size(),
        }
    }

    /// As cells of a table.
    pub(crate) fn cells(tensor: &TensorInfo) -> [String; 4] {
        let size = tensor.size().map_or("unknown".to_owned(), |size| size.to_string());
        let shape = tensor.shape().to_string();
        [tensor.name().to_owned(), tensor.stored_as().to_string(), shape, size]
    }
}

/// What the tensors of one format take together.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct FormatUse {
    #[serde(rename = "type")]
    format: String,
    tensors: u64,
    /// Of those whose size is known.
    bytes: Bytes,
}

impl FormatUse {
    /// All formats of a model, the largest share first.
    pub(crate) fn all(tensors: &[TensorInfo]) -> Vec<FormatUse> {
        let mut sums = BTreeMap::new();
        for tensor in tensors {
            let (count, bytes) = sums.entry(tensor.stored_as().to_string()).or_default();
            *count += 1;
            *bytes += tensor.size().unwrap_or(Bytes::ZERO);
        }
        let mut uses: Vec<FormatUse> = sums
            .into_iter()
            .map(|(format, (tensors, bytes))| FormatUse { format, tensors, bytes })
            .collect();
        uses.sort_by_key(|format| std::cmp::Reverse(format.bytes));
        uses
    }

    /// As cells of a table.
    pub(crate) fn cells(&self) -> [String; 3] {
        [self.format.clone(), format!("{} tensors", self.tensors), self.bytes.to_string()]
    }
}

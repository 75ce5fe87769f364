//! Checks that the tensors of a file are as large as their shapes say and fill the file without gap or overlap.

use ::safetensors::Dtype;
use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};

use super::super::DType;
use super::super::TensorFault;
use super::super::tensor::{Shape, TensorInfo, TensorType};
use super::fault::SafetensorsFault;
use super::header::Entry;

/// PyTorch's limit.
pub(super) const MAX_DIMS: usize = 64;

/// Finds the bytes of every tensor of a file of `length` bytes whose tensor data starts at `data_start`.
pub(super) fn place(
    entries: Vec<(String, Entry)>,
    data_start: u64,
    length: u64,
) -> Result<Vec<TensorInfo>, SafetensorsFault> {
    TensorFault::twice(entries.iter().map(|(name, _)| name.as_str()))?;
    let mut spans = entries.into_iter().map(span).collect::<Result<Vec<Span>, _>>()?;
    spans.sort_by_key(|span| (span.begin, span.end));
    check_end(&spans, data_start, length)?;
    check_cover(&spans, length - data_start)?;
    Ok(spans.into_iter().map(|span| placed(span, data_start)).collect())
}

/// A tensor as large as its shape says.
struct Span {
    name: String,
    dtype: String,
    shape: Shape,
    /// Both counted from the end of the header.
    begin: u64,
    end: u64,
}

fn span((name, entry): (String, Entry)) -> Result<Span, SafetensorsFault> {
    let Entry { dtype, shape: dims, data_offsets: [begin, end] } = entry;
    if begin > end {
        return Err(SafetensorsFault::Reversed { tensor: name.into(), begin, end });
    }
    if dims.len() > MAX_DIMS {
        return Err(SafetensorsFault::Dimensions { tensor: name.into(), found: dims.len() });
    }
    let Some(shape) = Shape::new(&dims[..]) else {
        return Err(TensorFault::Size { tensor: name.into(), dims }.into());
    };
    // The offsets are all that is known of the size of a type that is not.
    let Some(bits) = bits_per_value(&dtype) else {
        return Ok(Span { name, dtype, shape, begin, end });
    };
    let found = end - begin;
    match shape.len().checked_mul(bits) {
        None => Err(TensorFault::Size { tensor: name.into(), dims }.into()),
        Some(n_bits) if n_bits.is_multiple_of(8) && n_bits / 8 == found => {
            Ok(Span { name, dtype, shape, begin, end })
        }
        Some(n_bits) => {
            let needed = n_bits.div_ceil(8);
            Err(SafetensorsFault::WrongSize {
                tensor: name.into(),
                dims,
                dtype: dtype.into(),
                needed,
                found,
            })
        }
    }
}

fn bits_per_value(dtype: &str) -> Option<u64> {
    let dtype = Dtype::deserialize(StrDeserializer::<Error>::new(dtype)).ok()?;
    Some(dtype.bitsize() as u64)
}

/// Names the tensor that ends last, so that the missing bytes it states are all of them.
fn check_end(spans: &[Span], data_start: u64, length: u64) -> Result<(), TensorFault> {
    let Some(last) = spans.iter().max_by_key(|span| span.end) else { return Ok(()) };
    let end = data_start.saturating_add(last.end);
    if end <= length {
        return Ok(());
    }
    Err(TensorFault::PastEnd { tensor: last.name.as_str().into(), end, length })
}

/// Every byte of the data belongs to exactly one tensor. `spans` are in order.
fn check_cover(spans: &[Span], data_length: u64) -> Result<(), SafetensorsFault> {
    let mut before: Option<&Span> = None;
    for span in spans {
        let covered = before.map_or(0, |before| before.end);
        if span.begin > covered {
            let bytes = span.begin - covered;
            return Err(SafetensorsFault::Gap { tensor: span.name.as_str().into(), bytes });
        }
        if let Some(before) = before.filter(|before| before.end > span.begin) {
            let [first, second] = [before, span].map(|span| span.name.as_str().into());
            return Err(TensorFault::Overlap { first, second }.into());
        }
        before = Some(span);
    }
    match data_length - before.map_or(0, |last| last.end) {
        0 => Ok(()),
        bytes => Err(SafetensorsFault::Trailing { bytes }),
    }
}

fn placed(span: Span, data_start: u64) -> TensorInfo {
    let index = |n| usize::try_from(n).expect("inside a file that is in memory");
    TensorInfo {
        stored_as: dtype(&span.dtype)
            .map_or(TensorType::Safetensors(span.dtype.into()), TensorType::Known),
        name: span.name,
        shape: span.shape,
        region: 0,
        offset: index(data_start + span.begin),
        size: Some(index(span.end - span.begin)),
    }
}

fn dtype(name: &str) -> Option<DType> {
    Some(match name {
        "F64" => DType::F64,
        "F32" => DType::F32,
        "F16" => DType::F16,
        "BF16" => DType::BF16,
        "I64" => DType::I64,
        "I32" => DType::I32,
        "I16" => DType::I16,
        "I8" => DType::I8,
        _ => return None,
    })
}

//! Parses the header of one GGUF file out of its bytes, and checks that everything it describes is there.

use super::super::looks::Looks;
use super::super::tensor::{Shape, TensorInfo, TensorType};
use super::super::{DType, Metadata, TensorFault};
use super::cursor::{Cursor, Short};
use super::fault::{GgufFault, Reading};
use super::value::{self, ValueFault};

const MAX_DIMS: u32 = 4;
const DEFAULT_ALIGNMENT: u64 = 32;
/// Length of a key, a type number, a one-byte value.
const MIN_ENTRY_BYTES: u64 = 8 + 4 + 1;
/// Length of a name, number of dimensions, type number, offset.
const MIN_TENSOR_BYTES: u64 = 8 + 4 + 4 + 8;
/// What a tensor of unknown size counts for: its first byte.
const UNKNOWN_SIZE: u64 = 1;

/// What one GGUF file says about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct GgufHeader {
    /// Version of the format: 2 or 3.
    pub version: u32,
    /// All key-value pairs.
    pub metadata: Metadata,
    /// All tensors in the order of the file. Each lies inside the file, and none overlaps another.
    pub tensors: Vec<TensorInfo>,
}

impl GgufHeader {
    /// Parses a whole file. Pure: any bytes give a header or a fault, and memory stays within a small multiple of the
    /// file's length.
    ///
    /// # Errors
    /// If the bytes are no GGUF file of a readable version, or contradict themselves.
    pub fn parse(file: &[u8]) -> Result<GgufHeader, GgufFault> {
        let mut cursor = Cursor::new(file);
        let version = version(file, &mut cursor)?;
        let [n_tensors, n_entries] = counts(&mut cursor).map_err(cut(Reading::Preamble))?;
        let metadata = metadata(&mut cursor, n_entries)?;
        let alignment = alignment(&metadata)?;
        let described = descriptions(&mut cursor, n_tensors)?;
        let data = Data {
            start: (cursor.position() as u64).checked_next_multiple_of(alignment),
            alignment,
            length: file.len() as u64,
        };
        let tensors = data.locate(described)?;
        TensorFault::twice(tensors.iter().map(TensorInfo::name))?;
        check_overlap(&tensors)?;
        Ok(GgufHeader { version, metadata, tensors })
    }
}

fn cut(reading: Reading) -> impl FnOnce(Short) -> GgufFault {
    |Short { at, needed, left }| GgufFault::Cut { reading, at, needed, left }
}

fn version(file: &[u8], cursor: &mut Cursor<'_>) -> Result<u32, GgufFault> {
    if !file.starts_with(b"GGUF") {
        return Err(GgufFault::NotGguf { looks: Looks::of(file) });
    }
    cursor.take(4).map_err(cut(Reading::Preamble))?;
    match cursor.u32().map_err(cut(Reading::Preamble))? {
        version @ 2..=3 => Ok(version),
        // A small number in the other byte order.
        swapped if swapped & 0xFFFF == 0 && swapped != 0 => Err(GgufFault::BigEndian),
        found => Err(GgufFault::Version { found }),
    }
}

fn counts(cursor: &mut Cursor<'_>) -> Result<[u64; 2], Short> {
    Ok([cursor.u64()?, cursor.u64()?])
}

fn metadata(cursor: &mut Cursor<'_>, n_entries: u64) -> Result<Metadata, GgufFault> {
    cursor.holds(n_entries, MIN_ENTRY_BYTES).map_err(cut(Reading::Entries(n_entries)))?;
    let mut metadata = Metadata::default();
    for number in 0..n_entries as usize {
        let key = name(cursor, Reading::Key(number))?;
        if metadata.get(&key).is_some() {
            return Err(GgufFault::DuplicateKey { key: key.into() });
        }
        let value = value::read(cursor).map_err(|fault| in_value(fault, &key))?;
        metadata.insert(key, value);
    }
    Ok(metadata)
}

fn in_value(fault: ValueFault, key: &str) -> GgufFault {
    let key = key.into();
    match fault {
        ValueFault::Short(short) => cut(Reading::Value(key))(short),
        ValueFault::Type(found) => GgufFault::ValueType { key, found },
        ValueFault::Bool(found) => GgufFault::Bool { key, found },
        ValueFault::Depth => GgufFault::Depth { key },
    }
}

fn name(cursor: &mut Cursor<'_>, reading: Reading) -> Result<String, GgufFault> {
    let bytes = cursor.string().map_err(|short| cut(reading.clone())(short))?;
    match str::from_utf8(bytes) {
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(GgufFault::NameNotUtf8 { reading }),
    }
}

fn alignment(metadata: &Metadata) -> Result<u64, GgufFault> {
    let Some(value) = metadata.get("general.alignment") else { return Ok(DEFAULT_ALIGNMENT) };
    match value.as_u64() {
        Some(n) if n.is_power_of_two() => Ok(n),
        Some(found) => Err(GgufFault::Alignment { found }),
        None => Err(GgufFault::AlignmentType { found: value.type_name() }),
    }
}

/// A tensor as its entry in the header describes it.
struct Described {
    name: String,
    shape: Shape,
    type_number: u32,
    /// From the start of the tensor data.
    offset: u64,
}

fn descriptions(cursor: &mut Cursor<'_>, n_tensors: u64) -> Result<Vec<Described>, GgufFault> {
    let count =
        cursor.holds(n_tensors, MIN_TENSOR_BYTES).map_err(cut(Reading::Tensors(n_tensors)))?;
    (0..count).map(|number| description(cursor, number)).collect()
}

fn description(cursor: &mut Cursor<'_>, number: usize) -> Result<Described, GgufFault> {
    let short = || cut(Reading::Tensor(number));
    let name = name(cursor, Reading::Tensor(number))?;
    let n_dims = cursor.u32().map_err(short())?;
    if n_dims > MAX_DIMS {
        return Err(GgufFault::Dimensions { tensor: name.into(), found: n_dims });
    }
    let mut dims = Vec::with_capacity(n_dims as usize);
    for _ in 0..n_dims {
        dims.push(cursor.u64().map_err(short())?);
    }
    dims.reverse();
    let type_number = cursor.u32().map_err(short())?;
    let offset = cursor.u64().map_err(short())?;
    if dims.contains(&0) {
        return Err(GgufFault::ZeroDimension { tensor: name.into(), dims });
    }
    match Shape::new(&dims[..]) {
        Some(shape) => Ok(Described { name, shape, type_number, offset }),
        None => Err(TensorFault::Size { tensor: name.into(), dims }.into()),
    }
}

/// Where in the file the tensors lie.
struct Data {
    /// First byte of the tensor data; `None` past 2⁶⁴.
    start: Option<u64>,
    alignment: u64,
    /// Length of the whole file.
    length: u64,
}

impl Data {
    /// Finds each tensor's bytes. Of several that end outside the file, the fault names the one that ends last, so
    /// that the missing bytes it states are all of them.
    fn locate(&self, described: Vec<Described>) -> Result<Vec<TensorInfo>, GgufFault> {
        let mut tensors = Vec::with_capacity(described.len());
        let mut last_outside: Option<(u64, String)> = None;
        for tensor in described {
            let size = size(&tensor)?;
            let (start, end) = self.span(&tensor, size)?;
            if end > self.length {
                if last_outside.as_ref().is_none_or(|(furthest, _)| end > *furthest) {
                    last_outside = Some((end, tensor.name));
                }
                continue;
            }
            tensors.push(placed(tensor, start, size));
        }
        match last_outside {
            None => Ok(tensors),
            Some((end, tensor)) => {
                let (tensor, length) = (tensor.into(), self.length);
                Err(TensorFault::PastEnd { tensor, end, length }.into())
            }
        }
    }

    /// First byte of a tensor in the file and the byte after its last, both saturating.
    fn span(&self, tensor: &Described, size: Option<u64>) -> Result<(u64, u64), GgufFault> {
        if !tensor.offset.is_multiple_of(self.alignment) {
            return Err(GgufFault::Misaligned {
                tensor: tensor.name.as_str().into(),
                offset: tensor.offset,
                alignment: self.alignment,
            });
        }
        let start = self.start.unwrap_or(u64::MAX).saturating_add(tensor.offset);
        Ok((start, start.saturating_add(size.unwrap_or(UNKNOWN_SIZE))))
    }
}

/// Bytes of a tensor; `None` when its type number is not known.
fn size(tensor: &Described) -> Result<Option<u64>, GgufFault> {
    let Some(dtype) = DType::from_gguf(tensor.type_number) else { return Ok(None) };
    let shape = &tensor.shape;
    if !shape.columns().is_multiple_of(dtype.block().values.into()) {
        let (tensor, shape) = (tensor.name.as_str().into(), shape.clone());
        return Err(GgufFault::PartialBlock { tensor, shape, dtype });
    }
    let size = dtype.row_bytes(shape.columns()).and_then(|row| row.checked_mul(shape.rows()));
    let impossible =
        || TensorFault::Size { tensor: tensor.name.as_str().into(), dims: shape.dims().to_vec() };
    size.map(|bytes| Some(bytes.get())).ok_or_else(|| impossible().into())
}

fn placed(tensor: Described, start: u64, size: Option<u64>) -> TensorInfo {
    let index = |n| usize::try_from(n).expect("inside a file that is in memory");
    TensorInfo {
        name: tensor.name,
        shape: tensor.shape,
        stored_as: DType::from_gguf(tensor.type_number)
            .map_or(TensorType::GgufNumber(tensor.type_number), TensorType::Known),
        region: 0,
        offset: index(start),
        size: size.map(index),
    }
}

fn check_overlap(tensors: &[TensorInfo]) -> Result<(), TensorFault> {
    let mut by_offset: Vec<&TensorInfo> = tensors.iter().collect();
    by_offset.sort_by_key(|tensor| tensor.offset);
    let overlaps = |pair: &&[&TensorInfo]| {
        let [first, second] = pair else { unreachable!("windows of two") };
        first.offset + first.size.unwrap_or(UNKNOWN_SIZE as usize) > second.offset
    };
    match by_offset.windows(2).find(overlaps) {
        None => Ok(()),
        Some(pair) => Err(TensorFault::Overlap {
            first: pair[0].name.as_str().into(),
            second: pair[1].name.as_str().into(),
        }),
    }
}

//! Writes GGUF files, honest ones and lying ones. Shares no code with the reader, so that each checks the other.

use crate::weights::{Array, DType, Value};

/// A GGUF file in the making. Version 3 and alignment 32, unless said otherwise.
#[derive(Debug, Clone)]
pub struct GgufWriter {
    version: u32,
    alignment: usize,
    entries: Vec<(String, Value)>,
    tensors: Vec<Tensor>,
    claimed_entries: Option<u64>,
    claimed_tensors: Option<u64>,
}

#[derive(Debug, Clone)]
struct Tensor {
    name: String,
    /// Fastest first, as in the file.
    dims: Vec<u64>,
    type_number: u32,
    /// Instead of where the data really is.
    claimed_offset: Option<u64>,
    data: Vec<u8>,
}

impl Default for GgufWriter {
    fn default() -> GgufWriter {
        GgufWriter {
            version: 3,
            alignment: 32,
            entries: Vec::new(),
            tensors: Vec::new(),
            claimed_entries: None,
            claimed_tensors: None,
        }
    }
}

impl GgufWriter {
    /// An empty file.
    pub fn new() -> GgufWriter {
        GgufWriter::default()
    }

    /// Sets the version of the format.
    #[must_use]
    pub fn version(mut self, version: u32) -> GgufWriter {
        self.version = version;
        self
    }

    /// Sets the alignment of tensors and says so in the metadata.
    #[must_use]
    pub fn alignment(mut self, alignment: u32) -> GgufWriter {
        self.alignment = alignment as usize;
        self.entry("general.alignment", Value::U32(alignment))
    }

    /// Adds a metadata entry. A key may be added twice, which makes a bad file.
    #[must_use]
    pub fn entry(mut self, key: &str, value: Value) -> GgufWriter {
        self.entries.push((key.to_owned(), value));
        self
    }

    /// Adds an entry of text.
    #[must_use]
    pub fn text(self, key: &str, text: &str) -> GgufWriter {
        self.entry(key, Value::String(text.to_owned()))
    }

    /// Adds a tensor with dimensions slowest first. `data` is written as it is, whatever its length.
    #[must_use]
    pub fn tensor(self, name: &str, dims: &[u64], dtype: DType, data: &[u8]) -> GgufWriter {
        self.raw_tensor(name, dims, dtype.gguf_id(), None, data)
    }

    /// Adds a tensor with any type number and, if given, an offset other than its data's own.
    #[must_use]
    pub fn raw_tensor(
        mut self,
        name: &str,
        dims: &[u64],
        type_number: u32,
        claimed_offset: Option<u64>,
        data: &[u8],
    ) -> GgufWriter {
        self.tensors.push(Tensor {
            name: name.to_owned(),
            dims: dims.iter().rev().copied().collect(),
            type_number,
            claimed_offset,
            data: data.to_owned(),
        });
        self
    }

    /// Claims another number of metadata entries than there are.
    #[must_use]
    pub fn claim_entries(mut self, count: u64) -> GgufWriter {
        self.claimed_entries = Some(count);
        self
    }

    /// Claims another number of tensors than there are.
    #[must_use]
    pub fn claim_tensors(mut self, count: u64) -> GgufWriter {
        self.claimed_tensors = Some(count);
        self
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend(self.claimed_tensors.unwrap_or(self.tensors.len() as u64).to_le_bytes());
        out.extend(self.claimed_entries.unwrap_or(self.entries.len() as u64).to_le_bytes());
        for (key, value) in &self.entries {
            push_bytes(&mut out, key.as_bytes());
            push_value(&mut out, value);
        }
        let mut offset = 0;
        for tensor in &self.tensors {
            push_bytes(&mut out, tensor.name.as_bytes());
            out.extend((tensor.dims.len() as u32).to_le_bytes());
            out.extend(tensor.dims.iter().flat_map(|dim| dim.to_le_bytes()));
            out.extend(tensor.type_number.to_le_bytes());
            out.extend(tensor.claimed_offset.unwrap_or(offset as u64).to_le_bytes());
            offset += tensor.data.len().next_multiple_of(self.alignment);
        }
        for tensor in &self.tensors {
            // Padding goes before a tensor, so that the last one ends the file.
            out.resize(out.len().next_multiple_of(self.alignment), 0);
            out.extend(&tensor.data);
        }
        out
    }
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

fn push_value(out: &mut Vec<u8>, value: &Value) {
    let mut push = |type_number: u32, bytes: &[u8]| {
        out.extend(type_number.to_le_bytes());
        out.extend(bytes);
    };
    match value {
        Value::U8(n) => push(0, &n.to_le_bytes()),
        Value::I8(n) => push(1, &n.to_le_bytes()),
        Value::U16(n) => push(2, &n.to_le_bytes()),
        Value::I16(n) => push(3, &n.to_le_bytes()),
        Value::U32(n) => push(4, &n.to_le_bytes()),
        Value::I32(n) => push(5, &n.to_le_bytes()),
        Value::F32(x) => push(6, &x.to_le_bytes()),
        Value::Bool(b) => push(7, &[u8::from(*b)]),
        Value::U64(n) => push(10, &n.to_le_bytes()),
        Value::I64(n) => push(11, &n.to_le_bytes()),
        Value::F64(x) => push(12, &x.to_le_bytes()),
        Value::String(text) => {
            push(8, &[]);
            push_bytes(out, text.as_bytes());
        }
        Value::NotUtf8(bytes) => {
            push(8, &[]);
            push_bytes(out, bytes);
        }
        Value::Array(array) => {
            push(9, &[]);
            push_array(out, array);
        }
    }
}

fn push_array(out: &mut Vec<u8>, array: &Array) {
    let mut push = |type_number: u32, elements: Vec<u8>| {
        out.extend(type_number.to_le_bytes());
        out.extend((array.len() as u64).to_le_bytes());
        out.extend(elements);
    };
    match array {
        Array::U8(v) => push(0, v.clone()),
        Array::I8(v) => push(1, v.iter().flat_map(|n| n.to_le_bytes()).collect()),
        Array::U16(v) => push(2, v.iter().flat_map(|n| n.to_le_bytes()).collect()),
        Array::I16(v) => push(3, v.iter().flat_map(|n| n.to_le_bytes()).collect()),
        Array::U32(v) => push(4, v.iter().flat_map(|n| n.to_le_bytes()).collect()),
        Array::I32(v) => push(5, v.iter().flat_map(|n| n.to_le_bytes()).collect()),
        Array::F32(v) => push(6, v.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Array::Bool(v) => push(7, v.iter().map(|&b| u8::from(b)).collect()),
        Array::U64(v) => push(10, v.iter().flat_map(|n| n.to_le_bytes()).collect()),
        Array::I64(v) => push(11, v.iter().flat_map(|n| n.to_le_bytes()).collect()),
        Array::F64(v) => push(12, v.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Array::String(v) => {
            push(8, Vec::new());
            v.iter().for_each(|text| push_bytes(out, text.as_bytes()));
        }
        Array::NotUtf8(v) => {
            push(8, Vec::new());
            v.iter().for_each(|bytes| push_bytes(out, bytes));
        }
        Array::Nested(v) => {
            push(9, Vec::new());
            v.iter().for_each(|inner| push_array(out, inner));
        }
    }
}

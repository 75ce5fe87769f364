//! Parses the header out of a file's bytes. What it says about offsets is for `layout` to check.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

use super::super::looks::Looks;
use super::super::tensor::TensorInfo;
use super::super::text::Name;
use super::fault::SafetensorsFault;
use super::layout;

/// Bytes of the number in front of the header that gives its length.
const LENGTH_BYTES: usize = 8;

/// What one safetensors file says about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct SafetensorsHeader {
    /// The writer's remarks.
    pub metadata: BTreeMap<String, String>,
    /// All tensors in the order of their bytes. Each lies inside the file, and together they fill it.
    pub tensors: Vec<TensorInfo>,
}

impl SafetensorsHeader {
    /// Parses a whole file. Pure: any bytes give a header or a fault, and memory stays within a small multiple of the
    /// file's length.
    ///
    /// # Errors
    /// If the bytes are no safetensors file, or the header does not describe them exactly.
    pub fn parse(file: &[u8]) -> Result<SafetensorsHeader, SafetensorsFault> {
        let text = header_text(file)?;
        let entries: Entries = serde_json::from_str(text).map_err(SafetensorsFault::Json)?;
        let data_start = LENGTH_BYTES + text.len();
        let tensors = layout::place(entries.tensors, data_start as u64, file.len() as u64)?;
        Ok(SafetensorsHeader { metadata: entries.metadata, tensors })
    }
}

fn header_text(file: &[u8]) -> Result<&str, SafetensorsFault> {
    let looks = Looks::of(file);
    if !matches!(looks, Looks::Safetensors | Looks::Unknown) {
        return Err(SafetensorsFault::NotSafetensors { looks });
    }
    let (length, rest) = match file.split_first_chunk() {
        Some((&length, rest)) => (u64::from_le_bytes(length), rest),
        None => (0, &[][..]),
    };
    let cut = SafetensorsFault::HeaderCut { needed: length, left: rest.len() as u64 };
    if file.len() < LENGTH_BYTES {
        return Err(cut);
    }
    let text = usize::try_from(length).ok().and_then(|length| rest.get(..length)).ok_or(cut)?;
    let text = str::from_utf8(text).map_err(|error| SafetensorsFault::NotUtf8 {
        at: (LENGTH_BYTES + error.valid_up_to()) as u64,
    })?;
    match text.chars().next() {
        Some('{') => Ok(text),
        found => Err(SafetensorsFault::NotAnObject { found }),
    }
}

/// A tensor as its entry in the header describes it.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    pub dtype: String,
    pub shape: Vec<u64>,
    /// First byte and the byte after the last, counted from the end of the header.
    pub data_offsets: [u64; 2],
}

/// All entries in the order of the header. A list, since a map would hide names that occur twice.
struct Entries {
    metadata: BTreeMap<String, String>,
    tensors: Vec<(String, Entry)>,
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one entry per tensor")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let (mut metadata, mut tensors) = (None, Vec::new());
        while let Some(name) = map.next_key::<String>()? {
            let in_entry =
                |error| A::Error::custom(format_args!("entry `{}`: {error}", Name::from(&*name)));
            if name == "__metadata__" {
                if metadata.is_some() {
                    return Err(in_entry(A::Error::custom("occurs twice")));
                }
                metadata = map.next_value().map_err(in_entry)?;
            } else {
                let entry = map.next_value().map_err(in_entry)?;
                tensors.push((name, entry));
            }
        }
        Ok(Entries { metadata: metadata.unwrap_or_default(), tensors })
    }
}

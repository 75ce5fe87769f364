//! Metadata values: shortened for a table, in full for JSON.

use std::fmt::{self, Write};

use engine_core::weights::{Array, Value};
use serde::{Serialize, Serializer};

/// Characters of text, and elements of an array, that a table shows.
const MAX_TEXT: usize = 60;
const MAX_ELEMENTS: usize = 4;

/// A metadata value of a file of either kind. As JSON it is in full: bytes that are not UTF-8 become replacement
/// characters, and numbers that JSON lacks become null.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub(crate) enum MetadataValue<'a> {
    Gguf(#[serde(serialize_with = "full")] &'a Value),
    Json(&'a serde_json::Value),
}

impl MetadataValue<'_> {
    /// On one line of a table, cut where it is long.
    pub(crate) fn short(self) -> String {
        match self {
            MetadataValue::Gguf(value) => short(value),
            MetadataValue::Json(value) => cut(&value.to_string()),
        }
    }
}

fn short(value: &Value) -> String {
    match value {
        Value::U8(n) => n.to_string(),
        Value::I8(n) => n.to_string(),
        Value::U16(n) => n.to_string(),
        Value::I16(n) => n.to_string(),
        Value::U32(n) => n.to_string(),
        Value::I32(n) => n.to_string(),
        Value::U64(n) => n.to_string(),
        Value::I64(n) => n.to_string(),
        Value::F32(x) => x.to_string(),
        Value::F64(x) => x.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::String(text) => quote(text),
        Value::NotUtf8(bytes) => format!("{} (not UTF-8)", quote(&String::from_utf8_lossy(bytes))),
        Value::Array(array) => short_array(array),
    }
}

fn short_array(array: &Array) -> String {
    match array {
        Array::U8(v) => elements(v, "u8", ToString::to_string),
        Array::I8(v) => elements(v, "i8", ToString::to_string),
        Array::U16(v) => elements(v, "u16", ToString::to_string),
        Array::I16(v) => elements(v, "i16", ToString::to_string),
        Array::U32(v) => elements(v, "u32", ToString::to_string),
        Array::I32(v) => elements(v, "i32", ToString::to_string),
        Array::U64(v) => elements(v, "u64", ToString::to_string),
        Array::I64(v) => elements(v, "i64", ToString::to_string),
        Array::F32(v) => elements(v, "f32", ToString::to_string),
        Array::F64(v) => elements(v, "f64", ToString::to_string),
        Array::Bool(v) => elements(v, "truth values", ToString::to_string),
        Array::String(v) => elements(v, "texts", |text| quote(text)),
        Array::NotUtf8(v) => elements(v, "texts", |bytes| quote(&String::from_utf8_lossy(bytes))),
        Array::Nested(v) => elements(v, "arrays", short_array),
    }
}

fn elements<T>(all: &[T], kind: &str, show: impl Fn(&T) -> String) -> String {
    let mut text = format!("{} {kind}: ", all.len());
    for (index, element) in all.iter().take(MAX_ELEMENTS).enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}{}", show(element));
    }
    if all.len() > MAX_ELEMENTS {
        text.push_str(", …");
    }
    text
}

/// Text in quotes, with its control characters made visible.
fn quote(text: &str) -> String {
    let start: String = text.chars().take(MAX_TEXT).collect();
    let dots = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{dots}")
}

fn cut(text: &str) -> String {
    let start: String = text.chars().take(MAX_TEXT).collect();
    if start.len() < text.len() { start + "…" } else { start }
}

fn full<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Value::U8(n) => n.serialize(serializer),
        Value::I8(n) => n.serialize(serializer),
        Value::U16(n) => n.serialize(serializer),
        Value::I16(n) => n.serialize(serializer),
        Value::U32(n) => n.serialize(serializer),
        Value::I32(n) => n.serialize(serializer),
        Value::U64(n) => n.serialize(serializer),
        Value::I64(n) => n.serialize(serializer),
        Value::F32(x) => x.serialize(serializer),
        Value::F64(x) => x.serialize(serializer),
        Value::Bool(b) => b.serialize(serializer),
        Value::String(text) => text.serialize(serializer),
        Value::NotUtf8(bytes) => Lossy(bytes).serialize(serializer),
        Value::Array(array) => FullArray(array).serialize(serializer),
    }
}

struct FullArray<'a>(&'a Array);

impl Serialize for FullArray<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Array::U8(v) => v.serialize(serializer),
            Array::I8(v) => v.serialize(serializer),
            Array::U16(v) => v.serialize(serializer),
            Array::I16(v) => v.serialize(serializer),
            Array::U32(v) => v.serialize(serializer),
            Array::I32(v) => v.serialize(serializer),
            Array::U64(v) => v.serialize(serializer),
            Array::I64(v) => v.serialize(serializer),
            Array::F32(v) => v.serialize(serializer),
            Array::F64(v) => v.serialize(serializer),
            Array::Bool(v) => v.serialize(serializer),
            Array::String(v) => v.serialize(serializer),
            Array::NotUtf8(v) => serializer.collect_seq(v.iter().map(|bytes| Lossy(bytes))),
            Array::Nested(v) => serializer.collect_seq(v.iter().map(FullArray)),
        }
    }
}

/// Bytes that should have been text.
struct Lossy<'a>(&'a [u8]);

impl fmt::Display for Lossy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.0))
    }
}

impl Serialize for Lossy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_and_say_how_long_they_are() {
        let ids = Value::Array(Array::U32((1..=7).collect()));
        assert_eq!(short(&ids), "7 u32: 1, 2, 3, 4, …");
        let text = Value::String("é\n".repeat(100));
        assert_eq!(short(&text), format!("{:?}…", "é\n".repeat(30)));
        let words = Value::Array(Array::String(vec!["a".into(), "\u{1b}[31m".into()]));
        assert_eq!(short(&words), r#"2 texts: "a", "\u{1b}[31m""#, "no terminal codes get through");
    }

    #[test]
    fn values_of_json_files_are_cut_too() {
        let value = serde_json::json!(["é".repeat(100)]);
        assert_eq!(MetadataValue::Json(&value).short(), format!("[\"{}…", "é".repeat(58)));
    }

    #[test]
    fn json_keeps_numbers_as_they_are() {
        let json = |value| serde_json::to_string(&MetadataValue::Gguf(&value)).expect("JSON");
        assert_eq!(json(Value::F32(0.1)), "0.1");
        assert_eq!(json(Value::U64(u64::MAX)), u64::MAX.to_string());
        assert_eq!(json(Value::NotUtf8(vec![b'a', 0xff])), "\"a\u{fffd}\"");
        let nested = Array::Nested(vec![Array::I8(vec![-1]), Array::Bool(vec![true])]);
        assert_eq!(json(Value::Array(nested)), "[[-1],[true]]");
    }
}

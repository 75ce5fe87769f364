//! Reads one metadata value: a number, a truth value, text, or an array of them.

use super::super::{Array, Value};
use super::cursor::{Cursor, Short};

/// How deep arrays may lie in arrays. No known file nests them at all; the limit bounds the recursion.
pub(super) const MAX_DEPTH: u32 = 4;

/// Why a value could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueFault {
    Short(Short),
    Type(u32),
    Bool(u8),
    Depth,
}

impl From<Short> for ValueFault {
    fn from(short: Short) -> ValueFault {
        ValueFault::Short(short)
    }
}

/// A value behind its type number.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Value, ValueFault> {
    Ok(match cursor.u32()? {
        0 => Value::U8(u8::from_le_bytes(cursor.array()?)),
        1 => Value::I8(i8::from_le_bytes(cursor.array()?)),
        2 => Value::U16(u16::from_le_bytes(cursor.array()?)),
        3 => Value::I16(i16::from_le_bytes(cursor.array()?)),
        4 => Value::U32(u32::from_le_bytes(cursor.array()?)),
        5 => Value::I32(i32::from_le_bytes(cursor.array()?)),
        6 => Value::F32(f32::from_le_bytes(cursor.array()?)),
        7 => Value::Bool(truth(cursor.array()?)?),
        8 => text(cursor.string()?),
        9 => Value::Array(array(cursor, 0)?),
        10 => Value::U64(u64::from_le_bytes(cursor.array()?)),
        11 => Value::I64(i64::from_le_bytes(cursor.array()?)),
        12 => Value::F64(f64::from_le_bytes(cursor.array()?)),
        unknown => return Err(ValueFault::Type(unknown)),
    })
}

/// An array behind its element type and length, inside `depth` others.
fn array(cursor: &mut Cursor<'_>, depth: u32) -> Result<Array, ValueFault> {
    Ok(match cursor.u32()? {
        0 => Array::U8(numbers(cursor, u8::from_le_bytes)?),
        1 => Array::I8(numbers(cursor, i8::from_le_bytes)?),
        2 => Array::U16(numbers(cursor, u16::from_le_bytes)?),
        3 => Array::I16(numbers(cursor, i16::from_le_bytes)?),
        4 => Array::U32(numbers(cursor, u32::from_le_bytes)?),
        5 => Array::I32(numbers(cursor, i32::from_le_bytes)?),
        6 => Array::F32(numbers(cursor, f32::from_le_bytes)?),
        7 => Array::Bool(truths(cursor)?),
        8 => strings(cursor)?,
        9 if depth + 1 < MAX_DEPTH => Array::Nested(arrays(cursor, depth + 1)?),
        9 => return Err(ValueFault::Depth),
        10 => Array::U64(numbers(cursor, u64::from_le_bytes)?),
        11 => Array::I64(numbers(cursor, i64::from_le_bytes)?),
        12 => Array::F64(numbers(cursor, f64::from_le_bytes)?),
        unknown => return Err(ValueFault::Type(unknown)),
    })
}

fn truth([byte]: [u8; 1]) -> Result<bool, ValueFault> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(ValueFault::Bool(other)),
    }
}

/// Text where it is UTF-8, as the format demands; else the bytes as they are, so that only using them is an error.
fn text(bytes: &[u8]) -> Value {
    match str::from_utf8(bytes) {
        Ok(text) => Value::String(text.to_owned()),
        Err(_) => Value::NotUtf8(bytes.to_owned()),
    }
}

fn numbers<const N: usize, T>(
    cursor: &mut Cursor<'_>,
    read: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, Short> {
    let count = cursor.count(N as u64)?;
    let (chunks, _) = cursor.take((count * N) as u64)?.as_chunks();
    Ok(chunks.iter().map(|&chunk| read(chunk)).collect())
}

fn truths(cursor: &mut Cursor<'_>) -> Result<Vec<bool>, ValueFault> {
    let count = cursor.count(1)?;
    cursor.take(count as u64)?.iter().map(|&byte| truth([byte])).collect()
}

fn strings(cursor: &mut Cursor<'_>) -> Result<Array, Short> {
    const LENGTH_BYTES: u64 = 8;
    let count = cursor.count(LENGTH_BYTES)?;
    let mut raw = Vec::with_capacity(count);
    for _ in 0..count {
        raw.push(cursor.string()?);
    }
    Ok(match raw.iter().map(|&bytes| str::from_utf8(bytes)).collect::<Result<Vec<_>, _>>() {
        Ok(texts) => Array::String(texts.into_iter().map(str::to_owned).collect()),
        Err(_) => Array::NotUtf8(raw.into_iter().map(<[u8]>::to_owned).collect()),
    })
}

fn arrays(cursor: &mut Cursor<'_>, depth: u32) -> Result<Vec<Array>, ValueFault> {
    const TYPE_AND_LENGTH_BYTES: u64 = 12;
    let count = cursor.count(TYPE_AND_LENGTH_BYTES)?;
    (0..count).map(|_| array(cursor, depth)).collect()
}

//! Results as tables for people and JSON for programs. Knows no files and no flags.

mod answer;
mod explain;
mod metadata;
mod perplexity;
mod profile;
mod tensors;

use std::io::{self, Write};

use comfy_table::{CellAlignment, Row, Table, presets};
use serde::Serialize;

pub(crate) use self::answer::{AnswerReport, explain};
pub(crate) use self::explain::Explanation;
pub(crate) use self::metadata::MetadataValue;
pub(crate) use self::perplexity::PerplexityReport;
pub(crate) use self::profile::ProfileReport;
pub(crate) use self::tensors::{FormatUse, TensorRow};

/// Text out of a file, without the control characters that could steer a terminal.
pub(crate) fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Prints rows with their columns aligned and nothing around them. Columns named in `right` hold numbers.
pub(crate) fn table<R: Into<Row>>(
    out: &mut impl Write,
    rows: impl IntoIterator<Item = R>,
    right: &[usize],
) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if right.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for line in table.lines() {
        writeln!(out, "{}", visible(line.trim_end()))?;
    }
    Ok(())
}

/// Bytes of a token, in quotes: as text where they are, and with the rest as hexadecimal.
pub(crate) fn piece(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{text:?}"),
        Err(_) => format!("\"{}\"", bytes.escape_ascii()),
    }
}

/// Prints a value as one line of JSON.
pub(crate) fn json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

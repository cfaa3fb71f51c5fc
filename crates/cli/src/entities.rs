//! Entities on the command line: NAME:VALUE for each column, as `ldb` has them.

use std::ffi::OsStr;

use flagstone::WideColumns;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::json;
use crate::marks::Marks;
use crate::text::Notation;

/// Reads a column from the command line.
pub fn read_column(text: &OsStr, notation: Notation) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    let bytes = text.as_encoded_bytes();
    let Some(at) = bytes.iter().position(|byte| *byte == b':') else {
        let text = bytes.escape_ascii();
        return Err(Failure::Usage(format!("expected a column as NAME:VALUE, found '{text}'")));
    };
    // A part of a text before or behind an ASCII character is a text.
    let part = |bytes: &[u8]| {
        let text = std::os::unix::ffi::OsStrExt::from_bytes(bytes);
        notation.read("the column", text)
    };
    Ok((part(&bytes[..at])?, part(&bytes[at + 1..])?))
}

/// Columns on one line, a space between two.
pub fn show_columns(columns: &WideColumns, notation: Notation) -> String {
    let shown = columns
        .iter()
        .map(|(name, value)| format!("{}:{}", notation.show(name), notation.show(value)));
    shown.collect::<Vec<_>>().join(" ")
}

/// Columns for JSON.
pub fn columns_in_json(columns: &WideColumns, notation: Notation) -> Value {
    let column = |(name, value): (&[u8], &[u8])| {
        let mut facts = json!({});
        json::tell(&mut facts, "name", name, notation);
        json::tell(&mut facts, "value", value, notation);
        facts
    };
    columns.iter().map(column).collect()
}

/// A key, its marks and its columns: a line, or an object of JSON.
pub fn entity_line(
    (key, marks): (&[u8], &Marks),
    columns: &WideColumns,
    notation: Notation,
    as_json: bool,
) -> String {
    if !as_json {
        let (key, columns) = (notation.show(key), show_columns(columns, notation));
        return format!("{key}{}\t{columns}", marks.text());
    }
    let mut facts = json!({});
    json::tell(&mut facts, "key", key, notation);
    facts["columns"] = columns_in_json(columns, notation);
    marks.tell(&mut facts);
    facts.to_string()
}

//! Wide-column entities.
//!
//! ```text
//! entity (version 1) = varint32 1, varint32 column count n,
//!                      n * (lps column name, varint32 value size),
//!                      n * value
//! ```
//!
//! Columns ascend bytewise by name. The default column has the empty name and so comes first.
//!
//! Version 2 (RocksDB 11, with columns in blob files) is not read. A table with such an entity must
//! not be rewritten: the blob files that the entity refers to would count as garbage.

use std::ops::Range;

use crate::base::coding::{Decoder, put_lps, put_varint32};
use crate::base::{Error, Result};

const VERSION: u32 = 1;

/// One column: its name and its value.
pub type Column<'a> = (&'a [u8], &'a [u8]);

/// Decodes all columns.
///
/// # Errors
/// `Corruption` for malformed bytes, `NotSupported` for a newer version.
pub fn decode(entity: &[u8]) -> Result<Vec<Column<'_>>> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    let mut sizes = Vec::new();
    let mut values = read_index(entity, |name, size| {
        columns.push((name, &[]));
        sizes.push(size);
    })?;
    for (column, size) in columns.iter_mut().zip(sizes) {
        column.1 = values.bytes(size).ok_or_else(|| malformed("a value exceeds the entity"))?;
    }
    if !values.is_empty() {
        return Err(malformed("bytes are left over"));
    }
    Ok(columns)
}

/// Where the default column's value lies; an empty range if there is no default column.
///
/// # Errors
/// As [`decode`].
pub fn default_column(entity: &[u8]) -> Result<Range<usize>> {
    let (mut first, mut total) = (None, 0usize);
    let values = read_index(entity, |name, size| {
        first.get_or_insert(if name.is_empty() { size } else { 0 });
        total = total.saturating_add(size);
    })?;
    if values.rest().len() != total {
        return Err(malformed("the values' sizes do not add up"));
    }
    let start = entity.len() - total;
    Ok(start..start + first.unwrap_or(0))
}

/// Encodes columns, which must ascend by name.
pub fn encode(columns: &[Column<'_>]) -> Vec<u8> {
    debug_assert!(columns.is_sorted_by(|a, b| a.0 < b.0), "columns ascend by name");
    let mut entity = Vec::new();
    put_varint32(&mut entity, VERSION);
    put_varint32(&mut entity, u32::try_from(columns.len()).expect("fewer than 2^32 columns"));
    for (name, value) in columns {
        put_lps(&mut entity, name);
        put_varint32(
            &mut entity,
            u32::try_from(value.len()).expect("a column is shorter than 4 GiB"),
        );
    }
    for (_, value) in columns {
        entity.extend_from_slice(value);
    }
    entity
}

/// Encodes `entity` anew with another value in its default column, which is added if there is none.
///
/// # Errors
/// As [`decode`].
pub fn with_default_column(entity: &[u8], value: &[u8]) -> Result<Vec<u8>> {
    let mut columns = decode(entity)?;
    match columns.first_mut() {
        Some((b"", old)) => *old = value,
        _ => columns.insert(0, (b"", value)),
    }
    Ok(encode(&columns))
}

/// Reads names and value sizes; what is left are the values.
fn read_index<'a>(
    entity: &'a [u8],
    mut column: impl FnMut(&'a [u8], usize),
) -> Result<Decoder<'a>> {
    let mut decoder = Decoder::new(entity);
    match decoder.varint32() {
        Some(VERSION) => {}
        Some(version) if version > VERSION => {
            return Err(Error::not_supported(format!("wide-column entity of version {version}")));
        }
        _ => return Err(malformed("its version is missing")),
    }
    let count = decoder.varint32().ok_or_else(|| malformed("its column count is missing"))?;
    let mut previous: Option<&[u8]> = None;
    for _ in 0..count {
        let name = decoder.lps().ok_or_else(|| malformed("a column name exceeds the entity"))?;
        if previous.is_some_and(|previous| previous >= name) {
            return Err(malformed("its columns do not ascend by name"));
        }
        previous = Some(name);
        column(
            name,
            decoder.varint32().ok_or_else(|| malformed("a value size is missing"))? as usize,
        );
    }
    Ok(decoder)
}

fn malformed(how: &str) -> Error {
    Error::corruption(format!("malformed wide-column entity: {how}"))
}

#[cfg(test)]
mod tests;

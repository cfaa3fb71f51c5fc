//! The encoding of entities: values with several named columns (wide columns).
//!
//! ```text
//! entity (version 1) = varint32 1, varint32 column count n,
//!                      n * (lps column name, varint32 value size),
//!                      n * value
//!
//! entity (version 2) = varint32 2, varint32 column count n,
//!                      varint32 size of all name sizes, varint32 size of all value sizes,
//!                      varint32 size of all names,
//!                      n * type (01 a value, 11 a blob index),
//!                      n * varint32 name size, n * varint32 value size, n * name, n * value
//! ```
//!
//! Columns ascend bytewise by name. The default column has the empty name and so comes first.
//! Version 2 is written only for an entity that has a column in a blob file.

use std::ops::Range;

use super::coding::{Decoder, put_lps, put_varint32};
use super::{Error, Result, ValueType};

const VERSION: u32 = 1;
const VERSION_WITH_BLOBS: u32 = 2;

/// One column: its name and its value.
pub type Column<'a> = (&'a [u8], &'a [u8]);

/// One column as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredColumn<'a> {
    /// Empty for the default column.
    pub name: &'a [u8],
    /// The value, or the blob index that leads to it.
    pub value: &'a [u8],
    /// Whether `value` is a blob index.
    pub is_blob: bool,
}

/// Where the default column's value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultColumn {
    /// The bytes of the entity that are the value, or its blob index. Empty without such a column.
    pub range: Range<usize>,
    /// Whether these bytes are a blob index.
    pub is_blob: bool,
}

/// Decodes all columns.
///
/// # Errors
/// `Corruption` for malformed bytes, `NotSupported` for a newer version.
pub fn decode(entity: &[u8]) -> Result<Vec<StoredColumn<'_>>> {
    let mut columns: Vec<StoredColumn<'_>> = Vec::new();
    let mut sizes = Vec::new();
    let mut values = read_index(entity, |name, size, is_blob| {
        columns.push(StoredColumn { name, value: &[], is_blob });
        sizes.push(size);
    })?;
    for (column, size) in columns.iter_mut().zip(sizes) {
        column.value = values.bytes(size).ok_or_else(|| malformed("a value exceeds the entity"))?;
    }
    if !values.is_empty() {
        return Err(malformed("bytes are left over"));
    }
    Ok(columns)
}

/// Where the default column's value lies.
///
/// # Errors
/// As [`decode`].
pub fn default_column(entity: &[u8]) -> Result<DefaultColumn> {
    let (mut first, mut total) = (None, 0usize);
    let values = read_index(entity, |name, size, is_blob| {
        first.get_or_insert(if name.is_empty() { (size, is_blob) } else { (0, false) });
        total = total.saturating_add(size);
    })?;
    if values.rest().len() != total {
        return Err(malformed("the values' sizes do not add up"));
    }
    let start = entity.len() - total;
    let (size, is_blob) = first.unwrap_or((0, false));
    Ok(DefaultColumn { range: start..start + size, is_blob })
}

/// Shows the blob index of each column that lies in a blob file. Costs little for an entity without
/// one.
///
/// # Errors
/// As [`decode`]; those of `visit`. Bytes of version 1 are not looked at.
pub fn visit_blobs<'a>(
    entity: &'a [u8],
    mut visit: impl FnMut(&'a [u8]) -> Result<()>,
) -> Result<()> {
    if Decoder::new(entity).varint32() == Some(VERSION) {
        return Ok(());
    }
    decode(entity)?
        .iter()
        .filter(|column| column.is_blob)
        .try_for_each(|column| visit(column.value))
}

/// Whether a column lies in a blob file. Costs little for an entity of version 1, whose bytes are
/// not looked at.
///
/// # Errors
/// As [`decode`].
pub fn has_blobs(entity: &[u8]) -> Result<bool> {
    let mut found = false;
    visit_blobs(entity, |_| {
        found = true;
        Ok(())
    })?;
    Ok(found)
}

/// Encodes columns that may come in any order.
///
/// # Errors
/// `InvalidArgument` if two have the same name, or a name or value has 4 GiB or more.
pub fn encode_unsorted<N: AsRef<[u8]>, V: AsRef<[u8]>>(
    columns: impl IntoIterator<Item = (N, V)>,
) -> Result<Vec<u8>> {
    let columns: Vec<(N, V)> = columns.into_iter().collect();
    let mut sorted: Vec<Column<'_>> =
        columns.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let name = twice[0].0.escape_ascii();
        return Err(Error::invalid_argument(format!("the entity has two columns named '{name}'")));
    }
    if sorted.iter().any(|(name, value)| u32::try_from(name.len().max(value.len())).is_err()) {
        return Err(Error::invalid_argument("a column's name or value has 4 GiB or more"));
    }
    Ok(encode(&sorted))
}

/// Encodes columns, which must ascend by name.
pub fn encode(columns: &[Column<'_>]) -> Vec<u8> {
    debug_assert!(columns.is_sorted_by(|a, b| a.0 < b.0), "columns ascend by name");
    let size: usize = columns.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    let mut entity = Vec::with_capacity(size + 4);
    put_varint32(&mut entity, VERSION);
    put_varint32(&mut entity, length_of(columns.len()));
    for (name, value) in columns {
        put_lps(&mut entity, name);
        put_varint32(&mut entity, length_of(value.len()));
    }
    for (_, value) in columns {
        entity.extend_from_slice(value);
    }
    entity
}

/// Encodes stored columns, which must ascend by name: in version 1 if none is a blob index.
pub fn encode_stored(columns: &[StoredColumn<'_>]) -> Vec<u8> {
    if columns.iter().all(|column| !column.is_blob) {
        let plain: Vec<_> = columns.iter().map(|column| (column.name, column.value)).collect();
        return encode(&plain);
    }
    debug_assert!(columns.is_sorted_by(|a, b| a.name < b.name), "columns ascend by name");
    let (mut name_sizes, mut value_sizes, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for column in columns {
        put_varint32(&mut name_sizes, length_of(column.name.len()));
        put_varint32(&mut value_sizes, length_of(column.value.len()));
        names.extend_from_slice(column.name);
    }
    let mut entity = Vec::new();
    put_varint32(&mut entity, VERSION_WITH_BLOBS);
    put_varint32(&mut entity, length_of(columns.len()));
    for section in [&name_sizes, &value_sizes, &names] {
        put_varint32(&mut entity, length_of(section.len()));
    }
    let type_of = |is_blob| if is_blob { ValueType::BlobIndex } else { ValueType::Value };
    entity.extend(columns.iter().map(|column| type_of(column.is_blob) as u8));
    for section in [&name_sizes, &value_sizes, &names] {
        entity.extend_from_slice(section);
    }
    for column in columns {
        entity.extend_from_slice(column.value);
    }
    entity
}

/// Encodes `entity` anew with another value in its default column, which is added if there is none.
/// Columns in blob files stay there.
///
/// # Errors
/// As [`decode`].
pub fn with_default_column(entity: &[u8], value: &[u8]) -> Result<Vec<u8>> {
    let mut columns = decode(entity)?;
    let default = StoredColumn { name: b"", value, is_blob: false };
    match columns.first_mut() {
        Some(first) if first.name.is_empty() => *first = default,
        _ => columns.insert(0, default),
    }
    Ok(encode_stored(&columns))
}

/// Reads names and value sizes, and which values are blob indexes; what is left are the values.
fn read_index<'a>(
    entity: &'a [u8],
    mut column: impl FnMut(&'a [u8], usize, bool),
) -> Result<Decoder<'a>> {
    let mut decoder = Decoder::new(entity);
    let version = decoder.varint32().ok_or_else(|| malformed("its version is missing"))?;
    if version == 0 {
        return Err(malformed("its version is 0"));
    }
    if version > VERSION_WITH_BLOBS {
        return Err(Error::not_supported(format!("wide-column entity of version {version}")));
    }
    let count = decoder.varint32().ok_or_else(|| malformed("its column count is missing"))?;
    let mut sections = match version {
        VERSION => None,
        _ => Some(Sections::take(&mut decoder, count as usize)?),
    };
    let mut previous: Option<&[u8]> = None;
    for _ in 0..count {
        let (name, size, is_blob) = match &mut sections {
            Some(sections) => sections.next()?,
            None => {
                let name =
                    decoder.lps().ok_or_else(|| malformed("a column name exceeds the entity"))?;
                (
                    name,
                    decoder.varint32().ok_or_else(|| malformed("a value size is missing"))?,
                    false,
                )
            }
        };
        if previous.is_some_and(|previous| previous >= name) {
            return Err(malformed("its columns do not ascend by name"));
        }
        previous = Some(name);
        column(name, size as usize, is_blob);
    }
    match sections {
        Some(sections) if !sections.is_empty() => Err(malformed("its sections are too long")),
        _ => Ok(decoder),
    }
}

/// What precedes the values in version 2.
struct Sections<'a> {
    types: Decoder<'a>,
    name_sizes: Decoder<'a>,
    value_sizes: Decoder<'a>,
    names: Decoder<'a>,
}

impl<'a> Sections<'a> {
    fn take(decoder: &mut Decoder<'a>, count: usize) -> Result<Self> {
        let mut sizes = [0; 3];
        for size in &mut sizes {
            let stored =
                decoder.varint32().ok_or_else(|| malformed("a section's size is missing"))?;
            *size = stored as usize;
        }
        let mut section = |size| {
            let bytes =
                decoder.bytes(size).ok_or_else(|| malformed("a section exceeds the entity"))?;
            Ok(Decoder::new(bytes))
        };
        Ok(Self {
            types: section(count)?,
            name_sizes: section(sizes[0])?,
            value_sizes: section(sizes[1])?,
            names: section(sizes[2])?,
        })
    }

    fn next(&mut self) -> Result<(&'a [u8], u32, bool)> {
        const BLOB: u8 = ValueType::BlobIndex as u8;
        const VALUE: u8 = ValueType::Value as u8;
        let is_blob = match self.types.u8() {
            Some(BLOB) => true,
            Some(VALUE) => false,
            _ => return Err(malformed("a column has an unknown type")),
        };
        let name = self.name_sizes.varint32().and_then(|size| self.names.bytes(size as usize));
        let name = name.ok_or_else(|| malformed("a column name exceeds the entity"))?;
        let size =
            self.value_sizes.varint32().ok_or_else(|| malformed("a value size is missing"))?;
        if is_blob && size == 0 {
            return Err(malformed("a blob index is empty"));
        }
        Ok((name, size, is_blob))
    }

    fn is_empty(&self) -> bool {
        self.name_sizes.is_empty() && self.value_sizes.is_empty() && self.names.is_empty()
    }
}

fn length_of(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("shorter than 4 GiB")
}

fn malformed(how: &str) -> Error {
    Error::corruption(format!("malformed wide-column entity: {how}"))
}

#[cfg(test)]
mod tests;

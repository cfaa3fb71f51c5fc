//! The entries of a table.

use std::path::Path;
use std::sync::Arc;

use flagstone::base::compression::CompressionType;
use flagstone::base::{
    Comparator, InternalIterator, InternalKey, InternalKeyBuf, MAX_SEQUENCE_NUMBER, ValueType,
    WideColumns,
};
use flagstone::blob::BlobIndex;
use flagstone::sst::{IterSettings, Table};
use serde_json::{Value, json};

use super::Arguments;
use super::open::comparator_of;
use crate::arguments::{Bounds, Common};
use crate::entities::{columns_in_json, show_columns};
use crate::failure::Failure;
use crate::json;
use crate::output::Output;
use crate::text::{self, Notation};

/// What a stored value means.
enum Decoded {
    /// Itself. An entity that has columns in blob files is shown as it is stored.
    Plain,
    Columns(WideColumns),
    Blob(BlobIndex),
}

impl Decoded {
    fn of(key: InternalKey<'_>, value: &[u8], shown: &Shown) -> Self {
        let decoded = match key.value_type() {
            Some(ValueType::WideColumnEntity) => WideColumns::decode(value).ok().map(Self::Columns),
            Some(ValueType::BlobIndex) if shown.decodes_blob_indexes => {
                BlobIndex::decode(value).ok().map(Self::Blob)
            }
            _ => None,
        };
        decoded.unwrap_or(Self::Plain)
    }

    fn in_words(&self, value: &[u8], notation: Notation) -> String {
        match self {
            Self::Plain => notation.show(value),
            Self::Columns(columns) => show_columns(columns, notation),
            Self::Blob(index) => format!(
                "blob file {}, offset {}, {} bytes, compression {}",
                index.file,
                index.offset,
                index.size,
                compression_name(index.compression)
            ),
        }
    }

    fn tell(&self, facts: &mut Value, notation: Notation) {
        match self {
            Self::Plain => {}
            Self::Columns(columns) => facts["columns"] = columns_in_json(columns, notation),
            Self::Blob(index) => {
                facts["blob_index"] = json!({
                    "file_number": index.file.0, "offset": index.offset, "bytes": index.size,
                    "compression": compression_name(index.compression),
                });
            }
        }
    }
}

/// The name of a stored number.
pub(super) fn compression_name(byte: u8) -> String {
    CompressionType::from_byte(byte)
        .map_or_else(|| byte.to_string(), |known| known.short_name().to_string())
}

/// A type as it is shown.
pub(super) fn type_name(key: InternalKey<'_>) -> String {
    key.value_type().map_or_else(|| "?".to_string(), |kind| format!("{kind:?}"))
}

/// Which entries of a table are listed, and how.
pub(super) struct Shown {
    notation: Notation,
    comparator: Comparator,
    bounds: Bounds,
    limit: u64,
    decodes_blob_indexes: bool,
}

impl Shown {
    /// What is asked of a table. Keys are only compared where its order is known.
    pub fn new(table: &Table, arguments: &Arguments) -> Result<Self, Failure> {
        let notation = Notation::new(arguments.hex);
        let bounds = arguments.range.bounds(notation)?;
        let limit = arguments.limit.unwrap_or(u64::MAX);
        let comparator = comparator_of(table.properties());
        let is_bounded = bounds.0.is_some() || bounds.1.is_some();
        let is_known = !comparator.is_unknown();
        let is_usable = match &arguments.range.prefix {
            Some(_) => comparator == Comparator::Bytewise,
            None => is_known && comparator.timestamp_size() == 0,
        };
        if is_bounded && !is_usable {
            return Err(Failure::Usage(format!(
                "keys of order {} cannot be limited: --prefix needs bytewise order; --from and --to \
                 need an order that is built in and keys without timestamps",
                text::name(comparator.name())
            )));
        }
        let decodes_blob_indexes = arguments.decode_blob_index;
        Ok(Self { notation, comparator, bounds, limit, decodes_blob_indexes })
    }

    fn is_before_end(&self, key: &[u8]) -> bool {
        self.bounds.1.as_ref().is_none_or(|to| self.comparator.compare(key, to).is_lt())
    }

    /// Whether a range of keys has any of those that are listed.
    fn reaches(&self, start: &[u8], end: &[u8]) -> bool {
        let from = self.bounds.0.as_ref();
        self.is_before_end(start)
            && from.is_none_or(|from| self.comparator.compare(end, from).is_gt())
    }
}

pub(super) fn print_entries(
    table: &Arc<Table>,
    path: &Path,
    shown: &Shown,
    common: &Common,
    output: &mut Output,
) -> Result<(), Failure> {
    let notation = shown.notation;
    // First, so that no damaged block keeps them from being seen.
    for range in table.stored_range_deletions()? {
        if !shown.reaches(&range.start, &range.end) {
            continue;
        }
        let (sequence, kind) = (range.sequence, "RangeDeletion");
        output.line(if common.json {
            let mut facts = json!({ "sequence": sequence, "type": kind });
            json::tell_path(&mut facts, "file", Some(path));
            json::tell(&mut facts, "key", &range.start, notation);
            json::tell(&mut facts, "end_key", &range.end, notation);
            facts.to_string()
        } else {
            let (start, end) = (notation.show(&range.start), notation.show(&range.end));
            format!("{start}\t{sequence}\t{kind}\t{end}")
        })?;
    }
    let mut iter = table.iter(IterSettings::default());
    match &shown.bounds.0 {
        Some(from) => iter.seek(InternalKeyBuf::for_seek(from, MAX_SEQUENCE_NUMBER).as_key()),
        None => iter.seek_to_first(),
    }
    let mut listed = 0;
    while iter.valid() && listed < shown.limit && shown.is_before_end(iter.key().user_key()) {
        listed += 1;
        let key = iter.key();
        let (sequence, kind) = (key.sequence(), type_name(key));
        let decoded = Decoded::of(key, iter.value(), shown);
        output.line(if common.json {
            let mut facts = json!({ "sequence": sequence, "type": kind });
            json::tell_path(&mut facts, "file", Some(path));
            json::tell(&mut facts, "key", key.user_key(), notation);
            json::tell(&mut facts, "value", iter.value(), notation);
            decoded.tell(&mut facts, notation);
            facts.to_string()
        } else {
            let value = decoded.in_words(iter.value(), notation);
            let key = notation.show(key.user_key());
            format!("{key}\t{sequence}\t{kind}\t{value}")
        })?;
        iter.next();
    }
    Ok(iter.status()?)
}

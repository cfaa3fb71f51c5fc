//! What `update-manifest` and `unsafe-remove-table` share: the MANIFEST of a closed database.

use std::path::Path;

use flagstone::db::{OfflineManifest, OfflineTable};
use flagstone::options::ColumnFamilyOptions;
use serde_json::{Value, json};

use crate::arguments::Common;
use crate::database::{self, Access};
use crate::failure::Failure;
use crate::json;
use crate::text::{self, Notation};

/// Takes the lock of a database and reads its MANIFEST. Its files may be missing.
pub fn open(common: &Common, path: &Path) -> Result<OfflineManifest, Failure> {
    let (options, families) = database::options(common, path, Access::Inspect)?;
    let families: Vec<(&str, ColumnFamilyOptions)> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    let opened = OfflineManifest::open(path, &options, &families);
    opened.map_err(|error| database::of_setting(common, error.into()))
}

/// A table in words.
pub fn in_words(table: &OfflineTable, notation: Notation) -> String {
    let meta = &table.meta;
    let bound = |key: &flagstone::base::InternalKeyBuf| notation.show(key.user_key());
    format!(
        "table {} of column family '{}', level {}: {}, keys '{}' to '{}', sequence numbers {} to {}",
        text::path(&table.path),
        text::name(&table.column_family),
        table.level,
        text::bytes(meta.size),
        bound(&meta.smallest),
        bound(&meta.largest),
        meta.smallest_seqno,
        meta.largest_seqno
    )
}

/// A table for JSON.
pub fn as_json(table: &OfflineTable, notation: Notation) -> Value {
    let meta = &table.meta;
    let mut facts = json!({
        "number": meta.number.0,
        "column_family": table.column_family,
        "level": table.level,
        "bytes": meta.size,
        "smallest_sequence": meta.smallest_seqno,
        "largest_sequence": meta.largest_seqno,
        "temperature": meta.temperature.to_string(),
    });
    json::tell_path(&mut facts, "path", Some(&table.path));
    json::tell(&mut facts, "smallest_key", meta.smallest.user_key(), notation);
    json::tell(&mut facts, "largest_key", meta.largest.user_key(), notation);
    facts
}

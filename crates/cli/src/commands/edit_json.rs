//! An edit of a MANIFEST as JSON: what it says, by RocksDB's names; of what it does not say there
//! is nothing.

use flagstone::base::InternalKeyBuf;
use flagstone::manifest::{FileMetadata, VersionEdit};
use serde_json::{Map, Value, json};

use crate::json;
use crate::text::{Notation, hex};

/// The edit.
pub fn edit_json(edit: &VersionEdit) -> Value {
    let mut facts = Map::new();
    let mut tell = |name: &str, value: Value| match &value {
        Value::Null => {}
        Value::Array(list) if list.is_empty() => {}
        _ => drop(facts.insert(name.to_string(), value)),
    };
    tell("column_family_id", json!(edit.family.0));
    tell("atomic_group_remaining", json!(edit.atomic_group_remaining));
    tell("column_family_added", json!(edit.family_added));
    tell("column_family_dropped", json!(edit.family_dropped.then_some(true)));
    tell("db_id", json!(edit.db_id));
    tell("comparator", json!(edit.comparator));
    tell("persist_user_timestamps", json!(edit.persist_user_timestamps));
    tell("log_number", json!(edit.log_number.map(|number| number.0)));
    tell("prev_log_number", json!(edit.prev_log_number.map(|number| number.0)));
    tell("next_file_number", json!(edit.next_file_number.map(|number| number.0)));
    tell("last_sequence", json!(edit.last_sequence));
    tell("min_log_number_to_keep", json!(edit.min_log_number_to_keep.map(|number| number.0)));
    tell("max_column_family", json!(edit.max_column_family.map(|family| family.0)));
    tell("full_history_ts_low_hex", json!(edit.full_history_ts_low.as_deref().map(hex)));
    let cursors = edit.compact_cursors.iter();
    let cursors = cursors.map(|cursor| {
        let at = &cursor.key;
        let (sequence, kind) = (at.as_key().sequence(), kind(at));
        let mut facts = json!({ "level": cursor.level, "sequence": sequence, "type": kind });
        json::tell(&mut facts, "key", at.as_key().user_key(), Notation::Plain);
        facts
    });
    tell("compact_cursors", cursors.collect());
    let deleted = edit.deleted_files.iter();
    let deleted = deleted.map(|(level, number)| json!({ "level": level, "number": number.0 }));
    tell("deleted_files", deleted.collect());
    tell("new_files", edit.new_files.iter().map(|(level, file)| file_json(*level, file)).collect());
    let added = edit
        .blob_file_additions
        .iter()
        .map(|blob| json!({ "number": blob.number.0, "blobs": blob.total_count, "bytes": blob.total_bytes }));
    tell("blob_file_additions", added.collect());
    let garbage = edit
        .blob_file_garbages
        .iter()
        .map(|garbage| json!({ "number": garbage.number.0, "blobs": garbage.count, "bytes": garbage.bytes }));
    tell("blob_file_garbages", garbage.collect());
    let wals = edit.wal_additions.iter();
    let wals = wals.map(|wal| json!({ "number": wal.number.0, "synced_bytes": wal.synced_size }));
    tell("wal_additions", wals.collect());
    tell("wals_gone_below", json!(edit.wal_deletion.map(|number| number.0)));
    Value::Object(facts)
}

fn kind(key: &InternalKeyBuf) -> Value {
    let key = key.as_key();
    key.value_type().map_or_else(|| json!(key.packed() as u8), |kind| json!(format!("{kind:?}")))
}

fn file_json(level: usize, file: &FileMetadata) -> Value {
    let mut facts = json!({
        "level": level,
        "number": file.number.0,
        "path_id": file.path_id,
        "bytes": file.size,
        "smallest_key_sequence": file.smallest.as_key().sequence(),
        "smallest_key_type": kind(&file.smallest),
        "largest_key_sequence": file.largest.as_key().sequence(),
        "largest_key_type": kind(&file.largest),
        "smallest_sequence": file.smallest_seqno,
        "largest_sequence": file.largest_seqno,
        "epoch_number": file.epoch_number,
        "oldest_ancestor_seconds": file.oldest_ancestor_time,
        "created_seconds": file.file_creation_time,
        "oldest_blob_file": file.oldest_blob_file.map(|number| number.0),
        "temperature": file.temperature.to_string(),
        "unique_id": file.unique_id.map(|id| id.to_string()),
        "tail_bytes": file.tail_size,
        "compensated_range_deletion_bytes": file.compensated_range_deletion_size,
        "marked_for_compaction": file.marked_for_compaction,
    });
    for (name, key) in [("smallest_key", &file.smallest), ("largest_key", &file.largest)] {
        json::tell(&mut facts, name, key.as_key().user_key(), Notation::Plain);
    }
    facts
}

//! A version edit as text for people: one line a fact, as `flagstone manifest` prints it.

use std::fmt;

use super::edit::VersionEdit;
use super::metadata::FileMetadata;
use crate::base::{InternalKeyBuf, counted};

impl fmt::Display for VersionEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "edit of column family {}", self.family)?;
        line(f, "remaining in atomic group", self.atomic_group_remaining)?;
        // Names may hold anything.
        line(f, "column family added", self.family_added.as_deref().map(str::escape_debug))?;
        line(f, "column family dropped", self.family_dropped.then_some("yes"))?;
        line(f, "database id", self.db_id.as_deref().map(str::escape_debug))?;
        line(f, "comparator", self.comparator.as_deref().map(str::escape_debug))?;
        line(f, "persist user timestamps", self.persist_user_timestamps)?;
        line(f, "log number", self.log_number.map(|n| n.0))?;
        line(f, "previous log number", self.prev_log_number.map(|n| n.0))?;
        line(f, "next file number", self.next_file_number.map(|n| n.0))?;
        line(f, "last sequence", self.last_sequence)?;
        line(f, "min log number to keep", self.min_log_number_to_keep.map(|n| n.0))?;
        line(f, "max column family", self.max_column_family)?;
        line(
            f,
            "full history timestamp low",
            self.full_history_ts_low.as_deref().map(<[u8]>::escape_ascii),
        )?;
        for cursor in &self.compact_cursors {
            write!(f, "\n  compact cursor: level {}, after {}", cursor.level, Key(&cursor.key))?;
        }
        for (level, number) in &self.deleted_files {
            write!(f, "\n  deleted table: level {level}, {number}.sst")?;
        }
        for (level, file) in &self.new_files {
            write!(f, "\n  new table: level {level}, {file}")?;
        }
        for blob in &self.blob_file_additions {
            let (count, bytes) = (blob.total_count, blob.total_bytes);
            write!(
                f,
                "\n  new blob file: {}.blob, {}, {bytes} bytes",
                blob.number,
                counted(count, "blob")
            )?;
        }
        for garbage in &self.blob_file_garbages {
            let (count, bytes) = (counted(garbage.count, "blob"), garbage.bytes);
            write!(f, "\n  garbage in blob file: {}.blob, {count}, {bytes} bytes", garbage.number)?;
        }
        for wal in &self.wal_additions {
            match wal.synced_size {
                Some(size) => {
                    write!(f, "\n  tracked WAL: {}.log, {size} bytes synced", wal.number)?
                }
                None => write!(f, "\n  tracked WAL: {}.log", wal.number)?,
            }
        }
        line(f, "tracked WALs gone below", self.wal_deletion.map(|n| n.0))
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, value: Option<impl fmt::Display>) -> fmt::Result {
    match value {
        Some(value) => write!(f, "\n  {name}: {value}"),
        None => Ok(()),
    }
}

impl fmt::Display for FileMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.sst, {} bytes, keys [{} .. {}]",
            self.number,
            self.size,
            Key(&self.smallest),
            Key(&self.largest)
        )?;
        write!(
            f,
            ", seqnos {}..{}, epoch {}",
            self.smallest_seqno, self.largest_seqno, self.epoch_number
        )?;
        write!(
            f,
            ", ancestor {} s, created {} s",
            self.oldest_ancestor_time, self.file_creation_time
        )?;
        if let Some(blob) = self.oldest_blob_file {
            write!(f, ", oldest blob file {blob}")?;
        }
        if let Some(id) = self.unique_id {
            write!(f, ", id {id}")?;
        }
        for (name, number) in [
            ("path", u64::from(self.path_id)),
            ("tail", self.tail_size),
            ("range deletions cover", self.compensated_range_deletion_size),
        ] {
            if number != 0 {
                write!(f, ", {name} {number}")?;
            }
        }
        if self.temperature.is_known() {
            write!(f, ", temperature {}", self.temperature)?;
        }
        if self.marked_for_compaction {
            f.write_str(", marked for compaction")?;
        }
        Ok(())
    }
}

/// A key as `user key@sequence:type`.
struct Key<'a>(&'a InternalKeyBuf);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.0.as_key();
        write!(f, "{}@{}:", key.user_key().escape_ascii(), key.sequence())?;
        match key.value_type() {
            Some(value_type) => write!(f, "{value_type:?}"),
            None => write!(f, "type {}", key.packed() as u8),
        }
    }
}

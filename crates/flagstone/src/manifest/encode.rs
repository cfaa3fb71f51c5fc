//! Writing a version edit, in RocksDB's order of fields.

use std::borrow::Cow;

use super::edit::VersionEdit;
use super::format::{BLOB_TERMINATE, WAL_SYNCED_SIZE, WAL_TERMINATE, file_tag, tag};
use super::metadata::{
    BlobFileAddition, BlobFileGarbage, BlobReferences, EntryStats, FileMetadata,
};
use crate::base::coding::{put_lps, put_varint32, put_varint64};
use crate::base::{InternalKeyBuf, timestamp};

impl VersionEdit {
    /// Appends the edit's bytes; see `format` for the grammar.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_scalars(out);
        for cursor in &self.compact_cursors {
            put_varint32(out, tag::COMPACT_CURSOR);
            put_varint32(out, cursor.level as u32);
            put_lps(out, cursor.key.as_bytes());
        }
        for &(level, number) in &self.deleted_files {
            put_varint32(out, tag::DELETED_FILE);
            put_varint32(out, level as u32);
            put_varint64(out, number.0);
        }
        for (level, file) in &self.new_files {
            encode_file(out, *level, file);
        }
        for addition in &self.blob_file_additions {
            encode_blob_addition(out, addition);
        }
        for garbage in &self.blob_file_garbages {
            encode_blob_garbage(out, garbage);
        }
        self.encode_wals(out);
        self.encode_family(out);
    }

    fn encode_scalars(&self, out: &mut Vec<u8>) {
        put_text(out, tag::DB_ID, self.db_id.as_deref().map(str::as_bytes));
        put_text(out, tag::COMPARATOR, self.comparator.as_deref().map(str::as_bytes));
        let numbers = [
            (tag::LOG_NUMBER, self.log_number.map(|n| n.0)),
            (tag::PREV_LOG_NUMBER, self.prev_log_number.map(|n| n.0)),
            (tag::NEXT_FILE_NUMBER, self.next_file_number.map(|n| n.0)),
            (tag::MAX_COLUMN_FAMILY, self.max_column_family.map(|id| u64::from(id.0))),
            (tag::MIN_LOG_NUMBER_TO_KEEP, self.min_log_number_to_keep.map(|n| n.0)),
            (tag::LAST_SEQUENCE, self.last_sequence),
        ];
        for (tag, number) in numbers {
            if let Some(number) = number {
                put_varint32(out, tag);
                put_varint64(out, number);
            }
        }
    }

    fn encode_wals(&self, out: &mut Vec<u8>) {
        for wal in &self.wal_additions {
            let mut payload = Vec::new();
            put_varint64(&mut payload, wal.number.0);
            if let Some(size) = wal.synced_size {
                put_varint32(&mut payload, WAL_SYNCED_SIZE);
                put_varint64(&mut payload, size);
            }
            put_varint32(&mut payload, WAL_TERMINATE);
            put_text(out, tag::WAL_ADDITION_2, Some(&payload));
        }
        if let Some(number) = self.wal_deletion {
            let mut payload = Vec::new();
            put_varint64(&mut payload, number.0);
            put_text(out, tag::WAL_DELETION_2, Some(&payload));
        }
    }

    fn encode_family(&self, out: &mut Vec<u8>) {
        if self.family.0 != 0 {
            put_varint32(out, tag::COLUMN_FAMILY);
            put_varint32(out, self.family.0);
        }
        put_text(out, tag::COLUMN_FAMILY_ADD, self.family_added.as_deref().map(str::as_bytes));
        if self.family_dropped {
            put_varint32(out, tag::COLUMN_FAMILY_DROP);
        }
        if let Some(remaining) = self.atomic_group_remaining {
            put_varint32(out, tag::IN_ATOMIC_GROUP);
            put_varint32(out, remaining);
        }
        put_text(out, tag::FULL_HISTORY_TS_LOW, self.full_history_ts_low.as_deref());
        if let Some(persist) = self.persist_user_timestamps {
            put_text(out, tag::PERSIST_USER_TIMESTAMPS, Some(&[u8::from(persist)]));
        }
    }
}

fn put_text(out: &mut Vec<u8>, tag: u32, text: Option<&[u8]>) {
    if let Some(text) = text {
        put_varint32(out, tag);
        put_lps(out, text);
    }
}

fn encode_file(out: &mut Vec<u8>, level: usize, file: &FileMetadata) {
    put_varint32(out, tag::NEW_FILE_4);
    put_varint32(out, level as u32);
    put_varint64(out, file.number.0);
    put_varint64(out, file.size);
    put_lps(out, &stored_bound(&file.smallest, file.padded_bytes));
    put_lps(out, &stored_bound(&file.largest, file.padded_bytes));
    put_varint64(out, file.smallest_seqno);
    put_varint64(out, file.largest_seqno);
    encode_custom_fields(out, file);
}

/// A bound without the timestamp that its table does not store.
fn stored_bound(bound: &InternalKeyBuf, padded_bytes: usize) -> Cow<'_, [u8]> {
    if padded_bytes == 0 {
        return Cow::Borrowed(bound.as_bytes());
    }
    let (user_key, packed) = bound.as_bytes().split_at(bound.user_key().len());
    Cow::Owned([timestamp::strip(user_key, padded_bytes), packed].concat())
}

/// RocksDB always writes both times and the epoch; the rest only where it says something.
fn encode_custom_fields(out: &mut Vec<u8>, file: &FileMetadata) {
    put_number(out, file_tag::OLDEST_ANCESTOR_TIME, file.oldest_ancestor_time);
    put_number(out, file_tag::FILE_CREATION_TIME, file.file_creation_time);
    put_number(out, file_tag::EPOCH_NUMBER, file.epoch_number);
    if !file.file_checksum.is_empty() || !file.file_checksum_function.is_empty() {
        put_text(out, file_tag::FILE_CHECKSUM, Some(&file.file_checksum));
        put_text(
            out,
            file_tag::FILE_CHECKSUM_FUNCTION,
            Some(file.file_checksum_function.as_bytes()),
        );
    }
    if file.path_id != 0 {
        put_text(out, file_tag::PATH_ID, Some(&[file.path_id as u8]));
    }
    if file.temperature.is_known() {
        put_text(out, file_tag::TEMPERATURE, Some(&[file.temperature.as_byte()]));
    }
    if file.marked_for_compaction {
        put_text(out, file_tag::NEED_COMPACTION, Some(&[1]));
    }
    if let Some(oldest) = file.oldest_blob_file {
        put_number(out, file_tag::OLDEST_BLOB_FILE, oldest.0);
    }
    if let Some(references) = &file.blob_references {
        put_text(out, file_tag::BLOB_REFERENCES, Some(&encode_references(references)));
    }
    if let Some(stats) = &file.entry_stats {
        put_text(out, file_tag::ENTRY_STATS, Some(&encode_entry_stats(stats)));
    }
    put_text(out, file_tag::UNIQUE_ID, file.unique_id.as_ref().map(|id| id.0.as_slice()));
    if file.compensated_range_deletion_size != 0 {
        put_number(
            out,
            file_tag::COMPENSATED_RANGE_DELETION_SIZE,
            file.compensated_range_deletion_size,
        );
    }
    if file.tail_size != 0 {
        put_number(out, file_tag::TAIL_SIZE, file.tail_size);
    }
    if !file.min_timestamp.is_empty() || !file.max_timestamp.is_empty() {
        put_text(out, file_tag::MIN_TIMESTAMP, Some(&file.min_timestamp));
        put_text(out, file_tag::MAX_TIMESTAMP, Some(&file.max_timestamp));
    }
    if !file.user_timestamps_persisted {
        put_text(out, file_tag::USER_TIMESTAMPS_PERSISTED, Some(&[0]));
    }
    put_varint32(out, file_tag::TERMINATE);
}

fn encode_entry_stats(stats: &EntryStats) -> Vec<u8> {
    let mut out = Vec::new();
    for number in [stats.entries, stats.deletions, stats.range_deletions, stats.value_bytes] {
        put_varint64(&mut out, number);
    }
    out
}

fn encode_references(references: &BlobReferences) -> Vec<u8> {
    let mut payload = Vec::new();
    put_varint64(&mut payload, references.others);
    let mut before = 0;
    for &(number, bytes) in references.files() {
        put_varint64(&mut payload, number.0 - before);
        put_varint64(&mut payload, bytes);
        before = number.0;
    }
    payload
}

fn put_number(out: &mut Vec<u8>, tag: u32, number: u64) {
    let mut payload = Vec::with_capacity(10);
    put_varint64(&mut payload, number);
    put_text(out, tag, Some(&payload));
}

fn encode_blob_addition(out: &mut Vec<u8>, addition: &BlobFileAddition) {
    put_varint32(out, tag::BLOB_FILE_ADDITION);
    put_varint64(out, addition.number.0);
    put_varint64(out, addition.total_count);
    put_varint64(out, addition.total_bytes);
    put_lps(out, addition.checksum_method.as_bytes());
    put_lps(out, &addition.checksum_value);
    put_varint32(out, BLOB_TERMINATE);
}

fn encode_blob_garbage(out: &mut Vec<u8>, garbage: &BlobFileGarbage) {
    put_varint32(out, tag::BLOB_FILE_GARBAGE);
    put_varint64(out, garbage.number.0);
    put_varint64(out, garbage.count);
    put_varint64(out, garbage.bytes);
    put_varint32(out, BLOB_TERMINATE);
}

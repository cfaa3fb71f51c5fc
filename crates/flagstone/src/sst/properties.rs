//! What a table says about itself.

use std::collections::BTreeMap;

/// The properties of a table; numbers that the file lacks are 0, texts empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableProperties {
    /// Everything as stored, by name.
    pub raw: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Bytes of all data blocks with their trailers.
    pub data_size: u64,
    /// Bytes of the index.
    pub index_size: u64,
    /// Bytes of the filter.
    pub filter_size: u64,
    /// Bytes of all internal keys, uncompressed.
    pub raw_key_size: u64,
    /// Bytes of all values, uncompressed.
    pub raw_value_size: u64,
    /// Data blocks.
    pub num_data_blocks: u64,
    /// Entries, range tombstones included.
    pub num_entries: u64,
    /// Deletions, range tombstones included.
    pub num_deletions: u64,
    /// Merge operands.
    pub num_merge_operands: u64,
    /// Range tombstones.
    pub num_range_deletions: u64,
    /// Keys and prefixes in the filter.
    pub num_filter_entries: u64,
    /// The format version that the writer noted.
    pub format_version: u64,
    /// The family's number, if noted.
    pub column_family: Option<u32>,
    /// The family's name.
    pub column_family_name: String,
    /// The comparator's name.
    pub comparator: String,
    /// The merge operator's name; empty if there is none.
    pub merge_operator: String,
    /// The prefix extractor's name; empty if there is none.
    pub prefix_extractor: String,
    /// The filter policy's name.
    pub filter_policy: String,
    /// The compression's name.
    pub compression: String,
    /// Seconds since 1970 when the oldest data was written.
    pub creation_time: u64,
    /// Seconds since 1970 of the oldest key.
    pub oldest_key_time: u64,
    /// Seconds since 1970 of the newest key.
    pub newest_key_time: u64,
    /// Seconds since 1970 when the file was made.
    pub file_creation_time: u64,
    /// Where the bytes after the last data block start.
    pub tail_start_offset: u64,
    /// The identity of the database that made the file.
    pub db_identity: String,
    /// The identity of the session that made the file.
    pub session_identity: String,
    /// The number that the file had when it was made.
    pub original_file_number: u64,
}

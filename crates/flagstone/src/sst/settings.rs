//! What readers and builders of tables need to know; `db` fills these in from the options.

use crate::base::{ColumnFamilyId, Comparator, FileNumber, SequenceNumber};

use super::format::IndexType;

/// How [`super::Table::open`] opens a file.
#[derive(Debug, Clone, Default)]
pub struct TableReadSettings {
    /// The order of the family's keys.
    pub comparator: Comparator,
    /// The file's number; with the cache's file id it names the file's blocks in the cache.
    pub file_number: FileNumber,
    /// The family that the file belongs to.
    pub column_family: ColumnFamilyId,
    /// The largest sequence number that the MANIFEST gives the file; ingested files take theirs from here.
    pub largest_sequence: Option<SequenceNumber>,
    /// The unique id that the MANIFEST gives the file; checked when both are known.
    pub unique_id: Option<[u64; 2]>,
}

/// How one point lookup reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadSettings {
    /// Check the checksum of every block read from the file.
    pub verify_checksums: bool,
    /// Put blocks read from the file into the cache.
    pub fill_cache: bool,
    /// Fail with `Incomplete` rather than read from the file.
    pub cache_only: bool,
}

impl Default for ReadSettings {
    fn default() -> Self {
        Self { verify_checksums: true, fill_cache: true, cache_only: false }
    }
}

/// How one iterator reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IterSettings {
    /// How blocks are read.
    pub read: ReadSettings,
    /// User keys at or beyond this are not wanted: blocks that hold only such keys are not read.
    pub upper_bound: Option<Vec<u8>>,
    /// Bytes to read ahead; 0 starts small and doubles once the blocks turn out to be read in order.
    pub readahead_size: usize,
    /// The caller only wants keys with the same prefix as the sought one: the prefix filter may rule a seek out.
    pub prefix_same_as_start: bool,
}

/// How far index keys are shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexShortening {
    /// Last keys as they are.
    None,
    /// Separators between blocks.
    #[default]
    Separators,
    /// Separators, and a short successor of the last key.
    SeparatorsAndSuccessor,
}

/// How [`super::TableBuilder`] writes a file.
#[derive(Debug, Clone)]
pub struct TableBuilderSettings {
    /// The order of the family's keys.
    pub comparator: Comparator,
    /// 2 to 7; RocksDB 7.8 reads up to 5.
    pub format_version: u32,
    /// A data block is closed when it has about this many bytes, uncompressed.
    pub block_size: usize,
    /// How many percent a block may stay below `block_size` rather than exceed it.
    pub block_size_deviation: usize,
    /// Entries of a data block between two full keys.
    pub block_restart_interval: usize,
    /// Entries of an index block between two full keys.
    pub index_block_restart_interval: usize,
    /// How data blocks are found.
    pub index_type: IndexType,
    /// Aim for index and filter partitions of this many bytes.
    pub metadata_block_size: usize,
    /// How far index keys are shortened.
    pub index_shortening: IndexShortening,
    /// Put whole keys into the filter.
    pub whole_key_filtering: bool,
    /// Cut the filter into partitions; needs [`IndexType::TwoLevel`].
    pub partition_filters: bool,
    /// Add a hash index to data blocks: entries per bucket, for example 0.75.
    pub data_block_hash_ratio: Option<f64>,
    /// The family that the file belongs to.
    pub column_family: ColumnFamilyId,
    /// Its name.
    pub column_family_name: String,
    /// The merge operator's name, if there is one.
    pub merge_operator_name: Option<String>,
    /// Seconds since 1970 when the oldest data was written (a flush: now), 0 if unknown.
    pub creation_time: u64,
    /// Seconds since 1970 of the oldest key, 0 if unknown.
    pub oldest_key_time: u64,
    /// Seconds since 1970 of the newest key, if known.
    pub newest_key_time: Option<u64>,
    /// Seconds since 1970 when this file was made.
    pub file_creation_time: u64,
    /// The database's identity (the content of IDENTITY).
    pub db_identity: String,
    /// The session's identity: 20 base-36 characters.
    pub session_identity: String,
    /// The number that the file gets.
    pub file_number: FileNumber,
    /// More properties, for applications.
    pub user_properties: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Default for TableBuilderSettings {
    fn default() -> Self {
        Self {
            comparator: Comparator::Bytewise,
            format_version: 5,
            block_size: 4096,
            block_size_deviation: 10,
            block_restart_interval: 16,
            index_block_restart_interval: 1,
            index_type: IndexType::BinarySearch,
            metadata_block_size: 4096,
            index_shortening: IndexShortening::Separators,
            whole_key_filtering: true,
            partition_filters: false,
            data_block_hash_ratio: None,
            column_family: ColumnFamilyId::DEFAULT,
            column_family_name: "default".to_owned(),
            merge_operator_name: None,
            creation_time: 0,
            oldest_key_time: 0,
            newest_key_time: None,
            file_creation_time: 0,
            db_identity: String::new(),
            session_identity: String::new(),
            file_number: FileNumber(0),
            user_properties: Vec::new(),
        }
    }
}

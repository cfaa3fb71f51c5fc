//! What readers and builders of tables need to know; `db` fills these in from the options.

use std::sync::Arc;

use crate::base::checksum::ChecksumType;
use crate::base::compression::{CompressionOptions, CompressionType};
use crate::base::{
    CollectorFactories, ColumnFamilyId, Comparator, DEFAULT_COLUMN_FAMILY_NAME, FileNumber,
    PrefixExtractor, SequenceNumber, UniqueId, WriteTimes,
};
use crate::cache::MemoryAccount;

use super::builder::RANGE_DELETION_BYTES_MAX;
use super::cached::BlockCache;
use super::filter::{Filter, FilterPolicy, WrittenBy};
use super::format::{DEFAULT_FORMAT_VERSION, IndexType};
use super::read_cache_hits::ReadCacheHits;
use super::rows::TableRows;
use super::second_tier::CompressedCache;

/// What of a table is in memory beside its cached blocks.
#[derive(Clone, Default)]
pub struct BesideBlocks {
    /// Where lookups look for rows first.
    pub rows: Option<TableRows>,
    /// Bytes of checksum that each data block has in memory, up to 8.
    pub checksum_bytes: usize,
}

/// How [`super::Table::open`] opens a file.
#[derive(Clone)]
pub struct TableReadSettings {
    /// The order of the family's keys.
    pub comparator: Comparator,
    /// Where data blocks, index and filter partitions are cached; without one they are read each
    /// time.
    pub cache: Option<Arc<BlockCache>>,
    /// Where data blocks are looked for that the cache does not have.
    pub second_tier: Option<Arc<CompressedCache>>,
    /// The file's number in the cache, from [`crate::cache::CacheOwner::next_file`].
    pub cache_id: u64,
    /// Check the checksums of what is read at open.
    pub verify_checksums: bool,
    /// Use the file's filter, if it has one.
    pub use_filter: bool,
    /// The family's prefix rule, for the prefix filter; a file made by another rule has none.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// The largest sequence number that the MANIFEST gives the file; ingested files take theirs
    /// from here.
    pub largest_sequence: Option<SequenceNumber>,
    /// The unique id that the MANIFEST gives the file; checked when both are known.
    pub unique_id: Option<UniqueId>,
    /// Keep index and filter in the cache, if there is one and they fit, rather than with the open
    /// table.
    pub cache_index_and_filter: bool,
    /// Evict index and filter blocks later than data blocks.
    pub high_priority: bool,
    /// A filter over the keys of the file, used if it has none of its own.
    pub key_filter: Option<Filter>,
    /// What is in memory beside the cached blocks.
    pub beside_blocks: BesideBlocks,
    /// Where the memory of the open table is noted, and of cursors over it.
    pub account: Option<Arc<MemoryAccount>>,
    /// Whether the keys are stored without the timestamps that the order has, also if the file does
    /// not say so.
    pub is_stripped: bool,
}

impl Default for TableReadSettings {
    fn default() -> Self {
        Self {
            comparator: Comparator::Bytewise,
            cache: None,
            second_tier: None,
            cache_id: 0,
            verify_checksums: true,
            use_filter: true,
            prefix_extractor: None,
            largest_sequence: None,
            unique_id: None,
            cache_index_and_filter: false,
            high_priority: true,
            key_filter: None,
            beside_blocks: BesideBlocks::default(),
            account: None,
            is_stripped: false,
        }
    }
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

/// How a cursor reads ahead that was not told how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoReadahead {
    /// Bytes at first; twice as many each time.
    pub initial: usize,
    /// Bytes at most; 0 for no reading ahead.
    pub most: usize,
    /// So many blocks must have been read one behind the other; padding may lie between.
    pub after_reads: u32,
}

impl Default for AutoReadahead {
    fn default() -> Self {
        Self { initial: 8 << 10, most: 256 << 10, after_reads: 2 }
    }
}

/// How one iterator reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IterSettings {
    /// How blocks are read.
    pub read: ReadSettings,
    /// User keys at or beyond this are not wanted: blocks that hold only such keys are not read.
    pub upper_bound: Option<Vec<u8>>,
    /// Bytes to read ahead; 0 for what `auto_readahead` says.
    pub readahead_size: usize,
    /// How to read ahead otherwise.
    pub auto_readahead: AutoReadahead,
    /// The prefix filter may rule a seek out while the cursor is confined
    /// ([`crate::base::InternalIterator::confine`]).
    pub prefix_same_as_start: bool,
    /// Is told of each data block whether it was cached.
    pub read_cache_hits: Option<Arc<ReadCacheHits>>,
    /// What is read ahead lies in mappings of its own where it is much, which go back to the
    /// system: those of jobs. Short scans are many, and better served by what the allocator keeps.
    pub maps_readahead: bool,
    /// What is read ahead is noted in the table's account, as a cursor's; otherwise the caller sees
    /// to that.
    pub notes_readahead: bool,
    /// The level of the tree for which reads of blocks are counted (`PerfContext`).
    pub level: Option<usize>,
}

/// How far keys in the index are shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexShortening {
    /// Last keys as they are.
    None,
    /// To a short separator between each two blocks.
    #[default]
    Separators,
    /// Also the last key of the table, to a short successor.
    SeparatorsAndSuccessor,
}

/// Where data blocks are not to lie across.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuperBlock {
    /// Bytes between two boundaries, a power of two.
    pub size: u64,
    /// What part of it, the reciprocal, may be padding before a block.
    pub overhead_ratio: u64,
}

impl SuperBlock {
    /// Bytes of padding before a block, at most.
    pub fn padding_max(&self) -> u64 {
        self.size.checked_div(self.overhead_ratio).unwrap_or(0)
    }
}

/// How [`super::TableBuilder`] writes a file.
#[derive(Debug, Clone)]
pub struct TableBuilderSettings {
    /// The order of the family's keys.
    pub comparator: Comparator,
    /// The name that the table gives its order, if that is another: keys are then written without
    /// the timestamps of that order.
    pub stripped_order: Option<String>,
    /// 2 to 7; RocksDB 7.8 reads up to 5.
    pub format_version: u32,
    /// How blocks are protected.
    pub checksum: ChecksumType,
    /// How data and index blocks are compressed.
    pub compression: CompressionType,
    /// How hard, and with what dictionary.
    pub compression_options: CompressionOptions,
    /// Decompress each block that was compressed, and compare.
    pub verify_compression: bool,
    /// Compress index blocks too.
    pub compress_index: bool,
    /// Pad data blocks so that none straddles a page of this many bytes, a power of two; excludes
    /// compression.
    pub block_align: Option<usize>,
    /// Ends data blocks early, and pads them, so that few lie across boundaries.
    pub super_block: Option<SuperBlock>,
    /// Values, of entities those of columns, of so many bytes and more lie beside the blocks.
    pub embedded_from: Option<u64>,
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
    /// Which filter to write, if any.
    pub filter_policy: Option<FilterPolicy>,
    /// Where no filter is written: make one over the keys for [`super::TableSummary::key_filter`].
    pub key_filter: bool,
    /// What writes the file; may decide the kind of filter.
    pub written_by: WrittenBy,
    /// The prefix rule; prefixes then go into the filter too.
    pub prefix_extractor: Option<PrefixExtractor>,
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
    /// Create the collectors of further properties.
    pub collectors: CollectorFactories,
    /// The level that the file is for, if that is known.
    pub level: Option<usize>,
    /// More properties, for applications.
    pub user_properties: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes collected before they are handed to the file.
    pub buffer_size: usize,
    /// Range deletions that need more are refused: nobody could read them.
    pub range_deletion_bytes_max: usize,
    /// When sequence numbers were written: the table has what tells of its own.
    pub write_times: Option<Arc<WriteTimes>>,
}

impl Default for TableBuilderSettings {
    fn default() -> Self {
        Self {
            comparator: Comparator::Bytewise,
            stripped_order: None,
            format_version: DEFAULT_FORMAT_VERSION,
            checksum: ChecksumType::Xxh3,
            compression: CompressionType::None,
            compression_options: CompressionOptions::default(),
            verify_compression: false,
            compress_index: true,
            block_align: None,
            super_block: None,
            embedded_from: None,
            block_size: 4096,
            block_size_deviation: 10,
            block_restart_interval: 16,
            index_block_restart_interval: 1,
            index_type: IndexType::BinarySearch,
            metadata_block_size: 4096,
            index_shortening: IndexShortening::Separators,
            filter_policy: None,
            key_filter: false,
            written_by: WrittenBy::Other,
            prefix_extractor: None,
            whole_key_filtering: true,
            partition_filters: false,
            data_block_hash_ratio: None,
            column_family: ColumnFamilyId::DEFAULT,
            column_family_name: DEFAULT_COLUMN_FAMILY_NAME.to_owned(),
            merge_operator_name: None,
            creation_time: 0,
            oldest_key_time: 0,
            newest_key_time: None,
            file_creation_time: 0,
            db_identity: String::new(),
            session_identity: String::new(),
            file_number: FileNumber(0),
            collectors: CollectorFactories::default(),
            level: None,
            user_properties: Vec::new(),
            buffer_size: 1 << 20,
            range_deletion_bytes_max: RANGE_DELETION_BYTES_MAX,
            write_times: None,
        }
    }
}

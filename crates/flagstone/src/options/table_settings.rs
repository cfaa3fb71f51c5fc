//! The settings of a column family's block-based tables.

use crate::base::checksum::ChecksumType;
use crate::sst::{FilterPolicy, IndexShortening, IndexType};

use super::choices::{DataBlockIndexType, PrepopulateBlockCache};
use super::filter_bits::FilterBits;
use super::table::{Section, settings};

settings! {
    /// The settings of block-based tables: `[TableOptions/BlockBasedTable "name"]`.
    pub struct TableSettings in Section::Table;

    /// Bytes of a data block before compression.
    live block_size: u64 = 4096, in 1..=1 << 30;
    /// Percent below the block size at which a block is closed before an entry that would exceed
    /// it.
    live block_size_deviation: i32 = 10, in 0..=100;
    /// Entries between two whole keys in a data block.
    live block_restart_interval: i32 = 16, in 1..=1 << 20;
    /// The same in an index block.
    live index_block_restart_interval: i32 = 1, in 1..=1 << 20;
    /// Bytes of a partition of a partitioned index or filter.
    live metadata_block_size: u64 = 4096, in 1..=1 << 30;
    /// The table format that is written, 2 to 7. RocksDB 7.8 reads up to 5.
    live format_version: u32 = 5, in 2..=7;
    /// The checksum of blocks.
    live checksum: ChecksumType = ChecksumType::Xxh3;
    /// The form of the index.
    live index_type: IndexType = IndexType::BinarySearch;
    /// How far keys in the index are shortened.
    live index_shortening: IndexShortening = IndexShortening::Separators;
    /// Compresses index blocks.
    live enable_index_compression: bool = true;
    /// How a data block is searched.
    live data_block_index_type: DataBlockIndexType = DataBlockIndexType::BinarySearch;
    /// Keys a bucket in a data block's hash table; 0 stands for the default.
    live data_block_hash_table_util_ratio: f64 = 0.75, in 0.0..=100.0;
    /// The filter of new tables: bloomfilter:BITS, ribbonfilter:BITS:LEVEL, or nullptr for none.
    /// Ten bits per key mislead one lookup of an absent key in a hundred.
    live filter_policy: Option<FilterPolicy> = Some(FilterPolicy::DEFAULT);
    /// How many bits per key its filters have on each level, as in 14:14:12:10: in what flushes
    /// write and compactions write to level 0, to level 1, and so on, the last also on all deeper
    /// levels; 0 for no filter. Empty for the policy's bits everywhere. Tables that are there, or
    /// move to another level as they are, keep theirs.
    live filter_bits_per_level: FilterBits = FilterBits::default();
    /// Puts whole keys into the filter, not just prefixes. Not where an application's comparator
    /// orders them: it may take keys of different bytes for equal.
    live whole_key_filtering: bool = true;
    /// Cuts the filter into partitions; needs a partitioned index.
    live partition_filters: bool = false;
    /// Keeps no blocks in memory. A table that is open goes on as it was opened.
    live no_block_cache: bool = false;
    /// Which data blocks are put into the block cache as they are written: kDisable; kFlushOnly,
    /// those of flushes; or kFlushAndCompaction. Worth it where what was written last is read next.
    live prepopulate_block_cache: PrepopulateBlockCache = PrepopulateBlockCache::Disable;
    /// Puts data blocks that a compaction writes into the block cache where those that it read were
    /// there.
    live cache_follows_compaction: bool = true;
    /// Keeps index and filter in the block cache instead of with the open table; with the table
    /// without a cache, or where they are too large for a part of it. A table that is open keeps
    /// them where they are.
    live cache_index_and_filter_blocks: bool = false;
    /// Evicts them, and partitions, later than data blocks.
    live cache_index_and_filter_blocks_with_high_priority: bool = true;
    /// Keeps those of tables that are opened in level 0 with the table all the same.
    live pin_l0_filter_and_index_blocks_in_cache: bool = false;
    /// Decompresses every block of a new table that was compressed, and compares: one that differs
    /// fails the flush or compaction.
    live verify_compression: bool = false;
    /// Pads data blocks so that none crosses a page; `block_size` must be a power of two, and
    /// nothing compressed.
    live block_align: bool = false;
    /// Bytes of a super block, a power of two: data blocks are ended early, and padded, so that few
    /// lie across the boundaries of super blocks, compressed ones too. 0 for no such alignment.
    live super_block_alignment_size: u64 = 0, in 0..=u32::MAX as u64;
    /// Before a data block, at most the super block's size divided by this is padding; 0 for no
    /// alignment.
    live super_block_alignment_space_overhead_ratio: u64 = 128, in 0..=u64::MAX;
    /// Bytes that an iterator reads ahead at first, at most `max_auto_readahead_size`; twice as
    /// many each time. 0 for none.
    live initial_auto_readahead_size: u64 = 8 << 10, in 0..=1 << 30;
    /// Bytes that an iterator reads ahead at most; 0 for none.
    live max_auto_readahead_size: u64 = 256 << 10, in 0..=1 << 30;
    /// Blocks that an iterator reads one behind the other from a table before it reads ahead.
    live num_file_reads_for_auto_readahead: u64 = 2, in 0..=u32::MAX as u64;
}

//! The settings of a column family's block-based tables.

use crate::base::checksum::ChecksumType;
use crate::sst::{FilterPolicy, IndexShortening, IndexType};

use super::choices::{DataBlockIndexType, PrepopulateBlockCache};
use super::filter_bits::FilterBits;
use super::table::{Section, settings};

settings! {
    /// The settings of block-based tables: `[TableOptions/BlockBasedTable "name"]`.
    pub struct TableSettings in Section::Table;

    /// Size in bytes of a data block before compression.
    live block_size: u64 = 4096, in 1..=1 << 30;
    /// Closes a block early if it is within this percentage of `block_size` and the next entry
    /// would exceed it.
    live block_size_deviation: i32 = 10, in 0..=100;
    /// Entries per restart point in a data block; a key is stored whole only at a restart point.
    live block_restart_interval: i32 = 16, in 1..=1 << 20;
    /// Entries per restart point in an index block.
    live index_block_restart_interval: i32 = 1, in 1..=1 << 20;
    /// Size in bytes of one partition of a partitioned index or filter.
    live metadata_block_size: u64 = 4096, in 1..=1 << 30;
    /// Table format to write, 2 to 7. RocksDB 7.8 reads up to 5.
    live format_version: u32 = 5, in 2..=7;
    /// Checksum of blocks.
    live checksum: ChecksumType = ChecksumType::Xxh3;
    /// Structure of the index.
    live index_type: IndexType = IndexType::BinarySearch;
    /// How far keys in the index are shortened.
    live index_shortening: IndexShortening = IndexShortening::Separators;
    /// Compresses index blocks.
    live enable_index_compression: bool = true;
    /// How a data block is searched.
    live data_block_index_type: DataBlockIndexType = DataBlockIndexType::BinarySearch;
    /// Keys per bucket of a data block's hash table; 0 for the default.
    live data_block_hash_table_util_ratio: f64 = 0.75, in 0.0..=100.0;
    /// Filter of new tables: bloomfilter:BITS, ribbonfilter:BITS:LEVEL, or nullptr for none. With
    /// ten bits per key, about one lookup of an absent key in a hundred passes the filter.
    live filter_policy: Option<FilterPolicy> = Some(FilterPolicy::DEFAULT);
    /// Bits per key of the filters by level, as in 14:14:12:10; empty for the bits of
    /// `filter_policy`, 0 for no filter. The first number is for flushes and level 0; the last one
    /// also for all deeper levels. Existing tables, and tables moved to another level unchanged,
    /// keep their filters.
    live filter_bits_per_level: FilterBits = FilterBits::default();
    /// Adds whole keys to the filter, not only prefixes. No effect with an application's own
    /// comparator, which may treat keys with different bytes as equal.
    live whole_key_filtering: bool = true;
    /// Splits the filter into partitions; needs a partitioned index.
    live partition_filters: bool = false;
    /// Keeps no blocks in memory. Tables already open are not affected.
    live no_block_cache: bool = false;
    /// Data blocks that go into the block cache as they are written: kDisable for none, kFlushOnly
    /// for those of flushes, or kFlushAndCompaction. Useful if recent writes are read next.
    live prepopulate_block_cache: PrepopulateBlockCache = PrepopulateBlockCache::Disable;
    /// Puts data blocks written by a compaction into the block cache if the blocks they replace
    /// were there.
    live cache_follows_compaction: bool = true;
    /// Keeps index and filter blocks in the block cache instead of with the open table. They stay
    /// with the table if there is no block cache, or if they are too large for one of its shards.
    /// Tables already open are not affected.
    live cache_index_and_filter_blocks: bool = false;
    /// Evicts index and filter blocks, and partitions of them, later than data blocks.
    live cache_index_and_filter_blocks_with_high_priority: bool = true;
    /// Keeps the index and filter blocks of tables opened in level 0 with the table, even with
    /// `cache_index_and_filter_blocks`.
    live pin_l0_filter_and_index_blocks_in_cache: bool = false;
    /// Decompresses every compressed block of a new table and compares it with the original. A
    /// difference fails the flush or compaction.
    live verify_compression: bool = false;
    /// Pads data blocks so that none crosses a page boundary. Needs a `block_size` that is a power
    /// of two, and no compression.
    live block_align: bool = false;
    /// Size in bytes of a super block, a power of two; 0 for none. Data blocks, compressed or not,
    /// are ended early or padded so that few cross a super block boundary.
    live super_block_alignment_size: u64 = 0, in 0..=u32::MAX as u64;
    /// Limits the padding before a data block to the super block size divided by this number; 0 for
    /// no alignment.
    live super_block_alignment_space_overhead_ratio: u64 = 128, in 0..=u64::MAX;
    /// Bytes of an iterator's first readahead, at most `max_auto_readahead_size`; 0 for none. Each
    /// further readahead is twice as large.
    live initial_auto_readahead_size: u64 = 8 << 10, in 0..=1 << 30;
    /// Bytes of an iterator's largest readahead; 0 for none.
    live max_auto_readahead_size: u64 = 256 << 10, in 0..=1 << 30;
    /// Blocks that an iterator reads in sequence from a table before it starts to read ahead.
    live num_file_reads_for_auto_readahead: u64 = 2, in 0..=u32::MAX as u64;
}

//! Block-based tables.

use flagstone::options::{FilterPolicy, KeptSetting, TableSettings};

use super::choices::{
    BlockBasedIndexType, BlockBasedTablePinningTier, ChecksumType, DataBlockIndexType,
};
use super::{Options, defaults, without_effect};
use crate::cache::Cache;

/// How tables are written and cached.
pub struct BlockBasedOptions {
    #[doc(hidden)]
    pub engine: TableSettings,
    pub(super) cache: Option<Cache>,
    /// What has no effect.
    kept: Vec<KeptSetting>,
    /// Of top-level indexes, partitions, and what has none.
    pinning: [BlockBasedTablePinningTier; 3],
}

impl Default for BlockBasedOptions {
    fn default() -> Self {
        Self {
            engine: defaults::tables(),
            cache: None,
            kept: Vec::new(),
            pinning: [const { BlockBasedTablePinningTier::Fallback }; 3],
        }
    }
}

/// RocksDB's Bloom filter of so many bits: fewer than half a bit are none.
pub fn bloom(bits_per_key: f64) -> Option<FilterPolicy> {
    let bits = bits_in_range(bits_per_key)?;
    Some(FilterPolicy::Bloom { bits_per_key: bits })
}

/// The bits of a filter that the engine knows; none for fewer than half a bit.
pub fn bits_in_range(bits_per_key: f64) -> Option<f64> {
    match bits_per_key {
        bits if bits < FilterPolicy::LEAST_BITS => None,
        bits if bits < 100.0 => Some(bits.max(1.0)),
        // Also what is no number.
        _ => Some(100.0),
    }
}

impl BlockBasedOptions {
    /// Bytes of a data block before compression. Default: 4 KiB.
    pub fn set_block_size(&mut self, size: usize) {
        self.engine.block_size = size as u64;
    }

    /// Bytes of a partition of an index or filter. Default: 4 KiB.
    pub fn set_metadata_block_size(&mut self, size: usize) {
        self.engine.metadata_block_size = size as u64;
    }

    /// Cuts the filter into partitions. Has no effect without a two-level index. Default: false.
    pub fn set_partition_filters(&mut self, size: bool) {
        self.engine.partition_filters = size;
    }

    /// The block cache. Default: one of 32 MiB.
    pub fn set_block_cache(&mut self, cache: &Cache) {
        self.cache = Some(cache.clone());
    }

    /// Keeps no blocks in memory.
    pub fn disable_cache(&mut self) {
        self.engine.no_block_cache = true;
    }

    /// A Bloom filter of so many bits per key. Its form is always the newer one, whatever
    /// `block_based` says. Default: no filter.
    pub fn set_bloom_filter(&mut self, bits_per_key: f64, _block_based: bool) {
        self.engine.filter_policy = bloom(bits_per_key);
    }

    /// A Ribbon filter, as accurate as a Bloom filter of so many bits per key. Flushes write a
    /// Bloom filter. Default: no filter.
    pub fn set_ribbon_filter(&mut self, bloom_equivalent_bits_per_key: f64) {
        self.set_hybrid_ribbon_filter(bloom_equivalent_bits_per_key, 0);
    }

    /// Ribbon filters from the level `bloom_before_level` on, above it Bloom filters; flushes count
    /// as level -1. Default: no filter.
    pub fn set_hybrid_ribbon_filter(
        &mut self,
        bloom_equivalent_bits_per_key: f64,
        bloom_before_level: i32,
    ) {
        let bits = bits_in_range(bloom_equivalent_bits_per_key);
        self.engine.filter_policy = bits.map(|bits| FilterPolicy::Ribbon {
            bloom_equivalent_bits_per_key: bits,
            bloom_before_level,
        });
    }

    /// Keeps index and filter in the block cache instead of with the open table. Default: false.
    pub fn set_cache_index_and_filter_blocks(&mut self, v: bool) {
        self.engine.cache_index_and_filter_blocks = v;
    }

    /// Evicts them later than data blocks. Default: true.
    pub fn set_cache_index_and_filter_blocks_with_high_priority(&mut self, v: bool) {
        self.engine.cache_index_and_filter_blocks_with_high_priority = v;
    }

    /// The form of the index. Default: binary search.
    pub fn set_index_type(&mut self, index_type: BlockBasedIndexType) {
        self.engine.index_type = index_type.into();
    }

    /// Keeps index and filter of tables in level 0 with the open table all the same. Default:
    /// false.
    pub fn set_pin_l0_filter_and_index_blocks_in_cache(&mut self, v: bool) {
        self.engine.pin_l0_filter_and_index_blocks_in_cache = v;
    }

    /// Has no effect: the top level of a partitioned index or filter always stays in memory.
    pub fn set_pin_top_level_index_and_filter(&mut self, v: bool) {
        self.note("pin_top_level_index_and_filter", &v.to_string());
    }

    /// The format of tables, 2 to 7; another fails the opening. Default: 7.
    pub fn set_format_version(&mut self, version: i32) {
        self.engine.format_version = version.max(0) as u32;
    }

    /// Entries between two whole keys in a data block. Default: 16.
    pub fn set_block_restart_interval(&mut self, interval: i32) {
        self.engine.block_restart_interval = interval;
    }

    /// The same in an index block. Default: 1.
    pub fn set_index_block_restart_interval(&mut self, interval: i32) {
        self.engine.index_block_restart_interval = interval;
    }

    /// How a data block is searched. Default: by binary search.
    pub fn set_data_block_index_type(&mut self, index_type: DataBlockIndexType) {
        self.engine.data_block_index_type = index_type.into();
    }

    /// Keys a bucket in a data block's hash table. Default: 0.75.
    pub fn set_data_block_hash_ratio(&mut self, ratio: f64) {
        self.engine.data_block_hash_table_util_ratio = ratio;
    }

    /// Puts whole keys into the filter, not just prefixes. Default: true.
    pub fn set_whole_key_filtering(&mut self, v: bool) {
        self.engine.whole_key_filtering = v;
    }

    /// The checksum of blocks. Default: XXH3.
    pub fn set_checksum_type(&mut self, checksum_type: ChecksumType) {
        self.engine.checksum = checksum_type.into();
    }

    /// Has no effect: filters have the size that they ask for.
    pub fn set_optimize_filters_for_memory(&mut self, v: bool) {
        self.note("optimize_filters_for_memory", &v.to_string());
    }

    /// Has no effect: the top level always stays in memory.
    pub fn set_top_level_index_pinning_tier(&mut self, pinning_tier: BlockBasedTablePinningTier) {
        self.pin(0, pinning_tier);
    }

    /// Has no effect: partitions are cached as they are used.
    pub fn set_partition_pinning_tier(&mut self, pinning_tier: BlockBasedTablePinningTier) {
        self.pin(1, pinning_tier);
    }

    /// Has no effect: what is not in the block cache stays in memory, and what is in it is kept as
    /// it is used.
    pub fn set_unpartitioned_pinning_tier(&mut self, pinning_tier: BlockBasedTablePinningTier) {
        self.pin(2, pinning_tier);
    }

    fn pin(&mut self, which: usize, tier: BlockBasedTablePinningTier) {
        self.pinning[which] = tier;
        let [top, partition, whole] = self.pinning.each_ref().map(BlockBasedTablePinningTier::text);
        let value = format!(
            "{{unpartitioned_pinning={whole};partition_pinning={partition};top_level_index_pinning={top};}}"
        );
        self.note("metadata_cache_options", &value);
    }

    #[doc(hidden)]
    pub fn note(&mut self, name: &'static str, value: &str) {
        without_effect::keep(&mut self.kept, name, value);
    }
}

impl Options {
    /// How tables are written and cached.
    pub fn set_block_based_table_factory(&mut self, factory: &BlockBasedOptions) {
        self.set_tables(factory);
    }

    pub(super) fn set_tables(&mut self, tables: &BlockBasedOptions) {
        self.db.cf.table = tables.engine.clone();
        self.block_cache = tables.cache.clone();
        let kept = &mut self.db.cf.kept;
        kept.retain(|kept| kept.section != flagstone::options::Section::Table);
        kept.extend(tables.kept.iter().cloned());
    }
}

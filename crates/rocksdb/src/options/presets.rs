//! Several settings at once, as RocksDB chooses them.

use flagstone::options::DataBlockIndexType;

use super::Options;
use super::tables::{BlockBasedOptions, bloom};
use crate::cache::Cache;

impl Options {
    /// Memtables of a quarter of `memtable_memory_budget` bytes, levels to fit, and LZ4 from level
    /// 2 on.
    pub fn optimize_level_style_compaction(&mut self, memtable_memory_budget: usize) {
        self.db.cf.optimize_level_style_compaction(memtable_memory_budget as u64);
    }

    /// Memtables of a quarter of `memtable_memory_budget` bytes, and universal compaction that
    /// compresses four fifths of the data.
    pub fn optimize_universal_style_compaction(&mut self, memtable_memory_budget: usize) {
        self.db.cf.optimize_universal_style_compaction(memtable_memory_budget as u64);
    }

    /// Hash tables in data blocks, Bloom filters of ten bits per key, also in memtables, and a
    /// block cache of `block_cache_size_mb` MiB, for programs that do not iterate.
    pub fn optimize_for_point_lookup(&mut self, block_cache_size_mb: u64) {
        let mut tables = BlockBasedOptions::default();
        tables.engine.data_block_index_type = DataBlockIndexType::BinaryAndHash;
        tables.engine.data_block_hash_table_util_ratio = 0.75;
        tables.engine.filter_policy = bloom(10.0);
        let bytes = block_cache_size_mb.saturating_mul(1 << 20);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        tables.cache = Some(Cache::new_lru_cache(bytes));
        self.set_tables(&tables);
        self.db.cf.memtable_prefix_bloom_size_ratio = 0.02;
        self.db.cf.memtable_whole_key_filtering = true;
    }

    /// Compacts only on request and holds writers up for nothing but memtables, in two levels: for
    /// loading much data, and one compaction at the end.
    pub fn prepare_for_bulk_load(&mut self) {
        self.db.prepare_for_bulk_load();
    }
}

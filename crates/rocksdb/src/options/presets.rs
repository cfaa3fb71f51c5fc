//! Several settings at once, as RocksDB chooses them.

use flagstone::options::{CompactionStyle, CompressionType, DataBlockIndexType};

use super::Options;
use super::tables::{BlockBasedOptions, bloom};
use crate::cache::Cache;

impl Options {
    /// Memtables of a quarter of `memtable_memory_budget` bytes, levels to fit, and LZ4 from level
    /// 2 on.
    pub fn optimize_level_style_compaction(&mut self, memtable_memory_budget: usize) {
        let budget = memtable_memory_budget as u64;
        self.share_among_memtables(budget);
        let family = &mut self.db.cf.settings;
        family.level0_file_num_compaction_trigger = 2;
        family.target_file_size_base = budget / 8;
        family.max_bytes_for_level_base = budget;
        family.compaction_style = CompactionStyle::Level;
        let levels = family.num_levels.max(0);
        family.compression_per_level = (0..levels)
            .map(|level| if level < 2 { CompressionType::None } else { CompressionType::Lz4 })
            .collect();
    }

    /// Memtables of a quarter of `memtable_memory_budget` bytes, and universal compaction that
    /// compresses four fifths of the data.
    pub fn optimize_universal_style_compaction(&mut self, memtable_memory_budget: usize) {
        self.share_among_memtables(memtable_memory_budget as u64);
        self.db.cf.compaction_style = CompactionStyle::Universal;
        self.db.cf.compaction_options_universal.compression_size_percent = 80;
    }

    fn share_among_memtables(&mut self, budget: u64) {
        let family = &mut self.db.cf.settings;
        family.write_buffer_size = budget / 4;
        family.min_write_buffer_number_to_merge = 2;
        family.max_write_buffer_number = 6;
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
        const NEVER: i32 = 1 << 30;
        let family = &mut self.db.cf.settings;
        family.level0_file_num_compaction_trigger = NEVER;
        family.level0_slowdown_writes_trigger = NEVER;
        family.level0_stop_writes_trigger = NEVER;
        family.soft_pending_compaction_bytes_limit = 0;
        family.hard_pending_compaction_bytes_limit = 0;
        family.disable_auto_compactions = true;
        family.max_compaction_bytes = 1 << 60;
        family.num_levels = 2;
        family.max_write_buffer_number = 6;
        family.min_write_buffer_number_to_merge = 1;
        family.target_file_size_base = 256 << 20;
        self.db.max_background_flushes = 4;
        self.db.max_background_compactions = 2;
    }
}

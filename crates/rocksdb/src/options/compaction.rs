//! Setters of a column family: levels, when what is compacted, and what holds writers up.

use flagstone::options as engine;

use super::{CompactionPri, DBCompactionStyle, Options, UniversalCompactionStopStyle};

/// How universal compaction merges sorted runs.
#[derive(Default)]
pub struct UniversalCompactOptions {
    engine: engine::UniversalCompactionOptions,
}

fn not_negative(number: i32) -> u32 {
    number.max(0) as u32
}

impl UniversalCompactOptions {
    /// Percent by which the next run may be larger than those already taken. Default: 1.
    pub fn set_size_ratio(&mut self, ratio: i32) {
        self.engine.size_ratio = not_negative(ratio);
    }

    /// Runs that are merged at least. Default: 2.
    pub fn set_min_merge_width(&mut self, num: i32) {
        self.engine.min_merge_width = not_negative(num);
    }

    /// Runs that are merged at most. Default: any number.
    pub fn set_max_merge_width(&mut self, num: i32) {
        self.engine.max_merge_width = u32::try_from(num).unwrap_or(u32::MAX);
    }

    /// Percent of the last run's size that the others may take together. Default: 200.
    pub fn set_max_size_amplification_percent(&mut self, v: i32) {
        self.engine.max_size_amplification_percent = not_negative(v);
    }

    /// Percent of the data that is compressed; -1 for all. Default: -1.
    pub fn set_compression_size_percent(&mut self, v: i32) {
        self.engine.compression_size_percent = v;
    }

    /// When runs are no longer added. Default: by the total size.
    pub fn set_stop_style(&mut self, style: UniversalCompactionStopStyle) {
        self.engine.stop_style = style.into();
    }
}

/// How FIFO compaction drops tables.
#[derive(Default)]
pub struct FifoCompactOptions {
    engine: engine::FifoCompactionOptions,
}

impl FifoCompactOptions {
    /// Bytes of all tables at which the oldest is dropped. Default: 1 GiB.
    pub fn set_max_table_files_size(&mut self, nbytes: u64) {
        self.engine.max_table_files_size = nbytes;
    }
}

impl Options {
    /// How tables are arranged and merged. Default: in levels.
    pub fn set_compaction_style(&mut self, style: DBCompactionStyle) {
        self.db.cf.compaction_style = style.into();
    }

    /// How universal compaction merges.
    pub fn set_universal_compaction_options(&mut self, uco: &UniversalCompactOptions) {
        self.db.cf.compaction_options_universal = uco.engine.clone();
    }

    /// How FIFO compaction drops.
    pub fn set_fifo_compaction_options(&mut self, fco: &FifoCompactOptions) {
        self.db.cf.compaction_options_fifo = fco.engine.clone();
    }

    /// Which table of a level is compacted first. Default: the one that overlaps least.
    pub fn set_compaction_pri(&mut self, pri: CompactionPri) {
        self.db.cf.compaction_pri = pri.into();
    }

    /// Compacts only on request. Default: false.
    pub fn set_disable_auto_compactions(&mut self, disable: bool) {
        self.db.cf.disable_auto_compactions = disable;
    }

    /// The number of levels. Default: 7.
    pub fn set_num_levels(&mut self, n: i32) {
        self.db.cf.num_levels = n;
    }

    /// Tables in level 0 at which they are compacted. Default: 4.
    pub fn set_level_zero_file_num_compaction_trigger(&mut self, n: i32) {
        self.db.cf.level0_file_num_compaction_trigger = n;
    }

    /// Tables in level 0 at which writes are delayed. Default: 20.
    pub fn set_level_zero_slowdown_writes_trigger(&mut self, n: i32) {
        self.db.cf.level0_slowdown_writes_trigger = n;
    }

    /// Tables in level 0 at which writes stop. Default: 36.
    pub fn set_level_zero_stop_writes_trigger(&mut self, n: i32) {
        self.db.cf.level0_stop_writes_trigger = n;
    }

    /// Bytes due to be compacted at which writes are delayed; 0 for never. Default: 64 GiB.
    pub fn set_soft_pending_compaction_bytes_limit(&mut self, limit: usize) {
        self.db.cf.soft_pending_compaction_bytes_limit = limit as u64;
    }

    /// Bytes due to be compacted at which writes stop; 0 for never. Default: 256 GiB.
    pub fn set_hard_pending_compaction_bytes_limit(&mut self, limit: usize) {
        self.db.cf.hard_pending_compaction_bytes_limit = limit as u64;
    }

    /// Bytes that level 1 should hold at most. Default: 256 MiB.
    pub fn set_max_bytes_for_level_base(&mut self, size: u64) {
        self.db.cf.max_bytes_for_level_base = size;
    }

    /// How many times more the next level may hold. Default: 10.
    pub fn set_max_bytes_for_level_multiplier(&mut self, mul: f64) {
        self.db.cf.max_bytes_for_level_multiplier = mul;
    }

    /// Factors to that by level, each at least 1. Default: 1 for each.
    pub fn set_max_bytes_for_level_multiplier_additional(&mut self, level_values: &[i32]) {
        self.db.cf.max_bytes_for_level_multiplier_additional = level_values.to_vec();
    }

    /// Sizes levels from the last one upwards. Default: true.
    pub fn set_level_compaction_dynamic_level_bytes(&mut self, v: bool) {
        self.db.cf.level_compaction_dynamic_level_bytes = v;
    }

    /// Bytes of a table in level 1. Default: 64 MiB.
    pub fn set_target_file_size_base(&mut self, size: u64) {
        self.db.cf.target_file_size_base = size;
    }

    /// How many times larger the tables of the next level are. Default: 1.
    pub fn set_target_file_size_multiplier(&mut self, multiplier: i32) {
        self.db.cf.target_file_size_multiplier = multiplier;
    }

    /// Bytes that one compaction may read and overlap; 0 for 25 tables. Default: 0.
    pub fn set_max_compaction_bytes(&mut self, nbytes: u64) {
        self.db.cf.max_compaction_bytes = nbytes;
    }

    /// Seconds after which a table is rewritten; 0 for never. Default: 30 days with a compaction
    /// filter, never without.
    pub fn set_periodic_compaction_seconds(&mut self, secs: u64) {
        self.db.cf.periodic_compaction_seconds = secs;
    }

    /// Seconds after which a table is compacted so that what it deletes goes; 0 for never. Default:
    /// 30 days.
    pub fn set_ttl(&mut self, ttl_secs: u64) {
        self.db.cf.ttl = ttl_secs;
    }

    /// Compacts tables that have many deletions: `num_dels_trigger` of `window_size` consecutive
    /// entries, or a part of `deletion_ratio` of all.
    pub fn add_compact_on_deletion_collector_factory(
        &mut self,
        window_size: usize,
        num_dels_trigger: usize,
        deletion_ratio: f64,
    ) {
        self.add_compact_on_deletion(window_size, num_dels_trigger, deletion_ratio, 0);
    }

    /// As [`Options::add_compact_on_deletion_collector_factory`], only for tables of at least
    /// `min_file_size` bytes.
    #[doc(hidden)]
    pub fn add_compact_on_deletion(
        &mut self,
        window_size: usize,
        num_dels_trigger: usize,
        deletion_ratio: f64,
        min_file_size: u64,
    ) {
        let factory = engine::CompactOnDeletionCollectorFactory {
            window_size: window_size as u64,
            deletion_trigger: num_dels_trigger as u64,
            deletion_ratio,
            min_file_size,
        };
        self.db.cf.table_properties_collectors.0.push(std::sync::Arc::new(factory));
    }
}

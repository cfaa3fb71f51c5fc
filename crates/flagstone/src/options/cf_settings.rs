//! The settings of one column family.

use std::borrow::Cow;

use crate::base::Temperature;
use crate::base::compression::{CompressionOptions, CompressionType};

use super::choices::{
    BlobWriteMode, CompactionPri, CompactionStopStyle, CompactionStyle, PrepopulateBlobCache,
};
use super::data_path::DataPathList;
use super::memtable_factory::MemTableFactory;
use super::nested::nested_settings;
use super::table::{Section, settings};
use super::temperature::FileTemperatureAges;

settings! {
    /// The settings of one column family: `[CFOptions "name"]`.
    pub struct CfSettings in Section::ColumnFamily;

    /// Bytes in a memtable at which it is flushed.
    live write_buffer_size: u64 = 64 << 20, in 1024..=1 << 40;
    /// Memtables of the family, the one being written among them, at which writes stop.
    live max_write_buffer_number: i32 = 2, in 1..=1024;
    /// Full memtables that are flushed together.
    fixed min_write_buffer_number_to_merge: i32 = 1, in 1..=1024;
    /// The structure of memtables: `btree`, `skip_list`, `vector` or `prefix_hash`, by RocksDB's
    /// names.
    fixed memtable_factory: MemTableFactory = MemTableFactory::BTree;
    /// Bytes of one block of a memtable's arena, `write_buffer_size` at most; 0 leaves it to the
    /// engine.
    fixed arena_block_size: u64 = 0, in 0..=1 << 30;

    /// Files in level 0 at which they are compacted.
    live level0_file_num_compaction_trigger: i32 = 4, in 0..=i32::MAX;
    /// Files in level 0 at which writes are delayed.
    live level0_slowdown_writes_trigger: i32 = 20, in -1..=i32::MAX;
    /// Files in level 0 at which writes stop.
    live level0_stop_writes_trigger: i32 = 36, in -1..=i32::MAX;
    /// Bytes due to be compacted at which writes are delayed; 0 for never.
    live soft_pending_compaction_bytes_limit: u64 = 64 << 30;
    /// Bytes due to be compacted at which writes stop; 0 for never.
    live hard_pending_compaction_bytes_limit: u64 = 256 << 30;
    /// Compacts only on request.
    live disable_auto_compactions: bool = false;

    /// Levels.
    fixed num_levels: i32 = 7, in 1..=64;
    /// How files are arranged and merged.
    fixed compaction_style: CompactionStyle = CompactionStyle::Level;
    /// Which file of a level is compacted first.
    fixed compaction_pri: CompactionPri = CompactionPri::MinOverlappingRatio;
    /// Bytes that level 1 (or the first level in use) should hold at most.
    live max_bytes_for_level_base: u64 = 256 << 20, in 1..=u64::MAX;
    /// How many times more the next level may hold.
    live max_bytes_for_level_multiplier: f64 = 10.0, in 1.0..=1e6;
    /// Factors to that by level.
    live max_bytes_for_level_multiplier_additional: Vec<i32> = vec![1; 7];
    /// Sizes levels from the last one upwards, so that little of the data is kept twice.
    fixed level_compaction_dynamic_level_bytes: bool = true;
    /// Bytes of a table in level 1.
    live target_file_size_base: u64 = 64 << 20, in 1..=1 << 50;
    /// How many times larger the tables of the next level are.
    live target_file_size_multiplier: i32 = 1, in 1..=1000;
    /// Bytes that one compaction may read and overlap; 0 for 25 tables.
    live max_compaction_bytes: u64 = 0;
    /// Seconds after which a table is compacted so that what it deletes goes; 0 for never.
    live ttl: u64 = 30 * 24 * 60 * 60;
    /// Seconds after which a table is rewritten; 0 for never. Unless it is set, 30 days where there
    /// is a compaction filter, which would else never come by some tables, and never where there is
    /// none.
    live periodic_compaction_seconds: u64 = u64::MAX - 1;
    /// Seconds that deletions wait, while nothing else takes them along, until what they free is
    /// freed, if that is much: a memtable that was not written to for so long is flushed (one that
    /// still is, after three times as long; one with deletions of ranges that leave nothing of
    /// whole tables, within a second), and a table as old as that is compacted, under leveled and
    /// universal compaction. So is a memtable flushed whose values take the place of much larger
    /// ones in blob files, where `max_space_amplification` bounds these. 0 for never.
    live deletion_compaction_delay: u64 = 20;
    /// As `db_paths`, for this family alone, and its blob files lie in the first of them; empty for
    /// `db_paths`. With several directories levels have fixed sizes, whatever
    /// `level_compaction_dynamic_level_bytes` says.
    fixed cf_paths: DataPathList = DataPathList::default();
    /// Settings of universal compaction.
    live compaction_options_universal: UniversalCompactionOptions =
        UniversalCompactionOptions::default();
    /// Settings of FIFO compaction.
    live compaction_options_fifo: FifoCompactionOptions = FifoCompactionOptions::default();
    /// Reads back every table that was written, whole, before it counts: one that does not hold
    /// what was written, in order, fails the flush or compaction.
    live paranoid_file_checks: bool = false;

    /// How table blocks are compressed.
    live compression: CompressionType = CompressionType::Lz4;
    /// The same by level; empty for `compression` everywhere.
    fixed compression_per_level: Vec<CompressionType> = Vec::new();
    /// How blocks of the last level are compressed, if otherwise.
    live bottommost_compression: Option<CompressionType> = None;
    /// Parameters of compression.
    live compression_opts: CompressionSettings = CompressionSettings::default();
    /// Parameters of `bottommost_compression`; in force if its `enabled` is set.
    live bottommost_compression_opts: CompressionSettings = CompressionSettings::default();

    /// Keeps values of `min_blob_size` bytes and more in blob files. Unless it is set (auto),
    /// families do but those under FIFO compaction, of which `max_table_files_size` would bound the
    /// tables alone.
    live enable_blob_files: Option<bool> = None;
    /// The smallest value, in bytes, that goes to a blob file. Unless it is set (auto), 4096; or 0,
    /// as in RocksDB, where `enable_blob_files` is set.
    live min_blob_size: Option<u64> = None;
    /// When values go to blob files: commit (those of at least `blob_commit_min_size` bytes, with
    /// the WAL carrying only where they lie) or flush (all, as in RocksDB, which after a crash can
    /// open only such a database). auto is commit, but flush where WALs are kept for whoever reads
    /// along (`WAL_ttl_seconds`, `WAL_size_limit_MB`), since overwritten values leave blob files.
    live blob_write_mode: BlobWriteMode = BlobWriteMode::Auto;
    /// The smallest value, in bytes, that goes to a blob file when it is committed; `min_blob_size`
    /// if that is larger.
    live blob_commit_min_size: u64 = 4096;
    /// The same for a write that asks for a sync: the blob file must then be synced, too, which
    /// only large values are worth.
    live blob_commit_synced_min_size: u64 = 512 << 10;
    /// Keeps values from blob files that were read in the block cache, as RocksDB does where
    /// `blob_cache` is the block cache.
    live cache_blobs: bool = false;
    /// Puts values into the cache for them (`blob_cache`, or the block cache with `cache_blobs`) as
    /// flushes write them to blob files (kFlushOnly), or as they are written there at the commit;
    /// kDisable for none.
    live prepopulate_blob_cache: PrepopulateBlobCache = PrepopulateBlobCache::Disable;
    /// Bytes at which a blob file is closed.
    live blob_file_size: u64 = 256 << 20, in 1..=u64::MAX;
    /// How blob values are compressed, each by itself. Unless it is set (auto), as `compression`
    /// says, whatever others say of levels; or not, as in RocksDB, where `enable_blob_files` is
    /// set. A value of 32 MiB and more that lies uncompressed in a blob file stays so when that is
    /// collected: it is moved piece by piece.
    live blob_compression_type: Option<CompressionType> = None;
    /// Moves live values out of old blob files in compactions, so that these can be deleted.
    live enable_blob_garbage_collection: bool = false;
    /// The part of the blob files, from the oldest on, that values are moved out of.
    live blob_garbage_collection_age_cutoff: f64 = 0.25, in 0.0..=1.0;
    /// The part of garbage in the oldest blob files at which a compaction is started for them.
    live blob_garbage_collection_force_threshold: f64 = 1.0, in 0.0..=1.0;
    /// Punches holes in blob files where dead values of 8 KiB and more lie, to keep within
    /// `max_space_amplification` without moving live ones, or with moving few of them below 12 KiB;
    /// on file systems that can, and are not slow with it.
    live blob_punch_holes: bool = true;
    /// How many times the bytes of live values blob files may take, garbage and what is being moved
    /// included: compactions are started to keep within that, under leveled and universal
    /// compaction, and writers are delayed, but for bursts (`burst_space_amplification`). Where
    /// tables are larger than these values, garbage may take as many bytes more as they are larger.
    /// Costs next to no writes where holes serve; small values are moved, the more often the closer
    /// to 1 this is. 0 for no such limit; other values below 1 count as 1.
    live max_space_amplification: f64 = 1.3, in 0.0..=1e6;
    /// How many times the bytes of live values blob files may take for a while, where values are
    /// overwritten faster than what that leaves can be collected: writers are delayed only near to
    /// that. No more than `max_space_amplification` keeps to that at every moment.
    live burst_space_amplification: f64 = 2.2, in 0.0..=1e6;
    /// Bytes of each blob file that a compaction reads ahead where it takes values in the order in
    /// which they lie there; 0 for none.
    live blob_compaction_readahead_size: u64 = 0, in 0..=1 << 30;
    /// The first level whose values go to blob files.
    live blob_file_starting_level: i32 = 0, in 0..=64;

    /// Entries of one key that an iterator steps over before it seeks. Four times as many deleted
    /// keys in a row are a run whose end is remembered.
    live max_sequential_skip_in_iterations: u64 = 8;
    /// Merge operands of one key that stand in a memtable, the newest first, when the next one is
    /// merged with them as it is written, if all that it takes is in memory; 0 for never.
    live max_successive_merges: u64 = 0;
    /// Part of `write_buffer_size` that each memtable has for a Bloom filter over its prefixes, by
    /// which lookups and scans with `prefix_same_as_start` pass over it; 0 for none. Counts as part
    /// of the memtable, from its first entry on.
    live memtable_prefix_bloom_size_ratio: f64 = 0.0, in 0.0..=0.25;
    /// Puts whole keys into that filter, too, by which lookups then pass over the memtable in the
    /// place of prefixes.
    live memtable_whole_key_filtering: bool = false;
    /// Compactions write no filter where nothing older lies below what they write: for lookups that
    /// mostly find something. It spares most of the filters' memory, and costs a lookup of an
    /// absent key the read of a block.
    fixed optimize_filters_for_hits: bool = false;
}

settings! {
    /// Parameters of compression.
    pub struct CompressionSettings in Section::Nested;

    /// Window of zlib.
    live window_bits: i32 = -14;
    /// Level; 32767 for the algorithm's own default, negative levels of zstd are faster.
    live level: i32 = CompressionOptions::DEFAULT_LEVEL;
    /// Strategy of zlib.
    planned strategy: i32 = 0;
    /// Bytes of a dictionary; 0 for none.
    live max_dict_bytes: u32 = 0, in 0..=1 << 30;
    /// Bytes of samples that zstd trains a dictionary from; 0 takes samples for it, as it does
    /// without `max_dict_bytes`.
    live zstd_max_train_bytes: u32 = 0, in 0..=1 << 30;
    /// Threads that compress one table's blocks.
    planned parallel_threads: u32 = 1, in 1..=256;
    /// For `bottommost_compression_opts`: whether it is in force.
    live enabled: bool = false;
    /// Bytes of blocks that are held back to sample them for a dictionary; 0 for one table's.
    live max_dict_buffer_bytes: u64 = 0;
    /// Trains with zstd's own trainer.
    planned use_zstd_dict_trainer: bool = true;
}

settings! {
    /// Settings of universal compaction.
    pub struct UniversalCompactionOptions in Section::Nested;

    /// Percent by which the next run may be larger than those already taken.
    live size_ratio: u32 = 1;
    /// Runs merged at least.
    live min_merge_width: u32 = 2;
    /// Runs merged at most.
    live max_merge_width: u32 = u32::MAX;
    /// Percent of the last run's size that the others may take together.
    live max_size_amplification_percent: u32 = 200;
    /// Percent of the data that is compressed; -1 for all.
    live compression_size_percent: i32 = -1;
    /// When runs are no longer added.
    live stop_style: CompactionStopStyle = CompactionStopStyle::TotalSize;
    /// Moves runs that do not overlap.
    live allow_trivial_move: bool = false;
    /// Merges a part of the keys at a time where that is not much dearer than to merge everything.
    live incremental: bool = false;
    /// Sorted runs that may stay, at least `level0_file_num_compaction_trigger`; -1 for so many, 0
    /// for as many as come of `size_ratio` and the size of the data.
    live max_read_amp: i32 = -1, in -1..=i32::MAX;
}

settings! {
    /// Settings of FIFO compaction.
    pub struct FifoCompactionOptions in Section::Nested;

    /// Bytes of all tables at which the oldest is dropped.
    live max_table_files_size: u64 = 1 << 30;
    /// Bytes of all tables and blob files together at which the oldest table is dropped, in the
    /// place of `max_table_files_size`; 0 for tables alone. A blob file goes with the last table
    /// that refers to it.
    live max_data_files_size: u64 = 0;
    /// Merges small tables of level 0.
    live allow_compaction: bool = false;
    /// What `allow_compaction` merges follows from the part that tables have in all data, and not
    /// from the size of a memtable: for tables that are small because their values lie in blob
    /// files. Needs `max_data_files_size`; `max_compaction_bytes`, if it is set, says from which
    /// size on a table is not merged any more.
    live use_kv_ratio_compaction: bool = false;
    /// RocksDB's older word for a single threshold, of warm tables: seconds; 0 for none. In force
    /// where `file_temperature_age_thresholds` is empty.
    live age_for_warm: u64 = 0;
    /// From which age on, counted from its newest key, a table has which temperature: it is
    /// rewritten, so that the file system, which is told, may put it elsewhere. Only with
    /// `num_levels=1`.
    live file_temperature_age_thresholds: FileTemperatureAges = FileTemperatureAges::default();
}

impl CfSettings {
    /// How many files of level 0, or sorted runs of universal compaction, compactions may leave
    /// alone; at least one.
    pub(crate) fn runs_left_alone(&self) -> i32 {
        let most = match self.compaction_style {
            CompactionStyle::Universal => self.compaction_options_universal.max_read_amp,
            _ => 0,
        };
        self.level0_file_num_compaction_trigger.max(most).max(1)
    }
}

impl FifoCompactionOptions {
    /// From which age on tables have which temperature.
    pub(crate) fn temperature_ages(&self) -> Cow<'_, FileTemperatureAges> {
        match self.age_for_warm {
            age if age > 0 && self.file_temperature_age_thresholds.0.is_empty() => {
                Cow::Owned(FileTemperatureAges::of(&[(Temperature::WARM, age)]))
            }
            _ => Cow::Borrowed(&self.file_temperature_age_thresholds),
        }
    }
}

nested_settings!(CompressionSettings);
nested_settings!(UniversalCompactionOptions);
nested_settings!(FifoCompactionOptions);

impl From<&CompressionSettings> for CompressionOptions {
    fn from(settings: &CompressionSettings) -> Self {
        Self {
            window_bits: settings.window_bits,
            level: settings.level,
            strategy: settings.strategy,
            max_dict_bytes: settings.max_dict_bytes,
            zstd_max_train_bytes: settings.zstd_max_train_bytes,
            parallel_threads: settings.parallel_threads,
            enabled: settings.enabled,
            max_dict_buffer_bytes: settings.max_dict_buffer_bytes,
            use_zstd_dict_trainer: settings.use_zstd_dict_trainer,
            ..Self::default()
        }
    }
}

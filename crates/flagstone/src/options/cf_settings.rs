//! The settings of one column family.

use std::borrow::Cow;

use crate::base::Temperature;
use crate::base::compression::{CompressionOptions, CompressionType};

use super::choices::{
    BlobWriteMode, CompactionPri, CompactionStopStyle, CompactionStyle, PrepopulateBlobCache,
    ProtectionBytes,
};
use super::data_path::DataPathList;
use super::memtable_factory::MemTableFactory;
use super::nested::nested_settings;
use super::table::{Section, settings};
use super::temperature::FileTemperatureAges;

settings! {
    /// The settings of one column family: `[CFOptions "name"]`.
    pub struct CfSettings in Section::ColumnFamily;

    /// Size in bytes at which a memtable is flushed.
    live write_buffer_size: u64 = 64 << 20, in 1024..=1 << 40;
    /// Memtables of the family, including the active one, at which writes stop.
    live max_write_buffer_number: i32 = 2, in 1..=1024;
    /// Full memtables that one flush merges.
    fixed min_write_buffer_number_to_merge: i32 = 1, in 1..=1024;
    /// Data structure of memtables: `btree`, `skip_list`, `vector` or `prefix_hash`. RocksDB's
    /// names are accepted too.
    fixed memtable_factory: MemTableFactory = MemTableFactory::BTree;
    /// Bytes of one block of a memtable's arena, at most `write_buffer_size`; 0 lets the engine
    /// choose.
    fixed arena_block_size: u64 = 0, in 0..=1 << 30;

    /// Files in level 0 at which a compaction starts.
    live level0_file_num_compaction_trigger: i32 = 4, in 0..=i32::MAX;
    /// Files in level 0 at which writes are delayed.
    live level0_slowdown_writes_trigger: i32 = 20, in -1..=i32::MAX;
    /// Files in level 0 at which writes stop.
    live level0_stop_writes_trigger: i32 = 36, in -1..=i32::MAX;
    /// Bytes waiting to be compacted at which writes are delayed; 0 for never.
    live soft_pending_compaction_bytes_limit: u64 = 64 << 30;
    /// Bytes waiting to be compacted at which writes stop; 0 for never.
    live hard_pending_compaction_bytes_limit: u64 = 256 << 30;
    /// Runs no compaction unless one is requested.
    live disable_auto_compactions: bool = false;

    /// Number of levels.
    fixed num_levels: i32 = 7, in 1..=64;
    /// Keeps the last level for tables that are ingested below all others
    /// (`IngestExternalFileOptions::ingest_behind`): compactions leave it alone, and deletions are
    /// never dropped. Needs universal compaction; `num_levels` is at least 3. Set it when the
    /// family is created: entries that are compacted without it may lose their sequence numbers,
    /// and then nothing can be ingested behind them. RocksDB does not find it in the OPTIONS file,
    /// but it finds `allow_ingest_behind`.
    fixed cf_allow_ingest_behind: bool = false;
    /// Whether tables keep the timestamps of keys. Without, they are in memory and in WALs only: a
    /// flush forgets them and raises `full_history_ts_low` above them, so that what it wrote
    /// can only be read as of timestamps above those. Only for the built-in comparators with
    /// timestamps; without timestamps there is nothing to forget.
    fixed persist_user_defined_timestamps: bool = true;
    /// How files are arranged and merged.
    fixed compaction_style: CompactionStyle = CompactionStyle::Level;
    /// Which file of a level is compacted first.
    fixed compaction_pri: CompactionPri = CompactionPri::MinOverlappingRatio;
    /// Target size in bytes of level 1, or of the first level in use.
    live max_bytes_for_level_base: u64 = 256 << 20, in 1..=u64::MAX;
    /// Ratio of one level's target size to that of the level above.
    live max_bytes_for_level_multiplier: f64 = 10.0, in 1.0..=1e6;
    /// Additional factors by level, applied on top of `max_bytes_for_level_multiplier`.
    live max_bytes_for_level_multiplier_additional: Vec<i32> = vec![1; 7];
    /// Derives level sizes from the size of the last level, so that little data is stored twice.
    fixed level_compaction_dynamic_level_bytes: bool = true;
    /// Target size in bytes of a table in level 1.
    live target_file_size_base: u64 = 64 << 20, in 1..=1 << 50;
    /// Ratio of a level's table size to that of the level above.
    live target_file_size_multiplier: i32 = 1, in 1..=1000;
    /// Limit in bytes on what one compaction reads and overlaps; 0 for 25 times
    /// `target_file_size_base`.
    live max_compaction_bytes: u64 = 0;
    /// Age in seconds at which a table is compacted so that deleted data in it goes; 0 for never.
    live ttl: u64 = 30 * 24 * 60 * 60;
    /// Age in seconds at which a table is rewritten; 0 for never. Unless set, it is 30 days for a
    /// family with a compaction filter, because the filter would otherwise never reach some tables,
    /// and 0 for other families.
    live periodic_compaction_seconds: u64 = u64::MAX - 1;
    /// Seconds until the space of deleted data is reclaimed, if that is worth its writes and no
    /// other flush or compaction does it first; 0 for never. A memtable with deletions is flushed
    /// when it has not been written to for this long, or after three times as long if it is still
    /// written to. It is flushed within a second if its range deletions cover whole tables. Values
    /// that replace much larger ones in blob files count as deletions if `max_space_amplification`
    /// is set. A table with deletions of this age is compacted. Leveled and universal compaction
    /// only.
    live deletion_compaction_delay: u64 = 20;
    /// Directories of this family's tables, as in `db_paths`; empty for `db_paths`. Blob files of
    /// the family are kept in the first one. With several directories, levels have fixed sizes
    /// regardless of `level_compaction_dynamic_level_bytes`.
    fixed cf_paths: DataPathList = DataPathList::default();
    /// Settings of universal compaction.
    live compaction_options_universal: UniversalCompactionOptions =
        UniversalCompactionOptions::default();
    /// Seconds for which the times of writes are kept; 0 for none. Tables then say when their
    /// sequence numbers were written, exact to about a hundredth of this, and younger entries keep
    /// their sequence numbers at the bottom.
    live preserve_internal_time_seconds: u64 = 0;
    /// Seconds for which entries stay out of the last level; 0 for none. A compaction into the last
    /// level writes younger entries to the level above. What lies in the last level stays there.
    /// Times of writes are kept for as long, as with `preserve_internal_time_seconds`. Leveled and
    /// universal compaction, with at least three levels.
    live preclude_last_level_data_seconds: u64 = 0;
    /// Temperature of new tables in the last level; kUnknown for `default_write_temperature`. A
    /// table that moves there as it is keeps its own. FIFO compaction has no last level.
    live last_level_temperature: Temperature = Temperature::UNKNOWN;
    /// Temperature of new tables, unless another option says otherwise.
    live default_write_temperature: Temperature = Temperature::UNKNOWN;
    /// Temperature as which reads of tables without one are counted.
    fixed default_temperature: Temperature = Temperature::UNKNOWN;
    /// Settings of FIFO compaction.
    live compaction_options_fifo: FifoCompactionOptions = FifoCompactionOptions::default();
    /// Reads every new table back completely before it is used. The flush or compaction fails if
    /// the table does not hold what was written, in order.
    live paranoid_file_checks: bool = false;

    /// Compression of table blocks. A build without LZ4 compresses none by default.
    live compression: CompressionType = CompressionType::fast();
    /// Compression of table blocks by level; empty for `compression` on every level.
    fixed compression_per_level: Vec<CompressionType> = Vec::new();
    /// Compression of table blocks in the last level, if it differs.
    live bottommost_compression: Option<CompressionType> = None;
    /// Parameters of compression.
    live compression_opts: CompressionSettings = CompressionSettings::default();
    /// Parameters of `bottommost_compression`; used only if its `enabled` is set.
    live bottommost_compression_opts: CompressionSettings = CompressionSettings::default();

    /// Stores values of at least `min_blob_size` bytes in blob files. Unless set (auto), it is
    /// true, but false with FIFO compaction, where `max_table_files_size` would limit only the
    /// tables.
    live enable_blob_files: Option<bool> = None;
    /// Smallest value, in bytes, that goes to a blob file. Unless set (auto), it is 4096, or 0 as
    /// in RocksDB if `enable_blob_files` is set.
    live min_blob_size: Option<u64> = None;
    /// When values go to blob files. `commit`: before the commit, for values of at least
    /// `blob_commit_min_size` bytes; the WAL then holds only their addresses. `flush`: when the
    /// memtable is flushed, as in RocksDB, which can open a database after a crash only with this
    /// mode. `auto`: `commit`, but `flush` if WALs are archived (`WAL_ttl_seconds`,
    /// `WAL_size_limit_MB`), because readers of the archive need overwritten values too and blob
    /// files drop them.
    live blob_write_mode: BlobWriteMode = BlobWriteMode::Auto;
    /// Smallest value, in bytes, that goes to a blob file at commit; `min_blob_size` if that is
    /// larger.
    live blob_commit_min_size: u64 = 4096;
    /// Smallest value, in bytes, that goes to a blob file at commit if the write asks for a sync.
    /// The blob file must then be synced as well, which pays off only for large values.
    live blob_commit_synced_min_size: u64 = 512 << 10;
    /// Keeps values read from blob files in the block cache, as RocksDB does if `blob_cache` is the
    /// block cache.
    live cache_blobs: bool = false;
    /// Whether values go into the cache as they are written to blob files, at flush or at commit:
    /// kFlushOnly, or kDisable for never. The cache is `blob_cache`, or the block cache with
    /// `cache_blobs`.
    live prepopulate_blob_cache: PrepopulateBlobCache = PrepopulateBlobCache::Disable;
    /// Size in bytes at which a blob file is closed.
    live blob_file_size: u64 = 256 << 20, in 1..=u64::MAX;
    /// Compression of values in blob files; each value is compressed separately. Unless set (auto),
    /// it is `compression` regardless of level, or kNoCompression as in RocksDB if
    /// `enable_blob_files` is set. Garbage collection moves a value of 32 MiB or more piece by
    /// piece and leaves it uncompressed if it was.
    live blob_compression_type: Option<CompressionType> = None;
    /// Moves live values out of old blob files during compactions, so that the files can be
    /// deleted.
    live enable_blob_garbage_collection: bool = false;
    /// Fraction of the blob files, oldest first, that values are moved out of.
    live blob_garbage_collection_age_cutoff: f64 = 0.25, in 0.0..=1.0;
    /// Fraction of garbage in the oldest blob files at which a compaction is started for them.
    live blob_garbage_collection_force_threshold: f64 = 1.0, in 0.0..=1.0;
    /// Punches holes in blob files where dead values of at least 8 KiB lie. This keeps blob files
    /// within `max_space_amplification` without moving live values, or, where values are smaller
    /// than 12 KiB, by moving few of them. Not used on file systems that do not support holes or
    /// are slow with them.
    live blob_punch_holes: bool = true;
    /// Limit on the bytes of blob files as a multiple of the bytes of live values, counting garbage
    /// and values being moved; 0 for none. Values between 0 and 1 count as 1. Compactions are
    /// started to keep within the limit, under leveled and universal compaction; bursts may exceed
    /// it (`burst_space_amplification`). If the tables are larger than the live values, garbage may
    /// take the difference in addition. With hole punching this costs almost no writes. Small
    /// values have to be moved, the more often the closer the limit is to 1.
    live max_space_amplification: f64 = 1.3, in 0.0..=1e6;
    /// Limit that replaces `max_space_amplification` for a while when values are overwritten faster
    /// than garbage can be collected. Writers are delayed only close to it. If it is not above
    /// `max_space_amplification`, that limit holds at all times.
    live burst_space_amplification: f64 = 2.2, in 0.0..=1e6;
    /// Bytes that a compaction reads ahead in each blob file whose values it takes in the order in
    /// which they are stored; 0 for none.
    live blob_compaction_readahead_size: u64 = 0, in 0..=1 << 30;
    /// First level whose values go to blob files.
    live blob_file_starting_level: i32 = 0, in 0..=64;
    /// Moves large columns of entities to blob files at flush and compaction, as RocksDB 11 does by
    /// itself. RocksDB before 11 cannot read a database that has such entities. While it is off,
    /// columns stay where they are.
    live blob_entity_columns: bool = false;

    /// Entries of one key that an iterator steps over before it seeks past them. After four times
    /// as many deleted keys in a row, the iterator remembers where the run ends.
    live max_sequential_skip_in_iterations: u64 = 8;
    /// Newest merge operands of one key in the memtable at which the next operand is merged with
    /// them on write, if everything needed is in memory; 0 for never.
    live max_successive_merges: u64 = 0;
    /// Fraction of `write_buffer_size` that each memtable uses for a Bloom filter over its
    /// prefixes; 0 for none. The filter lets lookups, and scans with `prefix_same_as_start`, skip
    /// the memtable. It counts towards the memtable's size from the first entry on.
    live memtable_prefix_bloom_size_ratio: f64 = 0.0, in 0.0..=0.25;
    /// Adds whole keys to the memtable's Bloom filter. Lookups then check the whole key instead of
    /// its prefix.
    live memtable_whole_key_filtering: bool = false;
    /// Bytes of checksum that each entry of a memtable has: 0, 1, 2, 4 or 8. Lookups, iterators and
    /// flushes compare it; memory that has changed is then `Corruption`. Range deletions have none.
    /// A change applies to the next memtable.
    live memtable_protection_bytes_per_key: ProtectionBytes = ProtectionBytes::None;
    /// Bytes of checksum that each data block has in memory: 0, 1, 2, 4 or 8. Lookups, iterators
    /// and compactions compare it when they take a block from memory, which takes about a
    /// microsecond for 10 KB; memory that has changed is then `Corruption`, and the block is read
    /// from its file the next time. A change applies to tables opened later.
    live block_protection_bytes_per_key: ProtectionBytes = ProtectionBytes::None;
    /// Omits the filters of tables that have nothing older below them. This saves most of the
    /// filters' memory, and costs a block read for each lookup of an absent key. For lookups that
    /// usually find their key.
    fixed optimize_filters_for_hits: bool = false;
}

settings! {
    /// Parameters of compression.
    pub struct CompressionSettings in Section::Nested;

    /// Window size of zlib.
    live window_bits: i32 = -14;
    /// Compression level; 32767 for the algorithm's default. Negative levels of zstd are faster.
    live level: i32 = CompressionOptions::DEFAULT_LEVEL;
    /// Strategy of zlib.
    planned strategy: i32 = 0;
    /// Size in bytes of a compression dictionary; 0 for none.
    live max_dict_bytes: u32 = 0, in 0..=1 << 30;
    /// Bytes of samples from which zstd trains a dictionary; 0 uses the samples themselves as the
    /// dictionary. Without `max_dict_bytes` it has no effect.
    live zstd_max_train_bytes: u32 = 0, in 0..=1 << 30;
    /// Threads that compress the blocks of one table, of which one also makes it. With 0 or 1, a
    /// large flush that writers may soon wait for has one thread more. Tables with a compression
    /// dictionary, aligned blocks or embedded values have one.
    live parallel_threads: u32 = 1, in 0..=256;
    /// Whether `bottommost_compression_opts` is in force; no effect elsewhere.
    live enabled: bool = false;
    /// Bytes of blocks held back to sample a dictionary from; 0 for a whole table.
    live max_dict_buffer_bytes: u64 = 0;
    /// Trains dictionaries with zstd's own trainer.
    planned use_zstd_dict_trainer: bool = true;
}

settings! {
    /// Settings of universal compaction.
    pub struct UniversalCompactionOptions in Section::Nested;

    /// Percentage by which the next run may exceed the runs already chosen.
    live size_ratio: u32 = 1;
    /// Minimum number of runs merged at a time.
    live min_merge_width: u32 = 2;
    /// Maximum number of runs merged at a time.
    live max_merge_width: u32 = u32::MAX;
    /// Size that all newer runs may reach together, as a percentage of the oldest run.
    live max_size_amplification_percent: u32 = 200;
    /// Percentage of the data, oldest first, that is compressed; -1 for all.
    live compression_size_percent: i32 = -1;
    /// When a merge stops adding runs.
    live stop_style: CompactionStopStyle = CompactionStopStyle::TotalSize;
    /// Moves runs that do not overlap instead of rewriting them.
    live allow_trivial_move: bool = false;
    /// Merges one part of the key range at a time if that costs little more than merging
    /// everything.
    live incremental: bool = false;
    /// Number of sorted runs that may remain, at least `level0_file_num_compaction_trigger`; -1 for
    /// exactly that, 0 to derive it from `size_ratio` and the size of the data.
    live max_read_amp: i32 = -1, in -1..=i32::MAX;
}

settings! {
    /// Settings of FIFO compaction.
    pub struct FifoCompactionOptions in Section::Nested;

    /// Size of all tables in bytes at which the oldest table is dropped.
    live max_table_files_size: u64 = 1 << 30;
    /// Size of all tables and blob files in bytes at which the oldest table is dropped, instead of
    /// `max_table_files_size`; 0 to count tables only. A blob file is dropped with the last table
    /// that refers to it.
    live max_data_files_size: u64 = 0;
    /// Merges small tables in level 0.
    live allow_compaction: bool = false;
    /// Makes `allow_compaction` choose table sizes by the share of tables in all data instead of by
    /// the size of a memtable. For tables that are small because their values are in blob files.
    /// Needs `max_data_files_size`. Tables of `max_compaction_bytes` or more, if that is set, are
    /// not merged again.
    live use_kv_ratio_compaction: bool = false;
    /// Age in seconds at which a table becomes warm; 0 for never. RocksDB's older form of
    /// `file_temperature_age_thresholds`, used only if that is empty.
    live age_for_warm: u64 = 0;
    /// Ages at which a table changes its temperature, counted from its newest key. The table is
    /// then rewritten and the file system is told, so that it may store the table elsewhere. Only
    /// with `num_levels=1`.
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

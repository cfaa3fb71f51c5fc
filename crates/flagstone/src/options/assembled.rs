//! Settings and components together, as a database and a column family take them.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::block_cache::BlockCache;
use super::cf_settings::CfSettings;
use super::choices::{CompactionStyle, DataBlockIndexType, FileChecksumGenFactory};
use super::compaction_service::CompactionService;
use super::db_settings::DbSettings;
use super::filters::{self, FILTER, FILTER_FACTORY};
use super::info_log::InfoLog;
use super::kept::{KeptSection, KeptSetting};
use super::listener::Listeners;
use super::progress::OpenProgressCallback;
use super::table_settings::TableSettings;
use super::wal_filter::WalFilter;
use crate::base::compression::CompressionType;
use crate::base::merge::MergeOperator;
use crate::base::{
    CollectorFactories, CompactionFilter, CompactionFilterFactory, Comparator, Crc32cFileChecksums,
    FileChecksumFactory, FileChecksums, Partitioning, PrefixExtractor,
};
use crate::cache::{DEFAULT_HIGH_PRIORITY_RATIO, WriteBufferManager};
use crate::env::{
    BackgroundThreads, ChecksumHandoff, CompactionLimiter, Env, RateLimiter, SstFileManager,
};
use crate::sst::{FilterPolicy, IndexType};

/// Options of one column family. Its settings can be used as fields: `family.write_buffer_size`.
#[derive(Clone, Default)]
pub struct ColumnFamilyOptions {
    /// The settings.
    pub settings: CfSettings,
    /// The settings of its tables.
    pub table: TableSettings,
    /// The order of its keys.
    pub comparator: Comparator,
    /// Combines merge operands; without one, merges fail.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Extracts a key's prefix, for prefix filters and prefix seeks.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// Decides during compactions which entries to keep.
    pub compaction_filter: Option<Arc<dyn CompactionFilter>>,
    /// Creates a filter for each compaction; not used if `compaction_filter` is set.
    pub compaction_filter_factory: Option<Arc<dyn CompactionFilterFactory>>,
    /// Create collectors that give each table properties of its own.
    pub table_properties_collectors: CollectorFactories,
    /// Creates a partitioner for each compaction, which decides where tables end.
    pub sst_partitioner_factory: Partitioning,
    /// Limits how many automatic compactions of the families with the same limiter run at the same
    /// time, also of several databases (default: none).
    pub compaction_limiter: Option<Arc<CompactionLimiter>>,
    /// Settings found in an OPTIONS file that have no effect.
    pub kept: Vec<KeptSetting>,
}

/// Options of a database, including those of its default column family. The settings of the
/// database can be used as fields: `options.create_if_missing`.
#[derive(Clone)]
pub struct Options {
    /// The settings.
    pub db: DbSettings,
    /// The default column family. [`Builder::options`](crate::Builder::options) also uses it for
    /// existing families that no call names. New and named families begin with the defaults.
    pub cf: ColumnFamilyOptions,
    /// Capacity in bytes of the block cache, which all column families share; 0 for none. `None`
    /// depends on `memory_budget`. With a budget in bytes, the cache gets what the budget leaves.
    /// With `auto`, the cache sizes itself, from 32 MiB up to a quarter of the budget. Without a
    /// budget it has 32 MiB.
    pub block_cache_size: Option<u64>,
    /// Base-2 logarithm of the number of shards of the block cache, at most 16; `None` derives it
    /// from the size (RocksDB's `num_shard_bits`).
    pub block_cache_shard_bits: Option<u32>,
    /// Fraction of an LRU block cache, from 0 to 1, that index and filter blocks and blocks used
    /// more than once keep against a flood of other blocks (RocksDB's `high_pri_pool_ratio`).
    pub block_cache_high_priority_ratio: f64,
    /// A block cache shared with other databases; it replaces `block_cache_size` and
    /// `cache_policy`. It keeps its size and does not count towards a `memory_budget` of `auto`.
    /// Together with a `memory_budget` in bytes it is an error.
    pub block_cache: Option<BlockCache>,
    /// Capacity in bytes of a separate cache for values from blob files, which all column families
    /// share; 0 for none. With one, such values are not in the block cache, regardless of
    /// `cache_blobs`.
    pub blob_cache_size: u64,
    /// Base-2 logarithm of the number of shards of the blob cache, like `block_cache_shard_bits`.
    pub blob_cache_shard_bits: Option<u32>,
    /// Fraction of an LRU blob cache, from 0 to 1, that values read more than once keep against a
    /// flood of others.
    pub blob_cache_high_priority_ratio: f64,
    /// A blob cache shared with other databases; it replaces `blob_cache_size`. `memory_budget`
    /// applies as for `block_cache`. If it is the same cache as `block_cache`, values and blocks
    /// share it.
    pub blob_cache: Option<BlockCache>,
    /// A cache of rows, for lookups of keys that are read often and lie far apart: a row takes its
    /// own bytes, where the block cache keeps a whole block for it. A row is all that one table has
    /// of one key; of large values, their addresses. Lookups of several keys read their blocks one
    /// by one with it, and iterators do not use it. Keys with timestamps have no rows. It does not
    /// count towards a `memory_budget`.
    pub row_cache: Option<BlockCache>,
    /// Files, clock, randomness and threads that the database uses.
    pub env: Env,
    /// Limits the bytes per second that flushes and compactions write or read. Databases with the
    /// same limiter share its rate, which may change at any time.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    /// Whether a limiter created by name (`rate_limiter_bytes_per_sec`) tunes itself.
    pub rate_limiter_auto_tuned: bool,
    /// Computes the checksums of new files instead of `file_checksum_gen_factory`. A database whose
    /// files have them needs it to verify them.
    pub file_checksum_factory: Option<Arc<dyn FileChecksumFactory>>,
    /// The kinds of files whose writes are handed to the environment with their CRC32C; none by
    /// default. A file system that implements
    /// [`write_handed`](crate::env::WritableFile::write_handed) compares it. WALs are then not
    /// mapped, and each write is summed up.
    #[doc(alias = "checksum_handoff_file_types")]
    pub checksum_handoff: ChecksumHandoff,
    /// Limits the space of tables and blob files, and the rate at which obsolete files are removed.
    /// Databases with the same manager share its limits.
    pub sst_file_manager: Option<Arc<SstFileManager>>,
    /// Limits the memory of the memtables of all databases with the same manager together, besides
    /// `db_write_buffer_size` and `memory_budget`.
    pub write_buffer_manager: Option<Arc<WriteBufferManager>>,
    /// Threads for flushes and compactions. Databases given the same threads share them; each uses
    /// at most `max_background_jobs` at a time. `None` gives the database its own, one more than
    /// `max_background_jobs`.
    pub background_threads: Option<Arc<BackgroundThreads>>,
    /// Has other processes do compactions.
    pub compaction_service: Option<Arc<dyn CompactionService>>,
    /// Called with the progress of opening; released when the database is open.
    pub open_progress: Option<OpenProgressCallback>,
    /// Decides which records of the WALs are replayed. Secondaries and followers ask none.
    pub wal_filter: Option<Arc<dyn WalFilter>>,
    /// Called on flushes, compactions, errors and stalls.
    pub listeners: Listeners,
    /// Where messages about the database's work and faults go. Default: its file LOG.
    pub info_log: InfoLog,
    /// Settings for one opening only, each with the value that the OPTIONS file keeps; see
    /// [`Options::set_for_one_opening`].
    pub kept_values: Vec<(String, String)>,
    /// Settings found in an OPTIONS file that have no effect.
    pub kept: Vec<KeptSetting>,
    /// Unknown sections found in an OPTIONS file.
    pub kept_sections: Vec<KeptSection>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            db: DbSettings::default(),
            cf: ColumnFamilyOptions::default(),
            block_cache_size: None,
            block_cache_shard_bits: None,
            block_cache_high_priority_ratio: DEFAULT_HIGH_PRIORITY_RATIO,
            block_cache: None,
            blob_cache_size: 0,
            blob_cache_shard_bits: None,
            blob_cache_high_priority_ratio: DEFAULT_HIGH_PRIORITY_RATIO,
            blob_cache: None,
            row_cache: None,
            env: Env::default(),
            rate_limiter: None,
            rate_limiter_auto_tuned: false,
            file_checksum_factory: None,
            checksum_handoff: ChecksumHandoff::NONE,
            sst_file_manager: None,
            write_buffer_manager: None,
            background_threads: None,
            compaction_service: None,
            open_progress: None,
            wal_filter: None,
            listeners: Listeners::new(),
            info_log: InfoLog::File,
            kept_values: Vec::new(),
            kept: Vec::new(),
            kept_sections: Vec::new(),
        }
    }
}

// Callers know RocksDB's `options.create_if_missing = true`; the settings live in a struct of their
// own only because they come from the table.
impl Deref for Options {
    type Target = DbSettings;

    fn deref(&self) -> &DbSettings {
        &self.db
    }
}

impl DerefMut for Options {
    fn deref_mut(&mut self) -> &mut DbSettings {
        &mut self.db
    }
}

impl Deref for ColumnFamilyOptions {
    type Target = CfSettings;

    fn deref(&self) -> &CfSettings {
        &self.settings
    }
}

impl DerefMut for ColumnFamilyOptions {
    fn deref_mut(&mut self) -> &mut CfSettings {
        &mut self.settings
    }
}

impl ColumnFamilyOptions {
    /// Whether there is a compaction filter or a factory for one.
    pub fn filters_compactions(&self) -> bool {
        self.compaction_filter.is_some() || self.compaction_filter_factory.is_some()
    }

    /// Clears `cf_paths`, to open a copy such as a checkpoint, whose files are all in its own
    /// directory.
    pub fn stand_alone(&mut self) {
        self.settings.cf_paths.0.clear();
    }
}

impl Options {
    /// Clears `wal_dir`, `db_paths` and `cf_paths`, to open a copy such as a checkpoint, whose
    /// files are all in its own directory. [`ColumnFamilyOptions::stand_alone`] does the same for
    /// other families.
    pub fn stand_alone(&mut self) {
        self.db.wal_dir.clear();
        self.db.db_paths.0.clear();
        self.cf.stand_alone();
    }

    /// The functions for checksums of whole files.
    pub(crate) fn file_checksums(&self) -> FileChecksums {
        let built_in = (self.db.file_checksum_gen_factory == FileChecksumGenFactory::Crc32c)
            .then(|| Arc::new(Crc32cFileChecksums) as Arc<dyn FileChecksumFactory>);
        FileChecksums::new(self.file_checksum_factory.clone().or(built_in))
    }

    /// Sentences about what an OPTIONS file said that has no effect.
    pub fn warnings(&self) -> Vec<String> {
        let settings = self.kept.iter().chain(&self.cf.kept).map(ToString::to_string);
        settings.chain(self.kept_sections.iter().map(ToString::to_string)).collect()
    }
}

/// Several settings at once, with the values that RocksDB chooses.
impl ColumnFamilyOptions {
    /// Leveled compaction for `memtable_memory_budget` bytes of memtables: memtables of a quarter
    /// of them, levels to fit, and LZ4 from level 2 on, or Snappy in a build without LZ4.
    #[doc(alias = "OptimizeLevelStyleCompaction")]
    pub fn optimize_level_style_compaction(&mut self, memtable_memory_budget: u64) {
        self.share_among_memtables(memtable_memory_budget);
        self.level0_file_num_compaction_trigger = 2;
        self.target_file_size_base = memtable_memory_budget / 8;
        self.max_bytes_for_level_base = memtable_memory_budget;
        self.compaction_style = CompactionStyle::Level;
        let wanted = [CompressionType::Lz4, CompressionType::Snappy];
        let built_in = wanted.into_iter().find(|compression| compression.is_built_in());
        let below = built_in.unwrap_or(CompressionType::None);
        self.compression_per_level = (0..self.num_levels.max(0))
            .map(|level| if level < 2 { CompressionType::None } else { below })
            .collect();
    }

    /// Universal compaction for `memtable_memory_budget` bytes of memtables: memtables of a quarter
    /// of them, and four fifths of the data compressed.
    #[doc(alias = "OptimizeUniversalStyleCompaction")]
    pub fn optimize_universal_style_compaction(&mut self, memtable_memory_budget: u64) {
        self.share_among_memtables(memtable_memory_budget);
        self.compaction_style = CompactionStyle::Universal;
        self.compaction_options_universal.compression_size_percent = 80;
    }

    fn share_among_memtables(&mut self, budget: u64) {
        self.write_buffer_size = budget / 4;
        self.min_write_buffer_number_to_merge = 2;
        self.max_write_buffer_number = 6;
    }
}

/// Several settings at once, with the values that RocksDB chooses.
impl Options {
    /// For a database of less than 1 GiB: memtables and tables of 2 MiB, little waiting to be
    /// compacted, partitioned indexes in a block cache of 16 MiB, and at most 5,000 open files.
    ///
    /// RocksDB also counts memtables against that cache, and opens files with one thread; here
    /// [`memory_budget`](super::DbSettings) bounds both together. Other settings of tables become
    /// the defaults.
    #[doc(alias = "OptimizeForSmallDb")]
    pub fn optimize_for_small_db(&mut self) {
        self.cf.write_buffer_size = 2 << 20;
        self.cf.target_file_size_base = 2 << 20;
        self.cf.max_bytes_for_level_base = 10 << 20;
        self.cf.soft_pending_compaction_bytes_limit = 256 << 20;
        self.cf.hard_pending_compaction_bytes_limit = 1 << 30;
        self.cf.table = TableSettings {
            cache_index_and_filter_blocks: true,
            index_type: IndexType::TwoLevel,
            ..TableSettings::default()
        };
        self.use_block_cache_of(16 << 20);
        self.db.max_open_files = 5000;
    }

    /// For programs that look keys up and do not iterate: hash tables in data blocks, Bloom filters
    /// of ten bits a key, also in memtables, and a block cache of `block_cache_size_mb` MiB.
    ///
    /// Other settings of tables become the defaults. The cache is that of the whole database, whose
    /// `cache_policy` stays.
    #[doc(alias = "OptimizeForPointLookup")]
    pub fn optimize_for_point_lookup(&mut self, block_cache_size_mb: u64) {
        self.cf.table = TableSettings {
            data_block_index_type: DataBlockIndexType::BinaryAndHash,
            data_block_hash_table_util_ratio: 0.75,
            filter_policy: Some(FilterPolicy::Bloom { bits_per_key: 10.0 }),
            ..TableSettings::default()
        };
        self.use_block_cache_of(block_cache_size_mb.saturating_mul(1 << 20));
        self.cf.memtable_prefix_bloom_size_ratio = 0.02;
        self.cf.memtable_whole_key_filtering = true;
    }

    /// For loading much data, and one compaction at the end: compacts only on request, holds
    /// writers up for nothing but memtables, and has two levels.
    #[doc(alias = "PrepareForBulkLoad")]
    pub fn prepare_for_bulk_load(&mut self) {
        const NEVER: i32 = 1 << 30;
        self.cf.level0_file_num_compaction_trigger = NEVER;
        self.cf.level0_slowdown_writes_trigger = NEVER;
        self.cf.level0_stop_writes_trigger = NEVER;
        self.cf.soft_pending_compaction_bytes_limit = 0;
        self.cf.hard_pending_compaction_bytes_limit = 0;
        self.cf.disable_auto_compactions = true;
        self.cf.max_compaction_bytes = 1 << 60;
        self.cf.num_levels = 2;
        self.cf.max_write_buffer_number = 6;
        self.cf.min_write_buffer_number_to_merge = 1;
        self.cf.target_file_size_base = 256 << 20;
        self.db.max_background_flushes = 4;
        self.db.max_background_compactions = 2;
    }

    fn use_block_cache_of(&mut self, bytes: u64) {
        self.block_cache = None;
        self.block_cache_size = Some(bytes);
    }
}

impl fmt::Debug for ColumnFamilyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnFamilyOptions")
            .field("settings", &self.settings)
            .field("table", &self.table)
            .field("comparator", &self.comparator)
            .field(
                "merge_operator",
                &self.merge_operator.as_ref().map(|operator| operator.option_text()),
            )
            .field("prefix_extractor", &self.prefix_extractor)
            .field(FILTER, &filters::text(self, FILTER))
            .field(FILTER_FACTORY, &filters::text(self, FILTER_FACTORY))
            .field("table_properties_collectors", &self.table_properties_collectors)
            .field("sst_partitioner_factory", &self.sst_partitioner_factory)
            .field("compaction_limiter", &self.compaction_limiter)
            .field("kept", &self.kept)
            .finish()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("db", &self.db)
            .field("cf", &self.cf)
            .field("block_cache_size", &self.block_cache_size)
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}

//! Settings and components together, as a database and a column family take them.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::block_cache::BlockCache;
use super::cf_settings::CfSettings;
use super::db_settings::DbSettings;
use super::filters::{self, FILTER, FILTER_FACTORY};
use super::kept::{KeptSection, KeptSetting};
use super::listener::Listeners;
use super::progress::OpenProgressCallback;
use super::table_settings::TableSettings;
use crate::base::merge::MergeOperator;
use crate::base::{CompactionFilter, CompactionFilterFactory, Comparator, PrefixExtractor};
use crate::cache::DEFAULT_HIGH_PRIORITY_RATIO;
use crate::env::{BackgroundThreads, Env, RateLimiter};

/// Everything about one column family. Its settings are reached as fields:
/// `family.write_buffer_size`.
#[derive(Clone, Default)]
pub struct ColumnFamilyOptions {
    /// The settings.
    pub settings: CfSettings,
    /// The settings of its tables.
    pub table: TableSettings,
    /// The order of its keys.
    pub comparator: Comparator,
    /// Combines merge operands; without one, merges are refused.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Finds a key's prefix, for prefix filters and prefix seeks.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// Decides in compactions what to keep.
    pub compaction_filter: Option<Arc<dyn CompactionFilter>>,
    /// Makes a filter for each compaction; not asked where there is a `compaction_filter`.
    pub compaction_filter_factory: Option<Arc<dyn CompactionFilterFactory>>,
    /// What an OPTIONS file said that is not acted on.
    pub kept: Vec<KeptSetting>,
}

/// Everything about a database, with the options of its default column family. The settings of the
/// database are reached as fields: `options.create_if_missing`.
#[derive(Clone)]
pub struct Options {
    /// The settings.
    pub db: DbSettings,
    /// The default column family, and the model for those that are made with it.
    pub cf: ColumnFamilyOptions,
    /// The most bytes of the block cache that all column families share; 0 for none. `None` for
    /// what a `memory_budget` in bytes leaves to it; with one of `auto` it sizes itself, from 32
    /// MiB up to a quarter of the budget; without one it has 32 MiB.
    pub block_cache_size: Option<u64>,
    /// The logarithm of how many shards it has, at most 16; `None` for as many as suit its size
    /// (RocksDB's `num_shard_bits`).
    pub block_cache_shard_bits: Option<u32>,
    /// With the `cache_policy` LRU, the part of it, from 0 to 1, in which index and filter blocks,
    /// and what was used more than once, are safe from a flood of other blocks (RocksDB's
    /// `high_pri_pool_ratio`).
    pub block_cache_high_priority_ratio: f64,
    /// A block cache that the database shares with others, in place of one of `block_cache_size`
    /// and of `cache_policy`. It keeps its size, and is not in a `memory_budget` of `auto`; a
    /// number there is one database's, and refused beside it.
    pub block_cache: Option<BlockCache>,
    /// Bytes of a cache for values from blob files alone, of all column families; 0 for none. They
    /// are then not in the block cache, whatever `cache_blobs` says.
    pub blob_cache_size: u64,
    /// As `block_cache_shard_bits`, of that.
    pub blob_cache_shard_bits: Option<u32>,
    /// As `block_cache_high_priority_ratio`, of that: the part in which values that were read more
    /// than once are safe from others.
    pub blob_cache_high_priority_ratio: f64,
    /// A cache for such values that the database shares with others, in place of one of
    /// `blob_cache_size`; with `memory_budget` as `block_cache`. Where it is the same as
    /// `block_cache`, values and blocks share it.
    pub blob_cache: Option<BlockCache>,
    /// The world that the database lives in.
    pub env: Env,
    /// Limits what flushes and compactions write, or read, in a second. Databases that hold the
    /// same one share it, and it may change its rate at any time.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    /// Whether a limiter that is made by name (`rate_limiter_bytes_per_sec`) tunes itself.
    pub rate_limiter_auto_tuned: bool,
    /// The threads that flush and compact. Databases that hold the same ones share them, each
    /// having at most `max_background_jobs` of them at a time; without, each has its own, one more
    /// than that.
    pub background_threads: Option<Arc<BackgroundThreads>>,
    /// Is told how far the opening is; let go of when the database is open.
    pub open_progress: Option<OpenProgressCallback>,
    /// Are told of flushes, compactions, errors and stalls.
    pub listeners: Listeners,
    /// Settings that hold for one opening, each with the value that the OPTIONS file keeps: see
    /// [`Options::set_for_one_opening`].
    pub kept_values: Vec<(String, String)>,
    /// What an OPTIONS file said that is not acted on.
    pub kept: Vec<KeptSetting>,
    /// Sections of an OPTIONS file that are not known.
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
            env: Env::default(),
            rate_limiter: None,
            rate_limiter_auto_tuned: false,
            background_threads: None,
            open_progress: None,
            listeners: Listeners::new(),
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
    /// Whether there is a filter, or a factory of filters.
    pub fn filters_compactions(&self) -> bool {
        self.compaction_filter.is_some() || self.compaction_filter_factory.is_some()
    }

    /// Forgets `cf_paths`: for opening a copy, such as a checkpoint, whose files all lie in its own
    /// directory.
    pub fn stand_alone(&mut self) {
        self.settings.cf_paths.0.clear();
    }
}

impl Options {
    /// Forgets `wal_dir`, `db_paths` and `cf_paths`: for opening a copy, such as a checkpoint,
    /// whose files all lie in its own directory. [`ColumnFamilyOptions::stand_alone`] does the same
    /// for other families.
    pub fn stand_alone(&mut self) {
        self.db.wal_dir.clear();
        self.db.db_paths.0.clear();
        self.cf.stand_alone();
    }

    /// What an OPTIONS file said that is not acted on, as sentences.
    pub fn warnings(&self) -> Vec<String> {
        let settings = self.kept.iter().chain(&self.cf.kept).map(ToString::to_string);
        settings.chain(self.kept_sections.iter().map(ToString::to_string)).collect()
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

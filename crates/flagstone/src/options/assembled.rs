//! Settings and components together, as a database and a column family take them.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::base::compression::CompressionType;
use crate::base::merge::MergeOperator;
use crate::base::{CompactionFilter, CompactionFilterFactory, Comparator, Error, PrefixExtractor, Result};
use crate::cache::DEFAULT_HIGH_PRIORITY_RATIO;
use crate::env::{BackgroundThreads, Env, RateLimiter};
use crate::sst::IndexType;

use super::block_cache::BlockCache;
use super::cf_settings::CfSettings;
use super::choices::CompactionStyle;
use super::data_path::{DataPathList, check_kept_path};
use super::db_settings::DbSettings;
use super::filters::{FILTER, FILTER_FACTORY};
use super::kept::KeptSetting;
use super::known::{self, Known};
use super::listener::Listeners;
use super::memory_budget::MemoryBudget;
use super::memtable_factory::MemTableFactory;
use super::names::{TABLE_FACTORY_NAMES, unknown_name, without_alias};
use super::progress::OpenProgressCallback;
use super::rate_limiter::{AUTO_TUNED, RATE_LIMITER};
use super::secondary_cache::{BLOB_CACHE, SECONDARY_CACHE, secondary_cache};
use super::table::{Section, Settings};
use super::table_settings::TableSettings;
use super::text::{pairs, without_braces};
use super::value::SettingValue;

/// Everything about one column family. Its settings are reached as fields: `family.write_buffer_size`.
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

/// Everything about a database, with the options of its default column family. The settings of the database are
/// reached as fields: `options.create_if_missing`.
#[derive(Clone)]
pub struct Options {
    /// The settings.
    pub db: DbSettings,
    /// The default column family, and the model for those that are made with it.
    pub cf: ColumnFamilyOptions,
    /// The most bytes of the block cache that all column families share; 0 for none. `None` for what a `memory_budget` in bytes
    /// leaves to it, and else 32 MiB.
    pub block_cache_size: Option<u64>,
    /// The logarithm of how many shards it has, at most 16; `None` for as many as suit its size (RocksDB's `num_shard_bits`).
    pub block_cache_shard_bits: Option<u32>,
    /// With the `cache_policy` LRU, the part of it, from 0 to 1, in which index and filter blocks, and what was used more than
    /// once, are safe from a flood of other blocks (RocksDB's `high_pri_pool_ratio`).
    pub block_cache_high_priority_ratio: f64,
    /// A block cache that the database shares with others, in place of one of `block_cache_size` and of `cache_policy`. It keeps
    /// its size, and is not in a `memory_budget` of `auto`; a number there is one database's, and refused beside it.
    pub block_cache: Option<BlockCache>,
    /// Bytes of a cache for values from blob files alone, of all column families; 0 for none. They are then not in the block
    /// cache, whatever `cache_blobs` says.
    pub blob_cache_size: u64,
    /// As `block_cache_shard_bits`, of that.
    pub blob_cache_shard_bits: Option<u32>,
    /// As `block_cache_high_priority_ratio`, of that: the part in which values that were read more than once are safe from
    /// others.
    pub blob_cache_high_priority_ratio: f64,
    /// A cache for such values that the database shares with others, in place of one of `blob_cache_size`; with
    /// `memory_budget` as `block_cache`. Where it is the same as `block_cache`, values and blocks share it.
    pub blob_cache: Option<BlockCache>,
    /// The world that the database lives in.
    pub env: Env,
    /// Limits what flushes and compactions write, or read, in a second. Databases that hold the same one share it, and it may
    /// change its rate at any time.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    /// Whether a limiter that is made by name (`rate_limiter_bytes_per_sec`) tunes itself.
    pub rate_limiter_auto_tuned: bool,
    /// The threads that flush and compact. Databases that hold the same ones share them, each having at most
    /// `max_background_jobs` of them at a time; without, each has its own, as many as that.
    pub background_threads: Option<Arc<BackgroundThreads>>,
    /// Is told how far the opening is; let go of when the database is open.
    pub open_progress: Option<OpenProgressCallback>,
    /// Are told of flushes, compactions, errors and stalls.
    pub listeners: Listeners,
    /// What an OPTIONS file said that is not acted on.
    pub kept: Vec<KeptSetting>,
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
            kept: Vec::new(),
        }
    }
}

// Callers know RocksDB's `options.create_if_missing = true`; the settings live in a struct of their own only because
// they come from the table.
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
    /// Sets the option called `name`, a setting of the family or its tables or a built-in component. `name` may be
    /// dotted (`compression_opts.level`) and `block_based_table_factory` takes `{name=value;...}`.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown name or a wrong value, `NotSupported` for what the engine does not do yet.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        self.try_set(name, value).unwrap_or_else(|| Err(unknown_name(name)))
    }

    /// The text of the option called `name`.
    pub fn get(&self, name: &str) -> Option<String> {
        match name {
            "comparator" => Some(self.comparator.name().to_string()),
            "merge_operator" => {
                Some(self.merge_operator.as_ref().map_or_else(null_text, |operator| operator.option_text()))
            }
            "prefix_extractor" => Some(
                self.prefix_extractor
                    .as_ref()
                    .map_or_else(null_text, |extractor| extractor.name().into_owned()),
            ),
            FILTER | FILTER_FACTORY => Some(self.filter_text(name)),
            _ => {
                let name = without_alias(name);
                self.settings.text(name).or_else(|| self.table.text(name))
            }
        }
    }

    /// `None` if the name is not one of a column family's.
    pub(super) fn try_set(&mut self, name: &str, value: &str) -> Option<Result<()>> {
        let name = without_alias(name.strip_prefix("cf.").unwrap_or(name));
        let result = self.try_assign(name, value);
        if let Some(Ok(())) = result {
            forget(&mut self.kept, name.split('.').next().unwrap_or(name));
        }
        result
    }

    fn try_assign(&mut self, name: &str, value: &str) -> Option<Result<()>> {
        if let Some((outer, inner)) = name.split_once('.') {
            return self.set_dotted(outer, inner, value);
        }
        if TABLE_FACTORY_NAMES.contains(&name) {
            return Some(self.set_table_factory(value));
        }
        let result = match name {
            BLOB_CACHE if !matches!(value, "nullptr" | "") => Err(Error::not_supported(
                "one cache of values is the database's, for all its column families: set it there",
            )),
            "comparator" => Comparator::from_name(value).map(|found| self.comparator = found),
            "merge_operator" => super::ttl::merge_operator(value).map(|found| self.merge_operator = found),
            "prefix_extractor" => {
                PrefixExtractor::from_option_text(value).map(|found| self.prefix_extractor = found)
            }
            FILTER | FILTER_FACTORY => self.set_filter(name, value),
            _ => {
                let assigned = self.settings.assign(name, value).or_else(|| self.table.assign(name, value));
                match assigned {
                    Some(result) => result,
                    None => known::find(name)
                        .filter(|known| known.section != Section::Db)
                        .map(|k| check(k, value))?,
                }
            }
        };
        Some(result.map_err(|error| error.context(format!("option '{name}'"))))
    }

    fn set_dotted(&mut self, outer: &str, inner: &str, value: &str) -> Option<Result<()>> {
        if outer == "table" || TABLE_FACTORY_NAMES.contains(&outer) {
            return Some(self.set_table(inner, value));
        }
        // A nested struct keeps what its text does not name.
        let result = self.settings.assign(outer, &format!("{{{inner}={value}}}"))?;
        Some(result.map_err(|error| error.context(format!("option '{outer}.{inner}'"))))
    }

    fn set_table_factory(&mut self, value: &str) -> Result<()> {
        if matches!(value, "BlockBasedTable" | "rocksdb.BlockBasedTable") {
            return Ok(());
        }
        if !value.contains('=') {
            return Err(Error::not_supported(format!(
                "table factory '{value}': only BlockBasedTable is supported, also as {{name=value;...}}"
            )));
        }
        pairs(without_braces(value))?.into_iter().try_for_each(|(name, value)| self.set_table(name, value))
    }

    fn set_table(&mut self, name: &str, value: &str) -> Result<()> {
        if name == "id" {
            return self.set_table_factory(value);
        }
        let result = match (self.table.assign(name, value), known::find(name)) {
            (Some(result), _) => result,
            (None, Some(known)) if known.section == Section::Table => check(known, value),
            _ => return Err(unknown_name(name)),
        };
        result.map_err(|error| error.context(format!("option '{name}'")))?;
        forget(&mut self.kept, name);
        Ok(())
    }

    /// Checks every range and what must hold between settings.
    ///
    /// # Errors
    /// `InvalidArgument` or `NotSupported`, naming the setting.
    pub fn validate(&self) -> Result<()> {
        self.check_components_are_given()?;
        if self.comparator.is_unknown() {
            return Err(Error::invalid_argument(format!(
                "comparator '{}' is only a name, by which no key is found: give the one that the keys were written with",
                self.comparator.name()
            )));
        }
        self.settings.check_ranges()?;
        for (name, checked) in [
            ("compression_opts", self.compression_opts.check_ranges()),
            ("bottommost_compression_opts", self.bottommost_compression_opts.check_ranges()),
            ("compaction_options_universal", self.compaction_options_universal.check_ranges()),
            ("compaction_options_fifo", self.compaction_options_fifo.check_ranges()),
        ] {
            checked.map_err(|error| error.context(format!("option '{name}'")))?;
        }
        self.table.check_ranges()?;
        self.cf_paths.check("cf_paths")?;
        self.check_style(&self.cf_paths)?;
        let ages = &self.compaction_options_fifo.file_temperature_age_thresholds;
        ages.check(self.compaction_style, self.num_levels)?;
        let table = &self.table;
        if table.partition_filters && table.index_type != IndexType::TwoLevel {
            return Err(Error::invalid_argument(
                "partition_filters needs index_type kTwoLevelIndexSearch; set both or neither",
            ));
        }
        if table.index_type == IndexType::HashSearch && self.prefix_extractor.is_none() {
            return Err(Error::invalid_argument("index_type kHashSearch needs a prefix_extractor"));
        }
        if matches!(self.memtable_factory, MemTableFactory::PrefixHash { .. })
            && self.prefix_extractor.is_none()
        {
            return Err(Error::invalid_argument(
                "memtable_factory HashSkipListRepFactory (prefix_hash) needs a prefix_extractor, such as fixed:8",
            ));
        }
        if self.max_bytes_for_level_multiplier_additional.iter().any(|factor| *factor < 1) {
            return Err(Error::invalid_argument(
                "max_bytes_for_level_multiplier_additional holds a factor below 1, with which levels may hold nothing and are \
                 compacted for ever: set 1 for those that are to grow by max_bytes_for_level_multiplier alone",
            ));
        }
        Ok(())
    }

    /// Forgets `cf_paths`: for opening a copy, such as a checkpoint, whose files all lie in its own directory.
    pub fn stand_alone(&mut self) {
        self.settings.cf_paths.0.clear();
    }

    /// Checks that compactions choose between directories, if there are several.
    ///
    /// # Errors
    /// `NotSupported`.
    pub(crate) fn check_style(&self, paths: &DataPathList) -> Result<()> {
        let chooses = matches!(self.compaction_style, CompactionStyle::Level | CompactionStyle::Universal);
        if chooses || paths.0.len() <= 1 {
            return Ok(());
        }
        Err(Error::not_supported(
            "more than one of db_paths (or cf_paths) needs leveled or universal compaction: set compaction_style, or name \
             one path",
        ))
    }

    fn compresses(&self) -> bool {
        let per_level = &self.compression_per_level;
        let everywhere = per_level.is_empty().then_some(&self.compression);
        let mut kinds = per_level.iter().chain(everywhere).chain(&self.bottommost_compression);
        kinds.any(|kind| *kind != CompressionType::None)
    }

    /// Checks that the engine can write as the settings say; reading needs less.
    ///
    /// # Errors
    /// As [`ColumnFamilyOptions::validate`].
    pub fn validate_for_writing(&self) -> Result<()> {
        self.validate()?;
        self.check_filters_are_given()?;
        self.check_extractor_is_given()?;
        if self.table.block_align && self.compresses() {
            return Err(Error::invalid_argument(
                "block_align needs compression, bottommost_compression and compression_per_level to be off",
            ));
        }
        if self.table.block_align && !self.table.block_size.is_power_of_two() {
            return Err(Error::invalid_argument("block_align needs a block_size that is a power of two"));
        }
        Ok(())
    }

    /// The settings as RocksDB would mend them: triggers in ascending order, `ttl`'s "not set" as its default. Beyond
    /// that, writers are held up only for more files or runs than a compaction would leave alone, and a hash table has
    /// no more buckets than a memtable has use for.
    #[must_use]
    pub fn sanitized(&self) -> Self {
        /// What RocksDB's API passes for "not set" in `ttl` and `periodic_compaction_seconds`.
        const NOT_SET: u64 = u64::MAX - 1;
        let mut mended = self.clone();
        let settings = &mut mended.settings;
        let left_alone = settings.runs_left_alone();
        let behind = match settings.compaction_style {
            CompactionStyle::Universal => left_alone.saturating_add(1),
            _ => left_alone,
        };
        settings.level0_slowdown_writes_trigger = settings.level0_slowdown_writes_trigger.max(behind);
        settings.level0_stop_writes_trigger =
            settings.level0_stop_writes_trigger.max(settings.level0_slowdown_writes_trigger);
        let (soft, hard) =
            (settings.soft_pending_compaction_bytes_limit, settings.hard_pending_compaction_bytes_limit);
        if hard > 0 && (soft == 0 || soft > hard) {
            settings.soft_pending_compaction_bytes_limit = hard;
        }
        if settings.compaction_style == CompactionStyle::Level {
            settings.num_levels = settings.num_levels.max(2);
        }
        settings.memtable_factory = settings.memtable_factory.fitted(settings.write_buffer_size);
        settings.max_write_buffer_number = settings.max_write_buffer_number.max(2);
        settings.min_write_buffer_number_to_merge =
            settings.min_write_buffer_number_to_merge.min(settings.max_write_buffer_number - 1);
        for options in [&mut settings.compression_opts, &mut settings.bottommost_compression_opts] {
            // There is nothing to train for, and RocksDB refuses a database whose OPTIONS file says so.
            if options.max_dict_bytes == 0 {
                options.zstd_max_train_bytes = 0;
            }
        }
        if mended.table.data_block_hash_table_util_ratio <= 0.0 {
            mended.table.data_block_hash_table_util_ratio =
                TableSettings::default().data_block_hash_table_util_ratio;
        }
        let defaults = CfSettings::default();
        if settings.ttl == NOT_SET {
            settings.ttl = defaults.ttl;
        }
        if settings.periodic_compaction_seconds == NOT_SET {
            settings.periodic_compaction_seconds = if self.filters_compactions() { defaults.ttl } else { 0 };
        }
        mended
    }
}

pub(super) fn null_text() -> String {
    "nullptr".to_string()
}

/// What was kept makes way for what was set.
fn forget(kept: &mut Vec<KeptSetting>, name: &str) {
    kept.retain(|kept| kept.name != name);
}

fn check(known: &Known, value: &str) -> Result<()> {
    if known.accepts(value) { Ok(()) } else { Err(known.refusal()) }
}

impl Options {
    /// Sets the option called `name`: a setting of the database, of its default column family or that family's
    /// tables, or a built-in component. See [`ColumnFamilyOptions::set`] for the forms of names; `block_cache` takes
    /// a size in bytes, or RocksDB's `{capacity=...;num_shard_bits=...;high_pri_pool_ratio=...;secondary_cache=...}`, and
    /// `blob_cache` the same without a secondary cache, or `nullptr`.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown name (with the nearest known one) or a wrong value, `NotSupported` for what
    /// the engine does not do yet.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let plain = name.strip_prefix("db.").unwrap_or(name);
        let result = match (self.db.assign(plain, value), known::find(plain)) {
            (Some(result), _) => result,
            (None, Some(known)) if known.section == Section::Db => check(known, value),
            _ if plain == "block_cache" => self.set_block_cache(value),
            _ if plain == BLOB_CACHE => self.set_blob_cache(value),
            _ if plain == SECONDARY_CACHE => {
                secondary_cache(value).map(|bytes| self.db.compressed_secondary_cache_size = bytes)
            }
            _ if [RATE_LIMITER, AUTO_TUNED].contains(&plain) => self.set_rate_limiter(plain, value),
            _ if TABLE_FACTORY_NAMES.contains(&plain) => return self.set_table_factory(plain, value),
            _ => return self.cf.set(name, value),
        };
        result.map_err(|error| error.context(format!("option '{plain}'")))?;
        forget(&mut self.kept, plain);
        Ok(())
    }

    /// RocksDB's struct of table options holds the block cache, too.
    fn set_table_factory(&mut self, name: &str, value: &str) -> Result<()> {
        if !value.contains('=') {
            return self.cf.set(name, value);
        }
        for (inner, value) in pairs(without_braces(value))? {
            match inner {
                "block_cache" => self.set(inner, value)?,
                _ => self.cf.set_table(inner, value)?,
            }
        }
        Ok(())
    }

    /// As [`Options::set`], and what concerns column families also in each of `families`.
    ///
    /// # Errors
    /// As [`Options::set`].
    pub fn set_everywhere(
        &mut self,
        families: &mut [(String, ColumnFamilyOptions)],
        name: &str,
        value: &str,
    ) -> Result<()> {
        if TABLE_FACTORY_NAMES.contains(&name) && value.contains('=') {
            return pairs(without_braces(value))?
                .into_iter()
                .try_for_each(|(inner, value)| self.set_everywhere(families, inner, value));
        }
        self.set(name, value)?;
        if name == BLOB_CACHE {
            return Ok(());
        }
        families.iter_mut().filter_map(|(_, family)| family.try_set(name, value)).collect()
    }

    /// Sets several options from `name=value;name=value`.
    ///
    /// # Errors
    /// As [`Options::set`]; the options before the wrong one are then set.
    pub fn set_all(&mut self, text: &str) -> Result<()> {
        pairs(text)?.into_iter().try_for_each(|(name, value)| self.set(name, value))
    }

    /// The text of the option called `name`.
    pub fn get(&self, name: &str) -> Option<String> {
        match name {
            "block_cache" => Some(self.block_cache_text()),
            BLOB_CACHE => Some(self.blob_cache_text()),
            RATE_LIMITER | AUTO_TUNED => Some(self.rate_limiter_text(name)),
            _ => self.db.text(name).or_else(|| self.cf.get(name)),
        }
    }

    /// Forgets `wal_dir`, `db_paths` and `cf_paths`: for opening a copy, such as a checkpoint, whose files all lie in its own
    /// directory. [`ColumnFamilyOptions::stand_alone`] does the same for other families.
    pub fn stand_alone(&mut self) {
        self.db.wal_dir.clear();
        self.db.db_paths.0.clear();
        self.cf.stand_alone();
    }

    /// What an OPTIONS file said that is not acted on, as sentences.
    pub fn warnings(&self) -> Vec<String> {
        self.kept.iter().chain(&self.cf.kept).map(ToString::to_string).collect()
    }

    /// Checks every range and what must hold between settings.
    ///
    /// # Errors
    /// `InvalidArgument` or `NotSupported`, naming the setting.
    pub fn validate(&self) -> Result<()> {
        self.db.check_ranges()?;
        check_kept_path("wal_dir", &self.db.wal_dir)?;
        self.db.db_paths.check("db_paths")?;
        self.cf.validate()?;
        let shares_cache = self.block_cache.is_some() || self.blob_cache.is_some();
        if shares_cache && matches!(self.memory_budget, MemoryBudget::Bytes(_)) {
            return Err(Error::invalid_argument(
                "a memory_budget in bytes is one database's and sizes its caches: leave it out, or share no block_cache and no \
                 blob_cache",
            ));
        }
        if !matches!(self.wal_compression, CompressionType::None | CompressionType::Zstd) {
            return Err(Error::not_supported(format!(
                "wal_compression {}: only kNoCompression and kZSTD exist",
                self.wal_compression.text()
            )));
        }
        Ok(())
    }

    /// Checks that the engine can write as the settings say; reading needs less.
    ///
    /// # Errors
    /// As [`ColumnFamilyOptions::validate_for_writing`].
    pub fn validate_for_writing(&self) -> Result<()> {
        self.validate()?;
        if self.background_niceness > 0 && !cfg!(target_os = "linux") {
            return Err(Error::not_supported(
                "background_niceness: only Linux has a niceness for each thread",
            ));
        }
        self.cf.validate_for_writing()
    }
}

impl fmt::Debug for ColumnFamilyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnFamilyOptions")
            .field("settings", &self.settings)
            .field("table", &self.table)
            .field("comparator", &self.comparator)
            .field("merge_operator", &self.merge_operator.as_ref().map(|operator| operator.option_text()))
            .field("prefix_extractor", &self.prefix_extractor)
            .field(FILTER, &self.filter_text(FILTER))
            .field(FILTER_FACTORY, &self.filter_text(FILTER_FACTORY))
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

//! Constraints between settings, and the corrections that RocksDB makes to settings that do not fit
//! together.

use super::assembled::{ColumnFamilyOptions, Options};
use super::cf_settings::CfSettings;
use super::choices::CompactionStyle;
use super::data_path::{DataPathList, check_kept_path};
use super::db_settings::DbSettings;
use super::memory_budget::MemoryBudget;
use super::memtable_factory::MemTableFactory;
use super::table::Settings;
use super::table_settings::TableSettings;
use crate::base::{Error, Result};
use crate::base::{compression::CompressionType, timestamp};
use crate::env::LowPriority;
use crate::sst::IndexType;
use crate::wal::WalCompression;

/// A check of how tables are to be written, and the settings that get their defaults where it
/// fails.
type TableCheck = (fn(&ColumnFamilyOptions) -> Result<()>, &'static [&'static str]);

const TABLE_CHECKS: [TableCheck; 4] = [
    (ColumnFamilyOptions::check_format_version, &["format_version"]),
    (ColumnFamilyOptions::check_filter_partitions, &["partition_filters"]),
    (ColumnFamilyOptions::check_block_align, &["block_align"]),
    (
        ColumnFamilyOptions::check_super_blocks,
        &["super_block_alignment_size", "super_block_alignment_space_overhead_ratio"],
    ),
];

impl ColumnFamilyOptions {
    /// Checks all ranges and the constraints between settings.
    ///
    /// # Errors
    /// `InvalidArgument` or `NotSupported`, naming the setting.
    pub fn validate(&self) -> Result<()> {
        self.check_table_factory_is_built_in()?;
        self.check_components_are_given()?;
        if self.comparator.is_unknown() {
            return Err(Error::invalid_argument(format!(
                "comparator '{}' is only a name and cannot find keys; supply the one that the keys were written with",
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
        self.check_filter_partitions()?;
        self.check_hash_index()?;
        self.check_timestamps()?;
        if self.cf_allow_ingest_behind && self.compaction_style != CompactionStyle::Universal {
            return Err(Error::invalid_argument(
                "cf_allow_ingest_behind needs compaction_style=kCompactionStyleUniversal",
            ));
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

    /// Checks that compactions choose between directories, if there are several.
    ///
    /// # Errors
    /// `NotSupported`.
    pub(crate) fn check_style(&self, paths: &DataPathList) -> Result<()> {
        let chooses =
            matches!(self.compaction_style, CompactionStyle::Level | CompactionStyle::Universal);
        if chooses || paths.0.len() <= 1 {
            return Ok(());
        }
        Err(Error::not_supported(
            "more than one of db_paths (or cf_paths) needs leveled or universal compaction: set compaction_style, or name \
             one path",
        ))
    }

    /// Checks that this build has the codecs that are to write.
    ///
    /// # Errors
    /// `NotSupported`, naming setting and feature.
    fn check_codecs(&self) -> Result<()> {
        let lists = [
            ("compression", std::slice::from_ref(&self.compression)),
            ("compression_per_level", &self.compression_per_level),
            ("bottommost_compression", self.bottommost_compression.as_slice()),
            ("blob_compression_type", self.blob_compression_type.as_slice()),
        ];
        for (name, kinds) in lists {
            for kind in kinds {
                kind.check_built_in().map_err(|error| error.context(format!("option '{name}'")))?;
            }
        }
        Ok(())
    }

    fn compresses(&self) -> bool {
        let per_level = &self.compression_per_level;
        let everywhere = per_level.is_empty().then_some(&self.compression);
        let mut kinds = per_level.iter().chain(everywhere).chain(&self.bottommost_compression);
        kinds.any(|kind| *kind != CompressionType::None)
    }

    fn check_timestamps(&self) -> Result<()> {
        let size = self.comparator.timestamp_size();
        if size > timestamp::SIZE_MAX {
            return Err(Error::invalid_argument(format!(
                "comparator '{}' has timestamps of {size} bytes; up to {} can be stored",
                self.comparator.name(),
                timestamp::SIZE_MAX
            )));
        }
        if size > 0 && !self.persist_user_defined_timestamps && !self.comparator.is_built_in() {
            return Err(Error::invalid_argument(
                "persist_user_defined_timestamps=false needs a built-in comparator with timestamps",
            ));
        }
        Ok(())
    }

    /// Checks that the engine can write with these settings; reading needs less.
    ///
    /// # Errors
    /// As [`ColumnFamilyOptions::validate`].
    pub fn validate_for_writing(&self) -> Result<()> {
        self.validate()?;
        self.check_codecs()?;
        self.check_filters_are_given()?;
        self.check_extractor_is_given()?;
        self.check_block_align()?;
        self.check_super_blocks()
    }

    /// Makes do without settings by which no table could be written, or the database not be opened
    /// for writing: an OPTIONS file with a flipped bit may have them. Says what was wrong.
    pub(crate) fn mend_tables(&mut self) -> Vec<Error> {
        let defaults = Self::default();
        let mut wrong: Vec<Error> = self.check_hash_index().err().into_iter().collect();
        if !wrong.is_empty() {
            self.make_do_without_hash_index();
        }
        for (check, names) in TABLE_CHECKS {
            let Err(error) = check(self) else { continue };
            wrong.push(error);
            for name in names {
                let default = defaults.get(name).expect("they are settings of tables");
                self.set(name, &default).expect("a default can be had");
            }
        }
        wrong
    }

    fn check_format_version(&self) -> Result<()> {
        TableSettings { format_version: self.table.format_version, ..TableSettings::default() }
            .check_ranges()
    }

    fn check_filter_partitions(&self) -> Result<()> {
        if self.table.partition_filters && self.table.index_type != IndexType::TwoLevel {
            Err(Error::invalid_argument(
                "partition_filters needs index_type kTwoLevelIndexSearch; set both or neither",
            ))
        } else {
            Ok(())
        }
    }

    fn check_hash_index(&self) -> Result<()> {
        if self.table.index_type == IndexType::HashSearch && self.prefix_extractor.is_none() {
            Err(Error::invalid_argument("index_type kHashSearch needs a prefix_extractor"))
        } else {
            Ok(())
        }
    }

    fn check_block_align(&self) -> Result<()> {
        if self.table.block_align && self.compresses() {
            return Err(Error::invalid_argument(
                "block_align needs compression, bottommost_compression and compression_per_level to be off",
            ));
        }
        if self.table.block_align && !self.table.block_size.is_power_of_two() {
            return Err(Error::invalid_argument(
                "block_align needs a block_size that is a power of two",
            ));
        }
        Ok(())
    }

    /// As RocksDB checks them, whether they are used or not.
    fn check_super_blocks(&self) -> Result<()> {
        let size = self.table.super_block_alignment_size;
        if size > 0 && !size.is_power_of_two() {
            return Err(Error::invalid_argument(format!(
                "super_block_alignment_size is {size}; it must be a power of two, or 0"
            )));
        }
        let ratio = self.table.super_block_alignment_space_overhead_ratio;
        if (1..4).contains(&ratio) {
            return Err(Error::invalid_argument(format!(
                "super_block_alignment_space_overhead_ratio is {ratio}; it must be at least 4, or 0"
            )));
        }
        Ok(())
    }

    /// The options of a family in a database with these settings.
    #[must_use]
    pub(crate) fn within(mut self, db: &DbSettings) -> Self {
        let is_universal = self.compaction_style == CompactionStyle::Universal;
        self.settings.cf_allow_ingest_behind |= db.allow_ingest_behind && is_universal;
        self
    }

    /// The settings as RocksDB would correct them: triggers in ascending order, and unset values
    /// replaced by their defaults. In addition, writers are delayed only for more files or runs
    /// than a compaction would leave, and a hash table has no more buckets than a memtable can use.
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
        settings.level0_slowdown_writes_trigger =
            settings.level0_slowdown_writes_trigger.max(behind);
        settings.level0_stop_writes_trigger =
            settings.level0_stop_writes_trigger.max(settings.level0_slowdown_writes_trigger);
        let (soft, hard) = (
            settings.soft_pending_compaction_bytes_limit,
            settings.hard_pending_compaction_bytes_limit,
        );
        if hard > 0 && (soft == 0 || soft > hard) {
            settings.soft_pending_compaction_bytes_limit = hard;
        }
        if settings.compaction_style == CompactionStyle::Level {
            settings.num_levels = settings.num_levels.max(2);
        }
        if settings.cf_allow_ingest_behind {
            settings.num_levels = settings.num_levels.max(3);
        }
        settings.memtable_factory = settings.memtable_factory.fitted(settings.write_buffer_size);
        settings.max_write_buffer_number = settings.max_write_buffer_number.max(2);
        settings.min_write_buffer_number_to_merge =
            settings.min_write_buffer_number_to_merge.min(settings.max_write_buffer_number - 1);
        for options in [&mut settings.compression_opts, &mut settings.bottommost_compression_opts] {
            // There is nothing to train for, and RocksDB refuses a database whose OPTIONS file says
            // so.
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
            settings.periodic_compaction_seconds =
                if self.filters_compactions() { defaults.ttl } else { 0 };
        }
        mended
    }
}

impl Options {
    /// Checks all ranges and the constraints between settings.
    ///
    /// # Errors
    /// `InvalidArgument` or `NotSupported`, naming the setting.
    pub fn validate(&self) -> Result<()> {
        self.db.check_ranges()?;
        self.db.memory_budget.check()?;
        check_kept_path("wal_dir", &self.db.wal_dir)?;
        check_kept_path("db_log_dir", &self.db.db_log_dir)?;
        self.db.db_paths.check("db_paths")?;
        self.cf.validate()?;
        if self.db.allow_mmap_reads && self.db.use_direct_reads {
            return Err(Error::invalid_argument(
                "allow_mmap_reads and use_direct_reads exclude each other; unset one of them",
            ));
        }
        let shares_cache = self.block_cache.is_some() || self.blob_cache.is_some();
        if shares_cache && matches!(self.memory_budget, MemoryBudget::Bytes(_)) {
            return Err(Error::invalid_argument(
                "a memory_budget in bytes sizes the caches of one database; leave it out, or share no block_cache and no \
                 blob_cache",
            ));
        }
        Ok(())
    }

    /// Checks that this build has the codec for WALs with these settings.
    ///
    /// # Errors
    /// `NotSupported`, naming the feature.
    pub(crate) fn check_wal_codec(&self) -> Result<()> {
        if self.wal_compression == WalCompression::None {
            return Ok(());
        }
        let check = CompressionType::Zstd.check_built_in();
        check.map_err(|error| error.context("option 'wal_compression'"))
    }

    /// Checks that the engine can write with these settings; reading needs less.
    ///
    /// # Errors
    /// As [`ColumnFamilyOptions::validate_for_writing`].
    pub fn validate_for_writing(&self) -> Result<()> {
        self.validate()?;
        self.check_wal_codec()?;
        if self.low_priority() != LowPriority::NONE && !cfg!(target_os = "linux") {
            return Err(Error::not_supported(
                "background_niceness, background_idle_io: only Linux has a priority per thread",
            ));
        }
        self.cf.validate_for_writing()
    }
}

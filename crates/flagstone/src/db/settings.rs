//! The family's options as the smaller settings that each part of the engine takes.

use std::path::Path;
use std::sync::Arc;

use crate::base::compression::CompressionOptions;
use crate::base::{DataPaths, Error, Result, Temperature};
use crate::blob::BlobGcSettings;
use crate::compaction::pick::{
    BlobMoment, BlobWaste, CompactionPlan, LevelTargets, LeveledSettings, PickContext, StallInput,
    StallSettings, TableTemperatures, drop_deleted, fifo_scratch, leveled_scratch,
    pending_compaction_bytes, pick, pick_fifo, pick_universal, sorted_runs, universal_scratch,
};
use crate::db::budget::memtable_bytes_max;
use crate::manifest::Version;
use crate::memtable::{ArenaPool, MemTableFilterSettings, MemTableKind, MemTableSettings};
use crate::options::{
    ColumnFamilyOptions, CompactionStyle, DataBlockIndexType, DbSettings, IndexType,
    MemTableFactory, TableSettings,
};
use crate::sst::{SuperBlock, TableBuilderSettings};

/// Bytes of a huge page: memtables that are large enough take their memory in such pieces.
pub(super) const HUGE_PAGE: usize = 2 << 20;

/// The most memory of flushed memtables that is kept for the next ones.
pub(super) const KEPT_ARENA_BYTES_MAX: u64 = 256 << 20;

/// The largest filter of a memtable. A huge `write_buffer_size` says that there is no limit, not
/// how much there will be; a filter is asked for at once.
const MEMTABLE_FILTER_BYTES_MAX: u64 = 256 << 20;

/// Where a family's files lie in the database `path`.
///
/// # Errors
/// `NotSupported`: several directories, and compactions of a style that does not choose between
/// them.
pub(super) fn data_paths(
    path: &Path,
    db: &DbSettings,
    options: &ColumnFamilyOptions,
) -> Result<Arc<DataPaths>> {
    let named = if options.cf_paths.0.is_empty() { &db.db_paths } else { &options.cf_paths };
    options.check_style(named)?;
    Ok(DataPaths::new(path, &named.directories()))
}

/// How a family's memtables are made in a database with these settings; `pool` keeps their memory
/// from one to the next.
pub(super) fn memtable_settings(
    db: &DbSettings,
    options: &ColumnFamilyOptions,
    pool: &Arc<ArenaPool>,
) -> MemTableSettings {
    let kind = match options.memtable_factory.fitted(options.settings.write_buffer_size) {
        MemTableFactory::BTree => MemTableKind::BTree,
        MemTableFactory::SkipList => MemTableKind::SkipList,
        // A prefix would take timestamps along.
        MemTableFactory::PrefixHash { .. } if options.comparator.timestamp_size() > 0 => {
            MemTableKind::SkipList
        }
        MemTableFactory::Vector => MemTableKind::Vector,
        MemTableFactory::PrefixHash { bucket_count } => {
            let extractor =
                options.prefix_extractor.clone().expect("checked when the options were taken");
            MemTableKind::PrefixHash { extractor, bucket_count: bucket_count as usize }
        }
    };
    let mut settings = MemTableSettings { kind, ..MemTableSettings::default() };
    if options.settings.arena_block_size > 0 {
        // RocksDB writes down a size that follows from the write buffer, and leaves it there when
        // that is made smaller.
        let at_most = options.settings.write_buffer_size;
        settings.arena_block_size = options.settings.arena_block_size.min(at_most) as usize;
    } else if options.settings.write_buffer_size >= 16 * HUGE_PAGE as u64 {
        settings.arena_block_size = HUGE_PAGE;
    }
    if let Some(all) = memtable_bytes_max(db) {
        // What is asked for too much counts, too.
        let piece = (all / 16).clamp(4 << 10, HUGE_PAGE as u64) as usize;
        settings.arena_block_size = settings.arena_block_size.min(piece);
    }
    settings.arena_pool = Some(pool.clone());
    settings.filter = memtable_filter_settings(db, options);
    settings.protection_bytes = options.memtable_protection_bytes_per_key.bytes();
    settings
}

/// The filter of a family's memtables: as in RocksDB there is none without anything to put into it.
fn memtable_filter_settings(
    db: &DbSettings,
    options: &ColumnFamilyOptions,
) -> Option<MemTableFilterSettings> {
    let (whole_keys, prefixes) =
        (options.memtable_whole_key_filtering, options.prefix_extractor.clone());
    let ratio = options.memtable_prefix_bloom_size_ratio;
    // Lookups of keys with timestamps do not ask one.
    let is_asked = options.comparator.timestamp_size() == 0;
    if ratio <= 0.0 || !is_asked || !(whole_keys || prefixes.is_some()) {
        return None;
    }
    // Filters of many families must not fill what all memtables may have together: they would be
    // flushed for them alone.
    let most =
        memtable_bytes_max(db).map_or(u64::MAX, |all| all / 16).min(MEMTABLE_FILTER_BYTES_MAX);
    let bytes = ((options.write_buffer_size as f64 * ratio) as u64).min(most) as usize;
    Some(MemTableFilterSettings { bytes, whole_keys, prefixes })
}

pub(super) fn no_merge_operator(family: &str) -> Error {
    Error::invalid_argument(format!(
        "column family '{family}' has no merge operator; set ColumnFamilyOptions::merge_operator"
    ))
}

/// The parameters of compression; those of the bottommost level if they are enabled.
pub(crate) fn compression_options(
    options: &ColumnFamilyOptions,
    bottommost: bool,
) -> CompressionOptions {
    if bottommost && options.bottommost_compression_opts.enabled {
        (&options.bottommost_compression_opts).into()
    } else {
        (&options.compression_opts).into()
    }
}

fn super_block(table: &TableSettings) -> Option<SuperBlock> {
    let (size, overhead_ratio) =
        (table.super_block_alignment_size, table.super_block_alignment_space_overhead_ratio);
    (size > 0 && overhead_ratio > 0).then_some(SuperBlock { size, overhead_ratio })
}

/// Whether a family's tables have its keys without their timestamps.
pub(crate) fn strips_timestamps(options: &ColumnFamilyOptions) -> bool {
    !options.persist_user_defined_timestamps && options.comparator.timestamp_size() > 0
}

/// How a family's options want a table of `level` to be written, but for its compression;
/// `may_omit_filter`: whoever comes as far as such a table will mostly find the key there.
pub(crate) fn table_builder_settings(
    options: &ColumnFamilyOptions,
    level: usize,
    may_omit_filter: bool,
) -> TableBuilderSettings {
    let table = &options.table;
    let strips = strips_timestamps(options);
    TableBuilderSettings {
        comparator: if strips {
            options.comparator.without_timestamps()
        } else {
            options.comparator.clone()
        },
        stripped_order: strips.then(|| options.comparator.name().to_owned()),
        format_version: table.format_version,
        checksum: table.checksum,
        verify_compression: table.verify_compression,
        compress_index: table.enable_index_compression,
        block_align: table.block_align.then_some(4096),
        super_block: super_block(table),
        block_size: table.block_size as usize,
        block_size_deviation: table.block_size_deviation as usize,
        block_restart_interval: table.block_restart_interval as usize,
        index_block_restart_interval: table.index_block_restart_interval as usize,
        // A hash of prefixes would take timestamps along.
        index_type: match table.index_type {
            IndexType::HashSearch if options.comparator.timestamp_size() > 0 => {
                IndexType::BinarySearch
            }
            index_type => index_type,
        },
        metadata_block_size: table.metadata_block_size as usize,
        index_shortening: table.index_shortening,
        filter_policy: table
            .filter_policy
            .and_then(|policy| table.filter_bits_per_level.of_level(policy, level))
            .filter(|_| !(may_omit_filter && options.optimize_filters_for_hits)),
        prefix_extractor: options.prefix_extractor.clone(),
        // A filter goes by bytes, and would hide a key that is the same in other bytes.
        whole_key_filtering: table.whole_key_filtering && options.comparator.is_built_in(),
        partition_filters: table.partition_filters,
        data_block_hash_ratio: (table.data_block_index_type == DataBlockIndexType::BinaryAndHash)
            .then_some(table.data_block_hash_table_util_ratio)
            .filter(|_| options.comparator.tells_bytes_apart()),
        merge_operator_name: options
            .merge_operator
            .as_ref()
            .map(|operator| operator.name().to_string()),
        collectors: options.table_properties_collectors.clone(),
        level: Some(level),
        ..TableBuilderSettings::default()
    }
}

/// The compaction that a family wants most, in its style.
pub(super) fn pick_compaction(
    options: &ColumnFamilyOptions,
    version: &Version,
    context: &PickContext<'_>,
) -> Option<CompactionPlan> {
    let common = leveled_settings(options, &version.paths);
    if options.compaction_style != CompactionStyle::Fifo
        && let Some(plan) = drop_deleted(version, context)
    {
        return Some(plan);
    }
    match options.compaction_style {
        CompactionStyle::Level | CompactionStyle::None => pick(version, &common, context),
        CompactionStyle::Universal => {
            pick_universal(version, &common, &options.compaction_options_universal, context)
        }
        CompactionStyle::Fifo => pick_fifo(
            version,
            &common,
            &options.compaction_options_fifo,
            options.write_buffer_size,
            context,
        ),
    }
}

/// What the pickers go by; of levels only the leveled one.
pub(crate) fn leveled_settings(
    options: &ColumnFamilyOptions,
    paths: &DataPaths,
) -> LeveledSettings {
    LeveledSettings {
        level0_file_num_compaction_trigger: options.level0_file_num_compaction_trigger.max(1)
            as usize,
        runs_without_delay: usize::try_from(options.level0_slowdown_writes_trigger)
            .map_or(usize::MAX, |delay| delay.saturating_sub(1)),
        write_buffer_size: options.write_buffer_size,
        max_bytes_for_level_base: options.max_bytes_for_level_base,
        max_bytes_for_level_multiplier: options.max_bytes_for_level_multiplier,
        max_bytes_for_level_multiplier_additional: options
            .max_bytes_for_level_multiplier_additional
            .clone(),
        // Levels are sized from the last one upwards where they are sized at all, and where no
        // directory has to be found for a level by its size.
        dynamic_level_bytes: options.level_compaction_dynamic_level_bytes
            && has_level_sizes(options)
            && paths.directories().len() == 1,
        target_file_size_base: options.target_file_size_base,
        target_file_size_multiplier: options.target_file_size_multiplier.max(1) as u64,
        max_compaction_bytes: options.max_compaction_bytes,
        priority: options.compaction_pri,
        ttl_seconds: options.ttl,
        periodic_compaction_seconds: options.periodic_compaction_seconds,
        preserved_seconds: preserved_seconds(options),
        precluded_seconds: options.preclude_last_level_data_seconds,
        deletion_compaction_delay: options.deletion_compaction_delay,
        max_space_amplification: options.max_space_amplification,
        burst_space_amplification: options.space_in_bursts(),
        blob_gc: BlobGcSettings {
            enabled: options.enable_blob_garbage_collection,
            age_cutoff: options.blob_garbage_collection_age_cutoff,
            force_threshold: options.blob_garbage_collection_force_threshold,
        },
        ingest_behind: options.cf_allow_ingest_behind,
        path_sizes: paths.target_sizes().to_vec(),
        compression: options.compression,
        compression_per_level: options.compression_per_level.clone(),
        bottommost_compression: options.bottommost_compression,
        temperatures: table_temperatures(options),
    }
}

/// Seconds for which a family keeps the times of writes; 0 for none.
pub(crate) fn preserved_seconds(options: &ColumnFamilyOptions) -> u64 {
    options.preserve_internal_time_seconds.max(options.preclude_last_level_data_seconds)
}

/// The temperatures of a family's new tables.
pub(crate) fn table_temperatures(options: &ColumnFamilyOptions) -> TableTemperatures {
    let last_level = match options.compaction_style {
        // Its only level is where all tables begin.
        CompactionStyle::Fifo => Temperature::UNKNOWN,
        _ => options.last_level_temperature,
    };
    TableTemperatures { default: options.default_write_temperature, last_level }
}

fn has_level_sizes(options: &ColumnFamilyOptions) -> bool {
    matches!(options.compaction_style, CompactionStyle::Level | CompactionStyle::None)
}

/// What a family's tree asks of its writers.
pub(super) fn stall_input(
    options: &ColumnFamilyOptions,
    version: &Version,
    unflushed_memtables: usize,
    blob_waste: BlobWaste,
) -> StallInput {
    let pending_compaction_bytes = if has_level_sizes(options) {
        let leveled = leveled_settings(options, &version.paths);
        let targets = LevelTargets::new(version, &leveled);
        pending_compaction_bytes(version, &leveled, &targets)
    } else {
        0
    };
    let level0_files = level0_files(options, version);
    StallInput { unflushed_memtables, level0_files, pending_compaction_bytes, blob_waste }
}

/// What a family's blob files waste.
pub(super) fn blob_waste(
    options: &ColumnFamilyOptions,
    version: &Version,
    moment: &BlobMoment<'_>,
) -> BlobWaste {
    match options.compaction_style {
        // Nothing is collected: tables go as a whole.
        CompactionStyle::Fifo => BlobWaste::default(),
        _ => BlobWaste::of(version, options.space_in_bursts(), moment),
    }
}

/// The files in level 0 that compactions are to merge with what is older: with universal compaction
/// all sorted runs, with FIFO compaction none.
pub(super) fn level0_files(options: &ColumnFamilyOptions, version: &Version) -> usize {
    match options.compaction_style {
        CompactionStyle::Universal => {
            // What waits above the last level for its time counts as one with it.
            let above = version.levels.len().checked_sub(2).filter(|above| *above > 0);
            let waits = above
                .is_some_and(|above| version.levels[above..].iter().all(|files| !files.is_empty()));
            let holds_young = options.preclude_last_level_data_seconds > 0;
            sorted_runs(version) - usize::from(holds_young && waits)
        }
        CompactionStyle::Fifo => 0,
        CompactionStyle::Level | CompactionStyle::None => version.levels[0].len(),
    }
}

/// The most that one compaction of a family's tables may write before it gives anything back.
pub(super) fn scratch_bytes(options: &ColumnFamilyOptions, version: &Version) -> u64 {
    let common = leveled_settings(options, &version.paths);
    match options.compaction_style {
        CompactionStyle::Universal => {
            universal_scratch(version, &common, &options.compaction_options_universal)
        }
        CompactionStyle::Fifo => fifo_scratch(version, &common, &options.compaction_options_fifo),
        CompactionStyle::Level | CompactionStyle::None => leveled_scratch(version, &common),
    }
}

/// Whether compactions of a family start unasked.
pub(super) fn compacts_by_itself(options: &ColumnFamilyOptions) -> bool {
    !options.disable_auto_compactions && options.compaction_style != CompactionStyle::None
}

/// When writers of a family are held up.
pub(super) fn stall_settings(options: &ColumnFamilyOptions) -> StallSettings {
    StallSettings {
        max_write_buffer_number: options.max_write_buffer_number.max(2) as usize,
        min_write_buffer_number_to_merge: options.min_write_buffer_number_to_merge.max(1) as usize,
        level0_slowdown_writes_trigger: usize::try_from(options.level0_slowdown_writes_trigger)
            .ok(),
        level0_stop_writes_trigger: usize::try_from(options.level0_stop_writes_trigger).ok(),
        soft_pending_compaction_bytes_limit: options.soft_pending_compaction_bytes_limit,
        hard_pending_compaction_bytes_limit: options.hard_pending_compaction_bytes_limit,
        disable_auto_compactions: !compacts_by_itself(options),
    }
}

#[cfg(test)]
mod tests;

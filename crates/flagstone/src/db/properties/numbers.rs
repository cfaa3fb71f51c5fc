//! Properties that are numbers.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::compaction::pick::{BlobWaste, LevelTargets};
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::properties::tables::blob_file_totals;
use crate::db::settings::{leveled_settings, stall_input};
use crate::db::space::{self, blob_file_bytes};
use crate::db::tree::paused_work;
use crate::manifest::Version;
use crate::options::{ColumnFamilyOptions, CompactionStyle};
use crate::sst::{BlockCache, CompressedCache};

/// Bytes of tables, each key counted in one level, and of values in blob files, without garbage.
fn live_data_bytes(version: &Version) -> u64 {
    let blobs = blob_file_bytes(version.blob_files.values());
    let live = blobs.saturating_sub(blob_file_totals(version).garbage);
    version.disjoint_table_bytes().saturating_add(live)
}

pub(super) fn int_property(db: &DbInner, family: &Family, name: &str) -> Option<u64> {
    let current = family.current.load();
    let version = &current.version;
    let immutable_bytes =
        || current.immutable.iter().map(|mem| mem.memory_usage() as u64).sum::<u64>();
    Some(match name {
        "rocksdb.num-immutable-mem-table" => current.immutable.len() as u64,
        "rocksdb.mem-table-flush-pending" => u64::from(!current.immutable.is_empty()),
        "rocksdb.compaction-pending" => u64::from(db.tree.compaction_pending(family)),
        "rocksdb.background-errors" => db.context.poison.failures(),
        "rocksdb.cur-size-active-mem-table" => current.mem.memory_usage() as u64,
        "rocksdb.cur-size-all-mem-tables" | "rocksdb.size-all-mem-tables" => {
            current.mem.memory_usage() as u64 + immutable_bytes()
        }
        "rocksdb.num-entries-active-mem-table" => current.mem.num_entries(),
        "rocksdb.num-deletes-active-mem-table" => current.mem.num_deletes(),
        "rocksdb.num-entries-imm-mem-tables" => {
            current.immutable.iter().map(|mem| mem.num_entries()).sum()
        }
        "rocksdb.num-deletes-imm-mem-tables" => {
            current.immutable.iter().map(|mem| mem.num_deletes()).sum()
        }
        "rocksdb.estimate-num-keys" => estimate_keys(db, family),
        "rocksdb.estimate-table-readers-mem" => version
            .files()
            .filter_map(|(_, file)| file.table.get())
            .map(|table| table.memory_usage() as u64)
            .sum(),
        "rocksdb.is-file-deletions-enabled" => u64::from(!db.tree.are_deletions_paused()),
        "rocksdb.num-immutable-mem-table-flushed" => 0,
        "rocksdb.compaction-abort-count" => paused_work::aborts(&db.tree) as u64,
        "rocksdb.num-live-versions" => live_versions(db, family),
        "rocksdb.current-super-version-number" => db.tree.super_version_number(family),
        "rocksdb.base-level" => base_level(&family.options.load(), version),
        "rocksdb.obsolete-sst-files-size" => obsolete_table_bytes(db),
        "rocksdb.num-running-compaction-sorted-runs" => db.tree.running_sorted_runs(),
        "rocksdb.estimate-oldest-key-time" => oldest_key_time(db, family, version)?,
        "rocksdb.num-snapshots" => db.snapshots.count() as u64,
        "rocksdb.oldest-snapshot-time" => {
            db.snapshots.oldest().map_or(0, |oldest| oldest.since_unix_seconds)
        }
        "rocksdb.oldest-snapshot-sequence" => {
            db.snapshots.oldest().map_or(0, |oldest| oldest.sequence)
        }
        "rocksdb.min-log-number-to-keep" => db.tree.min_log_number_to_keep().0,
        "rocksdb.total-sst-files-size" => space::total_table_bytes(db, family),
        "rocksdb.live-sst-files-size" => version.table_bytes(),
        "rocksdb.estimate-live-data-size" => live_data_bytes(version),
        "rocksdb.estimate-pending-compaction-bytes" => {
            let (options, waiting) = (family.options.load(), current.immutable.len());
            stall_input(&options, version, waiting, BlobWaste::default()).pending_compaction_bytes
        }
        "rocksdb.num-running-compactions" => db.tree.running().1 as u64,
        "rocksdb.num-running-flushes" => db.tree.running().0 as u64,
        "rocksdb.actual-delayed-write-rate" => db.pipeline.control().delayed_rate(),
        "flagstone.rate-limiter-bytes-per-second" => rate_limit(db),
        "flagstone.wal-reserve-missing" => db.pipeline.missing_wal_reserve(),
        "rocksdb.is-write-stopped" => u64::from(db.pipeline.control().is_stopped()),
        "rocksdb.num-blob-files" => version.blob_files.len() as u64,
        "rocksdb.total-blob-file-size" => space::total_blob_bytes(db, family),
        "rocksdb.live-blob-file-size" => blob_file_bytes(version.blob_files.values()),
        "rocksdb.live-blob-file-garbage-size" => blob_file_totals(version).garbage,
        _ => return cache_property(db, family, name),
    })
}

fn rate_limit(db: &DbInner) -> u64 {
    db.context.settings.load().rate_limiter.as_ref().map_or(0, |limiter| limiter.bytes_per_second())
}

fn cache_property(db: &DbInner, family: &Family, name: &str) -> Option<u64> {
    let second_tier = |figure: fn(&CompressedCache) -> usize| {
        db.tables.caches().second_tier().map_or(0, |tier| figure(tier)) as u64
    };
    Some(match name {
        "rocksdb.block-cache-capacity" => db.tables.caches().blocks().capacity() as u64,
        "rocksdb.block-cache-usage" => db.tables.caches().blocks().usage() as u64,
        "rocksdb.block-cache-pinned-usage" => db.tables.caches().blocks().pinned_usage() as u64,
        "rocksdb.blob-cache-capacity" => blob_cache_of(db, family)?.capacity() as u64,
        "rocksdb.blob-cache-usage" => blob_cache_of(db, family)?.usage() as u64,
        "rocksdb.blob-cache-pinned-usage" => blob_cache_of(db, family)?.pinned_usage() as u64,
        "flagstone.compressed-secondary-cache-capacity" => second_tier(CompressedCache::capacity),
        "flagstone.compressed-secondary-cache-usage" => second_tier(CompressedCache::usage),
        "flagstone.compressed-secondary-cache-entries" => second_tier(CompressedCache::len),
        _ => return None,
    })
}

/// Where the family's values from blob files are kept, if anywhere; as in RocksDB that may be
/// the block cache.
fn blob_cache_of<'a>(db: &'a DbInner, family: &Family) -> Option<&'a BlockCache> {
    let is_kept = db.tables.caches_all_blobs || family.options.load().cache_blobs;
    is_kept.then(|| &**db.tables.caches().blobs())
}

/// Entries in memory and in tables, twice the deletions taken off.
fn estimate_keys(db: &DbInner, family: &Family) -> u64 {
    let current = family.current.load();
    let memtables = std::iter::once(&current.mem).chain(&current.immutable);
    let (mut entries, mut deletions) =
        memtables.fold((0, 0), |(e, d), mem| (e + mem.num_entries(), d + mem.num_deletes()));
    for (_, file) in current.version.files() {
        if let Ok(table) = db.tables.open(family, file) {
            entries = entries.saturating_add(table.properties().num_entries);
            deletions = deletions.saturating_add(table.properties().num_deletions);
        }
    }
    entries.saturating_sub(deletions.saturating_mul(2))
}

/// The newest version, and those that readers keep.
fn live_versions(db: &DbInner, family: &Family) -> u64 {
    let versions: BTreeSet<_> =
        space::versions_in_use(db, family).iter().map(Arc::as_ptr).collect();
    versions.len() as u64
}

/// Bytes of the tables that are in use no longer and still on the disk.
fn obsolete_table_bytes(db: &DbInner) -> u64 {
    let sizes = db.disk.obsolete_tables().into_iter().filter_map(|path| {
        // One that is gone meanwhile takes no space.
        db.context.env.fs.metadata(&path).ok().map(|metadata| metadata.size)
    });
    sizes.fold(0, u64::saturating_add)
}

/// As in RocksDB with FIFO compaction only, where no table is rewritten: elsewhere tables do
/// not say.
fn oldest_key_time(db: &DbInner, family: &Family, version: &Version) -> Option<u64> {
    let options = family.options.load();
    if options.compaction_style != CompactionStyle::Fifo
        || options.compaction_options_fifo.allow_compaction
    {
        return None;
    }
    let times = version.files().map(|(_, file)| {
        db.tables.open(family, file).ok().map(|table| table.properties().oldest_key_time)
    });
    times.collect::<Option<Vec<_>>>()?.into_iter().min().filter(|oldest| *oldest > 0)
}

/// The level that level 0 is compacted to.
fn base_level(options: &ColumnFamilyOptions, version: &Version) -> u64 {
    match options.compaction_style {
        CompactionStyle::Level => {
            LevelTargets::new(version, &leveled_settings(options, &version.paths)).base_level as u64
        }
        _ => 1.min(version.levels.len() as u64 - 1),
    }
}

//! Properties: figures and texts about a running database, by RocksDB's names.

use std::fmt::Write as _;

use super::disk::space::blob_file_bytes;
use super::family::{ColumnFamily, Family};
use super::settings::stall_input;
use super::{Db, DbInner, Ticker};
use crate::base::sync::Ordering;
use crate::cache::CacheStatistics;
use crate::compaction::pick::BlobWaste;
use crate::manifest::Version;
use crate::sst::{BlockCache, CompressedCache};

/// The properties that every family answers, without those that end in a level.
pub const PROPERTY_NAMES: &[&str] = &[
    "rocksdb.stats",
    "rocksdb.levelstats",
    "rocksdb.sstables",
    "rocksdb.num-immutable-mem-table",
    "rocksdb.mem-table-flush-pending",
    "rocksdb.compaction-pending",
    "rocksdb.background-errors",
    "rocksdb.cur-size-active-mem-table",
    "rocksdb.cur-size-all-mem-tables",
    "rocksdb.size-all-mem-tables",
    "rocksdb.num-entries-active-mem-table",
    "rocksdb.num-deletes-active-mem-table",
    "rocksdb.num-entries-imm-mem-tables",
    "rocksdb.num-deletes-imm-mem-tables",
    "rocksdb.estimate-num-keys",
    "rocksdb.estimate-table-readers-mem",
    "rocksdb.is-file-deletions-enabled",
    "rocksdb.num-snapshots",
    "rocksdb.oldest-snapshot-time",
    "rocksdb.oldest-snapshot-sequence",
    "rocksdb.min-log-number-to-keep",
    "rocksdb.total-sst-files-size",
    "rocksdb.live-sst-files-size",
    "rocksdb.estimate-live-data-size",
    "rocksdb.estimate-pending-compaction-bytes",
    "rocksdb.num-running-compactions",
    "rocksdb.num-running-flushes",
    "rocksdb.actual-delayed-write-rate",
    "rocksdb.is-write-stopped",
    "rocksdb.block-cache-capacity",
    "rocksdb.block-cache-usage",
    "rocksdb.block-cache-pinned-usage",
    "flagstone.compressed-secondary-cache-capacity",
    "flagstone.compressed-secondary-cache-usage",
    "flagstone.compressed-secondary-cache-entries",
    "rocksdb.num-blob-files",
    "rocksdb.blob-stats",
    "rocksdb.total-blob-file-size",
    "rocksdb.live-blob-file-size",
    "rocksdb.live-blob-file-garbage-size",
    "flagstone.background-error",
    "flagstone.damaged-files",
    "flagstone.key-faults",
    "flagstone.pins",
    "flagstone.rate-limiter-bytes-per-second",
];

/// How many snapshots and iterators are shown.
const PINS_SHOWN: usize = 10;

impl Db {
    /// The property `name` of a family as text; `None` if there is no such property, or the family is another database's.
    ///
    /// Besides [`PROPERTY_NAMES`], `rocksdb.num-files-at-level<N>` is known.
    pub fn property(&self, family: &ColumnFamily, name: &str) -> Option<String> {
        let inner = self.inner();
        family.0.check_owner(&inner.obsolete).ok()?;
        let version = family.0.current.load().version.clone();
        if let Some(level) = name.strip_prefix("rocksdb.num-files-at-level") {
            return Some(version.levels.get(level.parse::<usize>().ok()?)?.len().to_string());
        }
        match name {
            "rocksdb.stats" => Some(inner.stats_text(&family.0, &version)),
            "rocksdb.levelstats" => Some(level_stats(&version)),
            "rocksdb.sstables" => Some(table_list(&version)),
            "rocksdb.blob-stats" => Some(blob_stats(&version)),
            "flagstone.damaged-files" => Some(inner.damage_text()),
            "flagstone.key-faults" => Some(inner.key_faults_text()),
            "flagstone.pins" => Some(inner.pins(PINS_SHOWN).to_string()),
            "flagstone.background-error" => Some(inner.poison.describe()),
            _ => self.int_property(family, name).map(|value| value.to_string()),
        }
    }

    /// The property `name` of a family as a number; `None` if there is no such number, or the family is another database's.
    pub fn int_property(&self, family: &ColumnFamily, name: &str) -> Option<u64> {
        let inner = self.inner();
        family.0.check_owner(&inner.obsolete).ok()?;
        inner.int_property(&family.0, name)
    }
}

impl DbInner {
    fn int_property(&self, family: &Family, name: &str) -> Option<u64> {
        let current = family.current.load();
        let version = &current.version;
        let second_tier =
            |figure: fn(&CompressedCache) -> usize| self.tables.second_tier().map_or(0, figure) as u64;
        let immutable_bytes = || current.immutable.iter().map(|mem| mem.memory_usage() as u64).sum::<u64>();
        Some(match name {
            "rocksdb.num-immutable-mem-table" => current.immutable.len() as u64,
            "rocksdb.mem-table-flush-pending" => u64::from(!current.immutable.is_empty()),
            "rocksdb.compaction-pending" => u64::from(self.compaction_pending(family)),
            "rocksdb.background-errors" => self.poison.failures(),
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
            "rocksdb.estimate-num-keys" => self.estimate_keys(family),
            "rocksdb.estimate-table-readers-mem" => version
                .files()
                .filter_map(|(_, file)| file.table.get())
                .map(|table| table.memory_usage() as u64)
                .sum(),
            "rocksdb.is-file-deletions-enabled" => u64::from(self.state.lock().deletions_paused == 0),
            "rocksdb.num-snapshots" => self.snapshots.count() as u64,
            "rocksdb.oldest-snapshot-time" => {
                self.snapshots.oldest().map_or(0, |oldest| oldest.since_unix_seconds)
            }
            "rocksdb.oldest-snapshot-sequence" => self.snapshots.oldest().map_or(0, |oldest| oldest.sequence),
            "rocksdb.min-log-number-to-keep" => self.state.lock().versions.min_log_number_to_keep().0,
            "rocksdb.total-sst-files-size" => self.total_table_bytes(family),
            "rocksdb.live-sst-files-size" => version.table_bytes(),
            "rocksdb.estimate-live-data-size" => {
                let blobs = blob_file_bytes(version.blob_files.values());
                version.disjoint_table_bytes().saturating_add(blobs.saturating_sub(garbage_bytes(version)))
            }
            "rocksdb.estimate-pending-compaction-bytes" => {
                let (options, waiting) = (family.options.load(), current.immutable.len());
                stall_input(&options, version, waiting, BlobWaste::default()).pending_compaction_bytes
            }
            "rocksdb.num-running-compactions" => self.state.lock().running_compactions as u64,
            "rocksdb.num-running-flushes" => self.state.lock().running_flushes as u64,
            "rocksdb.actual-delayed-write-rate" => self.write_control.delayed_rate(),
            "flagstone.rate-limiter-bytes-per-second" => {
                self.settings.load().rate_limiter.as_ref().map_or(0, |limiter| limiter.bytes_per_second())
            }
            "rocksdb.is-write-stopped" => u64::from(self.write_control.is_stopped()),
            "rocksdb.block-cache-capacity" => self.tables.cache().capacity() as u64,
            "rocksdb.block-cache-usage" => self.tables.cache().usage() as u64,
            "rocksdb.block-cache-pinned-usage" => self.tables.cache().pinned_usage() as u64,
            "rocksdb.blob-cache-capacity" => self.blob_cache_of(family)?.capacity() as u64,
            "rocksdb.blob-cache-usage" => self.blob_cache_of(family)?.usage() as u64,
            "rocksdb.blob-cache-pinned-usage" => self.blob_cache_of(family)?.pinned_usage() as u64,
            "flagstone.compressed-secondary-cache-capacity" => second_tier(CompressedCache::capacity),
            "flagstone.compressed-secondary-cache-usage" => second_tier(CompressedCache::usage),
            "flagstone.compressed-secondary-cache-entries" => second_tier(CompressedCache::len),
            "rocksdb.num-blob-files" => version.blob_files.len() as u64,
            "rocksdb.total-blob-file-size" => self.total_blob_bytes(family),
            "rocksdb.live-blob-file-size" => blob_file_bytes(version.blob_files.values()),
            "rocksdb.live-blob-file-garbage-size" => garbage_bytes(version),
            _ => return None,
        })
    }

    /// Where the family's values from blob files are kept, if anywhere; as in RocksDB that may be the block cache.
    fn blob_cache_of(&self, family: &Family) -> Option<&BlockCache> {
        let is_kept = self.tables.caches_all_blobs || family.options.load().cache_blobs;
        is_kept.then(|| &**self.tables.blob_cache())
    }

    /// Entries in memory and in tables, twice the deletions taken off.
    fn estimate_keys(&self, family: &Family) -> u64 {
        let current = family.current.load();
        let memtables = std::iter::once(&current.mem).chain(&current.immutable);
        let (mut entries, mut deletions) =
            memtables.fold((0, 0), |(e, d), mem| (e + mem.num_entries(), d + mem.num_deletes()));
        for (_, file) in current.version.files() {
            if let Ok(table) = self.tables.open(family, file) {
                entries = entries.saturating_add(table.properties().num_entries);
                deletions = deletions.saturating_add(table.properties().num_deletions);
            }
        }
        entries.saturating_sub(deletions.saturating_mul(2))
    }

    fn stats_text(&self, family: &Family, version: &Version) -> String {
        let mut text = format!("** Column family {} **\n{}", family.name, level_stats(version));
        text.push_str(&blob_stats(version));
        let _ = writeln!(text, "** Database **");
        for ticker in Ticker::ALL {
            let _ = writeln!(text, "{} COUNT : {}", ticker.name(), self.statistics.get(*ticker));
        }
        text.push_str(&self.cache_lines());
        let _ =
            writeln!(text, "latest sequence number : {}", self.snapshots.published.load(Ordering::Acquire));
        let _ = write!(text, "** Who keeps what **\n{}", self.pins(PINS_SHOWN));
        text
    }

    /// What both tiers of the block cache, and that of values, did, by the names of RocksDB's tickers.
    fn cache_lines(&self) -> String {
        let first = self.tables.cache().statistics();
        let second =
            self.tables.second_tier().map_or_else(CacheStatistics::default, CompressedCache::statistics);
        let lines = [
            ("rocksdb.block.cache.hit", first.hits),
            ("rocksdb.block.cache.miss", first.misses),
            ("rocksdb.block.cache.add", first.inserts),
            ("rocksdb.compressed.secondary.cache.hits", second.hits),
            ("flagstone.compressed.secondary.cache.misses", second.misses),
            ("flagstone.compressed.secondary.cache.adds", second.inserts),
        ];
        let blobs = match self.tables.has_blob_cache() {
            true => self.tables.blob_cache().statistics(),
            false => CacheStatistics::default(),
        };
        let blob_lines = [
            ("rocksdb.blobdb.cache.hit", blobs.hits),
            ("rocksdb.blobdb.cache.miss", blobs.misses),
            ("rocksdb.blobdb.cache.add", blobs.inserts),
        ];
        lines.iter().chain(&blob_lines).map(|(name, count)| format!("{name} COUNT : {count}\n")).collect()
    }
}

fn level_stats(version: &Version) -> String {
    let mut text = String::from("Level Files Size(MB)\n--------------------\n");
    for (level, files) in version.levels.iter().enumerate() {
        let megabytes = version.level_bytes(level) as f64 / f64::from(1 << 20);
        let _ = writeln!(text, "{level:3} {:8} {megabytes:8.0}", files.len());
    }
    text
}

fn table_list(version: &Version) -> String {
    let mut text = String::new();
    for (level, files) in version.levels.iter().enumerate() {
        let _ = writeln!(text, "--- level {level} --- version# 0 ---");
        for file in files {
            let meta = &file.meta;
            let _ =
                writeln!(text, " {}:{}[{:?} .. {:?}]", meta.number.0, meta.size, meta.smallest, meta.largest);
        }
    }
    text
}

/// Bytes of garbage in blob files, but for holes.
pub(super) fn garbage_bytes(version: &Version) -> u64 {
    version.blob_files.values().map(|blob| blob.garbage_bytes - blob.punched()).fold(0, u64::saturating_add)
}

fn blob_stats(version: &Version) -> String {
    let garbage = garbage_bytes(version);
    let total = blob_file_bytes(version.blob_files.values());
    let live = total.saturating_sub(garbage);
    let amplification = if live == 0 { 0.0 } else { total as f64 / live as f64 };
    format!(
        "Number of blob files: {}\nTotal size of blob files: {total}\nTotal size of garbage in blob files: {garbage}\n\
         Blob file space amplification: {amplification:.2}\n",
        version.blob_files.len()
    )
}

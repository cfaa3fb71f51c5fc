//! Properties: figures and texts about a running database, by RocksDB's names.
//!
//! - `numbers`: those that are one number.
//! - `cf_stats`, `db_stats`: what was done since the database was opened; `activity` counts it.
//! - `tables`: what the files of a family are.
//! - `prometheus`: counters and numbers for a monitoring system.

mod cf_stats;
pub(super) mod db_stats;
pub(crate) mod human;
mod map;
mod numbers;
mod prometheus;
mod tables;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use self::tables::{aggregated_properties, blob_file_totals, blob_stats, level_stats, table_list};
use crate::base::sync::Ordering;
use crate::base::{Result, Temperature};
use crate::cache::CacheStatistics;
use crate::db::DbInner;
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::db::memory::AutoCacheMemory;
use crate::db::pins;
use crate::db::properties::db_stats::DbFigures;
use crate::db::statistics::Ticker;
use crate::db::stats_history::StatsSnapshot;
use crate::db::tree::damage;
use crate::manifest::{TableFile, Version};
use crate::sst::TableProperties;

/// The properties that every family answers, without those that end in a level or a temperature.
pub const PROPERTY_NAMES: &[&str] = &[
    "rocksdb.stats",
    "rocksdb.cfstats",
    "rocksdb.cfstats-no-file-histogram",
    "rocksdb.cf-write-stall-stats",
    "rocksdb.dbstats",
    "rocksdb.db-write-stall-stats",
    "rocksdb.options-statistics",
    "rocksdb.aggregated-table-properties",
    "rocksdb.levelstats",
    "rocksdb.sstables",
    "rocksdb.num-immutable-mem-table",
    "rocksdb.num-immutable-mem-table-flushed",
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
    "rocksdb.num-live-versions",
    "rocksdb.current-super-version-number",
    "rocksdb.base-level",
    "rocksdb.min-log-number-to-keep",
    "rocksdb.total-sst-files-size",
    "rocksdb.live-sst-files-size",
    "rocksdb.obsolete-sst-files-size",
    "rocksdb.estimate-live-data-size",
    "rocksdb.estimate-pending-compaction-bytes",
    "rocksdb.num-running-compactions",
    "rocksdb.num-running-compaction-sorted-runs",
    "rocksdb.compaction-abort-count",
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
    "flagstone.wal-reserve-missing",
];

/// How many snapshots and iterators are shown.
const PINS_SHOWN: usize = 10;

impl Db {
    /// The property `name` of a family as text; `None` if there is no such property, or the family
    /// is another database's.
    ///
    /// Besides [`PROPERTY_NAMES`] there are `rocksdb.num-files-at-level<N>`,
    /// `rocksdb.compression-ratio-at-level<N>`, `rocksdb.aggregated-table-properties-at-level<N>`
    /// and `rocksdb.live-sst-files-size-at-temperature<N>`; `rocksdb.blob-cache-capacity`, `-usage`
    /// and `-pinned-usage` where values in blob files are cached, and
    /// `rocksdb.estimate-oldest-key-time` with FIFO compaction that merges nothing.
    pub fn property(&self, family: &ColumnFamily, name: &str) -> Option<String> {
        let inner = self.inner();
        inner.disk.check_owner(&family.0).ok()?;
        let version = family.0.current.load().version.clone();
        match name {
            "rocksdb.stats" => Some(stats_text(inner, &family.0)),
            "rocksdb.cfstats" | "rocksdb.cfstats-no-file-histogram" => {
                Some(cf_stats::cf_stats(inner, &family.0))
            }
            "rocksdb.cf-write-stall-stats" => Some(cf_stats::cf_write_stalls(inner, &family.0)),
            "rocksdb.dbstats" => Some(db_stats::db_stats(inner)),
            "rocksdb.db-write-stall-stats" => Some(db_stats::db_write_stalls(inner)),
            "rocksdb.options-statistics" => Some(statistics_text(inner)),
            "rocksdb.aggregated-table-properties" => Some(aggregated_properties(
                &tables::sum_of_properties(inner, &family.0, &version, None)?,
            )),
            "rocksdb.levelstats" => Some(level_stats(&version)),
            "rocksdb.sstables" => Some(table_list(&version)),
            "rocksdb.blob-stats" => Some(blob_stats(&version)),
            "flagstone.damaged-files" => Some(damage::damage_text(&inner.tree)),
            "flagstone.key-faults" => Some(
                damage::key_faults_in_words(&inner.tree)
                    .iter()
                    .map(|fault| format!("{fault}\n"))
                    .collect(),
            ),
            "flagstone.pins" => Some(pins::pins(inner, PINS_SHOWN).to_string()),
            "flagstone.background-error" => Some(inner.context.poison.describe()),
            _ => match property_with_argument(inner, &family.0, &version, name) {
                None => {
                    numbers::int_property(inner, &family.0, name).map(|value| value.to_string())
                }
                text => text,
            },
        }
    }

    /// The property `name` of a family as a number; `None` if there is no such number, or the
    /// family is another database's.
    pub fn int_property(&self, family: &ColumnFamily, name: &str) -> Option<u64> {
        let inner = self.inner();
        inner.disk.check_owner(&family.0).ok()?;
        numbers::int_property(inner, &family.0, name)
    }

    /// The sum of a property over all families, as RocksDB's `GetAggregatedIntProperty`: of those
    /// about the block cache, which they share, once. `None` if one of them has no such number.
    /// What a property says of the whole database is counted for each family, as there.
    ///
    /// ```
    /// # use flagstone::db::Db;
    /// # use flagstone::env::Env;
    /// # use flagstone::options::Options;
    /// # fn main() -> flagstone::base::Result<()> {
    /// # let mut options = Options { env: Env::memory(), ..Options::default() };
    /// # options.create_if_missing = true;
    /// let db = Db::open("/db", &options)?;
    /// let users = db.create_column_family("users", &options.cf)?;
    /// db.put("key", "value")?;
    /// db.put_cf(&users, "key", "value")?;
    /// assert_eq!(db.int_property(&users, "rocksdb.estimate-num-keys"), Some(1));
    /// assert_eq!(db.aggregated_int_property("rocksdb.estimate-num-keys"), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn aggregated_int_property(&self, name: &str) -> Option<u64> {
        let families = self.column_families();
        let of_all = families.iter().map(|family| self.int_property(family, name));
        let values = of_all.collect::<Option<Vec<u64>>>()?;
        if name.starts_with("rocksdb.block-cache-") {
            values.first().copied()
        } else {
            Some(values.into_iter().fold(0, u64::saturating_add))
        }
    }

    /// The property `name` of a family as a map, with RocksDB's keys; `None` if it is no map, or
    /// the family is another database's.
    ///
    /// Maps are `rocksdb.cfstats`, `rocksdb.dbstats`, `rocksdb.cf-write-stall-stats`,
    /// `rocksdb.db-write-stall-stats`, `rocksdb.aggregated-table-properties` and
    /// `rocksdb.aggregated-table-properties-at-level<N>`.
    pub fn map_property(
        &self,
        family: &ColumnFamily,
        name: &str,
    ) -> Option<BTreeMap<String, String>> {
        self.inner().disk.check_owner(&family.0).ok()?;
        map::map_property(self.inner(), &family.0, name)
    }

    /// Begins to count anew what `rocksdb.cfstats`, `rocksdb.dbstats` and their parts tell of all
    /// families, and `rocksdb.background-errors`. [`Db::statistics`] counts on. The doctor's
    /// findings about write stalls go by these figures.
    pub fn reset_stats(&self) {
        let inner = self.inner();
        inner.tree.reset_activity();
        inner.context.poison.forget_failures();
        inner.reports.lock().reset(DbFigures::of(inner));
    }

    /// What each counter of [`Db::statistics`] has grown by, in the periods of
    /// `stats_persist_period_sec` that ended within these seconds since 1970, oldest first. The
    /// history lives in memory, up to `stats_history_buffer_size` bytes of it, and ends with the
    /// database; one that is open for reading has none.
    pub fn stats_history(&self, unix_seconds: Range<u64>) -> Vec<StatsSnapshot> {
        self.inner().context.history.within(unix_seconds)
    }

    /// All counters of [`Db::statistics`], and properties of the database and of its families, in
    /// Prometheus' text format. Names are RocksDB's with `_` for other characters; a counter's ends
    /// in `_total`. Opens no file.
    pub fn prometheus_text(&self) -> String {
        prometheus::text(self.inner(), &self.column_families())
    }

    /// The properties of all tables of a family, by path. Opens tables that are not open yet.
    ///
    /// # Errors
    /// `InvalidArgument` for a family of another database; `Corruption`, `IoError`.
    pub fn properties_of_all_tables(
        &self,
        family: &ColumnFamily,
    ) -> Result<BTreeMap<PathBuf, TableProperties>> {
        let version = self.version_of(family)?;
        self.properties_of(family, version.files().map(|(_, file)| file))
    }

    /// The properties of the tables that overlap any of `ranges`, both ends inclusive, by path.
    ///
    /// # Errors
    /// As [`Db::properties_of_all_tables`].
    pub fn properties_of_tables_in_range(
        &self,
        family: &ColumnFamily,
        ranges: &[(&[u8], &[u8])],
    ) -> Result<BTreeMap<PathBuf, TableProperties>> {
        let version = self.version_of(family)?;
        let mut found = BTreeMap::new();
        for level in 0..version.levels.len() {
            for (begin, end) in ranges {
                let (begin, end) = (family.0.stored_from(begin), family.0.stored_until(end));
                let files = version.files_overlapping(level, Some(&begin), Some(&end));
                found.extend(self.properties_of(family, files.iter())?);
            }
        }
        Ok(found)
    }

    /// The properties of the tables of each level, by path; as many maps as there are levels.
    ///
    /// # Errors
    /// As [`Db::properties_of_all_tables`].
    pub fn properties_of_tables_by_level(
        &self,
        family: &ColumnFamily,
    ) -> Result<Vec<BTreeMap<PathBuf, TableProperties>>> {
        let version = self.version_of(family)?;
        version.levels.iter().map(|files| self.properties_of(family, files.iter())).collect()
    }

    fn version_of(&self, family: &ColumnFamily) -> Result<Arc<Version>> {
        self.check_family(family)?;
        Ok(family.0.current.load().version.clone())
    }

    fn properties_of<'a>(
        &self,
        family: &ColumnFamily,
        files: impl Iterator<Item = &'a Arc<TableFile>>,
    ) -> Result<BTreeMap<PathBuf, TableProperties>> {
        let tables = &self.inner().tables;
        let of = |file: &Arc<TableFile>| {
            Ok((file.path(), tables.open(&family.0, file)?.properties().clone()))
        };
        let found: Result<_> = files.map(of).collect();
        found.inspect_err(|error| self.note_damage(family, error))
    }
}

/// A property whose name ends in a number.
fn property_with_argument(
    db: &DbInner,
    family: &Family,
    version: &Version,
    name: &str,
) -> Option<String> {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (property, argument) = name.split_at(name.len() - digits);
    let files = || version.levels.get(argument.parse::<usize>().ok()?);
    Some(match property {
        "rocksdb.num-files-at-level" => files()?.len().to_string(),
        "rocksdb.compression-ratio-at-level" => {
            format!("{:.6}", tables::compression_ratio(db, family, files()?)?)
        }
        "rocksdb.aggregated-table-properties-at-level" => {
            files()?;
            let level = argument.parse().ok();
            aggregated_properties(&tables::sum_of_properties(db, family, version, level)?)
        }
        "rocksdb.live-sst-files-size-at-temperature" => {
            let wanted = Temperature::from_byte(argument.parse().ok()?);
            let tables = version.files().filter(|(_, file)| file.meta.temperature == wanted);
            tables.map(|(_, file)| file.meta.size).fold(0, u64::saturating_add).to_string()
        }
        _ => return None,
    })
}

/// What RocksDB says under this name, then all counters, and who keeps what.
fn stats_text(db: &DbInner, family: &Family) -> String {
    let mut text = cf_stats::cf_stats(db, family)
        + &db_stats::db_stats(db)
        + "\n** Counters **\n"
        + &statistics_text(db);
    let _ = writeln!(
        text,
        "latest sequence number : {}",
        db.snapshots.published.load(Ordering::Acquire)
    );
    text.push_str(&state_text(db));
    let _ = write!(text, "** Who keeps what **\n{}", pins::pins(db, PINS_SHOWN));
    text
}

/// What a doctor asks beside the counters; it reads these lines, too (`doctor/told.rs`).
fn state_text(db: &DbInner) -> String {
    let now_us = db.context.env.clock.now_us();
    let control = db.pipeline.control();
    format!(
        "** State **\nstate : {}\nwriters : {}\nwriters held up : {} us\nwriters stopped : {} s\n\
         block cache capacity : {} bytes\n",
        db.context.poison.describe(),
        control.condition(),
        control.held_up_us(now_us),
        control.stopped_us(now_us) / 1_000_000,
        db.tables.caches().blocks().capacity()
    ) + &auto_cache_text(db)
}

/// What a block cache says that sizes itself.
fn auto_cache_text(db: &DbInner) -> String {
    let Some(auto) = db.tables.caches().auto() else { return String::new() };
    let AutoCacheMemory { capacity_max, is_too_little, why, .. } = auto.report();
    format!(
        "block cache at most : {capacity_max} bytes\nblock cache is too little : {is_too_little}\n\
         block cache is auto : {why}\n"
    )
}

fn statistics_text(db: &DbInner) -> String {
    let counters =
        Ticker::ALL.iter().map(|ticker| (ticker.name(), db.context.statistics.get(*ticker)));
    let lines: String = counters.map(|(name, count)| format!("{name} COUNT : {count}\n")).collect();
    lines + &cache_lines(db)
}

/// What both tiers of the block cache, and that of values, did, by the names of RocksDB's
/// tickers.
fn cache_lines(db: &DbInner) -> String {
    let first = db.tables.caches().blocks().statistics();
    let second = db
        .tables
        .caches()
        .second_tier()
        .map_or_else(CacheStatistics::default, |tier| tier.statistics());
    let lines = [
        ("rocksdb.block.cache.hit", first.hits),
        ("rocksdb.block.cache.miss", first.misses),
        ("rocksdb.block.cache.add", first.inserts),
        ("flagstone.block.cache.evictions", first.evictions),
        ("rocksdb.compressed.secondary.cache.hits", second.hits),
        ("flagstone.compressed.secondary.cache.misses", second.misses),
        ("flagstone.compressed.secondary.cache.adds", second.inserts),
    ];
    let blobs = if db.tables.caches().has_blob_cache() {
        db.tables.caches().blobs().statistics()
    } else {
        CacheStatistics::default()
    };
    let blob_lines = [
        ("rocksdb.blobdb.cache.hit", blobs.hits),
        ("rocksdb.blobdb.cache.miss", blobs.misses),
        ("rocksdb.blobdb.cache.add", blobs.inserts),
    ];
    let reopens = [("flagstone.file.reopens", db.tables.file_reopens())];
    let lines = lines.iter().chain(&blob_lines).chain(&reopens);
    lines.map(|(name, count)| format!("{name} COUNT : {count}\n")).collect()
}

/// Bytes of garbage in blob files, but for holes.
pub(super) fn garbage_bytes(version: &Version) -> u64 {
    blob_file_totals(version).garbage
}

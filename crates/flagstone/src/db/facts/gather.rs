//! Collecting the facts.

use std::collections::BTreeSet;

use crate::base::file_name::FileKind;
use crate::base::{Code, Error, Result, SubCode, path_in_words};
use crate::compaction::pick::{
    BlobMoment, BlobWaste, HOLE_BLOCKS_MIN, Overwriting, StallCause, largest_dropped,
};
use crate::db::DbInner;
use crate::db::background::jobs_apart;
use crate::db::budget::memtable_bytes_max;
use crate::db::facts::logs;
use crate::db::facts::types::{DatabaseFacts, Facts, FamilyFacts};
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::db::pins;
use crate::db::properties::garbage_bytes;
use crate::db::settings::{
    blob_waste, compacts_by_itself, scratch_bytes, stall_input, stall_settings,
};
use crate::db::space::{blob_file_bytes, unflushed_bytes};
use crate::db::statistics::Ticker;
use crate::db::tree::activity::Activity;
use crate::db::tree::damage;
use crate::env::memory_limit;
use crate::manifest::{BlobFileState, Version};
use crate::options::{ColumnFamilyOptions, CompactionStyle, DamagedFile, Options};
use crate::sst::{IndexType, Table, TableProperties};
use crate::wal::RecoveryMode;

/// Compactions that run by themselves have taken deletions along by then.
const TAKEN_ALONG_SECONDS: u64 = 600;
/// With this epoch the first flush of a family leaves a table, at the latest: RocksDB may keep 1
/// for what is ingested behind all.
const FIRST_EPOCH_MAX: u64 = 2;
/// Blocks of file systems, mostly: who opens a database for reading does not ask for those of its
/// own.
const USUAL_BLOCK: u64 = 4096;

/// What the tables of a family say of themselves: see [`FamilyFacts`] and [`DatabaseFacts`].
#[derive(Default)]
struct TableFacts {
    tables: u64,
    entries: u64,
    deletions: u64,
    deletion_tables: u64,
    dense_deletions: u64,
    range_deletions: u64,
    oldest_seconds: u64,
    cached_index_bytes: u64,
    filtered_entries: u64,
    filter_bytes: u64,
}

impl Db {
    /// What a diagnosis of the database goes by ([`diagnose`](crate::db::diagnose)).
    ///
    /// Looks at the directory, at the shape of the trees and the properties of tables (which are
    /// opened), and, if it was opened for writing, at what it has counted since; if for reading, at
    /// the WALs, which are read twice. No other contents are read: that is for [`Db::verify`].
    ///
    /// # Errors
    /// `IoError` if the directory cannot be listed.
    pub fn facts(&self) -> Result<Facts> {
        self.facts_under(self.inner().context.settings.load().wal_recovery_mode)
    }

    /// [`Db::facts`], with what an opening under `mode` would make of the WALs: a database whose
    /// mode refuses them can be opened for reading under another.
    ///
    /// # Errors
    /// As [`Db::facts`].
    pub fn facts_under(&self, mode: RecoveryMode) -> Result<Facts> {
        let mut facts = Facts::default();
        let checked = self.check()?;
        for fault in checked.faults {
            // A finding says apart what helps.
            let error = fault.error.without_remedy();
            let words = match &fault.key_range {
                None => error.to_string(),
                Some((from, to)) => {
                    format!("{error}; keys '{}' to '{}'", from.escape_ascii(), to.escape_ascii())
                }
            };
            facts.note(&error, words);
        }
        let inner = self.inner();
        let (mut cached_index_bytes, mut files) = (0, 0);
        for family in self.column_families() {
            let tables = table_facts(inner, &family, &mut facts);
            cached_index_bytes = u64::saturating_add(cached_index_bytes, tables.cached_index_bytes);
            files += tables.tables + family.0.current.load_full().version.blob_files.len() as u64;
            facts.families.push(family_facts(inner, &family, &tables));
        }
        for file in self.damaged_files() {
            let (waits, remedies) = (file.waits_for_snapshots(), file.error.remedies().to_vec());
            let bare = DamagedFile { error: file.error.without_remedy(), ..file };
            match bare.error.code() {
                Code::NotSupported if waits => facts.aside.push((bare.to_string(), remedies)),
                Code::NotSupported => facts.unsupported.push(bare.to_string()),
                _ => facts.faults.push(bare.to_string()),
            }
        }
        facts.key_faults.extend(damage::key_faults_in_words(&inner.tree));
        // Who writes has replayed them.
        if inner.context.read_only {
            let (logs, unreadable) = logs::log_facts(inner, mode)?;
            facts.logs = logs;
            unreadable.iter().for_each(|error| facts.note(error, error.to_string()));
        }
        // Where files are being written, and old ones are kept for readers, nothing is known of
        // what is left over.
        let strays = if inner.context.read_only { checked.strays.len() as u64 } else { 0 };
        facts.database = database_facts(inner, strays, &mut facts);
        let kept = inner.context.settings.load().as_kept();
        facts.database.paranoid_checks = kept.paranoid_checks;
        facts.database.wal_recovery_mode = kept.get("wal_recovery_mode").unwrap_or_default();
        facts.database.cached_index_bytes = cached_index_bytes;
        facts.database.files = files;
        facts.faults.dedup();
        Ok(facts)
    }
}

impl Facts {
    /// Notes what a file could not be looked at for.
    fn note(&mut self, error: &Error, words: String) {
        if error.is_refused() { &mut self.refused } else { &mut self.faults }.push(words);
    }
}

/// What the system does not tell is a fault, too.
fn database_facts(db: &DbInner, strays: u64, facts: &mut Facts) -> DatabaseFacts {
    let (context, control) = (&*db.context, db.pipeline.control());
    let (settings, statistics) = (context.settings.load(), &context.statistics);
    let mut known = |outcome: Result<u64>, otherwise: u64| {
        outcome.unwrap_or_else(|error| {
            facts.note(&error, error.to_string());
            otherwise
        })
    };
    let free_bytes = known(
        context.env.fs.free_space(&context.path).map(|free| free.unwrap_or(u64::MAX)),
        u64::MAX,
    );
    let wal_bytes = known(wal_bytes(db), 0);
    let moved = statistics.get(Ticker::BlobGcRelocatedBytes);
    let cache = db.tables.caches().blocks();
    let looked_up = cache.statistics();
    let now_us = context.env.clock.now_us();
    let memtable_bytes_max = memtable_bytes_max(&settings).unwrap_or(0);
    let (held_up_by_all_memtables, memtable_bytes) = memtables_together(db, memtable_bytes_max > 0);
    let mut found = DatabaseFacts {
        state: context.poison.describe(),
        is_running: !context.read_only,
        open_seconds: now_us.saturating_sub(context.opened_at_us) / 1_000_000,
        writers: control.condition().to_string(),
        readable_by_rocksdb_secondaries: settings.readable_by_rocksdb_secondaries,
        free_bytes,
        reserved_disk_space: settings.reserved_disk_space,
        wal_reserve_missing: missing_reserve(db, &settings, free_bytes),
        strays,
        wal_bytes,
        max_total_wal_size: settings.max_total_wal_size,
        max_background_jobs: settings.max_background_jobs.max(0) as u64,
        max_background_compactions: jobs_apart(&settings)
            .map_or(0, |apart| apart.by_role[1] as u64),
        db_write_buffer_size: settings.db_write_buffer_size,
        rate_limit: settings.rate_limiter.as_ref().map_or(0, |limiter| limiter.bytes_per_second()),
        rate_limiter_us: statistics.get(Ticker::RateLimiterMicros),
        memory_bytes: memory_limit().unwrap_or(u64::MAX),
        max_open_files: settings.max_open_files.max(0) as u64,
        files: 0,
        file_reopens: db.tables.file_reopens(),
        keys_written: statistics.get(Ticker::KeysWritten),
        wal_syncs: statistics.get(Ticker::WalSyncs),
        stall_us: control.held_up_us(now_us),
        stopped_seconds: control.stopped_us(now_us) / 1_000_000,
        memtable_bytes,
        memtable_bytes_max,
        held_up_by_all_memtables,
        blob_written_bytes: statistics.get(Ticker::BlobWriteBytes).saturating_sub(moved),
        blob_moved_bytes: moved,
        knows_cache: !context.read_only,
        cache_bytes: cache.capacity() as u64,
        cache_hits: looked_up.hits,
        cache_misses: looked_up.misses,
        cache_evictions: looked_up.evictions,
        ..DatabaseFacts::default()
    };
    if let Some(auto) = db.tables.caches().auto().map(|auto| auto.report()) {
        found.cache_auto_max = auto.capacity_max;
        found.cache_is_too_little = auto.is_too_little;
        found.cache_auto_why = auto.why;
    }
    add_pins(db, &mut found);
    add_prepared(db, &mut found);
    found
}

/// What is prepared and not decided, and what that keeps.
fn add_prepared(db: &DbInner, facts: &mut DatabaseFacts) {
    let prepared = db.pipeline.two_phase().prepared();
    let Some(oldest) = prepared.iter().min_by_key(|batch| batch.wal) else { return };
    facts.prepared = prepared.len() as u64;
    facts.prepared_name = name_as_argument(&oldest.name);
    facts.prepared_wal = oldest.wal.0;
    (facts.prepared_kept_wals, facts.prepared_kept_bytes) = db.tree.kept_for_prepared();
}

/// A transaction's name as `flagstone transactions` takes it: as it is, if it is a word for any
/// shell, otherwise in hexadecimal digits.
fn name_as_argument(name: &[u8]) -> String {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:/@".contains(byte);
    match str::from_utf8(name) {
        Ok(word) if name.iter().all(is_word) && !name.starts_with(b"-") => word.to_string(),
        _ => {
            let digits = name.iter().map(|byte| format!("{byte:02x}"));
            format!("--hex {}", digits.collect::<String>())
        }
    }
}

/// What the oldest snapshot keeps, and the iterator that keeps most.
fn add_pins(db: &DbInner, facts: &mut DatabaseFacts) {
    let pins = pins::pins(db, usize::MAX);
    if let Some(snapshot) = pins.snapshots.first() {
        let statistics = &db.context.statistics;
        let written = statistics.get(Ticker::BytesWritten);
        let write_size = written.checked_div(statistics.get(Ticker::KeysWritten)).unwrap_or(0);
        facts.snapshot_seconds = snapshot.age_seconds;
        facts.snapshot_writes = snapshot.writes_since;
        facts.snapshot_write_bytes = snapshot.writes_since.saturating_mul(write_size);
        facts.snapshot_taken_at = snapshot.taken_at.to_string();
    }
    let heaviest = pins.iterators.iter().filter(|iterator| iterator.kept.bytes() > 0);
    if let Some(iterator) = heaviest.max_by_key(|iterator| iterator.kept.bytes()) {
        facts.iterator_kept_bytes = iterator.kept.bytes();
        facts.iterator_seconds = iterator.age_us / 1_000_000;
        facts.iterator_made_at = iterator.made_at.to_string();
    }
}

/// How often all memtables together stopped writers, and their bytes where those are limited.
fn memtables_together(db: &DbInner, are_limited: bool) -> (u64, u64) {
    (db.tree.memtable_stops(), if are_limited { db.tree.memtable_bytes() } else { 0 })
}

/// Bytes that a WAL wants to reserve and does not get.
fn missing_reserve(db: &DbInner, settings: &Options, free_bytes: u64) -> u64 {
    if !db.context.read_only {
        db.pipeline.missing_wal_reserve()
    } else if settings.allow_fallocate {
        db.pipeline.wal_reserve().saturating_sub(free_bytes)
    } else {
        0
    }
}

/// Bytes of the WALs; where none is written, of those in the directory that an opening would
/// read.
fn wal_bytes(db: &DbInner) -> Result<u64> {
    if !db.context.read_only {
        return Ok(db.pipeline.wal_bytes());
    }
    let names = db.context.env.fs.list(&db.context.wal_directory)?;
    let oldest = logs::log_range(db).0;
    let is_read =
        |name: &str| matches!(FileKind::parse(name), Some(FileKind::Wal(wal)) if wal >= oldest);
    let wals = names.iter().filter(|name| is_read(name));
    let size = |name| match db.context.env.fs.metadata(&db.context.wal_directory.join(name)) {
        // Whoever writes the database has removed it meanwhile.
        Err(error) if error.subcode() == SubCode::PathNotFound => Ok(0),
        outcome => outcome.map(|found| found.size),
    };
    wals.map(size).sum()
}

/// Bytes of the smallest values that holes serve.
fn holes_from(db: &DbInner, options: &ColumnFamilyOptions) -> u64 {
    match db.disk.hole_size() {
        _ if !options.blob_punch_holes => u64::MAX,
        0 if db.context.read_only => HOLE_BLOCKS_MIN * USUAL_BLOCK,
        0 => u64::MAX,
        block => HOLE_BLOCKS_MIN.saturating_mul(block),
    }
}

fn family_facts(db: &DbInner, family: &ColumnFamily, tables: &TableFacts) -> FamilyFacts {
    let options = family.0.options.load();
    let current = family.0.current.load_full();
    let version = &current.version;
    let waste = waste(db, family, &options, version);
    let input = stall_input(&options, version, current.immutable.len(), waste);
    let stalls = stall_settings(&options);
    let trigger = |trigger: Option<usize>| trigger.map_or(u64::MAX, |trigger| trigger as u64);
    let universal = &options.compaction_options_universal;
    let activity = activity(db, family);
    let times = |cause| activity.times_held_up_by(cause);
    let fifo = FifoFacts::of(&options, version);
    FamilyFacts {
        name: family.name().to_string(),
        tables: tables.tables,
        table_bytes: version.table_bytes(),
        compaction_style: options.compaction_style,
        entries: tables.entries,
        deletions: tables.deletions,
        deletion_tables: tables.deletion_tables,
        dense_deletions: tables.dense_deletions,
        range_deletions: tables.range_deletions,
        filtered_entries: tables.filtered_entries,
        filter_bytes: tables.filter_bytes,
        level0_files: input.level0_files as u64,
        level0_slowdown_writes_trigger: trigger(stalls.level0_slowdown_writes_trigger),
        level0_stop_writes_trigger: trigger(stalls.level0_stop_writes_trigger),
        pending_compaction_bytes: input.pending_compaction_bytes,
        soft_pending_compaction_bytes_limit: options.soft_pending_compaction_bytes_limit,
        hard_pending_compaction_bytes_limit: options.hard_pending_compaction_bytes_limit,
        unflushed_bytes: unflushed_bytes(&current),
        // Who only reads keeps what it replayed, and flushes nothing.
        unflushed_memtables: if db.context.read_only { 0 } else { current.immutable.len() as u64 },
        max_write_buffer_number: stalls.max_write_buffer_number as u64,
        min_write_buffer_number_to_merge: stalls.min_write_buffer_number_to_merge as u64,
        write_buffer_size: options.write_buffer_size,
        target_file_size_base: options.target_file_size_base,
        scratch_bytes: scratch_bytes(&options, version),
        held_up_by_memtables: times(StallCause::Memtables),
        held_up_by_level0: times(StallCause::Level0Files),
        held_up_by_pending_bytes: times(StallCause::PendingCompactionBytes),
        held_up_by_blob_space: times(StallCause::BlobSpace),
        disable_auto_compactions: !compacts_by_itself(&options),
        compactions_are_held: family.0.is_held(),
        level0_file_num_compaction_trigger: options.runs_left_alone() as u64,
        newer_run_bytes: version.table_bytes() - oldest_run_bytes(version),
        max_size_amplification_percent: u64::from(universal.max_size_amplification_percent),
        fifo_bytes: fifo.bytes,
        largest_drop_bytes: fifo.largest_drop_bytes,
        oldest_are_gone: oldest_are_gone(version),
        fifo_limit_bytes: fifo.limit_bytes,
        fifo_counts_blobs: fifo.counts_blobs,
        oldest_seconds: tables.oldest_seconds,
        ttl: options.ttl,
        blob_bytes: blob_file_bytes(version.blob_files.values()),
        blob_garbage_bytes: garbage_bytes(version),
        blob_waste_bytes: waste.bytes,
        blob_waste_delays_at: waste.delays_at,
        blob_values: sum_of_blob_files(version, |blob| blob.file.meta.total_count),
        holes_from: holes_from(db, &options),
        max_space_amplification: options.max_space_amplification,
        burst_space_amplification: options.space_in_bursts(),
        enable_blob_garbage_collection: options.enable_blob_garbage_collection,
    }
}

/// What its jobs did, and what held writers up.
fn activity(db: &DbInner, family: &ColumnFamily) -> Activity {
    db.tree.activity(&family.0).unwrap_or_default()
}

/// What writers are held up for; of a database that is only read, what memtables will add is
/// not known.
fn waste(
    db: &DbInner,
    family: &ColumnFamily,
    options: &ColumnFamilyOptions,
    version: &Version,
) -> BlobWaste {
    if !db.context.read_only
        && let Some(waste) = db.tree.blob_waste(&family.0, options, version)
    {
        return waste;
    }
    let moment = BlobMoment {
        unflushed_bytes: 0,
        overwriting: Overwriting::default(),
        collecting: &BTreeSet::new(),
        is_kept_by_readers: true,
        holds_young: options.preclude_last_level_data_seconds > 0,
    };
    blob_waste(options, version, &moment)
}

/// What the tables of a family say of themselves. One that cannot be opened is a fault.
fn table_facts(db: &DbInner, family: &ColumnFamily, told: &mut Facts) -> TableFacts {
    let options = family.0.options.load();
    let now = db.context.env.clock.unix_seconds();
    let age = |time: u64| if time > 0 { now.saturating_sub(time) } else { u64::MAX };
    let takes_along =
        compacts_by_itself(&options) && options.compaction_style != CompactionStyle::Fifo;
    let mut facts = TableFacts::default();
    for (level, file) in family.0.current.load_full().version.files() {
        facts.tables += 1;
        if file.meta.oldest_ancestor_time > 0 {
            facts.oldest_seconds = facts.oldest_seconds.max(age(file.meta.oldest_ancestor_time));
        }
        let table = match db.tables.open(&family.0, file) {
            Ok(table) => table,
            // A missing one is known already.
            Err(error) if error.is_not_found() => continue,
            Err(error) => {
                // Of one that is cut off it is known already, with its keys.
                let place = error
                    .path()
                    .map(|path| format!("({}", path_in_words(path)))
                    .unwrap_or_default();
                if !told.faults.iter().any(|fault| !place.is_empty() && fault.contains(&place)) {
                    told.note(&error, error.to_string());
                }
                continue;
            }
        };
        let properties = table.properties();
        let is_pinned = level == 0 && options.table.pin_l0_filter_and_index_blocks_in_cache;
        if options.table.cache_index_and_filter_blocks && !is_pinned {
            facts.cached_index_bytes =
                facts.cached_index_bytes.saturating_add(whole_index_bytes(table));
        }
        // Those of ranges are counted in both.
        let ranges = properties.num_range_deletions;
        let entries = properties.num_entries.saturating_sub(ranges);
        let deletions = properties.num_deletions.saturating_sub(ranges);
        facts.entries = facts.entries.saturating_add(entries);
        if properties.filter_size > 0 && options.table.whole_key_filtering {
            facts.filtered_entries = facts.filtered_entries.saturating_add(entries);
            facts.filter_bytes = facts.filter_bytes.saturating_add(properties.filter_size);
        }
        if takes_along && age(file.meta.file_creation_time) < TAKEN_ALONG_SECONDS {
            continue;
        }
        facts.deletions = facts.deletions.saturating_add(deletions);
        facts.range_deletions = facts.range_deletions.saturating_add(ranges);
        if deletions > entries / 2 {
            facts.deletion_tables += 1;
            facts.dense_deletions = facts.dense_deletions.saturating_add(deletions);
        }
    }
    facts
}

fn sum_of_blob_files(version: &Version, of: fn(&BlobFileState) -> u64) -> u64 {
    version.blob_files.values().map(of).fold(0, u64::saturating_add)
}

/// What FIFO compaction goes by.
struct FifoFacts {
    /// Bytes that count against the limit.
    bytes: u64,
    limit_bytes: u64,
    /// Whether bytes of blob files count, too.
    counts_blobs: bool,
    /// Bytes of the largest file that it may drop next.
    largest_drop_bytes: u64,
}

impl FifoFacts {
    fn of(options: &ColumnFamilyOptions, version: &Version) -> Self {
        let fifo = &options.compaction_options_fifo;
        let counts_blobs = fifo.max_data_files_size > 0;
        let (blob_bytes, limit_bytes) = if counts_blobs {
            (sum_of_blob_files(version, BlobFileState::bytes_on_disk), fifo.max_data_files_size)
        } else {
            (0, fifo.max_table_files_size)
        };
        Self {
            bytes: version.table_bytes().saturating_add(blob_bytes),
            limit_bytes,
            counts_blobs,
            largest_drop_bytes: largest_dropped(version, counts_blobs),
        }
    }
}

/// Bytes of index and filter, but for partitions: of these the cache keeps those that are asked
/// for.
fn whole_index_bytes(table: &Table) -> u64 {
    let TableProperties { index_size, filter_size, .. } = table.properties();
    let index = if table.index_type() == IndexType::TwoLevel { 0 } else { *index_size };
    let filter = if table.has_filter_partitions() { 0 } else { *filter_size };
    index.saturating_add(filter)
}

/// Whether tables were flushed before all of these; what is made of several has the epoch of the
/// oldest.
fn oldest_are_gone(version: &Version) -> bool {
    let oldest = version.files().map(|(_, file)| file.meta.epoch_number).min();
    oldest.is_some_and(|epoch| epoch > FIRST_EPOCH_MAX)
}

/// Bytes of the oldest sorted run.
fn oldest_run_bytes(version: &Version) -> u64 {
    let deepest = version.levels.iter().rposition(|files| !files.is_empty());
    match deepest {
        None => 0,
        Some(0) => version.levels[0].last().map_or(0, |file| file.meta.size),
        Some(level) => version.level_bytes(level),
    }
}

#[cfg(test)]
mod tests;

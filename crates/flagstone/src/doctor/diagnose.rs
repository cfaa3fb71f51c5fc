//! Turns facts into findings.

use std::fmt;

pub(super) use crate::base::remedy::bytes;
use crate::base::remedy::sentence;
use crate::base::{Remedy, Result, counted, form};
use crate::db::{DatabaseFacts, Db, Facts, FamilyFacts, LogFacts, LogFate};

use super::trees::{limiter, more_memtables, mostly_held_up_by};

/// Bytes of data below which a database's shape does not matter.
pub(super) const WORTH_SHAPING: u64 = 1 << 30;
/// Memtable size below which flushed tables are too small.
pub(super) const MEMTABLE_SMALL: u64 = 4 << 20;
/// Number of syncs below which they do not matter.
const SYNCS_MIN: u64 = 1000;
/// Bytes that an iterator may keep without harm.
pub(super) const KEPT_MANY: u64 = 64 << 20;
/// Seconds that a scan may reasonably take.
const SCAN_LONG: u64 = 600;
/// Seconds that a backup from a snapshot may reasonably take.
const SNAPSHOT_LONG: u64 = 3600;
/// Number of writes below which what they overwrite takes little space.
const WRITES_MANY: u64 = 1_000_000;
/// One second in microseconds.
pub(super) const SECOND_US: u64 = 1_000_000;
/// Percentage of the time that writers may wait without noticing.
const HELD_UP_LITTLE: u64 = 1;
/// Seconds after which stopped writers are waiting for more than a running flush.
const STOPPED_LONG: u64 = 5;
/// Syncs per second below which writers do not wait for the disk.
const SYNCS_PER_SECOND: u64 = 10;
/// Number of lookups needed to judge a cache.
const LOOKUPS_MIN: u64 = 1_000_000;
/// Number of reopened files below which they are not noticed.
const REOPENS_MIN: u64 = 10_000;
/// Reopened files per second below which they are not noticed.
const REOPENS_PER_SECOND: u64 = 10;
/// Percentage of the tables below which a cache cannot hold the most requested blocks.
const CACHED_LITTLE: u64 = 2;
/// Percentage of the tables from which a cache mostly holds them.
const CACHED_MUCH: u64 = 10;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Data is missing or damaged, or writes fail.
    Broken,
    /// Writes or reads are slower than necessary, more space is used than necessary, or either is
    /// about to happen.
    Slow,
    /// Worth knowing.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken => "BROKEN",
            Self::Slow => "SLOW",
            Self::Note => "note",
        })
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How serious it is.
    pub severity: Severity,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedies: Vec<Remedy>,
}

impl Finding {
    /// What to do about it, in words.
    pub fn advice(&self) -> String {
        sentence(&self.remedies)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  {}", self.severity, self.what, self.advice())
    }
}

impl Db {
    /// Explains what is wrong with the database, why its writes are slow, and what to change. The
    /// most serious finding comes first; the list is empty if all is well.
    ///
    /// It is based on [`Db::facts`] and costs as much.
    ///
    /// # Errors
    /// As [`Db::facts`].
    pub fn doctor(&self) -> Result<Vec<Finding>> {
        Ok(diagnose(&self.facts()?))
    }
}

/// All findings, the most serious first.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut found = Findings(Vec::new());
    for fault in &facts.faults {
        found.add(Severity::Broken, fault.clone(), Remedy::RestoreOrSalvage);
    }
    for unsupported in &facts.unsupported {
        found.add(Severity::Broken, unsupported.clone(), Remedy::CompactWithWriter);
    }
    for (what, remedies) in &facts.aside {
        found.add(Severity::Slow, format!("a table is not compacted: {what}"), remedies.clone());
    }
    for refused in &facts.refused {
        let what = format!("{refused}; its contents could not be checked");
        found.add(Severity::Broken, what, Remedy::BePermitted);
    }
    for fault in &facts.key_faults {
        found.add(Severity::Broken, fault.clone(), Remedy::MendKey);
    }
    for log in &facts.logs {
        found.log(log);
    }
    found.database(facts);
    found.space(facts);
    found.pins(&facts.database);
    found.prepared(facts);
    found.lock_waits(&facts.database);
    found.cache(facts);
    found.memtables(facts);
    found.open_files(&facts.database);
    for family in &facts.families {
        found.stalls(family, &facts.database);
        found.shape(family, &facts.database);
        found.runs(family, &facts.database);
        found.fifo(family);
        found.blobs(family, &facts.database);
        found.unflushed(family, &facts.database);
        found.moves(family, &facts.database);
    }
    found.0.sort_by_key(|finding| finding.severity);
    found.0
}

/// Bytes that the memtables of all families may have by their own limits.
pub(super) fn memtable_sizes(facts: &Facts) -> u64 {
    let of_family = |family: &FamilyFacts| {
        family.write_buffer_size.saturating_mul(family.max_write_buffer_number)
    };
    facts.families.iter().map(of_family).fold(0, u64::saturating_add)
}

pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn add(
        &mut self,
        severity: Severity,
        what: impl Into<String>,
        remedies: impl Into<Vec<Remedy>>,
    ) {
        self.0.push(Finding { severity, what: what.into(), remedies: remedies.into() });
    }

    /// What an opening would do with a damaged WAL.
    fn log(&mut self, log: &LogFacts) {
        let LogFacts { what, mode, records_behind: records, .. } = log;
        let behind = match records {
            0 => "no intact record follows it".to_string(),
            1 => format!("1 intact record ({}) follows it", bytes(log.bytes_behind)),
            _ => format!("{records} intact records ({}) follow it", bytes(log.bytes_behind)),
        };
        let would = match log.fate {
            LogFate::Refused => "the database does not open",
            LogFate::HistoryEnds => {
                "the next opening for writing permanently discards it and everything after it"
            }
            LogFate::WalEnds => {
                "the next opening for writing permanently discards it and the rest of this WAL"
            }
            LogFate::PassedOver => {
                "the next opening for writing permanently leaves a gap in history there"
            }
            LogFate::TornEnd => {
                let what =
                    format!("{what}: a WAL ends like this if its process died while writing");
                return self.add(Severity::Note, what, Remedy::LeaveTornEnd);
            }
            LogFate::Missing => {
                return self.add(Severity::Note, what.as_str(), Remedy::LeaveEmptyWal);
            }
        };
        let may_skip = mode != "kSkipAnyCorruptedRecords";
        self.add(
            Severity::Broken,
            format!("{what}; {behind}. With wal_recovery_mode={mode} {would}"),
            Remedy::SettleWal { may_skip },
        );
    }

    fn database(&mut self, all: &Facts) {
        let facts = &all.database;
        if facts.state.starts_with("poisoned") {
            self.add(
                Severity::Broken,
                format!("no write is accepted; {}", facts.state),
                Remedy::Reopen,
            );
        } else if facts.state.starts_with("suspended") {
            let then = " on the disk: writes then resume";
            let what = format!("no write is accepted; {}", facts.state);
            self.add(Severity::Broken, what, Remedy::MakeSpace { then });
        } else if facts.state != "healthy" {
            let what = facts.state.trim_start_matches("healthy, but ");
            let then = " on the disk: compactions then resume";
            self.add(Severity::Slow, what, Remedy::MakeSpace { then });
        }
        if facts.strays > 0 {
            let what = format!(
                "{} in the directory {} not part of the database",
                counted(facts.strays, "file"),
                form(facts.strays, "is", "are")
            );
            self.add(Severity::Note, what, Remedy::LeaveStrays);
        }
        self.passing_over_damage(facts);
        if facts.readable_by_rocksdb_secondaries {
            let what = "secondary instances of RocksDB can follow the database (readable_by_rocksdb_secondaries): WALs are \
                        plain, and large values are written twice";
            let advice = Remedy::set_to("readable_by_rocksdb_secondaries", false);
            self.add(Severity::Note, what, advice.when("if none does, "));
        }
        self.held_up(all);
        let often = facts.wal_syncs >= SYNCS_PER_SECOND.saturating_mul(facts.open_seconds);
        let alone = facts.keys_written < facts.wal_syncs.saturating_mul(2);
        if facts.wal_syncs >= SYNCS_MIN && often && alone {
            let what = format!(
                "{} syncs of the WAL for {} keys: each write waits for the disk",
                facts.wal_syncs, facts.keys_written
            );
            self.add(Severity::Slow, what, Remedy::ShareSyncs);
        }
    }

    /// Settings that make every opening ignore damage.
    fn passing_over_damage(&mut self, facts: &DatabaseFacts) {
        let is_running = facts.is_running;
        if !facts.paranoid_checks {
            let what = "paranoid_checks=false is still set: opening does not notice missing tables or blob files";
            self.add(
                Severity::Note,
                what,
                Remedy::SetBack { option: "paranoid_checks", to: "true", is_running },
            );
        }
        if facts.wal_recovery_mode == "kSkipAnyCorruptedRecords" {
            let what = "wal_recovery_mode=kSkipAnyCorruptedRecords is still set: opening does not notice missing or damaged \
                        WALs";
            let to = "kPointInTimeRecovery";
            self.add(
                Severity::Note,
                what,
                Remedy::SetBack { option: "wal_recovery_mode", to, is_running },
            );
        }
    }

    /// Writers that wait or have waited.
    fn held_up(&mut self, all: &Facts) {
        let facts = &all.database;
        let DatabaseFacts { stall_us, open_seconds, stopped_seconds: stopped, .. } = facts;
        let is_long = *stopped >= STOPPED_LONG;
        let now = match facts.writers.as_str() {
            "stopped" if is_long => format!(", and have been stopped for {stopped} s"),
            "stopped" => ", and are stopped now".to_string(),
            "delayed" => ", and are delayed now".to_string(),
            _ => String::new(),
        };
        let part = stall_us.saturating_mul(100);
        let least = HELD_UP_LITTLE.saturating_mul(*open_seconds).saturating_mul(SECOND_US);
        if *stall_us >= SECOND_US && part >= least {
            let seconds = stall_us / SECOND_US;
            let bursts = Remedy::MoreMemory {
                when: "for bursts of writes ",
                what: "raise max_write_buffer_number",
                but: "",
            };
            let (mostly, otherwise) =
                mostly_held_up_by(all).unwrap_or((String::new(), vec![bursts]));
            let what = format!(
                "writers were delayed or stopped for {seconds} of the {open_seconds} s since the database was \
                 opened{now}{mostly}"
            );
            self.add(
                Severity::Slow,
                what,
                limiter(facts).unwrap_or(Remedy::SeeBelow { otherwise }),
            );
        } else if is_long {
            let what = format!("writers have been stopped for {stopped} s");
            let otherwise = vec![Remedy::LookAfterDisk];
            self.add(
                Severity::Slow,
                what,
                limiter(facts).unwrap_or(Remedy::SeeBelow { otherwise }),
            );
        }
    }

    fn space(&mut self, facts: &Facts) {
        let DatabaseFacts { free_bytes, reserved_disk_space, .. } = facts.database;
        let needed = |family: &FamilyFacts| {
            family.scratch_bytes.saturating_add(family.write_buffer_size.saturating_mul(2))
        };
        let needed = facts.families.iter().map(needed).max().unwrap_or(0);
        if free_bytes < needed {
            let may_need = format!("a compaction and its memtables may need {}", bytes(needed));
            let (severity, what) = match free_bytes {
                0 => {
                    let what = "the disk is full: writes fail or soon will";
                    (Severity::Broken, format!("{what}; {may_need}"))
                }
                _ => (
                    Severity::Slow,
                    format!("only {} are free on the disk, and {may_need}", bytes(free_bytes)),
                ),
            };
            let advice = match reserved_disk_space {
                0 => Remedy::MakeSpaceAndReserve { bytes: needed },
                _ => Remedy::MakeSpace { then: "" },
            };
            self.add(severity, what, advice);
        }
        let missing = facts.database.wal_reserve_missing;
        if missing > 0 {
            let is_running = facts.database.is_running;
            let whose =
                if is_running { "the WAL" } else { "the WAL of the next opening for writing" };
            let what = format!(
                "{whose} lacks space for {} of its reserve: a write may find the disk full",
                bytes(missing)
            );
            self.add(Severity::Slow, what, Remedy::MakeSpaceForWal { is_running });
        }
        self.wals(facts);
    }

    /// Space that WALs take.
    fn wals(&mut self, facts: &Facts) {
        let DatabaseFacts { wal_bytes, max_total_wal_size: cap, max_background_jobs: jobs, .. } =
            facts.database;
        if facts.database.is_running && cap > 0 && wal_bytes >= cap / 8 * 7 {
            let what = format!(
                "WALs take {} of {} allowed by max_total_wal_size: writers are delayed",
                bytes(wal_bytes),
                bytes(cap)
            );
            let advice = [
                Remedy::set("max_total_wal_size", cap, cap.saturating_mul(2)),
                Remedy::set("max_background_jobs", jobs, jobs.saturating_mul(2)),
            ];
            return self.add(Severity::Slow, what, advice);
        }
        let memtables = memtable_sizes(facts);
        // What transactions keep is told apart.
        let kept = if facts.database.is_running { facts.database.prepared_kept_bytes } else { 0 };
        let wal_bytes = wal_bytes.saturating_sub(kept);
        if wal_bytes > memtables.saturating_mul(4).max(WORTH_SHAPING) {
            let what = format!(
                "{} of WALs are kept because some families are rarely flushed; opening the database reads them all",
                bytes(wal_bytes)
            );
            let advice =
                [Remedy::Flush, Remedy::set_to("max_total_wal_size", memtables.saturating_mul(2))];
            self.add(Severity::Slow, what, advice);
        }
    }

    /// Iterators and snapshots that keep obsolete data.
    fn pins(&mut self, facts: &DatabaseFacts) {
        if facts.iterator_kept_bytes >= KEPT_MANY && facts.iterator_seconds >= SCAN_LONG {
            let what = format!(
                "an iterator created {} s ago at {} keeps {} of obsolete memtables and files",
                facts.iterator_seconds,
                facts.iterator_made_at,
                bytes(facts.iterator_kept_bytes)
            );
            self.add(Severity::Slow, what, Remedy::DropIterator);
        }
        let are_many =
            facts.snapshot_writes >= WRITES_MANY || facts.snapshot_write_bytes >= WORTH_SHAPING;
        if facts.snapshot_seconds >= SNAPSHOT_LONG && are_many {
            let what = format!(
                "a snapshot taken {} s ago at {} keeps data that {} writes since then{} have overwritten or deleted",
                facts.snapshot_seconds,
                facts.snapshot_taken_at,
                facts.snapshot_writes,
                match facts.snapshot_write_bytes {
                    0 => String::new(),
                    written => format!(" (about {})", bytes(written)),
                }
            );
            self.add(Severity::Slow, what, Remedy::DropSnapshot);
        }
    }

    /// Whether the block cache holds the requested blocks. A doctor that opens the database only to
    /// look at it does not know the size of the running cache.
    fn cache(&mut self, facts: &Facts) {
        if !facts.database.knows_cache {
            return;
        }
        let DatabaseFacts { cache_bytes, cached_index_bytes: indexes, .. } = facts.database;
        let DatabaseFacts {
            cache_hits: hits, cache_misses: misses, cache_evictions: dropped, ..
        } = facts.database;
        let tables =
            facts.families.iter().map(|family| family.table_bytes).fold(0, u64::saturating_add);
        if indexes > cache_bytes / 2 {
            let what = format!(
                "indexes and filters of {} share a block cache of {}, and evict each other and data blocks",
                bytes(indexes),
                bytes(cache_bytes)
            );
            let but = " or more, or set table.cache_index_and_filter_blocks from true to false if there is memory for them \
                       outside the cache";
            let advice =
                Remedy::set("block_cache", cache_bytes, indexes.saturating_mul(4)).but(but);
            return self.add(Severity::Slow, what, advice);
        }
        if facts.database.cache_auto_max > 0 {
            return self.auto_cache(&facts.database);
        }
        let lookups = hits.saturating_add(misses);
        let is_turned_over = lookups >= LOOKUPS_MIN && misses > hits && dropped >= misses / 2;
        if is_turned_over && cache_bytes < tables / 100 * CACHED_LITTLE {
            let what = format!(
                "{}% of {lookups} block cache lookups missed, and {dropped} blocks were evicted to make room: the cache has {} \
                 for {} of tables",
                u128::from(misses) * 100 / u128::from(lookups),
                bytes(cache_bytes),
                bytes(tables)
            );
            let part = (tables / 100 * CACHED_MUCH).min(facts.database.memory_bytes / 4);
            let to = part.max(cache_bytes.saturating_mul(2));
            let advice =
                Remedy::set("block_cache", cache_bytes, to).but(", or raise memory_budget");
            self.add(Severity::Slow, what, advice);
        }
    }

    /// An automatic block cache that is smaller than reads need.
    fn auto_cache(&mut self, facts: &DatabaseFacts) {
        let DatabaseFacts { cache_bytes, cache_auto_max: most, cache_auto_why: why, .. } = facts;
        if !facts.cache_is_too_little {
            return;
        }
        let what = format!(
            "the block cache, which sizes itself up to {}, has {}: {why}",
            bytes(*most),
            bytes(*cache_bytes)
        );
        let more = Remedy::MoreMemory {
            when: "",
            what: "give the process more memory",
            but: ", or set block_cache to a fixed size",
        };
        let advice = if cache_bytes >= most {
            Remedy::set("block_cache", cache_bytes, most.saturating_mul(2))
                .but(", or raise memory_budget")
        } else {
            more
        };
        self.add(Severity::Note, what, advice);
    }

    /// Files that are closed and soon read again.
    fn open_files(&mut self, facts: &DatabaseFacts) {
        let DatabaseFacts {
            max_open_files: most, files, file_reopens: times, open_seconds, ..
        } = facts;
        if *most > 0
            && *times >= REOPENS_MIN
            && *times >= REOPENS_PER_SECOND.saturating_mul(*open_seconds)
        {
            let what = format!(
                "files were reopened {times} times: {files} tables and blob files compete for max_open_files={most}"
            );
            let but = ", or to -1 for no limit; the process must be allowed as many (ulimit -n)";
            let advice = Remedy::set("max_open_files", most, files.saturating_mul(2)).but(but);
            self.add(Severity::Slow, what, advice);
        }
    }

    /// Memtables whose common limit is too low, or reached.
    fn memtables(&mut self, facts: &Facts) {
        let DatabaseFacts { memtable_bytes: bytes_now, memtable_bytes_max: most, .. } =
            facts.database;
        let is_flushing = facts.families.iter().any(|family| family.unflushed_memtables > 0);
        if facts.database.writers == "stopped" && is_flushing && most > 0 && bytes_now >= most {
            let what = format!(
                "the memtables of all families hold {} of {} allowed: writes are stopped until one is flushed",
                bytes(bytes_now),
                bytes(most)
            );
            let but = ", for bursts of writes; a steady load is limited by the disk";
            self.add(Severity::Slow, what, more_memtables(&facts.database, "", but));
        }
        let DatabaseFacts { memory_bytes, .. } = facts.database;
        let wanted = memtable_sizes(facts);
        if most == 0 && wanted > memory_bytes {
            let what = format!(
                "the memtables of all families ({}) may grow to {} together, but the process has {} of memory",
                facts.families.len(),
                bytes(wanted),
                bytes(memory_bytes)
            );
            let but = format!(", or db_write_buffer_size from 0 to {}", memory_bytes / 4);
            let advice = Remedy::set("memory_budget", 0, "auto").but(but);
            self.add(Severity::Slow, what, advice);
        }
        let all = facts.database.db_write_buffer_size;
        let tables =
            facts.families.iter().map(|family| family.table_bytes).fold(0, u64::saturating_add);
        if all > 0 && tables >= WORTH_SHAPING && all < MEMTABLE_SMALL {
            let what = format!(
                "the memtables of all families share {} for {} of tables: many small flushes and more compactions",
                bytes(all),
                bytes(tables)
            );
            let advice =
                Remedy::set("db_write_buffer_size", all, 64 << 20).but(", or to 0 for no limit");
            self.add(Severity::Slow, what, advice);
        }
    }
}

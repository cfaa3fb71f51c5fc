//! From facts to findings.

use std::fmt;

use super::facts::{DatabaseFacts, Facts, FamilyFacts, LogFacts, LogFate};
use crate::compaction::pick::{blob_bytes_allowed, moved_per_byte, space_for};

/// A smaller database has no shape yet that could be wrong.
const WORTH_SHAPING: u64 = 1 << 30;
/// Fewer entries say nothing of what most of them are.
const ENTRIES_MIN: u64 = 1000;
/// With fewer syncs it does not matter what they are for.
const SYNCS_MIN: u64 = 1000;
/// More tables than this take memory and time to open.
const TABLES_MANY: u64 = 1000;
/// With fewer bytes of values written it is not known what is moved for each.
const WRITTEN_MIN: u64 = 256 << 20;
/// What may be moved for each byte that is written without anybody's noticing.
const MOVED_LITTLE: f64 = 0.5;
/// Who keeps less does no harm.
const KEPT_MANY: u64 = 64 << 20;
/// A scan may take so many seconds, and a backup of a snapshot so many.
const SCAN_LONG: u64 = 600;
const SNAPSHOT_LONG: u64 = 3600;
/// What is overwritten by fewer writes takes little space.
const WRITES_MANY: u64 = 1_000_000;
/// A second.
const SECOND_US: u64 = 1_000_000;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Data is missing or damaged, or writes are refused.
    Broken,
    /// Writes or reads are slower, or more space is taken, than need be; or that threatens.
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

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What is the matter.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  {}", self.severity, self.what, self.advice)
    }
}

/// All findings, the worst first.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut found = Findings(Vec::new());
    for fault in &facts.faults {
        let advice = "restore the file from a copy and reopen, or save what is left: flagstone salvage";
        found.add(Severity::Broken, fault.clone(), advice);
    }
    for log in &facts.logs {
        found.log(log);
    }
    found.database(&facts.database);
    found.space(facts);
    found.pins(&facts.database);
    for family in &facts.families {
        found.stalls(family, &facts.database);
        found.shape(family);
        found.blobs(family);
        found.moves(family, &facts.database);
    }
    found.0.sort_by_key(|finding| finding.severity);
    found.0
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, severity: Severity, what: impl Into<String>, advice: impl Into<String>) {
        self.0.push(Finding { severity, what: what.into(), advice: advice.into() });
    }

    /// What an opening would make of a WAL.
    fn log(&mut self, log: &LogFacts) {
        let LogFacts { what, mode, records_behind: records, .. } = log;
        let behind = match records {
            0 => "no intact record lies behind it".to_string(),
            1 => format!("1 intact record ({}) lies behind it", bytes(log.bytes_behind)),
            _ => format!("{records} intact records ({}) lie behind it", bytes(log.bytes_behind)),
        };
        let would = match log.fate {
            LogFate::Refused => "the database does not open with that",
            LogFate::HistoryEnds => "the next opening for writing goes back to what precedes it, for good",
            LogFate::WalEnds => "the next opening for writing takes it for the end of this WAL, for good",
            LogFate::PassedOver => "the next opening for writing leaves a gap in history there, for good",
            LogFate::TornEnd => {
                let what = format!("{what}: a WAL ends so where its process died while it wrote");
                let advice = "nothing to do after a crash: openings go on without that record. After none, restore the WAL \
                              from a copy before the database is opened for writing";
                return self.add(Severity::Note, what, advice);
            }
            LogFate::Missing => {
                let advice = "nothing to do if this is a copy that was made without an empty WAL, as RocksDB's checkpoints \
                              are; else restore it before the database is opened for writing: what it held is lost";
                return self.add(Severity::Note, what, advice);
            }
        };
        let skips = match mode.as_str() {
            "kSkipAnyCorruptedRecords" => "",
            _ => {
                "; or open with wal_recovery_mode=kSkipAnyCorruptedRecords, which goes on behind the damaged block of 32 KiB"
            }
        };
        let advice = format!(
            "do not open it for writing before this is settled: restore the WAL from a copy; or have every intact record, those \
             behind it too, in a new database: flagstone salvage{skips}"
        );
        self.add(
            Severity::Broken,
            format!("{what}; {behind}. With wal_recovery_mode={mode} {would}"),
            advice,
        );
    }

    fn database(&mut self, facts: &DatabaseFacts) {
        if facts.state.starts_with("poisoned") {
            let advice = "look after the disk, then close the database and open it again";
            self.add(Severity::Broken, format!("no write is accepted; {}", facts.state), advice);
        } else if facts.state.starts_with("suspended") {
            let advice = "make space on the disk: writes go on by themselves";
            self.add(Severity::Broken, format!("no write is accepted; {}", facts.state), advice);
        } else if facts.state != "healthy" {
            let what = facts.state.trim_start_matches("healthy, but ");
            self.add(Severity::Slow, what, "make space on the disk: compactions go on by themselves");
        }
        if facts.strays > 0 {
            let what = format!("{} files that nothing names lie in the directory", facts.strays);
            self.add(Severity::Note, what, "nothing to do: the next opening for writing removes them");
        }
        if facts.stall_us >= SECOND_US {
            let seconds = facts.stall_us / SECOND_US;
            let what =
                format!("writers were held up for {seconds} s, all together, since the database was opened");
            let advice = "see below for what compactions are behind with; if nothing is, the load comes in bursts: raise \
                          max_write_buffer_number";
            self.add(Severity::Slow, what, advice);
        }
        if facts.wal_syncs >= SYNCS_MIN && facts.keys_written < 2 * facts.wal_syncs {
            let what = format!(
                "{} syncs of the WAL for {} keys: each write waits for the disk",
                facts.wal_syncs, facts.keys_written
            );
            let advice = "write several keys in a batch, from several threads at once (one sync serves all), or without \
                          WriteOptions::sync and with sync_wal now and then";
            self.add(Severity::Slow, what, advice);
        }
    }

    fn space(&mut self, facts: &Facts) {
        let DatabaseFacts { free_bytes, reserved_disk_space, .. } = facts.database;
        let needed = |family: &FamilyFacts| {
            family.scratch_bytes.saturating_add(family.write_buffer_size.saturating_mul(2))
        };
        let needed = facts.families.iter().map(needed).max().unwrap_or(0);
        if free_bytes > 0 && free_bytes < needed {
            let what = format!(
                "{} are free on the disk, and a compaction and its memtables may need {}",
                bytes(free_bytes),
                bytes(needed)
            );
            let advice = match reserved_disk_space {
                0 => format!(
                    "make space; set reserved_disk_space from 0 to {needed}, so that a full disk can be emptied"
                ),
                _ => "make space".to_string(),
            };
            self.add(Severity::Slow, what, advice);
        }
        self.wals(facts);
    }

    /// How much WALs take.
    fn wals(&mut self, facts: &Facts) {
        let DatabaseFacts { wal_bytes, max_total_wal_size: cap, max_background_jobs: jobs, .. } =
            facts.database;
        if cap > 0 && wal_bytes >= cap / 8 * 7 {
            let what = format!(
                "WALs have {} of {} that they may have: writers are delayed (max_total_wal_size)",
                bytes(wal_bytes),
                bytes(cap)
            );
            let advice = format!(
                "raise max_total_wal_size from {cap} to {}; set max_background_jobs from {jobs} to {}",
                cap.saturating_mul(2),
                jobs * 2
            );
            return self.add(Severity::Slow, what, advice);
        }
        let memtables: u64 = facts
            .families
            .iter()
            .map(|family| family.write_buffer_size.saturating_mul(family.max_write_buffer_number))
            .sum();
        if wal_bytes > memtables.saturating_mul(4).max(WORTH_SHAPING) {
            let what = format!(
                "{} of WALs are kept, for families that are rarely flushed; opening reads them all",
                bytes(wal_bytes)
            );
            self.add(
                Severity::Slow,
                what,
                format!(
                    "flush now (flagstone flush); set max_total_wal_size to {}",
                    memtables.saturating_mul(2)
                ),
            );
        }
    }

    /// Who keeps what could be let go of.
    fn pins(&mut self, facts: &DatabaseFacts) {
        if facts.iterator_kept_bytes >= KEPT_MANY && facts.iterator_seconds >= SCAN_LONG {
            let what = format!(
                "an iterator that was made {} s ago at {} keeps {} of memtables and files that others have replaced",
                facts.iterator_seconds,
                facts.iterator_made_at,
                bytes(facts.iterator_kept_bytes)
            );
            let advice = "drop it, or refresh it now and then: Iter::refresh, or with a snapshot \
                          auto_refresh_iterator_with_snapshot";
            self.add(Severity::Slow, what, advice);
        }
        if facts.snapshot_seconds >= SNAPSHOT_LONG && facts.snapshot_writes >= WRITES_MANY {
            let what = format!(
                "a snapshot that was taken {} s ago at {} keeps what {} writes since have overwritten or deleted",
                facts.snapshot_seconds, facts.snapshot_taken_at, facts.snapshot_writes
            );
            self.add(Severity::Slow, what, "drop it, and take a new one where a long read can do with that");
        }
    }

    /// What holds writers up.
    fn stalls(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts { name, level0_files, level0_stop_writes_trigger: stop, .. } = family;
        let slowdown = family.level0_slowdown_writes_trigger;
        let faster = match family.disable_auto_compactions {
            true => {
                "set disable_auto_compactions from true to false, or compact: flagstone compact".to_string()
            }
            false => {
                let (option, jobs) = match database.max_background_compactions {
                    0 => ("max_background_jobs", database.max_background_jobs),
                    compactions => ("max_background_compactions", compactions),
                };
                format!("set {option} from {jobs} to {}", jobs.saturating_mul(2))
            }
        };
        // Nobody waits for compactions that do not come.
        let (stops, delays) = match family.disable_auto_compactions {
            true => ("too many for reads", "many for reads"),
            false => ("writes are stopped", "writes are delayed"),
        };
        if level0_files >= stop {
            let what = format!(
                "family '{name}': {level0_files} tables wait in level 0: {stops} (level0_stop_writes_trigger {stop})"
            );
            self.add(Severity::Slow, what, faster.clone());
        } else if *level0_files >= slowdown {
            let what = format!(
                "family '{name}': {level0_files} tables wait in level 0: {delays} (level0_slowdown_writes_trigger {slowdown})"
            );
            self.add(Severity::Slow, what, faster.clone());
        }
        let (pending, soft) = (family.pending_compaction_bytes, family.soft_pending_compaction_bytes_limit);
        let hard = family.hard_pending_compaction_bytes_limit;
        if hard > 0 && pending >= hard {
            let what = format!(
                "family '{name}': {} wait to be compacted: {stops} (hard_pending_compaction_bytes_limit)",
                bytes(pending)
            );
            self.add(Severity::Slow, what, faster);
        } else if soft > 0 && pending >= soft {
            let what = format!(
                "family '{name}': {} wait to be compacted: {delays} (soft_pending_compaction_bytes_limit)",
                bytes(pending)
            );
            self.add(Severity::Slow, what, faster);
        }
        let FamilyFacts { unflushed_memtables: unflushed, max_write_buffer_number: most, .. } = family;
        // As writers themselves go by it: with few memtables one that is being flushed holds nobody up.
        let delays_at = (most - 1).max(family.min_write_buffer_number_to_merge + 1);
        let wait = if unflushed >= most { "stopped" } else { "delayed" };
        if unflushed >= most || *most > 3 && *unflushed >= delays_at {
            let what = format!(
                "family '{name}': {unflushed} full memtables wait for their flush: writes are {wait}"
            );
            let advice = format!(
                "set max_write_buffer_number from {most} to {}, for bursts; a load that lasts is as fast as the disk",
                most * 2
            );
            self.add(Severity::Slow, what, advice);
        }
    }

    /// What the tree looks like.
    fn shape(&mut self, family: &FamilyFacts) {
        let FamilyFacts { name, tables, table_bytes, entries, deletions, write_buffer_size, .. } = family;
        if *entries >= ENTRIES_MIN && deletions * 4 >= *entries {
            let part = deletions * 100 / entries;
            let what = format!(
                "family '{name}': {part}% of the entries of tables are deletions ({} of {tables} tables \
                 hold mostly such): scans walk over them",
                family.deletion_tables
            );
            self.add(
                Severity::Slow,
                what,
                "compact the ranges that were deleted: flagstone compact; delete ranges by delete_range",
            );
        }
        let average = table_bytes.checked_div(*tables).unwrap_or(0);
        let target = family.target_file_size_base;
        if *tables >= TABLES_MANY && average < target / 4 {
            let what = format!(
                "family '{name}': {tables} tables of {} on average: each takes memory and time to open",
                bytes(average)
            );
            self.add(
                Severity::Slow,
                what,
                format!(
                    "compact: flagstone compact; then tables have target_file_size_base ({})",
                    bytes(target)
                ),
            );
        } else if *tables >= 20 * TABLES_MANY {
            let what = format!("family '{name}': {tables} tables: each takes memory and time to open");
            self.add(
                Severity::Slow,
                what,
                format!("set target_file_size_base from {target} to {}", target.saturating_mul(4)),
            );
        }
        if *table_bytes >= WORTH_SHAPING && *write_buffer_size < 4 << 20 {
            let what = format!(
                "family '{name}': memtables of {} for {} of tables: many small flushes, and more compactions",
                bytes(*write_buffer_size),
                bytes(*table_bytes)
            );
            self.add(
                Severity::Slow,
                what,
                format!("set write_buffer_size from {write_buffer_size} to {}", 64 << 20),
            );
        }
        if family.disable_auto_compactions {
            let what = format!("family '{name}': compactions run only on request");
            self.add(
                Severity::Note,
                what,
                "if that is not meant, set disable_auto_compactions from true to false",
            );
        }
    }

    fn blobs(&mut self, family: &FamilyFacts) {
        let FamilyFacts {
            name, blob_bytes, blob_garbage_bytes: garbage, max_space_amplification: most, ..
        } = family;
        let live = blob_bytes.saturating_sub(*garbage);
        let allowed = blob_bytes_allowed(family.table_bytes, live, *most);
        let what = format!(
            "family '{name}': {} of {} in blob files are garbage",
            bytes(*garbage),
            bytes(*blob_bytes)
        );
        if *most > 0.0 && *blob_bytes > allowed {
            let advice = format!(
                "more than max_space_amplification ({most}) allows: compactions are behind, or reads pin \
                 old files; wait, or flagstone compact"
            );
            self.add(Severity::Slow, what, advice);
        } else if *most == 0.0 && !family.enable_blob_garbage_collection && garbage * 2 > *blob_bytes {
            let advice = "nothing collects it: set max_space_amplification from 0 to 1.3, or \
                          enable_blob_garbage_collection from false to true";
            self.add(Severity::Slow, what, advice);
        }
    }

    /// What the limit of space costs where values are too small for holes.
    fn moves(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts { name, blob_bytes, blob_values, max_space_amplification: most, .. } = family;
        let size = blob_bytes.checked_div(*blob_values).unwrap_or(u64::MAX);
        let at_least = moved_per_byte(most.max(1.01));
        let is_tight = *most > 0.0 && at_least > 1.0 && family.blob_garbage_bytes > 0;
        let (written, moved) = (database.blob_written_bytes, database.blob_moved_bytes);
        let counted = (written >= WRITTEN_MIN).then(|| moved as f64 / written as f64);
        let is_seen = counted.map_or(*blob_bytes >= WORTH_SHAPING, |moved| moved > 1.0);
        if !is_tight || !is_seen || size >= family.holes_from {
            return;
        }
        let bound =
            format!("at least {at_least:.1} with max_space_amplification {most}, if any key is overwritten");
        let (severity, cost) = match counted {
            Some(moved) => {
                (Severity::Slow, format!("{moved:.1} bytes were for each that was written ({bound})"))
            }
            None => (Severity::Note, format!("bytes for each that is written, {bound}")),
        };
        let what = format!(
            "family '{name}': values in blob files, {} on average, make room only by being moved: {cost}",
            bytes(size)
        );
        // What is being moved exists twice, so that somewhat more is needed than the bound says.
        let enough = (space_for(MOVED_LITTLE) * 10.0).ceil() / 10.0;
        let advice = format!(
            "if writing matters more than space, set max_space_amplification from {most} to {enough:.1}: then about \
             {MOVED_LITTLE} are, so that {} times as much is written as values have",
            1.0 + MOVED_LITTLE
        );
        self.add(severity, what, advice);
    }
}

/// Bytes for people.
fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, size)| count >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", count as f64 / *size as f64),
        None => format!("{count} bytes"),
    }
}

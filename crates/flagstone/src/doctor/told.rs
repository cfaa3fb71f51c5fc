//! Parses reports of a running database: the text of its property `rocksdb.stats`, which programs
//! write to their logs, or RocksDB's LOG, which has the same lines. A doctor that can only read the
//! files learns from it why writers waited.
//!
//! A text may hold many reports. Of each known line the last one counts; other lines are ignored.

use crate::base::{Error, Result};
use crate::db::{DatabaseFacts, Facts, FamilyFacts, human};

impl Facts {
    /// Takes over what the database has told where it runs: for how long, what held writers up, how
    /// often the WAL was synced, what the block cache did, and who keeps what. `text` is what the
    /// property `rocksdb.stats` says, one report or several among other lines, or the file LOG that
    /// RocksDB writes.
    ///
    /// # Errors
    /// `InvalidArgument` if there is nothing of a report in it.
    pub fn add_statistics(&mut self, text: &str) -> Result<()> {
        let mut reader = Reader {
            facts: self,
            family: None,
            part: Part::Other,
            who: Who::Nobody,
            bytes_written: 0,
        };
        // Each line is asked: a report has some that say nothing of interest.
        let known = text.lines().filter(|line| reader.line(line.trim()).is_some()).count();
        if known == 0 {
            return Err(Error::invalid_argument(
                "it contains no report of a running database, such as the property rocksdb.stats or RocksDB's LOG",
            ));
        }
        Ok(())
    }
}

/// The part of a report that the lines are of. The names of what only Flagstone tells are common
/// words: elsewhere in a program's log they say nothing of a database.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Other,
    State,
    Pins,
}

/// Whose pins the lines list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Nobody,
    /// The next line is of the oldest one.
    Snapshots,
    Iterators,
}

struct Reader<'f> {
    facts: &'f mut Facts,
    /// The index of the family that the lines are about.
    family: Option<usize>,
    part: Part,
    who: Who,
    /// Bytes of keys and values that were written.
    bytes_written: u64,
}

impl Reader<'_> {
    /// Takes what a line tells; `None` if it is no line of a report, or one that is not needed.
    fn line(&mut self, line: &str) -> Option<()> {
        let who = std::mem::replace(&mut self.who, Who::Nobody);
        let database = &mut self.facts.database;
        if line.starts_with("** ") {
            self.part = match line {
                "** State **" => Part::State,
                "** Who keeps what **" => Part::Pins,
                _ => Part::Other,
            };
        }
        if let Some(rest) = line.strip_prefix("** Compaction Stats [") {
            let name = rest.strip_suffix("] **")?;
            self.family = self.facts.families.iter().position(|family| family.name == name);
        } else if let Some(rest) = line.strip_prefix("Uptime(secs): ") {
            database.open_seconds = rest.split_once(" total")?.0.parse::<f64>().ok()? as u64;
        } else if let Some(rest) = line.strip_prefix("Cumulative writes: ") {
            database.keys_written =
                human::parse_count(rest.split_once(" writes, ")?.1.split_once(" keys")?.0)?;
        } else if let Some(rest) = line.strip_prefix("Cumulative WAL: ") {
            database.wal_syncs =
                human::parse_count(rest.split_once(" writes, ")?.1.split_once(" syncs")?.0)?;
        } else if let Some(rest) = line.strip_prefix("Cumulative stall: ") {
            database.stall_us = human::parse_micros(rest.split_once(" H:M:S")?.0)?;
        } else if let Some(rest) =
            line.strip_prefix("Write Stall (count): write-buffer-manager-limit-stops: ")
        {
            database.held_up_by_all_memtables = rest.split(", ").next()?.parse().ok()?;
        } else if let Some(rest) = line.strip_prefix("Write Stall (count): ") {
            // One that is cut off tells nothing.
            rest.contains("memtable-limit-stops").then_some(())?;
            self.stalls(rest.split(", ").map(|count| count.split_once(": ")))?;
        } else if let Some(rest) = line.strip_prefix("Stalls(count): ") {
            // Older ones, such as RocksDB 7.8.
            rest.contains("memtable_slowdown").then_some(())?;
            let turned = |(times, name)| (name, times);
            self.stalls(rest.split(", ").map(|count| count.split_once(' ').map(turned)))?;
        } else if let Some(rest) = line.strip_prefix("Block cache ") {
            // RocksDB's, by way of which it tells how large the cache is.
            database.cache_bytes = human::parse_bytes(rest.split_once(" capacity: ")?.1)?;
            database.knows_cache = true;
        } else if let Some((name, count)) = line.split_once(" COUNT : ") {
            let count = count.parse().ok()?;
            match name {
                "rocksdb.bytes.written" => self.bytes_written = count,
                _ => counter(database, name, count)?,
            }
        } else if let Some((name, value)) = line.split_once(" : ") {
            match self.part {
                Part::State => state(database, name, value)?,
                Part::Pins => self.who = pins(database, name)?,
                Part::Other => return None,
            }
        } else if who == Who::Snapshots {
            snapshot(database, line)?;
            let each = self.bytes_written.checked_div(database.keys_written).unwrap_or(0);
            database.snapshot_write_bytes = database.snapshot_writes.saturating_mul(each);
        } else if who == Who::Iterators {
            self.who = Who::Iterators;
            iterator(database, line)?;
        } else {
            return None;
        }
        Some(())
    }

    /// What held the family's writers up, and how often.
    fn stalls<'t>(
        &mut self,
        counts: impl Iterator<Item = Option<(&'t str, &'t str)>>,
    ) -> Option<()> {
        let family = self.facts.families.get_mut(self.family?)?;
        let mut told = FamilyFacts::default();
        for count in counts {
            let (name, times) = count?;
            let sum = match name {
                "memtable-limit-delays"
                | "memtable-limit-stops"
                | "memtable_slowdown"
                | "memtable_compaction" => &mut told.held_up_by_memtables,
                "l0-file-count-limit-delays"
                | "l0-file-count-limit-stops"
                | "level0_slowdown"
                | "level0_numfiles" => &mut told.held_up_by_level0,
                "pending-compaction-bytes-delays"
                | "pending-compaction-bytes-stops"
                | "slowdown for pending_compaction_bytes"
                | "stop for pending_compaction_bytes" => &mut told.held_up_by_pending_bytes,
                "blob-space-delays" => &mut told.held_up_by_blob_space,
                // Sums, and parts of others.
                _ => continue,
            };
            *sum = sum.saturating_add(times.parse().ok()?);
        }
        family.held_up_by_memtables = told.held_up_by_memtables;
        family.held_up_by_level0 = told.held_up_by_level0;
        family.held_up_by_pending_bytes = told.held_up_by_pending_bytes;
        family.held_up_by_blob_space = told.held_up_by_blob_space;
        Some(())
    }
}

/// What RocksDB's blocks have if nobody set it.
const BLOCK_BYTES: u64 = 4096;

/// A counter of the statistics, by RocksDB's name or our own.
fn counter(database: &mut DatabaseFacts, name: &str, count: u64) -> Option<()> {
    let known = match name {
        "rocksdb.number.keys.written" => &mut database.keys_written,
        "rocksdb.wal.synced" => &mut database.wal_syncs,
        "rocksdb.block.cache.hit" => &mut database.cache_hits,
        "rocksdb.block.cache.miss" => &mut database.cache_misses,
        "flagstone.block.cache.evictions" => &mut database.cache_evictions,
        // RocksDB does not count what was dropped: all that was added but for what the cache has
        // room for.
        "rocksdb.block.cache.add" => {
            database.cache_evictions = count.saturating_sub(database.cache_bytes / BLOCK_BYTES);
            return Some(());
        }
        "flagstone.file.reopens" => &mut database.file_reopens,
        "flagstone.rate.limiter.micros" => &mut database.rate_limiter_us,
        "rocksdb.blobdb.gc.bytes.relocated" => &mut database.blob_moved_bytes,
        // Those that were moved are among them, and come behind in the text.
        "rocksdb.blobdb.blob.file.bytes.written" => &mut database.blob_written_bytes,
        _ => return None,
    };
    *known = count;
    if name == "rocksdb.blobdb.gc.bytes.relocated" {
        database.blob_written_bytes = database.blob_written_bytes.saturating_sub(count);
    }
    Some(())
}

/// A line of Flagstone's own about what goes on.
fn state(database: &mut DatabaseFacts, name: &str, value: &str) -> Option<()> {
    match name {
        "state" => database.state = printable(value),
        "writers" => database.writers = printable(value),
        "writers held up" => database.stall_us = value.strip_suffix(" us")?.parse().ok()?,
        "writers stopped" => database.stopped_seconds = value.strip_suffix(" s")?.parse().ok()?,
        "block cache capacity" => {
            database.cache_bytes = value.strip_suffix(" bytes")?.parse().ok()?;
            database.knows_cache = true;
        }
        "block cache at most" => {
            database.cache_auto_max = value.strip_suffix(" bytes")?.parse().ok()?;
        }
        "block cache is too little" => database.cache_is_too_little = value.parse().ok()?,
        "block cache is auto" => database.cache_auto_why = printable(value),
        _ => return None,
    }
    Some(())
}

/// Whose pins come next.
fn pins(database: &mut DatabaseFacts, name: &str) -> Option<Who> {
    match name {
        "snapshots" => {
            (database.snapshot_seconds, database.snapshot_writes, database.snapshot_write_bytes) =
                (0, 0, 0);
            Some(Who::Snapshots)
        }
        "iterators" => {
            (database.iterator_kept_bytes, database.iterator_seconds) = (0, 0);
            Some(Who::Iterators)
        }
        _ => None,
    }
}

/// Told text is shown to people: a terminal is not to obey it.
fn printable(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// `of SEQUENCE, for AGE s, WRITES writes ago, taken at PLACE`
fn snapshot(database: &mut DatabaseFacts, line: &str) -> Option<()> {
    let (age, rest) = line.split_once(", for ")?.1.split_once(" s, ")?;
    let (writes, place) = rest.split_once(" writes ago, taken at ")?;
    (database.snapshot_seconds, database.snapshot_writes) =
        (age.parse().ok()?, writes.parse().ok()?);
    database.snapshot_taken_at = printable(place);
    Some(())
}

/// `of family NAME, for AGE s, made at PLACE, one of N that keep N files of BYTES bytes and
/// memtables of BYTES bytes, ..`; the facts are about the one that keeps most.
fn iterator(database: &mut DatabaseFacts, line: &str) -> Option<()> {
    let (head, rest) = line.strip_prefix("of family ")?.rsplit_once(" s, made at ")?;
    let age = head.rsplit_once(", for ")?.1.parse().ok()?;
    let Some((place, kept)) = rest.rsplit_once(", one of ") else { return Some(()) };
    let (files, rest) = kept.split_once(" files of ")?.1.split_once(" bytes and memtables of ")?;
    let memtables = rest.split_once(" bytes")?.0;
    let kept = files.parse::<u64>().ok()?.saturating_add(memtables.parse().ok()?);
    if kept > database.iterator_kept_bytes {
        (database.iterator_kept_bytes, database.iterator_seconds) = (kept, age);
        database.iterator_made_at = printable(place);
    }
    Some(())
}

#[cfg(test)]
mod tests;

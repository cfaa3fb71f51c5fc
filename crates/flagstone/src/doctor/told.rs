//! What a running database has told of itself: the text of its property `rocksdb.stats`, which programs write to their logs, or
//! RocksDB's LOG, where the same lines stand. Who can only look at the files learns from it why writers waited, and what for.
//!
//! A text may hold many reports: of each line that is known the last one counts. Others are passed over.

use crate::base::{Error, Result};
use crate::db::{DatabaseFacts, Facts, FamilyFacts, human};

impl Facts {
    /// Takes over what the database has told where it runs: for how long, what held writers up, how often the WAL was synced,
    /// what the block cache did, and who keeps what. `text` is what the property `rocksdb.stats` says, one report or several
    /// among other lines, or the file LOG that RocksDB writes.
    ///
    /// # Errors
    /// `InvalidArgument` if there is nothing of a report in it.
    pub fn add_statistics(&mut self, text: &str) -> Result<()> {
        let mut reader =
            Reader { facts: self, family: None, part: Part::Other, who: Who::Nobody, bytes_written: 0 };
        // Each line is asked: a report has some that say nothing of interest.
        let known = text.lines().filter(|line| reader.line(line.trim()).is_some()).count();
        if known == 0 {
            return Err(Error::invalid_argument(
                "there is no report of a running database in it, such as the property rocksdb.stats or RocksDB's LOG holds",
            ));
        }
        Ok(())
    }
}

/// The part of a report that the lines are of. The names of what only Flagstone tells are common words: elsewhere in a
/// program's log they say nothing of a database.
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
            database.wal_syncs = human::parse_count(rest.split_once(" writes, ")?.1.split_once(" syncs")?.0)?;
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
    fn stalls<'t>(&mut self, counts: impl Iterator<Item = Option<(&'t str, &'t str)>>) -> Option<()> {
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
        // RocksDB does not count what was dropped: all that was added but for what the cache has room for.
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
        _ => return None,
    }
    Some(())
}

/// Whose pins come next.
fn pins(database: &mut DatabaseFacts, name: &str) -> Option<Who> {
    match name {
        "snapshots" => {
            (database.snapshot_seconds, database.snapshot_writes, database.snapshot_write_bytes) = (0, 0, 0);
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
    (database.snapshot_seconds, database.snapshot_writes) = (age.parse().ok()?, writes.parse().ok()?);
    database.snapshot_taken_at = printable(place);
    Some(())
}

/// `of family NAME, for AGE s, made at PLACE, one of N that keep N files of BYTES bytes and memtables of BYTES bytes, ..`; the
/// facts are about the one that keeps most.
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
mod tests {
    use super::super::diagnose::diagnose;
    use super::*;

    /// A LOG of RocksDB 11.8, cut down, with other figures: its first report is older.
    const LOG: &str = "\
2026/11/25-23:22:34.308827 9501 [db/db_impl/db_impl.cc:1532] ------- DUMPING STATS -------
2026/11/25-23:22:34.308837 9501 [db/db_impl/db_impl.cc:1534]\u{20}
** DB Stats **
Uptime(secs): 600.1 total, 600.1 interval
Cumulative stall: 00:09:0.000 H:M:S, 90.0 percent
2026/11/25-23:32:34.308827 9501 [db/db_impl/db_impl.cc:1532] ------- DUMPING STATS -------
** DB Stats **
Uptime(secs): 1200.1 total, 600.0 interval
Cumulative writes: 300K writes, 300K keys, 300 commit groups, 1.0 writes per commit group, ingest: 0.00 GB, 0.32 MB/s
Cumulative WAL: 300K writes, 12 syncs, 300.00 writes per sync, written: 0.00 GB, 0.32 MB/s
Cumulative stall: 00:10:1.500 H:M:S, 50.1 percent
Interval stall: 00:01:1.500 H:M:S, 10.3 percent
Write Stall (count): write-buffer-manager-limit-stops: 2

** Compaction Stats [photos, old] **
Level    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB)
Write Stall (count): cf-l0-file-count-limit-delays-with-ongoing-compaction: 7, \
l0-file-count-limit-delays: 8, l0-file-count-limit-stops: 1, memtable-limit-delays: 0, memtable-limit-stops: 3, \
pending-compaction-bytes-delays: 2, pending-compaction-bytes-stops: 0, total-delays: 10, total-stops: 4
Block cache AutoHyperClockCache@0x56514038a7c0#9483 capacity: 32.00 MB seed: 1177849269 usage: 4.00 KB table_size: 64
Block cache entry stats(count,size,portion): Misc(1,0.00 KB,0%)
2026/11/25-23:32:34.308887 9501 [db/db_impl/db_impl.cc:1031] STATISTICS:
 rocksdb.block.cache.miss COUNT : 900000
 rocksdb.block.cache.hit COUNT : 300000
 rocksdb.block.cache.add COUNT : 800000
 rocksdb.db.get.micros P50 : 0.000000 P95 : 0.000000 P99 : 0.000000 P100 : 0.000000 COUNT : 0 SUM : 0
2026/11/25-23:32:34.343569 9483 [db/db_impl/db_impl_compaction_flush.cc:2370] [default] Manual flush finished, status: OK
";

    fn facts() -> Facts {
        let family = |name: &str| FamilyFacts { name: name.to_string(), ..FamilyFacts::default() };
        let database = DatabaseFacts { is_running: false, knows_cache: false, ..DatabaseFacts::default() };
        Facts { database, families: vec![family("default"), family("photos, old")], ..Facts::default() }
    }

    #[test]
    fn rocksdb_s_log_tells_why_writers_waited() {
        let mut found = facts();
        found.add_statistics(LOG).expect("reports");
        let told = &found.database;
        assert_eq!((told.open_seconds, told.stall_us), (1200, 601_500_000));
        assert_eq!((told.keys_written, told.wal_syncs), (300_000, 12));
        assert_eq!((told.cache_bytes, told.knows_cache), (32 << 20, true));
        assert_eq!(
            (told.cache_hits, told.cache_misses, told.cache_evictions),
            (300_000, 900_000, 800_000 - 8192)
        );
        assert_eq!(told.held_up_by_all_memtables, 2);
        let [family, held_up] = &found.families[..] else { panic!("two families") };
        assert_eq!(*family, facts().families[0]);
        assert_eq!((held_up.held_up_by_level0, held_up.held_up_by_memtables), (9, 3));
        assert_eq!((held_up.held_up_by_pending_bytes, held_up.held_up_by_blob_space), (2, 0));
        let said = &diagnose(&found)[0].what;
        let expected = "writers were held up for 601 of the 1200 s since the database was opened, mostly by tables that \
                        waited in level 0 (family 'photos, old': 9 of 16 times)";
        assert_eq!(said, expected);
    }

    /// A LOG of RocksDB 7.8, cut down, with other figures. Of what it calls these counts nothing was known.
    const OLD_LOG: &str = "\
** Compaction Stats [default] **
Uptime(secs): 100.0 total, 100.0 interval
Stalls(count): 7 level0_slowdown, 6 level0_slowdown_with_compaction, 1 level0_numfiles, \
1 level0_numfiles_with_compaction, 2 stop for pending_compaction_bytes, 3 slowdown for pending_compaction_bytes, \
4 memtable_compaction, 0 memtable_slowdown, interval 9 total count
Block cache LRUCache@0x56514038a7c0#9483 capacity: 32.00 MB collections: 1 last_copies: 1 last_secs: 5.1e-05 secs_since: 1
 rocksdb.block.cache.miss COUNT : 9000
 rocksdb.block.cache.add COUNT : 8000
";

    #[test]
    fn an_older_rocksdb_s_log_tells_it_too() {
        let mut found = facts();
        found.add_statistics(OLD_LOG).expect("a report");
        let family = &found.families[0];
        let told = [family.held_up_by_level0, family.held_up_by_pending_bytes, family.held_up_by_memtables];
        assert_eq!(told, [8, 5, 4]);
        // The cache still had room for all of them.
        assert_eq!((found.database.cache_misses, found.database.cache_evictions), (9000, 0));
    }

    /// Sums and products of what a damaged log says went beyond 64 bits.
    #[test]
    fn no_number_is_too_large() {
        let most = u64::MAX;
        let mut found = facts();
        let report = format!(
            "Uptime(secs): {most} total, 1.0 interval\nCumulative stall: {most}:00:0.000 H:M:S, 1.0 percent\n\
             Cumulative writes: {most}G writes, {most}G keys, 1 commit groups\n\
             Write Stall (count): write-buffer-manager-limit-stops: {most}\n** Compaction Stats [default] **\n\
             Write Stall (count): l0-file-count-limit-delays: {most}, memtable-limit-delays: {most}, \
             memtable-limit-stops: {most}\n\
             rocksdb.wal.synced COUNT : {most}\nrocksdb.block.cache.miss COUNT : {most}\n\
             rocksdb.block.cache.hit COUNT : 1\nflagstone.block.cache.evictions COUNT : {most}\n\
             rocksdb.blobdb.gc.bytes.relocated COUNT : {most}\nflagstone.file.reopens COUNT : {most}\n\
             flagstone.rate.limiter.micros COUNT : {most}\nrocksdb.bytes.written COUNT : {most}\n** State **\n\
             writers held up : {most} us\nwriters stopped : {most} s\nblock cache capacity : 1 bytes\n\
             ** Who keeps what **\nsnapshots : 1\n  of 1, for {most} s, {most} writes ago, taken at a\niterators : 1\n  \
             of family default, for {most} s, made at b, one of 1 that keep 1 files of {most} bytes and memtables of {most} \
             bytes, which\n"
        );
        found.add_statistics(&report).expect("a report");
        found.families[0].table_bytes = most;
        let said: String = diagnose(&found).iter().map(|finding| format!("{finding}\n")).collect();
        for expected in
            ["writers were held up", "100% of", "a snapshot that was taken", "an iterator that was made"]
        {
            assert!(said.contains(expected), "{expected}: {said}");
        }
        // Who syncs that often within a second.
        found.database.open_seconds = 1;
        diagnose(&found);
    }

    /// They reached the terminal of who asked.
    #[test]
    fn control_characters_are_not_told_on() {
        let mut found = facts();
        let report = "** State **\nstate : poisoned \u{1b}[2J\n** Who keeps what **\nsnapshots : 1\n\
                      of 1, for 2 s, 3 writes ago, taken at \u{7}a\niterators : 1\nof family x, for 1 s, made at \u{9b}b, \
                      one of 1 that keep 1 files of 5 bytes and memtables of 6 bytes\n";
        found.add_statistics(report).expect("a report");
        let DatabaseFacts { state, snapshot_taken_at, iterator_made_at, .. } = found.database;
        assert_eq!([state, snapshot_taken_at, iterator_made_at], ["poisoned ?[2J", "?a", "?b"]);
    }

    /// A program's own line became a finding.
    #[test]
    fn only_a_report_s_own_lines_are_of_the_database() {
        let mut found = facts();
        let report = "state : starting\n** State **\nwriters stopped : 7 s\n** Who keeps what **\nsnapshots : 0\n\
                      iterators : 0\nstate : stopping\nwriters stopped : 8 s\n** DB Stats **\nsnapshots : 9\n";
        found.add_statistics(report).expect("a report");
        let DatabaseFacts { state, stopped_seconds, .. } = found.database;
        assert_eq!((state.as_str(), stopped_seconds), ("healthy", 7));
    }

    #[test]
    fn what_says_nothing_of_a_database_is_refused() {
        let of_a_program = ["state : starting", "snapshots : 3", "** Jobs **\nwriters : 2"];
        let texts = ["", "hello", "2026/11/25 started : yes", "Uptime(secs): soon", "a COUNT : b"];
        for text in texts.into_iter().chain(of_a_program) {
            let error = facts().add_statistics(text).expect_err(text);
            assert!(error.to_string().contains("no report of a running database"), "{error}");
        }
    }

    /// Whatever is cut off or mixed in: no panic, and nothing of what is not told changes.
    #[test]
    fn half_a_report_tells_what_it_holds() {
        for end in 0..LOG.len() {
            let mut found = facts();
            let _ = found.add_statistics(&LOG[..end]);
            assert_eq!(found.database.state, "healthy");
        }
    }
}

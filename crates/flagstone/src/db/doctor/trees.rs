//! The rules for a family's trees, and for who waits for them.

use super::diagnose::{Findings, MEMTABLE_SMALL, SECOND_US, Severity, WORTH_SHAPING, bytes};
use super::facts::{DatabaseFacts, Facts, FamilyFacts};
use crate::options::CompactionStyle;

/// Fewer entries say nothing of what most of them are.
const ENTRIES_MIN: u64 = 1000;
/// More tables than this take memory and time to open.
const TABLES_MANY: u64 = 1000;
/// So many deletions side by side are felt by who scans over them, or seeks in front of them, as at a queue's head: that takes
/// a millisecond or so.
const DENSE_MANY: u64 = 10_000;
/// So many deletions of ranges are felt.
const RANGES_MANY: u64 = 10_000;
/// Filters of fewer entries take nothing, and spare little.
const FILTERED_MIN: u64 = 100_000;
/// With fewer bits for a key a Bloom filter lets pass more than one of four keys that are not there.
const BITS_FEW: f64 = 3.0;
/// With more it lets pass none of a hundred thousand.
const BITS_MANY: f64 = 24.0;
/// Until then a snapshot is one that a read is about to be done with.
const SNAPSHOT_YOUNG: u64 = 60;
/// Percent of the oldest sorted run that those above it may have before it is worth a word.
const AMPLIFIED_MUCH: u64 = 400;

impl Findings {
    /// What holds writers up.
    pub(super) fn stalls(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts { name, level0_files, level0_stop_writes_trigger: stop, .. } = family;
        let slowdown = family.level0_slowdown_writes_trigger;
        let faster = faster(family, database);
        // Nobody waits for compactions that do not come.
        let (stops, delays) = match family.disable_auto_compactions || family.compactions_are_held {
            true => ("too many for reads", "many for reads"),
            false => ("writes are stopped", "writes are delayed"),
        };
        let waiting = match family.compaction_style {
            CompactionStyle::Universal => format!("{level0_files} sorted runs wait to be merged"),
            _ => format!("{level0_files} tables wait in level 0"),
        };
        if level0_files >= stop {
            let what = format!("family '{name}': {waiting}: {stops} (level0_stop_writes_trigger {stop})");
            self.add(Severity::Slow, what, faster.clone());
        } else if *level0_files >= slowdown {
            let what =
                format!("family '{name}': {waiting}: {delays} (level0_slowdown_writes_trigger {slowdown})");
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
            let advice = limiter(database).unwrap_or_else(|| {
                format!(
                    "set max_write_buffer_number from {most} to {}, for bursts; a load that lasts is as fast as the disk",
                    most.saturating_mul(2)
                )
            });
            self.add(Severity::Slow, what, advice);
        }
    }

    /// What the tree looks like.
    fn deletions(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts { name, tables, entries, deletions, deletion_tables, range_deletions, .. } = family;
        let advice = match family.compaction_style {
            CompactionStyle::Fifo => {
                "FIFO compaction keeps deletions for as long as the tables that they are in: let values expire by ttl, or open \
                 it with another compaction_style"
                    .to_string()
            }
            _ => format!(
                "{}compact the ranges that were deleted: flagstone compact; delete ranges by delete_range",
                snapshot_first(database)
            ),
        };
        if *entries >= ENTRIES_MIN && deletions.saturating_mul(4) >= *entries {
            let part = u128::from(*deletions) * 100 / u128::from(*entries);
            let what = format!(
                "family '{name}': {part}% of the entries of tables are deletions ({deletion_tables} of {tables} tables \
                 hold mostly such): scans walk over them"
            );
            self.add(Severity::Slow, what, advice);
        } else if family.dense_deletions >= DENSE_MANY {
            let what = format!(
                "family '{name}': {deletion_tables} of {tables} tables hold mostly deletions, {} of them: scans of their \
                 keys, and seeks in front of them, walk over them",
                family.dense_deletions
            );
            self.add(Severity::Slow, what, advice);
        }
        if *range_deletions >= RANGES_MANY && range_deletions.saturating_mul(10) >= *entries {
            let what = format!(
                "family '{name}': {range_deletions} deletions of ranges for {entries} entries: reads go through them"
            );
            self.add(Severity::Slow, what, "compact: flagstone compact; delete fewer and larger ranges");
        }
    }

    /// How many bits filters have for a key.
    fn filters(&mut self, family: &FamilyFacts) {
        let FamilyFacts { name, filtered_entries: keys, filter_bytes, .. } = family;
        if *keys < FILTERED_MIN {
            return;
        }
        let bits = *filter_bytes as f64 * 8.0 / *keys as f64;
        let what = format!("family '{name}': filters have {bits:.1} bits for a key");
        let compact =
            "then compact: flagstone compact, since each table keeps the filter that it was written with";
        if bits < BITS_FEW {
            let what = format!("{what}: many lookups of keys that are not there read a block in vain");
            let advice = format!("set table.filter_policy=bloomfilter:10:false; {compact}");
            self.add(Severity::Slow, what, advice);
        } else if bits > BITS_MANY {
            let what =
                format!("{what}, which take {} and rule out hardly more than 16 do", bytes(*filter_bytes));
            self.add(
                Severity::Note,
                what,
                format!("set table.filter_policy=bloomfilter:16:false; {compact}"),
            );
        }
    }

    /// What the tables are like.
    pub(super) fn shape(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        self.deletions(family, database);
        self.filters(family);
        let FamilyFacts { name, tables, table_bytes, write_buffer_size, .. } = family;
        let is_fifo = family.compaction_style == CompactionStyle::Fifo;
        let average = table_bytes.checked_div(*tables).unwrap_or(0);
        // FIFO compaction leaves tables as they were flushed.
        let target = if is_fifo { *write_buffer_size } else { family.target_file_size_base };
        if *tables >= TABLES_MANY && average < target / 4 {
            let what = format!(
                "family '{name}': {tables} tables of {} on average: each takes memory and time to open",
                bytes(average)
            );
            let advice = match is_fifo {
                true => "set compaction_options_fifo={allow_compaction=true;}: small tables are then merged"
                    .to_string(),
                false => format!(
                    "compact: flagstone compact; then tables have target_file_size_base ({})",
                    bytes(target)
                ),
            };
            self.add(Severity::Slow, what, advice);
        } else if *tables >= 20 * TABLES_MANY {
            let what = format!("family '{name}': {tables} tables: each takes memory and time to open");
            let option = if is_fifo { "write_buffer_size" } else { "target_file_size_base" };
            let advice = format!("set {option} from {target} to {}", target.saturating_mul(4));
            self.add(Severity::Slow, what, advice);
        }
        if *table_bytes >= WORTH_SHAPING && *write_buffer_size < MEMTABLE_SMALL {
            let what = format!(
                "family '{name}': memtables of {} for {} of tables: many small flushes, and {}",
                bytes(*write_buffer_size),
                bytes(*table_bytes),
                if is_fifo { "tables as small" } else { "more compactions" }
            );
            self.add(
                Severity::Slow,
                what,
                format!("set write_buffer_size from {write_buffer_size} to {}", 64 << 20),
            );
        }
        if family.disable_auto_compactions {
            let mut what = format!("family '{name}': compactions run only on request");
            if family.blob_bytes > 0 {
                what.push_str(
                    "; until one does, most of the garbage in blob files is not known (flagstone space looks for it)",
                );
            }
            let advice = match family.compaction_style {
                CompactionStyle::None => "if that is not meant, open it with another compaction_style",
                _ => "if that is not meant, set disable_auto_compactions from true to false",
            };
            self.add(Severity::Note, what, advice);
        }
        if family.compactions_are_held {
            let what = format!("family '{name}': its automatic compactions are held back");
            self.add(Severity::Note, what, format!("if that is not meant any more, {LET_GO}"));
        }
    }

    /// What universal compaction keeps twice.
    pub(super) fn runs(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts { name, table_bytes, newer_run_bytes: newer, level0_files: runs, .. } = family;
        let FamilyFacts { max_size_amplification_percent: most, .. } = family;
        let oldest = table_bytes.saturating_sub(*newer);
        let is_universal = family.compaction_style == CompactionStyle::Universal;
        if !is_universal || *table_bytes < WORTH_SHAPING || *runs < family.level0_file_num_compaction_trigger
        {
            return;
        }
        let percent = (u128::from(*newer) * 100 / u128::from(oldest.max(1))).min(u128::from(u64::MAX)) as u64;
        let what = format!(
            "family '{name}': {runs} sorted runs, of which the oldest has {}, and those above it {}: if they overwrite the same \
             keys, tables take {:.1} times the space of what they hold",
            bytes(oldest),
            bytes(*newer),
            1.0 + percent as f64 / 100.0
        );
        if percent / 3 * 2 > *most {
            let advice = format!(
                "max_size_amplification_percent ({most}) wants them merged, and compactions are behind: {}",
                faster(family, database)
            );
            self.add(Severity::Slow, what, advice);
        } else if percent > AMPLIFIED_MUCH {
            let advice = format!(
                "set compaction_options_universal={{max_size_amplification_percent=200;}}, now {most}, if space matters"
            );
            self.add(Severity::Slow, what, advice);
        }
    }

    /// What FIFO compaction drops to keep within the limit that `option` sets.
    fn fifo_at_limit(&mut self, family: &FamilyFacts, option: &str) {
        let FamilyFacts { name, fifo_bytes, fifo_limit_bytes: limit, oldest_seconds, ttl, .. } = family;
        let default = FamilyFacts::default();
        let is_ttl_chosen = *ttl != default.ttl;
        let is_limit_chosen = family.fifo_counts_blobs || *limit != default.fifo_limit_bytes;
        let is_cut_short = *ttl > 0 && *oldest_seconds > 0 && *oldest_seconds < ttl / 10 * 9;
        if is_cut_short && (is_ttl_chosen || is_limit_chosen) {
            // Tables go as one that is flushed comes: where another has room, none has gone for want of it, unless it was a
            // large one, of several memtables or with the blob files of many values, that made the room.
            let room = limit.saturating_sub(*fifo_bytes);
            let made_room = family.oldest_are_gone && room < family.largest_drop_bytes;
            let is_full = room < family.write_buffer_size || made_room;
            let fate =
                if is_full { "older ones were dropped, or are next" } else { "it will be dropped before" };
            let what = format!(
                "family '{name}': the oldest key was written {oldest_seconds} s ago, and ttl is {ttl} s: {fate}, as all may have \
                 {} ({option})",
                bytes(*limit)
            );
            let enough = (u128::from(*fifo_bytes) * u128::from(*ttl) / u128::from(*oldest_seconds)) as u64;
            let set = format!("set compaction_options_fifo={{{option}={};}}", enough.saturating_mul(2));
            let (severity, advice) = match is_ttl_chosen {
                true if is_full => (Severity::Slow, set),
                true => (Severity::Note, set),
                // Whether somebody chose 30 days nothing tells: OPTIONS files say that of who did not.
                false => {
                    (Severity::Note, format!("if keys are to stay for ttl, which is that by default, {set}"))
                }
            };
            self.add(severity, what, advice);
        } else if !is_limit_chosen {
            let what = format!(
                "family '{name}': the oldest tables are dropped as soon as all have {} ({option}, which nobody set)",
                bytes(*limit)
            );
            let advice = "if they are to stay longer, set compaction_options_fifo={max_table_files_size=..;}";
            self.add(Severity::Note, what, advice);
        }
    }

    /// What FIFO compaction drops, or does not.
    pub(super) fn fifo(&mut self, family: &FamilyFacts) {
        let FamilyFacts { name, fifo_limit_bytes: limit, .. } = family;
        if family.compaction_style != CompactionStyle::Fifo {
            return;
        }
        let option = if family.fifo_counts_blobs { "max_data_files_size" } else { "max_table_files_size" };
        if family.fifo_bytes >= limit / 10 * 9 {
            self.fifo_at_limit(family, option);
        }
        if family.write_buffer_size > limit / 4 {
            let what = format!(
                "family '{name}': a memtable of {} is more than a quarter of what all tables may have ({}, {option}): each flush \
                 may drop as much of the oldest data",
                bytes(family.write_buffer_size),
                bytes(*limit)
            );
            let advice = format!("set write_buffer_size from {} to {}", family.write_buffer_size, limit / 16);
            self.add(Severity::Slow, what, advice);
        }
        if !family.fifo_counts_blobs && family.blob_bytes > *limit {
            let what = format!(
                "family '{name}': blob files have {}, and do not count for max_table_files_size ({})",
                bytes(family.blob_bytes),
                bytes(*limit)
            );
            let advice = "if they are to, set compaction_options_fifo={max_data_files_size=..;}";
            self.add(Severity::Slow, what, advice);
        }
    }
}

/// What to do before anything that was deleted or overwritten can go.
pub(super) fn snapshot_first(database: &DatabaseFacts) -> String {
    let DatabaseFacts { snapshot_seconds: seconds, snapshot_writes: writes, snapshot_taken_at: at, .. } =
        database;
    if *writes == 0 || *seconds < SNAPSHOT_YOUNG {
        return String::new();
    }
    format!(
        "drop the snapshot that was taken {seconds} s ago at {at} first, which keeps what {writes} writes since have deleted or \
         overwritten; "
    )
}

/// What lets automatic compactions go on that are held back.
const LET_GO: &str = "drop what Db::hold_automatic_compactions has returned";

/// How compactions catch up.
pub(super) fn faster(family: &FamilyFacts, database: &DatabaseFacts) -> String {
    match (family.disable_auto_compactions, family.compaction_style) {
        (true, CompactionStyle::None) => {
            "compact: flagstone compact, or open it with another compaction_style".to_string()
        }
        (true, _) => {
            "set disable_auto_compactions from true to false, or compact: flagstone compact".to_string()
        }
        (false, _) if family.compactions_are_held => format!("{LET_GO}, or call Db::compact_range"),
        (false, _) => limiter(database).unwrap_or_else(|| {
            let (option, jobs) = match database.max_background_compactions {
                0 => ("max_background_jobs", database.max_background_jobs),
                compactions => ("max_background_compactions", compactions),
            };
            let more = format!("set {option} from {jobs} to {}", jobs.saturating_mul(2));
            match database.rate_limit {
                // Who only looks does not know what they waited for.
                limit if limit > 0 && !database.is_running => {
                    format!("{more}; they may have no more than rate_limiter_bytes_per_sec={limit}")
                }
                _ => more,
            }
        }),
    }
}

/// What held writers up most often since the database was opened, and what to change for it; nothing where nobody counted.
pub(super) fn mostly_held_up_by(facts: &Facts) -> Option<(String, String)> {
    let counts = |family: &FamilyFacts| {
        [
            family.held_up_by_memtables,
            family.held_up_by_level0,
            family.held_up_by_pending_bytes,
            family.held_up_by_blob_space,
        ]
    };
    let together = facts.database.held_up_by_all_memtables;
    let all = facts.families.iter().flat_map(counts).fold(together, u64::saturating_add);
    let most = |family: &&FamilyFacts| counts(family).into_iter().max();
    let family = facts.families.iter().max_by_key(most)?;
    let by = counts(family);
    if together > 0 && by.iter().all(|times| *times <= together) {
        let mostly = format!(
            ", mostly by the memtables of all families, which had what they may have ({together} of {all} times)"
        );
        let advice = format!(
            "the load comes in bursts: {}; one that lasts is as fast as the disk",
            more_memtables(&facts.database)
        );
        return Some((mostly, advice));
    }
    let times = by.into_iter().max().filter(|times| *times > 0)?;
    let (reason, remedy) = match by.iter().position(|count| *count == times)? {
        0 => {
            let most = family.max_write_buffer_number;
            let more = most.saturating_mul(2);
            let advice = format!(
                "the load comes in bursts: set max_write_buffer_number from {most} to {more}; one that lasts is as fast as \
                 the disk"
            );
            ("full memtables that waited for their flush", advice)
        }
        1 if family.compaction_style == CompactionStyle::Universal => {
            ("sorted runs that waited to be merged", faster(family, &facts.database))
        }
        1 => ("tables that waited in level 0", faster(family, &facts.database)),
        2 => ("bytes that waited to be compacted", faster(family, &facts.database)),
        _ => {
            let most = family.burst_space_amplification;
            let advice = format!(
                "more was overwritten than space is given back for: set burst_space_amplification from {most} to {:.1} if \
                 writing matters more than space",
                most.max(1.0) + 0.7
            );
            ("garbage in blob files", advice)
        }
    };
    let mostly = format!(", mostly by {reason} (family '{}': {times} of {all} times)", family.name);
    Some((mostly, remedy))
}

/// How the memtables of all families may have more.
pub(super) fn more_memtables(database: &DatabaseFacts) -> String {
    match (database.db_write_buffer_size, database.memtable_bytes_max) {
        // The program set it, and none of its files says how.
        (_, 0) => "raise db_write_buffer_size, or give memory_budget more".to_string(),
        (size, most) if size == most => {
            format!("raise db_write_buffer_size from {size} to {}", size.saturating_mul(2))
        }
        _ => "give memory_budget more".to_string(),
    }
}

/// What to do about the rate limiter, if flushes and compactions wait for it for more than a quarter of the time.
pub(super) fn limiter(database: &DatabaseFacts) -> Option<String> {
    let DatabaseFacts { rate_limit: limit, rate_limiter_us: waited, open_seconds, .. } = database;
    let is_felt = *limit > 0
        && *waited >= SECOND_US
        && waited.saturating_mul(4) >= open_seconds.saturating_mul(SECOND_US);
    is_felt.then(|| {
        format!(
            "flushes and compactions have waited {} s for the rate limiter: raise rate_limiter_bytes_per_sec from {limit} to {}",
            waited / SECOND_US,
            limit.saturating_mul(4)
        )
    })
}

//! Rules for a family's tree, and for the writers that wait for it.

use super::diagnose::{Findings, MEMTABLE_SMALL, SECOND_US, Severity, WORTH_SHAPING, bytes};
use crate::base::{Remedy, counted, form};
use crate::db::{DatabaseFacts, Facts, FamilyFacts};
use crate::options::CompactionStyle;

/// Number of entries needed to judge what most of them are.
const ENTRIES_MIN: u64 = 1000;
/// More tables than this take memory and time to open.
const TABLES_MANY: u64 = 1000;
/// Adjacent deletions that slow down a scan over them, or a seek before them, as at the head of a
/// queue: by about a millisecond.
const DENSE_MANY: u64 = 10_000;
/// Range deletions that slow down reads.
const RANGES_MANY: u64 = 10_000;
/// Number of entries below which filters take no space and save little.
const FILTERED_MIN: u64 = 100_000;
/// Bits per key below which a Bloom filter passes more than a quarter of absent keys.
const BITS_FEW: f64 = 3.0;
/// Bits per key above which a Bloom filter passes fewer than one absent key in a hundred thousand.
const BITS_MANY: f64 = 24.0;
/// Age in seconds below which a snapshot probably belongs to a running read.
const SNAPSHOT_YOUNG: u64 = 60;
/// Size of all newer sorted runs, as a percentage of the oldest, from which it is reported.
const AMPLIFIED_MUCH: u64 = 400;

impl Findings {
    /// What delays writers.
    pub(super) fn stalls(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts { name, level0_files, level0_stop_writes_trigger: stop, .. } = family;
        let slowdown = family.level0_slowdown_writes_trigger;
        let faster = faster(family, database);
        // Nobody waits for compactions that do not come.
        let is_unasked = !family.disable_auto_compactions && !family.compactions_are_held;
        let (stops, delays) = match (is_unasked, database.is_running) {
            (false, _) => ("too many for reads", "many for reads"),
            (true, true) => ("writes are stopped", "writes are delayed"),
            // No process writes to a database that is only looked at, as far as that can be known.
            (true, false) => ("writes would be stopped", "writes would be delayed"),
        };
        let waiting = match family.compaction_style {
            CompactionStyle::Universal => {
                format!("{} to be merged", counted_waiting(*level0_files, "sorted run"))
            }
            _ => format!("{} in level 0", counted_waiting(*level0_files, "table")),
        };
        if level0_files >= stop {
            let what =
                format!("family '{name}': {waiting}: {stops} (level0_stop_writes_trigger {stop})");
            self.add(Severity::Slow, what, faster.clone());
        } else if *level0_files >= slowdown {
            let what = format!(
                "family '{name}': {waiting}: {delays} (level0_slowdown_writes_trigger {slowdown})"
            );
            self.add(Severity::Slow, what, faster.clone());
        }
        let (pending, soft) =
            (family.pending_compaction_bytes, family.soft_pending_compaction_bytes_limit);
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
        let FamilyFacts { unflushed_memtables: unflushed, max_write_buffer_number: most, .. } =
            family;
        // As writers themselves go by it: with few memtables one that is being flushed holds nobody
        // up.
        let delays_at = (most - 1).max(family.min_write_buffer_number_to_merge + 1);
        let wait = if unflushed >= most { "stopped" } else { "delayed" };
        if unflushed >= most || *most > 3 && *unflushed >= delays_at {
            let what = format!(
                "family '{name}': {} for a flush: writes are {wait}",
                counted_waiting(*unflushed, "full memtable")
            );
            let advice = limiter(database).unwrap_or_else(|| {
                let but = ", for bursts of writes; a steady load is limited by the disk";
                Remedy::set("max_write_buffer_number", most, most.saturating_mul(2)).but(but)
            });
            self.add(Severity::Slow, what, advice);
        }
    }

    /// Deletions that slow down reads.
    fn deletions(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts {
            name, tables, entries, deletions, deletion_tables, range_deletions, ..
        } = family;
        let advice = match family.compaction_style {
            CompactionStyle::Fifo => vec![Remedy::ExpireByTtl],
            _ => {
                let compact = rewrite(family, database, "compact the deleted ranges", "");
                snapshot_first(database)
                    .into_iter()
                    .chain([compact, Remedy::DeleteRanges])
                    .collect()
            }
        };
        let hold = form(*deletion_tables, "holds", "hold");
        if *entries >= ENTRIES_MIN && deletions.saturating_mul(4) >= *entries {
            let part = u128::from(*deletions) * 100 / u128::from(*entries);
            let what = format!(
                "family '{name}': {part}% of the entries in tables are deletions ({deletion_tables} of {} {hold} mostly \
                 deletions): scans step over them",
                counted(*tables, "table")
            );
            self.add(Severity::Slow, what, advice);
        } else if family.dense_deletions >= DENSE_MANY {
            let what = format!(
                "family '{name}': {deletion_tables} of {} {hold} mostly deletions, {} in all: scans and seeks there step over \
                 them",
                counted(*tables, "table"),
                family.dense_deletions
            );
            self.add(Severity::Slow, what, advice);
        }
        if *range_deletions >= RANGES_MANY && range_deletions.saturating_mul(10) >= *entries {
            let what = format!(
                "family '{name}': {} of ranges for {}: reads have to check them",
                counted(*range_deletions, "deletion"),
                counted(*entries, "entry")
            );
            let compact = rewrite(family, database, "compact", "");
            self.add(Severity::Slow, what, [compact, Remedy::DeleteFewerRanges]);
        }
    }

    /// How many bits per key filters have.
    fn filters(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts { name, filtered_entries: keys, filter_bytes, .. } = family;
        if *keys < FILTERED_MIN {
            return;
        }
        let bits = *filter_bytes as f64 * 8.0 / *keys as f64;
        let what = format!("family '{name}': filters have {bits:.1} bits per key");
        let but = ", because each table keeps the filter it was written with";
        let compact = rewrite(family, database, "then compact", but);
        let set =
            |bits| Remedy::set_to("table.filter_policy", format_args!("bloomfilter:{bits}:false"));
        if bits < BITS_FEW {
            let what = format!("{what}: many lookups of absent keys read a block for nothing");
            self.add(Severity::Slow, what, [set(10), compact]);
        } else if bits > BITS_MANY {
            let what = format!(
                "{what}, which take {} and exclude hardly more than 16 would",
                bytes(*filter_bytes)
            );
            self.add(Severity::Note, what, [set(16), compact]);
        }
    }

    /// Number and size of tables.
    pub(super) fn shape(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        self.deletions(family, database);
        self.filters(family, database);
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
            let advice = if is_fifo {
                Remedy::set_to("compaction_options_fifo", "{allow_compaction=true;}")
                    .but(": small tables are then merged")
            } else {
                let then = format!("; tables then have target_file_size_base ({})", bytes(target));
                rewrite(family, database, "compact", &then)
            };
            self.add(Severity::Slow, what, advice);
        } else if *tables >= 20 * TABLES_MANY {
            let what =
                format!("family '{name}': {tables} tables: each takes memory and time to open");
            let option = if is_fifo { "write_buffer_size" } else { "target_file_size_base" };
            self.add(Severity::Slow, what, Remedy::set(option, target, target.saturating_mul(4)));
        }
        if *table_bytes >= WORTH_SHAPING && *write_buffer_size < MEMTABLE_SMALL {
            let what = format!(
                "family '{name}': memtables of {} for {} of tables: many small flushes and {}",
                bytes(*write_buffer_size),
                bytes(*table_bytes),
                if is_fifo { "equally small tables" } else { "more compactions" }
            );
            self.add(
                Severity::Slow,
                what,
                Remedy::set("write_buffer_size", write_buffer_size, 64 << 20),
            );
        }
        if family.disable_auto_compactions {
            let mut what = format!("family '{name}': compactions run only on request");
            if family.blob_bytes > 0 {
                let collects = if database.is_running {
                    "Db::space measures it, Db::compact_range and then Db::collect_blob_garbage collect it"
                } else {
                    "flagstone space measures it, flagstone compact collects it"
                };
                what.push_str("; until one does, most garbage in blob files is unknown: ");
                what.push_str(collects);
            }
            let advice = match family.compaction_style {
                CompactionStyle::None => Remedy::AnotherStyle { when: "unless this is intended, " },
                _ => Remedy::set("disable_auto_compactions", true, false)
                    .when("unless this is intended, "),
            };
            self.add(Severity::Note, what, advice);
        }
        if family.compactions_are_held {
            let what = format!("family '{name}': automatic compactions are on hold");
            let let_go = Remedy::LetGo { when: "when no longer intended, ", but: "" };
            self.add(Severity::Note, what, let_go);
        }
    }

    /// What universal compaction stores twice.
    pub(super) fn runs(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts { name, table_bytes, newer_run_bytes: newer, level0_files: runs, .. } =
            family;
        let FamilyFacts { max_size_amplification_percent: most, .. } = family;
        let oldest = table_bytes.saturating_sub(*newer);
        let is_universal = family.compaction_style == CompactionStyle::Universal;
        if !is_universal
            || *table_bytes < WORTH_SHAPING
            || *runs < family.level0_file_num_compaction_trigger
        {
            return;
        }
        let percent =
            (u128::from(*newer) * 100 / u128::from(oldest.max(1))).min(u128::from(u64::MAX)) as u64;
        let what = format!(
            "family '{name}': {runs} sorted runs, the oldest of {}, the newer ones of {}: if they overwrite the same keys, \
             tables take {:.1} times the space of their live data",
            bytes(oldest),
            bytes(*newer),
            1.0 + percent as f64 / 100.0
        );
        if percent / 3 * 2 > *most {
            let what =
                format!("{what}; max_size_amplification_percent ({most}) requires merging them");
            self.add(Severity::Slow, what, faster(family, database));
        } else if percent > AMPLIFIED_MUCH {
            let but = format!(", now {most}, to save space");
            let value = "{max_size_amplification_percent=200;}";
            let advice = Remedy::set_to("compaction_options_universal", value).but(but);
            self.add(Severity::Slow, what, advice);
        }
    }

    /// What FIFO compaction drops to stay within the limit that `option` sets.
    fn fifo_at_limit(&mut self, family: &FamilyFacts, option: &str) {
        let FamilyFacts { name, fifo_bytes, fifo_limit_bytes: limit, oldest_seconds, ttl, .. } =
            family;
        let default = FamilyFacts::default();
        let is_ttl_chosen = *ttl != default.ttl;
        let is_limit_chosen = family.fifo_counts_blobs || *limit != default.fifo_limit_bytes;
        let is_cut_short = *ttl > 0 && *oldest_seconds > 0 && *oldest_seconds < ttl / 10 * 9;
        if is_cut_short && (is_ttl_chosen || is_limit_chosen) {
            // Tables go as one that is flushed comes: where another has room, none has gone for
            // want of it, unless it was a large one, of several memtables or with the blob files of
            // many values, that made the room.
            let room = limit.saturating_sub(*fifo_bytes);
            let made_room = family.oldest_are_gone && room < family.largest_drop_bytes;
            let is_full = room < family.write_buffer_size || made_room;
            let fate = if is_full {
                "older keys were dropped or this one is next"
            } else {
                "it will be dropped earlier"
            };
            let what = format!(
                "family '{name}': the oldest key was written {oldest_seconds} s ago, and ttl is {ttl} s: {fate}, because the \
                 limit is {} ({option})",
                bytes(*limit)
            );
            let enough =
                (u128::from(*fifo_bytes) * u128::from(*ttl) / u128::from(*oldest_seconds)) as u64;
            let value = format!("{{{option}={};}}", enough.saturating_mul(2));
            let set = Remedy::set_to("compaction_options_fifo", value);
            let (severity, advice) = if !is_ttl_chosen {
                // Whether somebody chose 30 days nothing tells: OPTIONS files say that of who did
                // not.
                (Severity::Note, set.when("to keep keys for the default ttl, "))
            } else if is_full {
                (Severity::Slow, set)
            } else {
                (Severity::Note, set)
            };
            self.add(severity, what, advice);
        } else if !is_limit_chosen {
            let what = format!(
                "family '{name}': the oldest tables are dropped once all together reach {} (the default of {option})",
                bytes(*limit)
            );
            let value = format!("{{max_table_files_size={};}}", limit.saturating_mul(2));
            let set =
                Remedy::set_to("compaction_options_fifo", value).when("to keep them longer, ");
            self.add(Severity::Note, what, set.but(" or more"));
        }
    }

    /// What FIFO compaction drops, or fails to drop.
    pub(super) fn fifo(&mut self, family: &FamilyFacts) {
        let FamilyFacts { name, fifo_limit_bytes: limit, .. } = family;
        if family.compaction_style != CompactionStyle::Fifo {
            return;
        }
        let option =
            if family.fifo_counts_blobs { "max_data_files_size" } else { "max_table_files_size" };
        if family.fifo_bytes >= limit / 10 * 9 {
            self.fifo_at_limit(family, option);
        }
        if family.write_buffer_size > limit / 4 {
            let what = format!(
                "family '{name}': a memtable of {} is more than a quarter of the limit on all tables ({}, {option}): each \
                 flush may drop that much of the oldest data",
                bytes(family.write_buffer_size),
                bytes(*limit)
            );
            let advice = Remedy::set("write_buffer_size", family.write_buffer_size, limit / 16);
            self.add(Severity::Slow, what, advice);
        }
        if !family.fifo_counts_blobs && family.blob_bytes > *limit {
            let what = format!(
                "family '{name}': blob files take {}, and do not count towards max_table_files_size ({})",
                bytes(family.blob_bytes),
                bytes(*limit)
            );
            let all = family.blob_bytes.saturating_add(family.table_bytes).max(*limit);
            let value = format!("{{max_data_files_size={};}}", all.saturating_mul(2));
            let set = Remedy::set_to("compaction_options_fifo", value).when("to count them, ");
            self.add(
                Severity::Slow,
                what,
                set.but(" or less; the oldest tables are dropped beyond that"),
            );
        }
    }
}

/// What to do before deleted or overwritten data can go.
pub(super) fn snapshot_first(database: &DatabaseFacts) -> Option<Remedy> {
    let DatabaseFacts {
        snapshot_seconds: seconds,
        snapshot_writes: writes,
        snapshot_taken_at: at,
        ..
    } = database;
    if *writes == 0 || *seconds < SNAPSHOT_YOUNG {
        return None;
    }
    Some(Remedy::DropSnapshotFirst { seconds: *seconds, taken_at: at.clone(), writes: *writes })
}

/// A compaction that rewrites all tables of a family.
fn rewrite(
    family: &FamilyFacts,
    database: &DatabaseFacts,
    what: &'static str,
    but: &str,
) -> Remedy {
    let (bottommost, is_running) = (true, database.is_running);
    Remedy::Compact {
        what,
        family: family.name.clone(),
        bottommost,
        is_running,
        but: but.to_string(),
    }
}

/// A compaction of what is due.
fn catch_up(
    family: &FamilyFacts,
    database: &DatabaseFacts,
    what: &'static str,
    but: &str,
) -> Remedy {
    let (bottommost, is_running) = (false, database.is_running);
    Remedy::Compact {
        what,
        family: family.name.clone(),
        bottommost,
        is_running,
        but: but.to_string(),
    }
}

/// How compactions catch up.
pub(super) fn faster(family: &FamilyFacts, database: &DatabaseFacts) -> Vec<Remedy> {
    let compact = |what, but| catch_up(family, database, what, but);
    match (family.disable_auto_compactions, family.compaction_style) {
        (true, CompactionStyle::None) => {
            vec![compact("compact", ""), Remedy::AnotherStyle { when: "or " }]
        }
        (true, _) => {
            let set = Remedy::set("disable_auto_compactions", true, false);
            vec![set, compact("or compact", "")]
        }
        (false, _) if family.compactions_are_held => {
            vec![Remedy::LetGo { when: "", but: ", or call Db::compact_range" }]
        }
        (false, _) => {
            if let Some(limiter) = limiter(database) {
                return vec![limiter];
            }
            let (option, jobs) = match database.max_background_compactions {
                0 => ("max_background_jobs", database.max_background_jobs),
                compactions => ("max_background_compactions", compactions),
            };
            let more = Remedy::set(option, jobs, jobs.saturating_mul(2));
            if database.is_running {
                return vec![more];
            }
            let but = ", or open the database for writing, which compacts in the background";
            let mut all = vec![compact("compact", but), more];
            // What they waited for is not known where the database is only looked at.
            if database.rate_limit > 0 {
                all.push(Remedy::MindRateLimit { bytes_per_second: database.rate_limit });
            }
            all
        }
    }
}

/// What delayed writers most often since the database was opened, and what to change; `None` if it
/// was not counted.
pub(super) fn mostly_held_up_by(facts: &Facts) -> Option<(String, Vec<Remedy>)> {
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
            ", mostly by the limit on the memtables of all families ({together} of {})",
            counted(all, "time")
        );
        let more = more_memtables(&facts.database, BURSTS, LASTS);
        return Some((mostly, vec![more]));
    }
    let times = by.into_iter().max().filter(|times| *times > 0)?;
    let (reason, remedy) = match by.iter().position(|count| *count == times)? {
        0 => {
            let most = family.max_write_buffer_number;
            let more = most.saturating_mul(2);
            let set = Remedy::set("max_write_buffer_number", most, more).when(BURSTS).but(LASTS);
            ("full memtables waiting for a flush", vec![set])
        }
        1 if family.compaction_style == CompactionStyle::Universal => {
            ("sorted runs waiting to be merged", faster(family, &facts.database))
        }
        1 => ("tables waiting in level 0", faster(family, &facts.database)),
        2 => ("bytes waiting to be compacted", faster(family, &facts.database)),
        _ => {
            let most = family.burst_space_amplification;
            let more = format!("{:.1}", most.max(1.0) + 0.7);
            let set = Remedy::set("burst_space_amplification", most, more)
                .when("data is overwritten faster than space is reclaimed: ")
                .but(" if writing matters more than space");
            ("garbage in blob files", vec![set])
        }
    };
    let mostly = format!(
        ", mostly by {reason} (family '{}': {times} of {})",
        family.name,
        counted(all, "time")
    );
    Some((mostly, remedy))
}

/// `1 table waits`, `2 tables wait`.
fn counted_waiting(count: u64, one: &str) -> String {
    format!("{} {}", counted(count, one), form(count, "waits", "wait"))
}

/// What stands around advice for a load that is not always the same.
const BURSTS: &str = "for bursts of writes ";
const LASTS: &str = "; a steady load is limited by the disk";

/// How the memtables of all families can get more memory.
pub(super) fn more_memtables(
    database: &DatabaseFacts,
    when: &'static str,
    but: &'static str,
) -> Remedy {
    match (database.db_write_buffer_size, database.memtable_bytes_max) {
        // The program set it, and none of its files says how.
        (_, 0) => {
            Remedy::MoreMemory { when, what: "raise db_write_buffer_size or memory_budget", but }
        }
        (size, most) if size == most => {
            Remedy::set("db_write_buffer_size", size, size.saturating_mul(2)).when(when).but(but)
        }
        _ => Remedy::MoreMemory { when, what: "raise memory_budget", but },
    }
}

/// What to do about the rate limiter, if flushes and compactions wait for it more than a quarter of
/// the time.
pub(super) fn limiter(database: &DatabaseFacts) -> Option<Remedy> {
    let DatabaseFacts { rate_limit: limit, rate_limiter_us: waited, open_seconds, .. } = database;
    let is_felt = *limit > 0
        && *waited >= SECOND_US
        && waited.saturating_mul(4) >= open_seconds.saturating_mul(SECOND_US);
    is_felt.then(|| {
        let seconds = waited / SECOND_US;
        let when =
            format!("flushes and compactions have waited {seconds} s for the rate limiter: ");
        Remedy::set("rate_limiter_bytes_per_sec", limit, limit.saturating_mul(4)).when(when)
    })
}

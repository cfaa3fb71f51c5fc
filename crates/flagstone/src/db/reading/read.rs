//! The way of a point lookup.
//!
//! 1. Pin the family's super version, then read the published sequence number (in this order: what
//!    a newer version may have dropped is then still in the pinned one).
//! 2. Ask the sources from newest to oldest: memtable, immutable memtables, every table of level 0
//!    whose range holds the key, one table of each deeper level; stop at the first entry that
//!    decides. Range tombstones are asked for when an entry may follow (`covers`).
//! 3. Fetch the blob, or merge the operands, if that is what was found.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::perf::{self, PerfLevelMetric, PerfMetric};
use crate::base::{
    InternalKey, KeyBuffer, MAX_SEQUENCE_NUMBER, Mutant, Result, SequenceNumber, Sometimes,
    ValueType,
};
use crate::db::family::{Family, SuperVersion};
use crate::db::reading::Reader;
use crate::db::reading::as_of::{FoundAsOf, search_as_of};
use crate::db::reading::covers::{Tombstones, UncheckedTombstones};
use crate::db::reading::value::Value;
use crate::db::statistics::Ticker;
use crate::db::tables::{Tables, tombstones_of};
use crate::iter::lookup::check_value;
use crate::iter::{Lookup, LookupValue, Outcome, ValueResolver};
use crate::manifest::{TableFile, Version};
use crate::memtable::MemTable;
use crate::options::ReadOptions;
use crate::sst::{FoundRow, LookupKey, ReadSettings, Table, ValueRef};

impl Reader {
    pub(in crate::db) fn get(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
    ) -> Result<Option<Value>> {
        self.note_get(family, key);
        self.get_again(options, family, key)
    }

    /// [`Self::get`] of a key that was counted already.
    #[inline]
    pub(in crate::db) fn get_again(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
    ) -> Result<Option<Value>> {
        let _cpu = perf::time(PerfMetric::GetCpuNanos);
        let time = perf::time(PerfMetric::GetSnapshotTime);
        self.check_family(family)?;
        let current = family.current.load();
        let snapshot = self.read_sequence(options)?;
        drop(time);
        self.within(options, || self.lookup(options, family, &current, snapshot, key))
    }

    /// [`Self::get`] of a family with timestamps, and the timestamp of what was found.
    pub(in crate::db) fn get_with_timestamp(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
    ) -> Result<Option<(Value, Vec<u8>)>> {
        self.note_get(family, key);
        self.check_family(family)?;
        let current = family.current.load();
        let snapshot = self.read_sequence(options)?;
        self.within(options, || {
            let FoundAsOf { lookup, timestamp } =
                search_as_of(self, options, family, &current, snapshot, key)?;
            let value = self.finish_lookup(options, family, &current, key, lookup)?;
            Ok(value.map(|value| (value, timestamp)))
        })
    }

    fn lookup(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        current: &SuperVersion,
        snapshot: SequenceNumber,
        key: &[u8],
    ) -> Result<Option<Value>> {
        let lookup = self.search(options, family, current, snapshot, key)?;
        let _time = perf::time(PerfMetric::GetPostProcessTime);
        let value = self.finish_lookup(options, family, current, key, lookup)?;
        count_read(PerfMetric::GetReadBytes, value.as_ref());
        Ok(value)
    }

    /// Finds the versions of a key that count.
    #[inline]
    pub(in crate::db) fn search(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        current: &SuperVersion,
        snapshot: SequenceNumber,
        key: &[u8],
    ) -> Result<Lookup<Value>> {
        if family.order.timestamp_size() > 0 || options.timestamp.is_some() {
            let found = search_as_of(self, options, family, current, snapshot, key)?;
            return Ok(found.lookup);
        }
        let mut lookup = Lookup::new();
        let mut covers = UncheckedTombstones::of(key, snapshot);
        if !pass_memtables(current, key, snapshot, options, &mut covers, &mut lookup)? {
            let target = KeyBuffer::for_seek(key, snapshot);
            let sought = LookupKey::new(target.as_key());
            let _time = perf::time(PerfMetric::GetFromOutputFilesTime);
            self.search_tables(
                options,
                family,
                &current.version,
                &sought,
                &mut covers,
                &mut lookup,
            )?;
        }
        Ok(lookup)
    }

    /// What the versions that were found amount to.
    fn finish_lookup(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        current: &SuperVersion,
        key: &[u8],
        lookup: Lookup<Value>,
    ) -> Result<Option<Value>> {
        self.finish_outcome(options, family, current, key, lookup.finish())
    }

    #[inline]
    pub(in crate::db) fn finish_outcome(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        current: &SuperVersion,
        key: &[u8],
        outcome: Outcome<Value>,
    ) -> Result<Option<Value>> {
        let found = match outcome {
            // Most often; without a look at the options.
            Outcome::NotFound => None,
            Outcome::Found(ValueType::Value, value) => Some(value),
            outcome => {
                let resolver = self.blobs_of(options, family, current);
                let operator = &family.options.load().merge_operator;
                outcome.resolve(key, operator.as_deref(), &resolver)?.map(|value| match value {
                    LookupValue::Pinned { value, start, end }
                        if start == 0 && end == value.len() =>
                    {
                        value
                    }
                    LookupValue::Pinned { value, start, end } => {
                        Value::from(value[start..end].to_vec())
                    }
                    LookupValue::Owned(value) => Value::from(value),
                })
            }
        };
        if let Some(value) = &found {
            self.statistics.add(Ticker::BytesRead, value.len() as u64);
        }
        Ok(found)
    }

    /// Fetches the values that a lookup finds in blob files.
    pub(super) fn blobs_of<'a>(
        &'a self,
        options: &'a ReadOptions,
        family: &'a Family,
        current: &'a SuperVersion,
    ) -> BlobResolver<'a> {
        BlobResolver { tables: &self.tables, family, version: &current.version, options }
    }

    fn search_tables<'a>(
        &self,
        options: &ReadOptions,
        family: &Family,
        version: &'a Version,
        sought: &LookupKey<'_>,
        covers: &mut UncheckedTombstones<'a>,
        lookup: &mut Lookup<Value>,
    ) -> Result<()> {
        let target = sought.target();
        let level0 = &version.levels[0];
        let at_level = perf::at_level(0);
        // Of several tables most do not have the key: their filters say so, and are fetched
        // together.
        let filters_first = level0.len() > 1;
        if filters_first {
            level0
                .iter()
                .filter_map(|file| file.table.get())
                .for_each(|table| table.prefetch_for(sought));
        }
        for at in 0..level0.len() {
            let file =
                &level0[if Mutant::SearchOldestFirst.is_on() { level0.len() - 1 - at } else { at }];
            if let Some(deletions) = file.deletions_only().filter(|_| covers.is_settled()) {
                // Without a look at its bounds: a miss need not know, and where keys are found most
                // lie within. Of the next tables the bounds are looked at, since only so many can
                // wait to be asked.
                if !options.ignore_range_deletions {
                    covers.pass(Tombstones::Table(deletions), lookup);
                }
            } else if may_hold(family, file, target.user_key()) {
                self.search_next(options, family, file, filters_first, sought, covers, lookup)?;
                if lookup.is_done() {
                    return Ok(());
                }
            }
        }
        drop(at_level);
        for (level, files) in
            version.levels.iter().enumerate().skip(1).filter(|(_, files)| !files.is_empty())
        {
            let _at_level = perf::at_level(level);
            let first = version.file_index_for_key(level, target);
            self.search_level(options, family, &files[first..], sought, covers, lookup)?;
            // Only now: a tombstone of one table need not be newer than what the level's next table
            // holds.
            if lookup.is_done() {
                break;
            }
        }
        Ok(())
    }

    /// Searches a level from the first table that may hold the key: its versions may straddle
    /// tables, so go on while the key may continue.
    fn search_level<'a>(
        &self,
        options: &ReadOptions,
        family: &Family,
        files: &'a [Arc<TableFile>],
        sought: &LookupKey<'_>,
        covers: &mut UncheckedTombstones<'a>,
        lookup: &mut Lookup<Value>,
    ) -> Result<()> {
        let order = family.comparator();
        let key = sought.target().user_key();
        let Some((first, others)) = files.split_first() else { return Ok(()) };
        if order.compare(first.meta.smallest.user_key(), key).is_gt() {
            return Ok(());
        }
        self.search_next(options, family, first, false, sought, covers, lookup)?;
        let goes_on = order.compare(first.meta.largest.user_key(), key).is_eq();
        if !lookup.has_ended() && goes_on && !others.is_empty() {
            // What covers the key in the first of these tables says nothing about the next.
            covers.settle(lookup);
            self.search_straddled(options, family, others, sought, lookup)?;
        }
        Ok(())
    }

    /// Searches the tables of a level into which a key's versions may go on.
    pub(in crate::db) fn search_straddled(
        &self,
        options: &ReadOptions,
        family: &Family,
        files: &[Arc<TableFile>],
        sought: &LookupKey<'_>,
        lookup: &mut Lookup<Value>,
    ) -> Result<()> {
        let order = family.comparator();
        let key = sought.target().user_key();
        for file in files {
            if order.compare(file.meta.smallest.user_key(), key).is_gt() {
                break;
            }
            Sometimes::KeyStraddledTables.reached();
            self.search_table(options, family, file, sought, lookup)?;
            if lookup.has_ended() || order.compare(file.meta.largest.user_key(), key).is_ne() {
                break;
            }
        }
        Ok(())
    }

    /// Searches one table, whatever covers the key in others.
    pub(in crate::db) fn search_table(
        &self,
        options: &ReadOptions,
        family: &Family,
        file: &TableFile,
        sought: &LookupKey<'_>,
        lookup: &mut Lookup<Value>,
    ) -> Result<()> {
        let table = self.tables.open_for(family, file, options.cache_only)?;
        let _time = perf::time_table();
        cover(table, sought.target(), options, lookup);
        if !table.has_points() {
            return Ok(());
        }
        if table.has_rows() {
            match self.row(table, sought, options)? {
                Some(FoundRow::Absent) => return Ok(()),
                Some(FoundRow::Row(row, is_hit)) => {
                    let before = lookup.versions();
                    row.visit(sought.target(), |sequence, kind, value| {
                        take(lookup, sought, sequence, kind, value)
                    })?;
                    note_found_row(table, is_hit, lookup, before);
                    return Ok(());
                }
                Some(FoundRow::TooLarge) | None => {}
            }
        }
        let Some(admitted) = table.admit(sought, &read_settings(options), false)? else {
            return Ok(());
        };
        let before = lookup.versions();
        table.get_admitted(
            admitted,
            sought,
            &read_settings(options),
            |sequence, kind, value| take(lookup, sought, sequence, kind, value),
        )?;
        note_found(table, lookup, before);
        Ok(())
    }

    /// What the cache of rows says of a key in a table.
    fn row(
        &self,
        table: &Table,
        sought: &LookupKey<'_>,
        options: &ReadOptions,
    ) -> Result<Option<FoundRow>> {
        let found = table.row(sought, &read_settings(options))?;
        let is_hit = matches!(found, Some(FoundRow::Row(_, true)));
        let ticker = if is_hit { Ticker::RowCacheHits } else { Ticker::RowCacheMisses };
        self.statistics.add(ticker, 1);
        Ok(found)
    }

    /// Passes a table by its row; whether that was possible.
    #[cold]
    fn pass_row<'a>(
        &self,
        options: &ReadOptions,
        table: &Table,
        sought: &LookupKey<'_>,
        covers: &mut UncheckedTombstones<'a>,
        own: &mut Option<Tombstones<'a>>,
        lookup: &mut Lookup<Value>,
    ) -> Result<bool> {
        let (row, is_hit) = match self.row(table, sought, options)? {
            Some(FoundRow::Absent) => return Ok(true),
            Some(FoundRow::Row(row, is_hit)) => (row, is_hit),
            Some(FoundRow::TooLarge) | None => return Ok(false),
        };
        let may_be_covered = own.is_some() || !covers.is_settled();
        if may_be_covered && covers.seek(own, lookup).is_break() {
            return Ok(true);
        }
        let before = lookup.versions();
        row.visit(sought.target(), |sequence, kind, value| {
            if covers.reach(own, sequence, lookup).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            take(lookup, sought, sequence, kind, value)
        })?;
        note_found_row(table, is_hit, lookup, before);
        Ok(true)
    }

    /// Searches the next older table, unless what was passed covers the key.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "one lookup's way, with all that it has with it")]
    fn search_next<'a>(
        &self,
        options: &ReadOptions,
        family: &Family,
        file: &'a TableFile,
        filter_first: bool,
        sought: &LookupKey<'_>,
        covers: &mut UncheckedTombstones<'a>,
        lookup: &mut Lookup<Value>,
    ) -> Result<()> {
        let is_at_hand = file.table.get().is_some_and(|table| table.admits_from_memory());
        if !is_at_hand && covers.settle(lookup) {
            return Ok(());
        }
        let table = self.tables.open_for(family, file, options.cache_only)?;
        let _time = perf::time_table();
        let tombstones = tombstones_of(table).filter(|_| !options.ignore_range_deletions);
        let mut own = tombstones.map(|tombstones| Tombstones::Table(tombstones));
        if table.has_rows() && self.pass_row(options, table, sought, covers, &mut own, lookup)? {
            if let Some(own) = own {
                covers.pass(own, lookup);
            }
            return Ok(());
        }
        if table.has_points()
            && let Some(mut admitted) =
                table.admit(sought, &read_settings(options), filter_first)?
        {
            if (own.is_some() || !covers.is_settled()) && covers.seek(&mut own, lookup).is_break() {
                return Ok(());
            }
            // Unless nothing covers the key.
            if own.is_some() || !covers.is_settled() {
                let in_memory = table.find_block(&mut admitted);
                if !in_memory && covers.reach(&mut own, SequenceNumber::MAX, lookup).is_break() {
                    return Ok(());
                }
            }
            let before = lookup.versions();
            table.get_admitted(
                admitted,
                sought,
                &read_settings(options),
                |sequence, kind, value| {
                    if covers.reach(&mut own, sequence, lookup).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    take(lookup, sought, sequence, kind, value)
                },
            )?;
            note_found(table, lookup, before);
        }
        if let Some(own) = own {
            covers.pass(own, lookup);
        }
        Ok(())
    }
}

/// Counts a table that has the key: `before` is how many versions were known before it was
/// searched.
#[inline]
pub(in crate::db) fn note_found(table: &Table, lookup: &Lookup<Value>, before: usize) {
    note_found_row(table, false, lookup, before);
}

/// [`note_found`] by a row: for one that was in the cache no filter was asked.
#[inline]
fn note_found_row(table: &Table, is_hit: bool, lookup: &Lookup<Value>, before: usize) {
    if perf::counts() && lookup.versions() > before {
        if !is_hit && table.filters_keys() {
            perf::count_at_level(PerfLevelMetric::BloomFilterFullTruePositive, 1);
        }
        perf::count_at_level(PerfLevelMetric::UserKeyReturnCount, u64::from(lookup.has_base()));
    }
}

/// Counts the bytes that a lookup returned.
#[inline]
pub(super) fn count_read(metric: PerfMetric, value: Option<&Value>) {
    if perf::counts() {
        perf::count(metric, value.map_or(0, |value| value.len() as u64));
    }
}

/// Adds an entry of a table to a lookup.
///
/// # Errors
/// `Corruption` or `NotSupported`: its value cannot be read. Where it counts that is found out
/// here, as long as it is known in which table it lies.
#[inline]
pub(in crate::db) fn take(
    lookup: &mut Lookup<Value>,
    sought: &LookupKey<'_>,
    sequence: SequenceNumber,
    kind: ValueType,
    value: ValueRef<'_>,
) -> Result<ControlFlow<()>> {
    if lookup.counts(sequence) {
        check_value(sought.target().user_key(), kind, value.bytes())?;
    }
    Ok(lookup.add(sequence, kind, Value::from(value.pin())))
}

/// Whether the key lies within the bounds of a table.
pub(in crate::db) fn may_hold(family: &Family, file: &TableFile, key: &[u8]) -> bool {
    let order = family.comparator();
    let (smallest, largest) = (file.meta.smallest.user_key(), file.meta.largest.as_key());
    let to_largest = order.compare(key, largest.user_key());
    // Where a range deletion is cut off the key is not the table's: what is deleted from there on,
    // another table says.
    let is_below =
        to_largest.is_lt() || (to_largest.is_eq() && largest.sequence() != MAX_SEQUENCE_NUMBER);
    is_below && order.compare(smallest, key).is_le()
}

/// Notes a table's range tombstone over the key, if there is one.
#[inline]
pub(in crate::db) fn cover(
    table: &Table,
    target: InternalKey<'_>,
    options: &ReadOptions,
    lookup: &mut Lookup<Value>,
) {
    if let Some(tombstones) = tombstones_of(table)
        && !options.ignore_range_deletions
    {
        lookup.cover(tombstones.covering_sequence(target.user_key(), target.sequence()));
    }
}

/// Searches the memtables; whether tables no longer matter.
#[inline]
pub(in crate::db) fn search_memtables(
    current: &SuperVersion,
    key: &[u8],
    snapshot: SequenceNumber,
    options: &ReadOptions,
    lookup: &mut Lookup<Value>,
) -> Result<bool> {
    let mut covers = UncheckedTombstones::of(key, snapshot);
    let is_done = pass_memtables(current, key, snapshot, options, &mut covers, lookup)?;
    Ok(is_done || covers.settle(lookup))
}

/// Searches the memtables; whether older sources do not matter, as far as `covers` was asked.
#[inline]
fn pass_memtables<'a>(
    current: &'a SuperVersion,
    key: &[u8],
    snapshot: SequenceNumber,
    options: &ReadOptions,
    covers: &mut UncheckedTombstones<'a>,
    lookup: &mut Lookup<Value>,
) -> Result<bool> {
    let mut is_done = false;
    for mem in current.generations() {
        if pass_memtable(mem, key, snapshot, options, covers, lookup)? {
            is_done = true;
            break;
        }
    }
    if !is_done && lookup.has_operands() {
        Sometimes::MergeAcrossLevels.reached();
    }
    Ok(is_done)
}

/// Searches one memtable; whether older sources do not matter, as far as `covers` was asked.
fn pass_memtable<'a>(
    mem: &'a MemTable,
    key: &[u8],
    snapshot: SequenceNumber,
    options: &ReadOptions,
    covers: &mut UncheckedTombstones<'a>,
    lookup: &mut Lookup<Value>,
) -> Result<bool> {
    let covers_keys = mem.num_range_tombstones() > 0 && !options.ignore_range_deletions;
    let mut own = covers_keys.then_some(Tombstones::MemTable(mem));
    mem.get(key, snapshot, |sequence, kind: ValueType, value| -> ControlFlow<()> {
        covers.reach(&mut own, sequence, lookup)?;
        lookup.add(sequence, kind, Value::from(value.to_vec()))
    })?;
    if let Some(own) = own {
        covers.pass(own, lookup);
    }
    Ok(lookup.is_done())
}

/// A table's part of the read options.
pub(in crate::db) fn read_settings(options: &ReadOptions) -> ReadSettings {
    ReadSettings {
        verify_checksums: options.verify_checksums,
        fill_cache: options.fill_cache,
        cache_only: options.cache_only,
    }
}

/// Fetches the values that a lookup finds in blob files.
pub(in crate::db) struct BlobResolver<'a> {
    pub(in crate::db) tables: &'a Tables,
    pub(in crate::db) family: &'a Family,
    pub(in crate::db) version: &'a Version,
    pub(in crate::db) options: &'a ReadOptions,
}

impl ValueResolver for BlobResolver<'_> {
    fn resolve_blob(&self, user_key: &[u8], blob_index: &[u8]) -> Result<Bytes> {
        let settings = read_settings(self.options);
        let place = self.tables.place_of_blob(self.family, user_key, blob_index)?;
        self.tables.read_blob(self.family, self.version, user_key, &place, &settings, None)
    }
}

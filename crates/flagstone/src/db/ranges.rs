//! What is asked of ranges of keys and not of keys: how much they take, which versions
//! they have, and that they go, are compacted soon, or read ahead.

use std::sync::Arc;

use crate::base::{Error, InternalKeyBuf, MAX_SEQUENCE_NUMBER, Result, Sometimes};
use crate::batch::WriteBatch;
use crate::compaction::pick::{KeyRange, files_within};
use crate::db::DbInner;
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::db::reading::ahead::{AheadLimits, UserRange, read_ahead};
use crate::db::reading::versions::{KeyVersion, key_versions};
use crate::db::tables::Tables;
use crate::db::tree::compaction_job::CompactionJob;
use crate::manifest::{TableFile, Version};
use crate::options::{
    BottommostLevelCompaction, CompactRangeOptions, FlushOptions, SizeApproximationOptions,
    WriteOptions,
};

impl Db {
    /// Up to `at_most` stored versions of the keys in a range, in the order of the keys, of each
    /// the newest first.
    ///
    /// # Errors
    /// `InvalidArgument` for a family of another database; `Corruption`, `IoError`.
    pub fn key_versions(
        &self,
        family: &ColumnFamily,
        range: UserRange<'_>,
        at_most: usize,
    ) -> Result<Vec<KeyVersion>> {
        key_versions(&self.inner().reader, &family.0, range, at_most)
    }

    /// Reads blocks that cursors over the ranges will ask for into the cache, many at a time, range
    /// by range; blocks that cannot be read are left to the cursors. Returns how many of the ranges
    /// it came to before the limits, and `usize::MAX` if nothing can be read ahead.
    pub(crate) fn read_ahead<'a>(
        &self,
        family: &ColumnFamily,
        ranges: impl Iterator<Item = UserRange<'a>>,
        limits: AheadLimits,
    ) -> usize {
        read_ahead(&self.inner().reader, &family.0, ranges, limits)
    }

    /// Removes the tables below level 0 that lie altogether within one of `ranges`, without reading
    /// them: the quickest way to free space, for data that nobody reads any longer. What else lies
    /// in the ranges stays, so [`Db::delete_range`] comes before or after it. `None` is unbounded;
    /// the end belongs to a range if `include_end`.
    ///
    /// While a full disk suspends writes it goes on, with what was reserved
    /// (`reserved_disk_space`).
    ///
    /// It is not a deletion: snapshots see no more of the tables than others do, and a key whose
    /// newest version goes may show an older one from a deeper level. Of one level all versions of
    /// a key go, or none. An iterator keeps what it began with.
    ///
    /// # Errors
    /// Those of the MANIFEST; `IoError` or `Corruption` of a table whose values lie in blob files,
    /// since what it refers to is counted. `ColumnFamilyDropped`.
    pub fn delete_files_in_ranges(
        &self,
        family: &ColumnFamily,
        ranges: &[KeyRange<'_>],
        include_end: bool,
    ) -> Result<()> {
        let inner = self.inner();
        inner.disk.check_may_free()?;
        inner.disk.check_owner(&family.0)?;
        family.0.check_alive()?;
        let family_of = &family.0;
        let stored = ranges.iter().map(|(begin, end)| {
            let end = end.map(|end| {
                if include_end { family_of.stored_until(end) } else { family_of.stored_from(end) }
            });
            (begin.map(|begin| family_of.stored_from(begin)), end)
        });
        let stored: Vec<_> = stored.collect();
        let ranges: Vec<KeyRange<'_>> =
            stored.iter().map(|(begin, end)| (begin.as_deref(), end.as_deref())).collect();
        let ranges = &ranges[..];
        let planned = inner.tree.begin_planned(|_| {
            inner.disk.check_may_free()?;
            let version = family.0.current.load().version.clone();
            let Some(plan) = files_within(&version, ranges, include_end) else { return Ok(None) };
            let mut job = CompactionJob::new(family.0.clone(), version, plan);
            job.is_manual = true;
            Ok(Some((job, ())))
        })?;
        let Some((job, ())) = planned else { return Ok(()) };
        let outcome = inner.jobs.run_compaction(&job).map(drop);
        drop(job);
        inner.jobs.end_asked_for(outcome)
    }

    /// Removes all keys of a family outside of the range from `begin` to before `end`. One durable
    /// write deletes them; then the tables that have some of them are compacted, so that only what
    /// snapshots see is left on the disk. FIFO compaction removes nothing from the disk, and
    /// `cf_allow_ingest_behind` keeps what lies in the last level. A call that fails has deleted
    /// all of the keys or none. Keys that are written outside of the range meanwhile may stay.
    ///
    /// # Errors
    /// `InvalidArgument` if the range is empty: drop the family. `ColumnFamilyDropped`;
    /// `Corruption`, `IoError`.
    pub fn clip_column_family(
        &self,
        family: &ColumnFamily,
        begin: &[u8],
        end: &[u8],
    ) -> Result<()> {
        let inner = self.inner();
        inner.disk.check_owner(&family.0)?;
        if family.0.order.timestamp_size() > 0 {
            return Err(Error::not_supported(
                "a family with timestamps is clipped by delete_range_with_timestamp, and by a compaction once the deletion is \
                 before full_history_ts_low",
            ));
        }
        let user = family.0.comparator();
        if user.compare(begin, end).is_ge() {
            let (begin, end) = (begin.escape_ascii(), end.escape_ascii());
            let message = format!("no key lies from '{begin}' to before '{end}'; drop the family");
            return Err(Error::invalid_argument(message));
        }
        let flush = FlushOptions { allow_write_stall: true, ..FlushOptions::default() };
        self.flush(family, &flush)?;
        let version = family.0.current.load().version.clone();
        let Some((smallest, largest)) = version.key_bounds() else { return Ok(()) };
        let (mut batch, mut ranges) = (WriteBatch::new(), Vec::new());
        if user.compare(smallest, begin).is_lt() {
            batch.delete_range_cf(family, smallest, begin)?;
            ranges.push((None, Some(begin)));
        }
        if user.compare(largest, end).is_ge() {
            batch.delete_range_cf(family, end, largest)?;
            batch.delete_cf(family, largest)?;
            ranges.push((Some(end), None));
        }
        if ranges.is_empty() {
            return Ok(());
        }
        drop(version);
        self.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, batch)?;
        Sometimes::Clipped.reached();
        let options = CompactRangeOptions {
            exclusive_manual_compaction: true,
            bottommost_level_compaction: BottommostLevelCompaction::ForceOptimized,
            ..CompactRangeOptions::default()
        };
        ranges.iter().try_for_each(|(from, to)| self.compact_range(family, *from, *to, &options))
    }

    /// Asks for the tables with keys from `begin` to `end` (both inclusive; `None` is unbounded) to
    /// be compacted soon, and does not wait: each that lies above the last level goes down one
    /// level when nothing more urgent is to be done, and one that can be moved there as it is goes
    /// on from there. Forgotten when the database is closed.
    ///
    /// # Errors
    /// What had poisoned the database; `ColumnFamilyDropped`.
    pub fn suggest_compact_range(
        &self,
        family: &ColumnFamily,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        let inner = self.inner();
        inner.context.check_writable()?;
        inner.disk.check_owner(&family.0)?;
        family.0.check_alive()?;
        let begin = begin.map(|key| family.0.stored_from(key));
        let end = end.map(|key| family.0.stored_until(key));
        inner.tree.suggest(&family.0, begin.as_deref(), end.as_deref());
        Ok(())
    }

    /// About how many bytes the keys of each range, from the first up to but not including the
    /// second, take in tables, memtables and blob files, as `options` say, whether keys are deleted
    /// or not. Opens tables at the ends of the ranges, and looks at their indexes.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of a table; `ColumnFamilyDropped`.
    pub fn approximate_sizes(
        &self,
        family: &ColumnFamily,
        ranges: &[(&[u8], &[u8])],
        options: &SizeApproximationOptions,
    ) -> Result<Vec<u64>> {
        let inner = self.inner();
        inner.disk.check_owner(&family.0)?;
        family.0.check_alive()?;
        ranges
            .iter()
            .map(|(start, end)| {
                let (start, end) = (family.0.stored_from(start), family.0.stored_from(end));
                approximate_size(inner, &family.0, &start, &end, options)
            })
            .collect()
    }
}

fn approximate_size(
    db: &DbInner,
    family: &Arc<Family>,
    start: &[u8],
    end: &[u8],
    options: &SizeApproximationOptions,
) -> Result<u64> {
    let current = family.current.load_full();
    let mut bytes = 0u64;
    if family.comparator().compare(start, end).is_ge() {
        return Ok(0);
    }
    if options.include_memtables {
        for mem in current.generations() {
            let each = mem.data_size() / mem.num_entries().max(1);
            bytes = bytes.saturating_add(mem.approximate_count(start, end).saturating_mul(each));
        }
    }
    if options.include_files || options.include_blob_files {
        let margin = options.files_size_error_margin;
        let tables = bytes_in_tables(db, family, &current.version, (start, end), margin)?;
        if options.include_files {
            bytes = bytes.saturating_add(tables);
        }
        if options.include_blob_files {
            bytes = bytes.saturating_add(blob_bytes_beside(&current.version, tables));
        }
    }
    Ok(bytes)
}

/// About how many bytes of tables a range takes. If those that lie in it altogether are so large
/// that the others hardly matter, half of the others count.
fn bytes_in_tables(
    db: &DbInner,
    family: &Family,
    version: &Version,
    (start, end): (&[u8], &[u8]),
    margin: f64,
) -> Result<u64> {
    let user = family.comparator();
    let levels = 0..version.levels.len();
    let all: Vec<_> =
        levels.flat_map(|level| version.files_overlapping(level, Some(start), Some(end))).collect();
    let is_within = |file: &&Arc<TableFile>| {
        user.compare(start, file.meta.smallest.user_key()).is_le()
            && user.compare(file.meta.largest.user_key(), end).is_lt()
    };
    let (within, partly): (Vec<_>, Vec<_>) = all.iter().partition(is_within);
    let sum = |files: &[&Arc<TableFile>]| {
        files.iter().map(|file| file.meta.size).fold(0, u64::saturating_add)
    };
    let (whole, at_ends) = (sum(&within), sum(&partly));
    if margin > 0.0 && (at_ends as f64) < whole as f64 * margin {
        return Ok(whole.saturating_add(at_ends / 2));
    }
    partly.into_iter().try_fold(whole, |bytes, file| {
        Ok(bytes.saturating_add(db.tables.bytes_of_table_between(family, file, start, end)?))
    })
}

/// As large a part of the blob files as `tables` bytes are of the tables.
fn blob_bytes_beside(version: &Version, tables: u64) -> u64 {
    let part = tables as f64 / version.table_bytes().max(1) as f64;
    (version.blob_bytes() as f64 * part) as u64
}

impl Tables {
    /// About how many bytes of a table the keys from `start` up to `end` take.
    pub(in crate::db) fn bytes_of_table_between(
        &self,
        family: &Family,
        file: &TableFile,
        start: &[u8],
        end: &[u8],
    ) -> Result<u64> {
        let user = family.comparator();
        let begins_inside = user.compare(start, file.meta.smallest.user_key()).is_le();
        if begins_inside && user.compare(file.meta.largest.user_key(), end).is_lt() {
            return Ok(file.meta.size);
        }
        let table = self.open(family, file)?;
        let offset = |user_key: &[u8]| {
            table.approximate_offset_of(
                InternalKeyBuf::for_seek(user_key, MAX_SEQUENCE_NUMBER).as_key(),
            )
        };
        let from = if begins_inside { 0 } else { offset(start)? };
        Ok(offset(end)?.saturating_sub(from))
    }
}

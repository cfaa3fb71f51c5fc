//! Deletions that wait in memtables, and what range deletions free.
//!
//! What a table's deletions free is left to compactions (`compaction/pick/deletions.rs`). For these
//! to see them, a memtable that was not written to for `deletion_compaction_delay`, or has had
//! deletions for three times as long, is flushed, if it deletes as much as would be worth its
//! while: a tenth of the family's data, or as much as a full memtable holds. Range deletions that
//! leave nothing of that much are not waited with: it costs nothing but the flush to drop whole
//! tables.
//!
//! Values in blob files that smaller ones take the place of count as deleted, where
//! `max_space_amplification` bounds these files: such a memtable is long in filling up, and nobody
//! would learn meanwhile that there is garbage.

use std::sync::Arc;

use crate::base::{Code, Error, RangeTombstone, Result};
use crate::compaction::pick::{BlobSpace, table_stats};
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::jobs::{Jobs, overwriting};
use crate::db::statistics::Ticker;
use crate::db::tree::waiting_deletions::{Due, bounds_blob_space, due};
use crate::manifest::{TableFile, Version};
use crate::options::FlushReason;

/// A memtable is flushed if it deletes one part in so many of the family's data.
const WORTHWHILE: u64 = 10;

/// Range deletions that free one part in so many of `write_buffer_size`, and a worthwhile part of
/// the data, do not wait.
const AT_ONCE: u64 = 16;

/// Flushes memtables with deletions that are worth it and have waited long enough; whether
/// there were any.
///
/// # Errors
/// What has poisoned the database.
pub(in crate::db) fn flush_waiting_deletions(jobs: &Jobs) -> Result<bool> {
    if jobs.context.check_writable().is_err() {
        return Ok(false);
    }
    let Some(due) = jobs.tree.take_due_deletions(due) else { return Ok(false) };
    let mut flushed = false;
    for (family, due) in due {
        let current = family.current.load_full();
        let (version, mem) = (&current.version, &current.mem);
        if frees_much(jobs, &family, version, mem, due)
            || frees_blobs(jobs, &family, version, mem, due)
        {
            match jobs.flush_families(std::slice::from_ref(&family), false, FlushReason::Deletions)
            {
                Ok(()) => flushed = true,
                Err(error) => put_off_flush(jobs, error)?,
            }
        }
    }
    Ok(flushed)
}

/// Nobody waits for such a flush, and the next deletion brings it up again: that its WAL could
/// not be begun is no failure. What is one has poisoned the database already.
fn put_off_flush(jobs: &Jobs, error: Error) -> Result<()> {
    if jobs.context.poison.is_fatal() || error.code() == Code::ShutdownInProgress {
        return Err(error);
    }
    tracing::warn!(%error, "cannot flush a memtable to reclaim deleted space");
    jobs.context.statistics.add(Ticker::FlushesPutOff, 1);
    Ok(())
}

fn frees_much(jobs: &Jobs, family: &Family, version: &Version, mem: &Generation, due: Due) -> bool {
    // What tables say of values in blob files is as much as the tables are.
    let bytes = version.table_bytes();
    let full = family.options.load().write_buffer_size;
    let ranges =
        mem.needed_range_tombstones(&[]).map_or(Vec::new(), |found| found.for_writing(&[]));
    let covered = bytes_below(jobs, family, version, 0, &ranges);
    match due {
        Due::Ranges => covered > 0 && covered >= (bytes / WORTHWHILE).min(full).max(full / AT_ONCE),
        Due::All => {
            let known = version.files().filter_map(|(_, file)| table_stats(file));
            let entries = known.fold(0u64, |sum, stats| sum.saturating_add(stats.entries));
            let each = bytes / entries.max(1);
            let deletions = mem.num_deletes().saturating_add(mem.num_range_tombstones() as u64);
            let freed = deletions.saturating_mul(each).saturating_add(covered);
            bytes > 0 && freed >= (bytes / WORTHWHILE).min(full)
        }
    }
}

/// Whether the memtable takes the place of much in blob files, and of twice what it has in
/// memory itself.
fn frees_blobs(
    jobs: &Jobs,
    family: &Arc<Family>,
    version: &Version,
    mem: &Generation,
    due: Due,
) -> bool {
    let bounds_space = bounds_blob_space(&family.options.load());
    if due != Due::All || !bounds_space || version.blob_files.is_empty() {
        return false;
    }
    let blobs = || version.blob_files.values();
    let records = blobs().map(|blob| blob.file.meta.total_count.saturating_sub(blob.garbage_count));
    let records = records.fold(0, u64::saturating_add);
    // As few as that are not looked up.
    if mem.num_entries().saturating_mul(WORTHWHILE) < records {
        return false;
    }
    let referenced = BlobSpace::of(version, false).referenced();
    let freed = overwriting::blob_bytes_overwritten(jobs, family, mem).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot estimate what a memtable overwrites in blob files");
        jobs.context.statistics.add(Ticker::TablesNotOpened, 1);
        0
    });
    freed.min(referenced) >= referenced / WORTHWHILE && freed / 2 >= mem.data_size()
}

/// About how many bytes of the tables below `level` these tombstones cover, ascending and
/// disjoint but for older ones of the same range; in level 0, of all tables. Opens those that
/// are covered in part.
pub(in crate::db) fn bytes_below(
    jobs: &Jobs,
    family: &Family,
    version: &Version,
    level: usize,
    tombstones: &[RangeTombstone],
) -> u64 {
    let (Some(first), Some(last)) = (tombstones.first(), tombstones.last()) else { return 0 };
    let levels = if level == 0 { 0 } else { level + 1 }..version.levels.len();
    let overlapping = |level| version.files_overlapping(level, Some(&first.start), Some(&last.end));
    let files = levels.flat_map(overlapping);
    let covered = files.map(|file| {
        covered_bytes(jobs, family, &file, tombstones).unwrap_or_else(|error| {
            // An estimate: whoever needs the table will meet the error.
            tracing::warn!(%error, "cannot estimate what range deletions cover");
            jobs.context.statistics.add(Ticker::TablesNotOpened, 1);
            0
        })
    });
    covered.fold(0, u64::saturating_add)
}

fn covered_bytes(
    jobs: &Jobs,
    family: &Family,
    file: &TableFile,
    tombstones: &[RangeTombstone],
) -> Result<u64> {
    let user = family.comparator();
    let (smallest, largest) = (file.meta.smallest.user_key(), file.meta.largest.user_key());
    let first = tombstones.partition_point(|one| user.compare(&one.end, smallest).is_le());
    let over = tombstones[first..].partition_point(|one| user.compare(&one.start, largest).is_le());
    let mut covered = 0u64;
    // Where the pieces counted so far end.
    let mut reached: Option<&[u8]> = None;
    for RangeTombstone { start, end, .. } in &tombstones[first..first + over] {
        if reached.is_some_and(|reached| user.compare(end, reached).is_le()) {
            continue;
        }
        reached = Some(end);
        covered =
            covered.saturating_add(jobs.tables.bytes_of_table_between(family, file, start, end)?);
    }
    Ok(covered.min(file.meta.size))
}

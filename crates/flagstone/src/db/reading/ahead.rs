//! Reading ahead of cursors over several ranges: the blocks that they will ask for are read
//! together, and the cache keeps them.
//!
//! 1. Plan the blocks of each range, in the order of the ranges, until one does not fit any longer.
//!    Its sorted runs, the tables of level 0 and the deeper levels, share the room that is left,
//!    because a cursor reads all of them side by side.
//! 2. Read the planned blocks in batches, each in the order of its files.
//!
//! Blocks that cannot be read are left to the cursors, which report why.

use std::ops::Bound;
use std::sync::Arc;

use crate::base::perf::{self, PerfMetric};
use crate::base::{KeyBuffer, MAX_SEQUENCE_NUMBER, timestamp};
use crate::db::family::Family;
use crate::db::reading::Reader;
use crate::db::tables::Tables;
use crate::manifest::{TableFile, Version};
use crate::sst::{Planned, RangeLimits, ReadSettings, Table, read_missing};

/// How many blocks are read together.
const BATCH: usize = 64;

/// A range of keys, as a caller names them.
pub type UserRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Limits of reading ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AheadLimits {
    /// Blocks of each range in each sorted run, from the first on.
    pub blocks_max: usize,
    /// Bytes as stored, of all ranges together.
    pub bytes_max: u64,
    /// Ranges that do not fit as a whole are left out.
    pub only_whole: bool,
}

/// Blocks to read, each with its table.
type AllPlanned = Vec<(Arc<Table>, Planned)>;

/// Reads blocks of the ranges into the cache, range by range, until the limits or a quarter of the
/// cache are reached. Returns how many ranges it came to, the last perhaps not in whole;
/// `usize::MAX` if nothing can be read ahead of any.
pub(in crate::db) fn read_ahead<'a>(
    reader: &Reader,
    family: &Arc<Family>,
    ranges: impl Iterator<Item = UserRange<'a>>,
    limits: AheadLimits,
) -> usize {
    // More than that would push out of the cache what was read first.
    let capacity = reader.tables.caches().blocks().capacity() as u64 / 4;
    let mut room = limits.bytes_max.min(capacity);
    if room == 0 || reader.check_family(family).is_err() {
        return usize::MAX;
    }
    let current = family.current.load();
    let mut planned = Vec::new();
    let (mut cached, mut reached) = (0, 0_usize);
    for range in ranges {
        reached += 1;
        let before = planned.len();
        let look =
            plan(&reader.tables, family, &current.version, &range, (limits, room), &mut planned);
        if look.is_cut && limits.only_whole {
            planned.truncate(before);
            // It may fit when it is the first.
            reached = (reached - 1).max(1);
            break;
        }
        cached += look.cached;
        room -= look.bytes;
        if look.is_cut || room == 0 {
            break;
        }
    }
    perf::count(PerfMetric::MultiscanPrepareCount, 1);
    perf::count(PerfMetric::MultiscanBlocksFromCache, cached as u64);
    let reads = read_planned(reader, &mut planned, capacity, |one| {
        perf::count(PerfMetric::MultiscanBlocksPrefetched, 1);
        perf::count(PerfMetric::MultiscanPrefetchBytes, one.stored_size());
    });
    perf::count(PerfMetric::MultiscanIoRequests, reads.requests as u64);
    reached
}

/// What [`read_planned`] did.
pub(super) struct PlannedReads {
    /// Reads of files.
    pub requests: usize,
    /// Bytes of blocks that the cache has now, uncompressed.
    pub bytes: u64,
}

/// Reads blocks into the cache, a batch at a time, and calls `note` for each. Stops before
/// `bytes_max`, uncompressed; how large a block will be is estimated by those of its table. Blocks
/// that cannot be read are passed over.
pub(super) fn read_planned(
    reader: &Reader,
    planned: &mut [(Arc<Table>, Planned)],
    bytes_max: u64,
    mut note: impl FnMut(&Planned),
) -> PlannedReads {
    let mut done = PlannedReads { requests: 0, bytes: 0 };
    let mut rest = planned;
    while done.bytes < bytes_max {
        let mut bytes = done.bytes;
        let fits = |(table, one): &&(Arc<Table>, Planned)| {
            bytes = bytes.saturating_add(one.stored_size().max(mean_block_size(table)));
            bytes <= bytes_max
        };
        let count = rest.iter().take(BATCH).take_while(fits).count();
        if count == 0 {
            break;
        }
        let (batch, others) = rest.split_at_mut(count);
        rest = others;
        batch.sort_by_key(|(table, one)| (Arc::as_ptr(table), one.offset()));
        let mut missing: Vec<_> = batch.iter_mut().map(|(table, one)| (&**table, one)).collect();
        let (reads, in_kernel) = read_missing(&mut missing, &ReadSettings::default());
        reader.note_reads(reads, in_kernel);
        done.requests += reads;
        for (_, one) in batch.iter_mut().filter(|(_, one)| !one.is_missing()) {
            note(one);
            done.bytes += one.memory_size();
            // The cache has it now.
            one.let_go();
        }
    }
    done
}

/// The mean size of a table's data blocks, uncompressed.
fn mean_block_size(table: &Table) -> u64 {
    let properties = table.properties();
    let bytes = properties.raw_key_size.saturating_add(properties.raw_value_size);
    bytes / properties.num_data_blocks.max(1)
}

/// The blocks of one range.
#[derive(Default)]
struct Look {
    /// As stored.
    bytes: u64,
    /// How many the cache has.
    cached: usize,
    /// A sorted run has more of them than fit.
    is_cut: bool,
}

/// Adds the blocks of one range that are to be read.
fn plan(
    tables: &Tables,
    family: &Family,
    version: &Version,
    (start, end): &UserRange<'_>,
    (limits, room): (AheadLimits, u64),
    planned: &mut AllPlanned,
) -> Look {
    let size = family.order.timestamp_size();
    let (start, end) = (first_stored(start, size), first_stored(end, size));
    let (start, end) = (start.as_deref(), end.as_deref());
    let runs = sorted_runs(version, start, end);
    let (settings, mut look, count) = (ReadSettings::default(), Look::default(), runs.len());
    for (at, files) in runs.into_iter().enumerate() {
        let share = (room - look.bytes) / (count - at) as u64;
        let mut left = RangeLimits { blocks_max: limits.blocks_max, bytes_max: share };
        for file in files {
            if left.blocks_max == 0 {
                break;
            }
            let Ok(table) = tables.open_for(family, &file, false) else { continue };
            let begin = start.unwrap_or(file.meta.smallest.user_key());
            let begin = KeyBuffer::for_seek(begin, MAX_SEQUENCE_NUMBER);
            let mut blocks = Vec::new();
            let found = table.plan_range(begin.as_key(), end, left, &settings, &mut blocks);
            planned.extend(blocks.into_iter().map(|one| (table.clone(), one)));
            let Ok(found) = found else { continue };
            left.blocks_max -= found.blocks;
            left.bytes_max -= found.bytes;
            look.bytes += found.bytes;
            look.cached += found.cached;
            look.is_cut |= found.is_cut;
            if found.is_cut {
                break;
            }
        }
    }
    look
}

/// Before all that is stored of a bound's key, if there is a bound; timestamps have `size` bytes.
pub(super) fn first_stored(bound: &Bound<&[u8]>, size: usize) -> Option<Vec<u8>> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(timestamp::before_all(key, size)),
        Bound::Unbounded => None,
    }
}

/// The tables that a range overlaps, a list for each sorted run, in the order of their keys.
fn sorted_runs(
    version: &Version,
    start: Option<&[u8]>,
    end: Option<&[u8]>,
) -> Vec<Vec<Arc<TableFile>>> {
    let level0 = version.files_overlapping(0, start, end).into_iter().map(|file| vec![file]);
    let deeper = 1..version.levels.len();
    let deeper = deeper.map(|level| version.files_overlapping(level, start, end));
    level0.chain(deeper.filter(|files| !files.is_empty())).collect()
}

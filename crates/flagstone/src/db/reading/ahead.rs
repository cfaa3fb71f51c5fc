//! Reading ahead of cursors over several ranges: the blocks that they will ask for are read
//! together, and the cache keeps them.
//!
//! What cannot be read is left to the cursors, which learn why.

use std::ops::Bound;
use std::sync::Arc;

use crate::base::perf::{self, PerfMetric};
use crate::base::{KeyBuffer, MAX_SEQUENCE_NUMBER, timestamp};
use crate::db::family::Family;
use crate::db::reading::Reader;
use crate::db::tables::Tables;
use crate::manifest::Version;
use crate::sst::{Planned, ReadSettings, Table, read_missing};

/// How many blocks are read together.
const BATCH: usize = 64;

/// A range of keys, as a caller names them.
pub type UserRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// What of the blocks of ranges is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AheadLimits {
    /// Blocks of each range in each table, from the first on.
    pub blocks_max: usize,
    /// Bytes as stored, of all ranges together.
    pub bytes_max: u64,
}

/// Reads blocks of the ranges into the cache, in the order of the ranges, until the limits are
/// reached. Returns how many ranges it came to: the last may not have come in whole.
pub(in crate::db) fn read_ahead(
    reader: &Reader,
    family: &Arc<Family>,
    ranges: &[UserRange<'_>],
    limits: AheadLimits,
) -> usize {
    if reader.check_family(family).is_err() {
        return ranges.len();
    }
    let current = family.current.load();
    // More than that would push out of the cache what was read first.
    let capacity = reader.tables.caches().blocks().capacity() as u64;
    let mut room = limits.bytes_max.min(capacity / 4);
    let mut planned: Vec<(Arc<Table>, Planned)> = Vec::new();
    let (mut cached, mut reached) = (0, 0);
    for range in ranges {
        if room == 0 {
            break;
        }
        reached += 1;
        cached +=
            plan(&reader.tables, family, &current.version, range, limits, &mut room, &mut planned);
    }
    perf::count(PerfMetric::MultiscanPrepareCount, 1);
    perf::count(PerfMetric::MultiscanBlocksFromCache, cached as u64);
    let reads = read_planned(reader, &mut planned, |one| {
        perf::count(PerfMetric::MultiscanBlocksPrefetched, 1);
        perf::count(PerfMetric::MultiscanPrefetchBytes, one.stored_size());
    });
    perf::count(PerfMetric::MultiscanIoRequests, reads as u64);
    reached.max(usize::from(!ranges.is_empty()))
}

/// Reads blocks into the cache, and tells `note` of each; how many reads of files that takes.
/// Blocks that cannot be read are passed over.
pub(super) fn read_planned(
    reader: &Reader,
    planned: &mut [(Arc<Table>, Planned)],
    mut note: impl FnMut(&Planned),
) -> usize {
    planned.sort_by_key(|(table, one)| (Arc::as_ptr(table), one.offset()));
    let mut total = 0;
    for batch in planned.chunks_mut(BATCH) {
        let mut missing: Vec<_> = batch.iter_mut().map(|(table, one)| (&**table, one)).collect();
        let (reads, in_kernel) = read_missing(&mut missing, &ReadSettings::default());
        reader.note_reads(reads, in_kernel);
        total += reads;
        for (_, one) in batch.iter_mut().filter(|(_, one)| !one.is_missing()) {
            note(one);
            // The cache has it now.
            one.let_go();
        }
    }
    total
}

/// Adds the blocks of one range that are to be read; how many the cache has.
fn plan(
    tables: &Tables,
    family: &Family,
    version: &Version,
    (start, end): &UserRange<'_>,
    limits: AheadLimits,
    room: &mut u64,
    planned: &mut Vec<(Arc<Table>, Planned)>,
) -> usize {
    let size = family.order.timestamp_size();
    let key = |bound: &Bound<&[u8]>| match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(timestamp::before_all(key, size)),
        Bound::Unbounded => None,
    };
    let (start, end) = (key(start), key(end));
    let (start, end) = (start.as_deref(), end.as_deref());
    let (settings, mut cached) = (ReadSettings::default(), 0);
    let levels = 0..version.levels.len();
    for file in levels.flat_map(|level| version.files_overlapping(level, start, end)) {
        if *room == 0 {
            break;
        }
        let Ok(table) = tables.open_for(family, &file, false) else { continue };
        let begin = start.unwrap_or(file.meta.smallest.user_key());
        let begin = KeyBuffer::for_seek(begin, MAX_SEQUENCE_NUMBER);
        let mut blocks = Vec::new();
        let (blocks_max, blocks_of) = (limits.blocks_max, &mut blocks);
        let found = table.plan_range(begin.as_key(), end, blocks_max, room, &settings, blocks_of);
        cached += found.unwrap_or(0);
        planned.extend(blocks.into_iter().map(|one| (table.clone(), one)));
    }
    cached
}

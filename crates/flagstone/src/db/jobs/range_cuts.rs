//! Where a job is cut whose range deletions are more than one table can hold: a table has them in
//! one block, smaller than 4 GiB.
//!
//! 1. Tables of level 0 may overlap. A flush is cut between sequence numbers, as if a memtable had
//!    ended there: RocksDB 7.8 wants those of different tables of this level not to interleave. A
//!    compaction within level 0 is cut so, too. Each of its outputs takes the place of an input: if
//!    there are no fewer of them it is in vain, and these tables stay apart until the oldest
//!    snapshot is another.
//! 2. Tables of a deeper level must not overlap. What a compaction writes there is cut between
//!    keys. Where those of one start are too many, as snapshots need them, the table with the
//!    newest is set aside until the oldest of these is gone (see `quarantine`).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::base::{Comparator, MAX_SEQUENCE_NUMBER, RangeTombstone, SequenceNumber, timestamp};
use crate::sst::range_deletion_bytes;

/// What a block has besides, at most.
const BLOCK_END: u64 = 16;

/// The ranges of sequence numbers, ascending and together all, of each of which the tombstones need
/// at most `bytes_max`: as long as those of a single number do not need more.
pub(super) fn sequence_cuts(
    tombstones: &[RangeTombstone],
    bytes_max: u64,
) -> Vec<RangeInclusive<SequenceNumber>> {
    let mut by_sequence: BTreeMap<SequenceNumber, u64> = BTreeMap::new();
    for tombstone in tombstones {
        *by_sequence.entry(tombstone.sequence).or_default() += range_deletion_bytes(tombstone);
    }
    let bytes_max = bytes_max.saturating_sub(BLOCK_END);
    let (mut ranges, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (sequence, more) in by_sequence {
        if bytes > 0 && bytes + more > bytes_max {
            ranges.push(begin..=sequence - 1);
            (begin, bytes) = (sequence, 0);
        }
        bytes += more;
    }
    ranges.push(begin..=MAX_SEQUENCE_NUMBER);
    ranges
}

/// The keys between which tombstones, ascending by their starts, need at most `bytes_max`: as long
/// as those of the same start do not need more.
pub(super) fn key_cuts(
    user: &Comparator,
    tombstones: &[RangeTombstone],
    bytes_max: u64,
) -> Vec<Vec<u8>> {
    let bytes_max = bytes_max.saturating_sub(BLOCK_END);
    let (mut cuts, mut bytes) = (Vec::new(), 0);
    for same_start in tombstones.chunk_by(|a, b| user.compare_keys(&a.start, &b.start).is_eq()) {
        let more = same_start.iter().map(range_deletion_bytes).sum::<u64>();
        if bytes > 0 && bytes + more > bytes_max {
            let start = &same_start[0].start;
            cuts.push(timestamp::opening(start, user.timestamp_size()).into_owned());
            bytes = 0;
        }
        bytes += more;
    }
    cuts
}

/// A start of tombstones, ascending by their starts, of which more than `bytes_max` are needed.
pub(super) fn start_of_too_many<'a>(
    user: &Comparator,
    tombstones: &'a [RangeTombstone],
    bytes_max: u64,
) -> Option<&'a [u8]> {
    let bytes_max = bytes_max.saturating_sub(BLOCK_END);
    let mut same_starts = tombstones.chunk_by(|a, b| user.compare_keys(&a.start, &b.start).is_eq());
    let too_many =
        same_starts.find(|same| same.iter().map(range_deletion_bytes).sum::<u64>() > bytes_max)?;
    Some(&too_many[0].start)
}

#[cfg(test)]
mod tests;

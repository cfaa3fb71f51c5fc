//! The walk over entries in byte order, and lookups that need no more than it.
//!
//! The walk knows how many bytes `m` the last key and the target have in common: an entry that
//! shares more than `m` bytes with the last key differs from the target in the same byte, so it is
//! below the target too and its key is not even put together; any other starts with `shared` bytes
//! of the target.

use super::builder::common_prefix;
use super::guide::Start;
use super::iter::SCANNED;
use super::{Block, Damage, EntryHeader, GuideRoom, Layout, ValueRef, entry_header};
use crate::base::coding::fixed64_at;
use crate::base::perf::{self, PerfMetric};
use crate::base::{
    InternalKey, PACKED_SIZE, SequenceNumber, SharedPiece, ValueType, prefetch,
    unpack_sequence_and_type,
};

/// Bytes of a cache line.
const LINE: usize = 64;
/// How much of an entry is asked for before it is looked at: all of a small one.
const LINES_OF_ENTRY: usize = 3;
/// How much of each of few, which are large: header, key, and where the value begins.
const LINES_OF_LARGE: usize = 2;

/// The first entry that the walk cannot pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stop {
    pub header: EntryHeader,
    /// Whether its user key is the target's or a prefix of it; it is greater otherwise.
    pub starts_target: bool,
    /// Whether its user key is the target's.
    pub is_target: bool,
}

/// Walks from `offset`, where `common` bytes of the last key are those of `wanted` and the next is
/// smaller, to the first entry that is not certainly below it; `offset` is then where that starts.
/// `None` if there is none before `limit`.
#[inline]
pub(super) fn scan(
    entries: &[u8],
    offset: &mut usize,
    mut common: usize,
    wanted: &[u8],
    limit: usize,
) -> Result<Option<Stop>, Damage> {
    let mut compared = 0;
    while *offset < limit {
        let header = entry_header(entries, *offset).ok_or(Damage)?;
        let (shared, suffix_start) = (header.shared as usize, header.suffix as usize);
        let suffix_end = suffix_start + header.non_shared as usize;
        let next = suffix_end + header.value_length as usize;
        if next > entries.len() {
            return Err(Damage);
        }
        if shared > common {
            *offset = next;
            continue;
        }
        let suffix = &entries[suffix_start..suffix_end];
        let Some(user_length) = suffix.len().checked_sub(PACKED_SIZE) else {
            // Part of the packed number is shared: only possible where user keys do not ascend.
            return Err(Damage);
        };
        let (user, rest) = (&suffix[..user_length], &wanted[shared..]);
        let equal = common_prefix(user, rest);
        compared += 1;
        if equal < user.len() && equal < rest.len() && user[equal] < rest[equal] {
            common = shared + equal;
            *offset = next;
            continue;
        }
        perf::count(PerfMetric::UserKeyComparisonCount, compared);
        let starts_target = equal == user.len();
        return Ok(Some(Stop {
            header,
            starts_target,
            is_target: starts_target && equal == rest.len(),
        }));
    }
    perf::count(PerfMetric::UserKeyComparisonCount, compared);
    Ok(None)
}

/// What a block in byte order says of a key.
#[derive(Debug)]
pub(in crate::sst) enum Found<'a> {
    /// The newest entry that the target sees.
    Entry {
        sequence: SequenceNumber,
        value_type: ValueType,
        value: ValueRef<'a>,
        /// Where it starts, and how much of the user key its entry leaves out.
        offset: usize,
        shared: usize,
    },
    /// The key is neither in this block nor in a later one.
    Absent,
    /// All keys of the block are smaller.
    Beyond,
}

impl Block {
    /// Asks for where a scan back begins.
    pub(in crate::sst) fn prefetch_end(&self) {
        let is_few = self.prefetch_few_before(usize::MAX);
        let scanned = if is_few { LINE } else { SCANNED };
        self.prefetch(self.entries_end().saturating_sub(scanned), self.data().len());
    }

    /// Where entries behind others start, if there are few and the guide is made.
    #[inline]
    fn few_places(&self) -> Option<impl Iterator<Item = usize>> {
        self.guide()?.few_places()
    }

    /// Asks for the beginnings of all entries up to `end`, if there are few and the guide knows
    /// them; else `false`. (Forward, the processor itself is ahead of a scan.)
    #[inline]
    pub(super) fn prefetch_few_before(&self, end: usize) -> bool {
        let Some(places) = self.few_places() else { return false };
        for place in std::iter::once(0).chain(places) {
            if place <= end {
                prefetch(self.data().as_ptr().wrapping_add(place), LINES_OF_LARGE);
            }
        }
        true
    }

    /// Asks for what a scan back walks over to find its beginning, as far as
    /// [`Block::prefetch_end`] has not: the end is at hand.
    pub(in crate::sst) fn prefetch_last_interval(&self) {
        if self.few_places().is_none()
            && let Some(last) = self.layout().num_restarts.checked_sub(1)
        {
            self.prefetch(self.restart(last), self.entries_end().saturating_sub(SCANNED));
        }
    }

    /// Where it lies in memory.
    #[inline]
    pub(in crate::sst) fn address(&self) -> usize {
        self.0.start().addr()
    }

    /// [`Block::prefetch_guide`] of a block that lies there, or did once, and where its first
    /// entries begin.
    #[inline]
    pub(in crate::sst) fn prefetch_at(address: usize, with_start: bool) {
        let more = if with_start { 64 * LINES_OF_ENTRY } else { 0 };
        let guide = usize::from(GuideRoom::Many.size());
        SharedPiece::<Layout>::prefetch_at(std::ptr::without_provenance(address), guide + more);
    }

    /// Asks for all of the block's fields, its guide among them.
    #[inline]
    pub(in crate::sst) fn prefetch_guide(&self) {
        Self::prefetch_at(self.address(), false);
    }

    /// Asks for the entry at which a search for `wanted` in byte order begins.
    #[inline]
    pub(in crate::sst) fn prefetch_entry(&self, wanted: &[u8]) {
        if let Some(guide) = self.guide()
            && let Start::At { offset, .. } = guide.start(self.data(), wanted)
        {
            prefetch(self.data().as_ptr().wrapping_add(offset), LINES_OF_ENTRY);
        }
    }

    /// The last restart whose user key is smaller, or the first; `None` if there is none, values
    /// lie apart or bytes are damaged.
    #[cold]
    fn start_by_restarts(&self, wanted: &[u8]) -> Option<Start> {
        let layout = self.layout();
        if layout.values_offset.is_some() || self.is_empty() {
            return None;
        }
        let entries = &self.data()[..self.entries_end()];
        let key_at = |restart: u32| {
            let header =
                entry_header(entries, self.restart(restart)).filter(|header| header.shared == 0)?;
            let key = entries.get(header.suffix as usize..)?.get(..header.non_shared as usize)?;
            key.get(..key.len().checked_sub(PACKED_SIZE)?)
        };
        let (mut low, mut high) = (0, layout.num_restarts.checked_sub(1)?);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if key_at(middle)? < wanted { low = middle } else { high = middle - 1 }
        }
        key_at(low)?;
        // No key went before: the first has all of its bytes.
        Some(Start::At { offset: self.restart(low), common: 0 })
    }

    /// Looks `target` up in byte order, without a global sequence number. `None` if a cursor must
    /// do it: the block is empty or has its values apart, the first entries of the key are too new,
    /// keys are prefixes of one another, or bytes are damaged.
    #[inline]
    pub(in crate::sst) fn find<'a>(&'a self, target: InternalKey<'_>) -> Option<Found<'a>> {
        let wanted = target.user_key();
        let start = match self.guide_for_search() {
            Some(guide) => guide.start(self.data(), wanted),
            None => self.start_by_restarts(wanted)?,
        };
        let (mut offset, common) = match start {
            Start::Before => return Some(Found::Absent),
            Start::Behind => return Some(Found::Beyond),
            Start::At { offset, common } => (offset, common),
        };
        let entries = &self.data()[..self.entries_end()];
        let Some(stop) = scan(entries, &mut offset, common, wanted, entries.len()).ok()? else {
            return Some(Found::Beyond);
        };
        if !stop.starts_target {
            return Some(Found::Absent);
        }
        let header = stop.header;
        let key_end = header.suffix + header.non_shared;
        let packed = fixed64_at(entries, key_end as usize - PACKED_SIZE)?;
        if !stop.is_target || packed > target.packed() {
            return None;
        }
        let (sequence, value_type) = unpack_sequence_and_type(packed);
        let value_type = value_type.filter(|&kind| kind != ValueType::RangeDeletion)?;
        let value = ValueRef::of_block(self, key_end, key_end + header.value_length);
        Some(Found::Entry { sequence, value_type, value, offset, shared: header.shared as usize })
    }
}

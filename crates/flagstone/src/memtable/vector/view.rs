//! The first entries of a log, sorted.
#![expect(unsafe_code, reason = "pointers to records that the vector keeps alive")]

use std::cmp::Ordering;
use std::ptr::NonNull;
use std::sync::Arc;

use super::log::{Log, Position};
use super::sort::{Numbered, SortOrder, common_length};
use crate::cache::{Held, MemoryAccount, MemoryKind};
use crate::memtable::key_prefix::Target;
use crate::memtable::record::{Record, RecordHeader};

/// See [`View`].
const SAMPLED: usize = 64;

/// Sorted entries of one log. **Invariant**: a view is used only together with its log, which it
/// must not outlive.
pub(super) struct View {
    /// How many leading bytes all keys share; the numbers are made of what follows.
    skip: usize,
    entries: Vec<(u64, NonNull<RecordHeader>)>,
    /// The number of one entry in [`SAMPLED`]: a search begins here, where more of it stays in the
    /// cache.
    samples: Vec<u64>,
    /// Up to where the log is sorted here.
    pub(super) end: Position,
    _held: Option<Held>,
}

// SAFETY: the pointers lead to records, which do not change.
unsafe impl Send for View {}
// SAFETY: the same.
unsafe impl Sync for View {}

impl View {
    /// The first `count` entries of the log, of which `older` has some.
    pub(super) fn new(order: &SortOrder, log: &Log, older: Option<&View>, count: usize) -> Self {
        let old: &[_] = older.map_or(&[], |older| &older.entries);
        let from = older.map_or(log.first(), |older| older.end);
        let mut reader = log.read(from, count);
        let mut fresh: Vec<_> =
            (&mut reader).map(|record| Numbered { number: 0, record }).collect();
        let first = match older.and_then(|older| older.get(log, 0)) {
            Some(record) => record.user_key(),
            None => fresh.first().map_or(&b""[..], |numbered| numbered.record.user_key()),
        };
        let shared = older.map_or(first, |older| &first[..older.skip]);
        let skip = order.number_all(&mut fresh, shared);
        order.sort(&mut fresh, skip);
        let is_renumbered = older.is_some_and(|older| older.skip != skip);
        let old = old.iter().map(|&(number, at)| {
            // SAFETY: the pointers came from the log.
            let record = unsafe { Record::new(at) };
            let number = if is_renumbered { order.number(record.user_key(), skip) } else { number };
            Numbered { number, record }
        });
        let entries = merge(order, old, fresh);
        let samples = entries.iter().step_by(SAMPLED).map(|entry| entry.0).collect();
        Self { skip, entries, samples, end: reader.position(), _held: None }
    }

    /// Notes its memory in the account of memtables.
    pub(super) fn count_in(&mut self, account: Option<&Arc<MemoryAccount>>) {
        self._held =
            account.map(|account| account.hold(MemoryKind::Memtables, self.memory_usage()));
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of memory.
    pub(super) fn memory_usage(&self) -> usize {
        size_of_val(&*self.entries) + size_of_val(&*self.samples)
    }

    /// The record at that place in the order, if there are so many.
    #[inline]
    pub(super) fn get<'a>(&self, _log: &'a Log, index: usize) -> Option<Record<'a>> {
        // SAFETY: the pointers came from the log, which is borrowed.
        self.entries.get(index).map(|&(_, at)| unsafe { Record::new(at) })
    }

    /// How many entries stand before `target`.
    pub(super) fn lower_bound(&self, log: &Log, order: &SortOrder, target: &Target<'_>) -> usize {
        let Some(first) = self.get(log, 0) else { return 0 };
        let shared = &first.user_key()[..self.skip];
        if common_length(shared, target.user_key) < self.skip {
            // All entries stand on the same side.
            let is_before = target.compared_by(&order.keys, first.key()).is_lt();
            return if is_before { self.len() } else { 0 };
        }
        let number = order.number(target.user_key, self.skip);
        let start =
            self.samples.partition_point(|sample| *sample < number).saturating_sub(1) * SAMPLED;
        let end = self.samples.partition_point(|sample| *sample <= number) * SAMPLED;
        let within = &self.entries[start..end.min(self.len())];
        start
            + within.partition_point(|&(found, at)| match found.cmp(&number) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => {
                    // SAFETY: as in `get`.
                    let record = unsafe { Record::new(at) };
                    target.compared_by(&order.keys, record.key()).is_lt()
                }
            })
    }
}

/// Merges sorted entries.
fn merge<'a>(
    order: &SortOrder,
    old: impl ExactSizeIterator<Item = Numbered<'a>>,
    fresh: Vec<Numbered<'a>>,
) -> Vec<(u64, NonNull<RecordHeader>)> {
    let entry = |numbered: Numbered<'a>| (numbered.number, numbered.record.pointer());
    if old.len() == 0 {
        // In place.
        return fresh.into_iter().map(entry).collect();
    }
    let mut merged = Vec::with_capacity(old.len() + fresh.len());
    let mut fresh = fresh.into_iter().peekable();
    for old in old {
        while let Some(before) = fresh.next_if(|fresh| order.compare(fresh, &old).is_lt()) {
            merged.push(entry(before));
        }
        merged.push(entry(old));
    }
    merged.extend(fresh.map(entry));
    merged
}

//! Sorting records.
//!
//! 1. Take eight bytes of each key as a number: those that follow what all keys share. Sort by the
//!    numbers; that touches no record.
//! 2. Each run of equal numbers shares at least those eight bytes: do the same with it, from where
//!    its keys differ.
//! 3. A short run, and one whose keys differ in how many zeros they end with, is sorted by
//!    comparisons.
//!
//! So keys with long common prefixes, and with several such, cost one more pass for each, and no
//! more comparisons of keys. An order that is not the bytes' is sorted by comparisons alone.

use std::cmp::Ordering;

use crate::base::InternalKeyComparator;
use crate::memtable::key_prefix::PrefixOrder;
use crate::memtable::record::Record;

/// A run of at most so many records is sorted by comparisons.
const FEW: usize = if cfg!(miri) { 2 } else { 12 };

/// Runs within runs, so that keys made for it cannot exhaust the stack.
const DEPTH_MAX: usize = 64;

/// A record with a number that never contradicts the order among those it is sorted with.
#[derive(Clone, Copy)]
pub(super) struct Numbered<'a> {
    pub(super) number: u64,
    pub(super) record: Record<'a>,
}

/// The order to sort by.
pub(super) struct SortOrder {
    pub(super) keys: InternalKeyComparator,
    pub(super) numbers: PrefixOrder,
}

impl SortOrder {
    pub(super) fn new(keys: InternalKeyComparator) -> Self {
        Self { numbers: PrefixOrder::of(&keys.user), keys }
    }

    /// The number of a key that is at least `skip` bytes long.
    #[inline]
    pub(super) fn number(&self, user_key: &[u8], skip: usize) -> u64 {
        self.numbers.number(&user_key[skip..])
    }

    #[inline]
    pub(super) fn compare(&self, a: &Numbered<'_>, b: &Numbered<'_>) -> Ordering {
        a.number.cmp(&b.number).then_with(|| self.keys.compare(a.record.key(), b.record.key()))
    }

    /// How many leading bytes of `shared` all of these keys have; 0 if that says nothing about
    /// their order.
    pub(super) fn shared_length<'a>(
        &self,
        shared: &[u8],
        records: impl Iterator<Item = Record<'a>>,
    ) -> usize {
        if self.numbers == PrefixOrder::None {
            return 0;
        }
        records.fold(shared.len(), |length, record| {
            common_length(&shared[..length], record.user_key())
        })
    }

    /// Numbers the records, whose keys begin with some part of `shared`; how many bytes of it they
    /// all share, after which the numbers are made.
    pub(super) fn number_all(&self, records: &mut [Numbered<'_>], shared: &[u8]) -> usize {
        // The records come from all over the memory: one look at each should be enough. So begin
        // with a guess.
        let ends =
            [records.first(), records.last()].into_iter().flatten().map(|numbered| numbered.record);
        let mut shared = &shared[..self.shared_length(shared, ends)];
        let mut next = 0;
        while let Some(numbered) = records.get_mut(next) {
            let user_key = numbered.record.user_key();
            if user_key.starts_with(shared) {
                numbered.number = self.number(user_key, shared.len());
                next += 1;
            } else {
                // All at once: keys might be made so that each shares a byte less than those
                // before.
                shared =
                    &shared[..self.shared_length(shared, records.iter().map(|one| one.record))];
                next = 0;
            }
        }
        shared.len()
    }

    /// Sorts records whose numbers are made after `skip` bytes that all keys share.
    pub(super) fn sort(&self, records: &mut [Numbered<'_>], skip: usize) {
        self.sort_within(records, skip, DEPTH_MAX);
    }

    fn sort_within(&self, records: &mut [Numbered<'_>], skip: usize, depth: usize) {
        if self.numbers == PrefixOrder::None || depth == 0 {
            return records.sort_unstable_by(|a, b| self.compare(a, b));
        }
        records.sort_unstable_by_key(|record| record.number);
        for run in records.chunk_by_mut(|a, b| a.number == b.number) {
            if run.len() > 1 {
                self.sort_run(run, skip, depth);
            }
        }
    }

    /// Sorts records that all have the same number, made after `skip` bytes.
    fn sort_run(&self, run: &mut [Numbered<'_>], skip: usize, depth: usize) {
        if run.len() <= FEW {
            return run.sort_unstable_by(|a, b| self.compare(a, b));
        }
        let first = run[0].record.user_key();
        let shared = self.shared_length(first, run.iter().map(|numbered| numbered.record));
        if run.iter().all(|numbered| numbered.record.user_key().len() == shared) {
            // Versions of one key: newest first.
            return run.sort_unstable_by_key(|numbered| !numbered.record.key().packed());
        }
        if shared == skip {
            return run.sort_unstable_by(|a, b| self.compare(a, b));
        }
        let number = run[0].number;
        for numbered in run.iter_mut() {
            numbered.number = self.number(numbered.record.user_key(), shared);
        }
        self.sort_within(run, shared, depth - 1);
        for numbered in run {
            numbered.number = number;
        }
    }
}

/// The length of what two keys begin with alike.
pub(super) fn common_length(a: &[u8], b: &[u8]) -> usize {
    let by_eight =
        a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0).take_while(|(a, b)| a == b).count();
    let from = 8 * by_eight;
    from + a[from..].iter().zip(&b[from..]).take_while(|(a, b)| a == b).count()
}

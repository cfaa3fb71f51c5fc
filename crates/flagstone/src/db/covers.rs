//! Range tombstones over a key, asked for no earlier than it matters.
//!
//! To ask a hundred thousand of them takes longer than to hear from a filter that a table does not have the key. So a lookup
//! takes note of the sources that it passes, and asks them before it
//!
//! 1. takes an entry (the memory that the questions will wait for is fetched while the entry's block is searched),
//! 2. reads anything from a file.
//!
//! Who finds nothing never asks.

use std::ops::ControlFlow;

use super::Value;
use crate::base::{FragmentedRangeTombstones, SequenceNumber};
use crate::iter::Lookup;
use crate::memtable::MemTable;

/// More sources with range tombstones than that are asked at once.
const UNASKED_MAX: usize = 4;

/// Where range tombstones lie.
#[derive(Clone, Copy)]
pub(super) enum Tombstones<'a> {
    MemTable(&'a MemTable),
    Table(&'a FragmentedRangeTombstones),
}

/// What a lookup has not asked yet.
pub(super) struct Covers<'a> {
    user_key: &'a [u8],
    snapshot: SequenceNumber,
    unasked: [Option<Tombstones<'a>>; UNASKED_MAX],
    count: usize,
}

impl<'a> Covers<'a> {
    /// For a lookup of that key as of that sequence number.
    #[inline]
    pub fn of(user_key: &'a [u8], snapshot: SequenceNumber) -> Self {
        Self { user_key, snapshot, unasked: [None; UNASKED_MAX], count: 0 }
    }

    /// Takes note of a source without entries of the key; all that the key has in older ones lies under its tombstones.
    #[inline]
    pub fn pass(&mut self, tombstones: Tombstones<'a>, lookup: &mut Lookup<Value>) {
        if self.count == UNASKED_MAX {
            self.ask_all(lookup);
        }
        self.unasked[self.count] = Some(tombstones);
        self.count += 1;
    }

    /// Asks the sources that were passed; whether no older source matters to the lookup.
    #[inline]
    pub fn settle(&mut self, lookup: &mut Lookup<Value>) -> bool {
        if self.count > 0 {
            self.ask_all(lookup);
        }
        lookup.is_done()
    }

    /// Before an entry is taken from the source that has its `own` tombstones: asks all that was passed, then these. Breaks
    /// where the entry does not matter.
    #[inline]
    pub fn reach(&mut self, own: &mut Option<Tombstones<'_>>, lookup: &mut Lookup<Value>) -> ControlFlow<()> {
        if self.count > 0 && self.settle(lookup) {
            return ControlFlow::Break(());
        }
        if let Some(own) = own.take() {
            self.ask(own, lookup);
        }
        ControlFlow::Continue(())
    }

    /// Has the memory fetched that [`Covers::reach`] will wait for.
    #[inline]
    pub fn prefetch(&self, own: Option<Tombstones<'_>>) {
        for tombstones in self.unasked[..self.count].iter().copied().flatten().chain(own) {
            match tombstones {
                Tombstones::MemTable(mem) => mem.prefetch_range_tombstones(self.user_key),
                Tombstones::Table(tombstones) => tombstones.prefetch(self.user_key),
            }
        }
    }

    /// Whether all that was passed has been asked.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.count == 0
    }

    fn ask(&self, tombstones: Tombstones<'_>, lookup: &mut Lookup<Value>) {
        lookup.cover(match tombstones {
            Tombstones::MemTable(mem) => mem.covering_sequence(self.user_key, self.snapshot),
            Tombstones::Table(tombstones) => tombstones.covering_sequence(self.user_key, self.snapshot),
        });
    }

    #[inline(never)]
    fn ask_all(&mut self, lookup: &mut Lookup<Value>) {
        let unasked = std::mem::take(&mut self.unasked);
        self.count = 0;
        unasked.into_iter().flatten().for_each(|tombstones| self.ask(tombstones, lookup));
    }
}

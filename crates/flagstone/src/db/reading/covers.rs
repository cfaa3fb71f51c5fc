//! Range tombstones over a key, asked for no earlier than it matters.
//!
//! To ask a hundred thousand of them takes longer than to hear from a filter that a table does not have the key. So a lookup
//! takes note of the sources that it passes, and asks them before it
//!
//! 1. takes an entry (the memory that the answers will wait for is fetched while the entry's block is looked for and searched),
//! 2. reads anything from a file.
//!
//! Who finds nothing never asks.

use std::ops::ControlFlow;

use crate::base::{FragmentedRangeTombstones, Place, SequenceNumber};
use crate::db::Value;
use crate::iter::Lookup;
use crate::memtable::{MemTable, RangeQuestion};

/// More sources with range tombstones than that are asked at once.
const UNASKED_MAX: usize = 4;

/// Where range tombstones lie; how far the lookup's key was sought among them.
#[derive(Clone, Copy)]
pub(in crate::db) enum Tombstones<'a> {
    MemTable(&'a MemTable),
    Table(&'a FragmentedRangeTombstones),
    /// In the memtable that [`Covers::begun`] is about.
    SoughtInMemTable,
    SoughtInTable(&'a FragmentedRangeTombstones, Place),
}

/// What a lookup has not asked yet.
pub(in crate::db) struct Covers<'a> {
    user_key: &'a [u8],
    snapshot: SequenceNumber,
    unasked: [Option<Tombstones<'a>>; UNASKED_MAX],
    count: usize,
    /// What is sought in one of the memtables that were passed.
    begun: Option<RangeQuestion>,
}

impl<'a> Covers<'a> {
    /// For a lookup of that key as of that sequence number.
    #[inline]
    pub fn of(user_key: &'a [u8], snapshot: SequenceNumber) -> Self {
        Self { user_key, snapshot, unasked: [None; UNASKED_MAX], count: 0, begun: None }
    }

    /// Takes note of a source without entries of the key; all that the key has in older ones lies under its tombstones.
    #[inline]
    pub fn pass(&mut self, tombstones: Tombstones<'a>, lookup: &mut Lookup<Value>) {
        if self.count == UNASKED_MAX {
            self.ask_all(SequenceNumber::MAX, lookup);
        }
        self.unasked[self.count] = Some(tombstones);
        self.count += 1;
    }

    /// Asks the sources that were passed; whether no older source matters to the lookup.
    #[inline]
    pub fn settle(&mut self, lookup: &mut Lookup<Value>) -> bool {
        if self.count > 0 {
            self.ask_all(SequenceNumber::MAX, lookup);
        }
        lookup.is_done()
    }

    /// Before an entry with that sequence number is taken from the source that has its `own` tombstones: asks all that was
    /// passed, then these. Breaks where the entry does not matter. What is looked at later is older than the entry: once that
    /// is hidden, it does not matter by which tombstone.
    #[inline]
    pub fn reach(
        &mut self,
        own: &mut Option<Tombstones<'_>>,
        sequence: SequenceNumber,
        lookup: &mut Lookup<Value>,
    ) -> ControlFlow<()> {
        if self.count > 0 {
            self.ask_all(sequence, lookup);
            if lookup.is_done() {
                return ControlFlow::Break(());
            }
        }
        if let Some(own) = own.take() {
            lookup.cover(self.ask(own, sequence));
        }
        ControlFlow::Continue(())
    }

    /// Has the memory fetched that [`Covers::reach`] will wait for.
    #[inline]
    pub fn seek(&mut self, own: &mut Option<Tombstones<'a>>) {
        if let Some(Tombstones::Table(fragments)) = *own {
            *own = Some(Tombstones::SoughtInTable(fragments, fragments.seek(self.user_key)));
        }
        for at in 0..self.count {
            match self.unasked[at] {
                Some(Tombstones::Table(fragments)) => {
                    let place = fragments.seek(self.user_key);
                    self.unasked[at] = Some(Tombstones::SoughtInTable(fragments, place));
                }
                Some(Tombstones::MemTable(mem)) if self.begun.is_none() => {
                    self.begun = mem.seek_range_tombstones(self.user_key, self.snapshot);
                    if self.begun.is_some() {
                        self.unasked[at] = Some(Tombstones::SoughtInMemTable);
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether all that was passed has been asked.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.count == 0
    }

    /// The newest tombstone over the key, or another number larger than `enough` if that one is.
    fn ask(&self, tombstones: Tombstones<'_>, enough: SequenceNumber) -> SequenceNumber {
        let Self { user_key, snapshot, ref begun, .. } = *self;
        let (fragments, place) = match tombstones {
            Tombstones::MemTable(mem) => return mem.covering_sequence(user_key, snapshot),
            Tombstones::Table(fragments) => (fragments, fragments.seek(user_key)),
            Tombstones::SoughtInTable(fragments, place) => (fragments, place),
            Tombstones::SoughtInMemTable => begun.as_ref().expect("it was sought there").begun(),
        };
        fragments.covering_at(place, user_key, snapshot, enough)
    }

    #[inline(never)]
    fn ask_all(&mut self, enough: SequenceNumber, lookup: &mut Lookup<Value>) {
        let unasked = &self.unasked[..self.count];
        unasked.iter().flatten().for_each(|&tombstones| lookup.cover(self.ask(tombstones, enough)));
        self.count = 0;
        self.begun = None;
    }
}

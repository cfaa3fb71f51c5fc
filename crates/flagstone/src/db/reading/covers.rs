//! Range tombstones over a key, asked for no earlier than it matters.
//!
//! To ask a hundred thousand of them takes longer than to hear from a filter that a table does not
//! have the key. So a lookup takes note of the sources that it passes, and asks them before it
//!
//! 1. looks for the block of an entry, where keys are sought as numbers: bits tell most keys that
//!    nothing covers, and most of the others are covered, so that the block need not be searched. A
//!    table's own ones are only begun with: its entry may be newer,
//! 2. takes an entry (the memory that the answers will wait for is fetched while the entry's block
//!    is looked for and searched),
//! 3. reads anything from a file.
//!
//! Who finds nothing never asks.

use std::ops::ControlFlow;

use crate::base::{FragmentedRangeTombstones, SequenceNumber, Within};
use crate::db::reading::value::Value;
use crate::iter::Lookup;
use crate::memtable::{MemTable, RangeLook, RangeQuestion};

/// More sources with range tombstones than that are asked at once.
const UNASKED_MAX: usize = 4;

/// Where range tombstones lie; how far the lookup's key was sought among them.
#[derive(Clone, Copy)]
pub(in crate::db) enum Tombstones<'a> {
    MemTable(&'a MemTable),
    Table(&'a FragmentedRangeTombstones),
    /// In the memtable that [`UncheckedTombstones::begun`] is about.
    SoughtInMemTable,
    SoughtInTable(&'a FragmentedRangeTombstones, Within),
}

/// What a lookup has not asked yet.
pub(in crate::db) struct UncheckedTombstones<'a> {
    user_key: &'a [u8],
    snapshot: SequenceNumber,
    unasked: [Option<Tombstones<'a>>; UNASKED_MAX],
    count: usize,
    /// What is sought in one of the memtables that were passed.
    begun: Option<RangeQuestion>,
}

impl<'a> UncheckedTombstones<'a> {
    /// For a lookup of that key as of that sequence number.
    #[inline]
    pub fn of(user_key: &'a [u8], snapshot: SequenceNumber) -> Self {
        Self { user_key, snapshot, unasked: [None; UNASKED_MAX], count: 0, begun: None }
    }

    /// Takes note of a source without entries of the key; all that the key has in older ones lies
    /// under its tombstones.
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

    /// Before an entry with that sequence number is taken from the source that has its `own`
    /// tombstones: asks all that was passed, then these. Breaks where the entry does not matter.
    /// What is looked at later is older than the entry: once that is hidden, it does not matter by
    /// which tombstone.
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

    /// Takes a first look: sources that do not cover the key need not be asked, and of others the
    /// memory is fetched that [`UncheckedTombstones::reach`] will wait for. Breaks, and ends the
    /// lookup, where what was passed is known to cover the key.
    #[inline]
    pub fn seek(
        &mut self,
        own: &mut Option<Tombstones<'a>>,
        lookup: &mut Lookup<Value>,
    ) -> ControlFlow<()> {
        if let Some(Tombstones::Table(fragments)) = *own {
            let within = fragments.seek(self.user_key);
            *own = within.map(|within| Tombstones::SoughtInTable(fragments, within));
        }
        let passed = std::mem::take(&mut self.count);
        for at in 0..passed {
            let Some(tombstones) = self.unasked[at].and_then(|tombstones| self.look(tombstones))
            else {
                continue;
            };
            match self.covers(tombstones) {
                Some(true) => {
                    self.count = 0;
                    lookup.end();
                    return ControlFlow::Break(());
                }
                Some(false) if matches!(tombstones, Tombstones::SoughtInMemTable) => {
                    self.begun = None
                }
                Some(false) => {}
                None => {
                    self.unasked[self.count] = Some(tombstones);
                    self.count += 1;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The same tombstones, sought as far as that can be done; `None` if they do not cover the key.
    #[inline]
    fn look(&mut self, tombstones: Tombstones<'a>) -> Option<Tombstones<'a>> {
        match tombstones {
            Tombstones::Table(fragments) => fragments
                .seek(self.user_key)
                .map(|within| Tombstones::SoughtInTable(fragments, within)),
            Tombstones::MemTable(mem) if self.begun.is_none() => {
                match mem.seek_range_tombstones(self.user_key, self.snapshot) {
                    RangeLook::Uncovered => None,
                    RangeLook::Begun(begun) => {
                        self.begun = Some(begun);
                        Some(Tombstones::SoughtInMemTable)
                    }
                    RangeLook::Unknown => Some(tombstones),
                }
            }
            _ => Some(tombstones),
        }
    }

    /// Whether the key lies under these tombstones, if that is told soon.
    #[inline]
    fn covers(&self, tombstones: Tombstones<'_>) -> Option<bool> {
        let (fragments, within) = match tombstones {
            Tombstones::MemTable(_) | Tombstones::Table(_) => return None,
            Tombstones::SoughtInTable(fragments, within) => (fragments, within),
            Tombstones::SoughtInMemTable => self.begun(),
        };
        fragments.covers(within, self.user_key, self.snapshot)
    }

    #[inline]
    fn begun(&self) -> (&FragmentedRangeTombstones, Within) {
        self.begun.as_ref().expect("it was sought there").begun()
    }

    /// Whether all that was passed has been asked.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.count == 0
    }

    /// The newest tombstone over the key, or another number larger than `enough` if that one is.
    fn ask(&self, tombstones: Tombstones<'_>, enough: SequenceNumber) -> SequenceNumber {
        let Self { user_key, snapshot, .. } = *self;
        let (fragments, within) = match tombstones {
            Tombstones::MemTable(mem) => return mem.covering_sequence(user_key, snapshot),
            Tombstones::Table(fragments) => match fragments.seek(user_key) {
                Some(within) => (fragments, within),
                None => return 0,
            },
            Tombstones::SoughtInTable(fragments, within) => (fragments, within),
            Tombstones::SoughtInMemTable => self.begun(),
        };
        fragments.covering_at(within, user_key, snapshot, enough)
    }

    #[inline(never)]
    fn ask_all(&mut self, enough: SequenceNumber, lookup: &mut Lookup<Value>) {
        let unasked = &self.unasked[..self.count];
        unasked.iter().flatten().for_each(|&tombstones| lookup.cover(self.ask(tombstones, enough)));
        self.count = 0;
        self.begun = None;
    }
}

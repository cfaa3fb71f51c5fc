//! Which families background work looks at: those in which something has changed, not all of ten
//! thousand for each flush.
//!
//! Whoever changes a family's memtables, tables, options or jobs notes it ([`State::note`]), under
//! the state lock.
//!
//! **Invariants.**
//! - `waiting` has every family with an immutable memtable, under the WAL of its oldest.
//! - A family that is not in `compact` wanted no compaction when it was looked at last. What has
//!   come since without a word, by time, or as snapshots and readers went, is found every two
//!   seconds, when all are put there.
//! - `pressures` has what every family that is not in `moved` asks of writers, but for what grows
//!   without a word: a memtable that is filled, and values in blob files where there is garbage.
//!   Families with such are in `growing`, and looked at in turn.
//! - `with_garbage` has every family with dead values in blob files, and every one that is about to
//!   give holes to its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::base::{ColumnFamilyId, FileNumber};
use crate::db::tree::family_state::FamilyState;
use crate::db::tree::pressures::{Pressure, Pressures};
use crate::db::tree::promise::Punching;
use crate::db::tree::state::State;
use crate::manifest::Version;

/// After how long all families are looked at for compactions, in microseconds.
const ALL_US: u64 = 2_000_000;

/// So many families that may ask for more than they did are looked at together with one that has
/// changed. Where there are no more, it is all of them.
const IN_TURN: usize = 32;

/// Lists of families, each in the order in which they are served.
#[derive(Default)]
pub(in crate::db) struct Agenda {
    /// With immutable memtables, by the WAL of the oldest.
    waiting: BTreeSet<(FileNumber, ColumnFamilyId)>,
    /// That may want a compaction, those with most files in level 0 first.
    compact: BTreeSet<(Reverse<usize>, ColumnFamilyId)>,
    /// Changed since it was worked out what they ask of writers.
    moved: BTreeSet<ColumnFamilyId>,
    /// What all ask of writers.
    pub(in crate::db) pressures: Pressures,
    /// That may ask for more without having changed.
    growing: BTreeSet<ColumnFamilyId>,
    /// Which of these had its turn last.
    had_turn: ColumnFamilyId,
    /// With garbage in blob files, or holes to come.
    with_garbage: BTreeSet<ColumnFamilyId>,
    /// When all were put into `compact` last.
    all_at_us: Option<u64>,
    /// In which second since 1970 all were looked at for deletions that rest.
    rested_at: Option<u64>,
}

/// Under what a family stands in the lists.
#[derive(Default)]
pub(in crate::db) struct Listed {
    waiting: Option<FileNumber>,
    compact: Option<usize>,
}

impl Agenda {
    fn note(&mut self, id: ColumnFamilyId, known: &mut FamilyState) {
        let oldest = known.immutable.front().map(|oldest| oldest.wal);
        if known.listed.waiting != oldest {
            known.listed.waiting.map(|wal| self.waiting.remove(&(wal, id)));
            oldest.map(|wal| self.waiting.insert((wal, id)));
            known.listed.waiting = oldest;
        }
        let may_have_holes = !matches!(known.punching, Punching::Idle);
        if may_have_holes || has_garbage(&known.family.current.load().version) {
            self.with_garbage.insert(id)
        } else {
            self.with_garbage.remove(&id)
        };
        self.moved.insert(id);
        self.note_for_compaction(id, known);
    }

    fn note_for_compaction(&mut self, id: ColumnFamilyId, known: &mut FamilyState) {
        known.compacting.wants_permit = false;
        let files = known.family.current.load().version.levels[0].len();
        if known.listed.compact != Some(files) {
            known.listed.compact.map(|before| self.compact.remove(&(Reverse(before), id)));
            self.compact.insert((Reverse(files), id));
            known.listed.compact = Some(files);
        }
    }

    /// Families with immutable memtables, the oldest WAL first, which comes along.
    pub(in crate::db) fn waiting(&self) -> impl Iterator<Item = (FileNumber, ColumnFamilyId)> {
        self.waiting.iter().copied()
    }

    /// Families that may want a compaction, in the order in which they are to be asked.
    pub(in crate::db) fn to_compact(&self) -> impl Iterator<Item = ColumnFamilyId> {
        self.compact.iter().map(|(_, id)| *id)
    }

    /// Families with garbage in blob files, or holes to come.
    pub(in crate::db) fn with_garbage(&self) -> impl Iterator<Item = ColumnFamilyId> {
        self.with_garbage.iter().copied()
    }

    /// Whether all are to be looked at for what has rested for some seconds; once in each.
    pub(in crate::db) fn is_another_second(&mut self, now: u64) -> bool {
        self.rested_at.replace(now) != Some(now)
    }

    /// The families of which it is to be worked out what they ask of writers: those that have
    /// changed, and some others.
    pub(in crate::db) fn take_moved(&mut self) -> BTreeSet<ColumnFamilyId> {
        let mut moved = std::mem::take(&mut self.moved);
        let behind = self.growing.range((Bound::Excluded(self.had_turn), Bound::Unbounded));
        let in_turn = behind.chain(self.growing.range(..=self.had_turn)).take(IN_TURN);
        for id in in_turn {
            moved.insert(*id);
            self.had_turn = *id;
        }
        moved
    }

    /// What a family asks of writers.
    pub(in crate::db) fn note_pressure(
        &mut self,
        id: ColumnFamilyId,
        pressure: &Pressure,
        known: &mut FamilyState,
    ) {
        self.pressures.note(id, pressure, known.mem.bytes());
        let has_garbage = self.with_garbage.contains(&id);
        // What memtables have in blob files counts, and grows without a word.
        let fills_disk = has_garbage || known.overwriting.is_seen();
        if pressure.filling.is_some() || fills_disk {
            self.growing.insert(id)
        } else {
            self.growing.remove(&id)
        };
        if has_garbage {
            // What it wants done for it comes as silently as what it asks.
            self.note_for_compaction(id, known);
        }
    }

    /// Whether what a family asks of writers would be found.
    pub(in crate::db) fn knows_pressure(&self, id: ColumnFamilyId, pressure: &Pressure) -> bool {
        self.growing.contains(&id) || self.pressures.is_felt(id) == pressure.is_felt()
    }
}

fn has_garbage(version: &Version) -> bool {
    version.blob_files.values().any(|blob| blob.garbage_bytes > 0)
}

impl State {
    /// Something has changed in a family.
    pub(in crate::db) fn note(&mut self, id: ColumnFamilyId) {
        if let Some(known) = self.families.get_mut(&id) {
            self.agenda.note(id, known);
        }
    }

    /// Something may have changed in any.
    pub(in crate::db) fn note_all(&mut self) {
        self.families.iter_mut().for_each(|(id, known)| self.agenda.note(*id, known));
    }

    /// Puts all families on the list of those that may want a compaction, if that was long ago.
    pub(in crate::db) fn note_time(&mut self, now_us: u64) {
        let is_due = |before: u64| now_us.saturating_sub(before) >= ALL_US;
        if self.agenda.all_at_us.is_none_or(is_due) {
            self.agenda.all_at_us = Some(now_us);
            self.families
                .iter_mut()
                .for_each(|(id, known)| self.agenda.note_for_compaction(*id, known));
        }
    }

    /// A family wants no compaction, as things are.
    pub(in crate::db) fn wants_none(&mut self, id: ColumnFamilyId) {
        let listed = self.families.get_mut(&id).and_then(|known| known.listed.compact.take());
        listed.map(|files| self.agenda.compact.remove(&(Reverse(files), id)));
    }

    /// A family wants a compaction, as things are, for which its limiter has no permit.
    pub(in crate::db) fn wants_permit(&mut self, id: ColumnFamilyId) {
        if let Some(known) = self.families.get_mut(&id) {
            known.compacting.wants_permit = true;
        }
    }

    /// Takes a family out of everything.
    pub(in crate::db) fn remove_family(&mut self, id: ColumnFamilyId) -> Option<FamilyState> {
        let known = self.families.remove(&id)?;
        let Agenda { waiting, compact, moved, growing, with_garbage, pressures, .. } =
            &mut self.agenda;
        known.listed.waiting.map(|wal| waiting.remove(&(wal, id)));
        known.listed.compact.map(|files| compact.remove(&(Reverse(files), id)));
        [moved, growing, with_garbage].into_iter().for_each(|list| {
            list.remove(&id);
        });
        pressures.remove(id);
        self.damage.key_faults.forget_family(id);
        Some(known)
    }

    /// The oldest WAL that a family needs, if those in `flushed` need theirs from these on.
    pub(in crate::db) fn oldest_needed_wal(
        &self,
        flushed: &BTreeMap<ColumnFamilyId, FileNumber>,
    ) -> FileNumber {
        let waiting = self.agenda.waiting().find(|(_, other)| !flushed.contains_key(other));
        let oldest = flushed.values().copied().chain(waiting.map(|(wal, _)| wal)).min();
        // None needs an older one than the oldest there is.
        if let (Some(oldest), Some(there)) = (oldest, self.wals.live.front())
            && oldest <= there.number
        {
            debug_assert_eq!(oldest, self.oldest_needed_of_all(flushed));
            return oldest;
        }
        self.oldest_needed_of_all(flushed)
    }

    /// The oldest WAL that a memtable needs.
    pub(in crate::db) fn oldest_needed_of_memtables(&self) -> FileNumber {
        self.oldest_needed_of_all(&BTreeMap::new()).min(self.wals.kept_for_memtables(|_| false))
    }

    fn oldest_needed_of_all(&self, flushed: &BTreeMap<ColumnFamilyId, FileNumber>) -> FileNumber {
        let needed = |(id, known): (&ColumnFamilyId, &FamilyState)| {
            flushed.get(id).copied().unwrap_or_else(|| known.oldest_needed_wal())
        };
        self.families.iter().map(needed).min().expect("there is a family")
    }
}

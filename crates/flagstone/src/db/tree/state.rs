//! The engine's state: everything that is changed under one lock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Weak};

use crate::base::{ColumnFamilyId, FileNumber, SequenceNumber};
use crate::compaction::pick::Speedometer;
use crate::db::disk::archive::Archive;
use crate::db::family::generation::Generation;
use crate::db::tree::agenda::Agenda;
use crate::db::tree::family_state::FamilyState;
use crate::db::tree::key_faults::KeyFaults;
use crate::manifest::{ObsoleteFile, VersionSet};
use crate::options::DamagedFile;

/// A WAL before the active one that may still be needed.
pub(in crate::db) struct LiveWal {
    pub(in crate::db) number: FileNumber,
    pub(in crate::db) bytes: u64,
    /// Only WALs of this session may be recycled.
    pub(in crate::db) created_here: bool,
}

/// The WALs that are not written to any longer.
#[derive(Default)]
pub(in crate::db) struct OldWals {
    /// Those that may still be needed, oldest first.
    pub(in crate::db) live: VecDeque<LiveWal>,
    /// Obsolete ones whose blocks the next ones will use.
    pub(in crate::db) recyclable: VecDeque<FileNumber>,
    /// Those that only the options keep.
    pub(in crate::db) archive: Archive,
    /// Memtables with entries that were logged before they became active, and the WALs of these.
    kept: Vec<(Weak<Generation>, FileNumber)>,
    /// WALs with transactions that are prepared and not decided, and how many each has.
    prepared: BTreeMap<FileNumber, usize>,
}

impl OldWals {
    /// Keeps a WAL until the memtable is flushed.
    pub(in crate::db) fn keep(&mut self, mem: &Arc<Generation>, wal: FileNumber) {
        let is_kept = |(known, number): &(Weak<Generation>, _)| {
            *number == wal && known.as_ptr() == &raw const **mem
        };
        if !self.kept.iter().any(is_kept) {
            self.kept.push((Arc::downgrade(mem), wal));
        }
    }

    /// Keeps a WAL until what is prepared there is decided.
    pub(in crate::db) fn keep_prepared(&mut self, wal: FileNumber) {
        *self.prepared.entry(wal).or_default() += 1;
    }

    /// One that is prepared there is decided.
    pub(in crate::db) fn note_decided(&mut self, wal: FileNumber) {
        if let Some(count) = self.prepared.get_mut(&wal) {
            *count -= 1;
            if *count == 0 {
                self.prepared.remove(&wal);
            }
        }
    }

    /// The oldest WAL with something prepared; the greatest number if none has.
    pub(in crate::db) fn prepared_from(&self) -> FileNumber {
        self.prepared.keys().next().copied().unwrap_or(FileNumber(u64::MAX))
    }

    /// The oldest WAL that is kept for what is prepared, or for a memtable other than those that
    /// `is_flushed` tells; the greatest number if none is.
    pub(in crate::db) fn kept_from(
        &self,
        is_flushed: impl Fn(&Arc<Generation>) -> bool,
    ) -> FileNumber {
        self.kept_for_memtables(is_flushed).min(self.prepared_from())
    }

    /// The same for memtables alone.
    pub(in crate::db) fn kept_for_memtables(
        &self,
        is_flushed: impl Fn(&Arc<Generation>) -> bool,
    ) -> FileNumber {
        let is_waiting =
            |mem: &Weak<Generation>| mem.upgrade().is_some_and(|mem| !is_flushed(&mem));
        let kept = self.kept.iter().filter(|(mem, _)| is_waiting(mem)).map(|(_, wal)| *wal);
        kept.min().unwrap_or(FileNumber(u64::MAX))
    }

    /// These memtables are in tables.
    pub(in crate::db) fn note_flushed(&mut self, memtables: &[Arc<Generation>]) {
        let is_flushed = |mem: &Arc<Generation>| memtables.iter().any(|one| Arc::ptr_eq(one, mem));
        self.kept.retain(|(mem, _)| mem.upgrade().is_some_and(|mem| !is_flushed(&mem)));
    }
}

/// What is wrong with the tree, or stands in the way of compactions, as far as it was met.
#[derive(Default)]
pub(in crate::db) struct Damage {
    pub(in crate::db) files: BTreeMap<FileNumber, DamagedFile>,
    /// Tables set aside for range deletions that snapshots need and no table can hold: until the
    /// oldest snapshot is newer than this.
    pub(in crate::db) outnumbered: BTreeMap<FileNumber, (ColumnFamilyId, SequenceNumber)>,
    /// What is wrong with keys that flushes and compactions have met.
    pub(in crate::db) key_faults: KeyFaults,
    /// The families of which compactions leave a damaged table alone.
    pub(in crate::db) crippled: BTreeSet<ColumnFamilyId>,
    /// The families with tables in level 0 that are kept apart, as far as is known.
    pub(in crate::db) apart: BTreeSet<ColumnFamilyId>,
}

/// What changes of the MANIFEST leave behind.
#[derive(Default)]
pub(in crate::db) struct Leftovers {
    /// Files of changes that could not be made durable: a MANIFEST may name them until the next one
    /// counts.
    pub(in crate::db) unsettled: Vec<ObsoleteFile>,
    /// The MANIFEST beside which there was no older one when it was looked last.
    pub(in crate::db) manifest_seen: FileNumber,
}

/// The memtables of all families together.
#[derive(Default)]
pub(in crate::db) struct AllMemtables {
    /// Whether they stop writers, and how often that began.
    pub(in crate::db) stop_writers: bool,
    pub(in crate::db) stops: u64,
    /// How often memtables became immutable.
    pub(in crate::db) seals: u64,
}

/// What runs now.
#[derive(Default)]
pub(in crate::db) struct Running {
    pub(in crate::db) flushes: usize,
    pub(in crate::db) compactions: usize,
    /// The compaction that finds out whether the disk has space again, while it is there.
    pub(in crate::db) finds_out: Weak<()>,
    /// Checkpoints that callers make.
    pub(in crate::db) checkpoints: usize,
    /// Tables that callers ingest, a call at a time.
    pub(in crate::db) ingestions: usize,
    /// Calls that compact what they were asked to, also while they wait for other compactions.
    pub(in crate::db) requested: usize,
}

impl Running {
    /// Whether there is anything.
    pub(in crate::db) fn is_any(&self) -> bool {
        self.flushes + self.compactions + self.checkpoints + self.ingestions > 0
    }
}

/// What callers have stopped, and how many of them.
#[derive(Default)]
pub(in crate::db) struct Paused {
    /// While above zero, obsolete files stay (checkpoints, backups).
    pub(in crate::db) deletions: usize,
    /// How many of these the program asked for, by `disable_file_deletions`.
    pub(in crate::db) on_request: usize,
    /// While above zero, no automatic compaction starts.
    pub(in crate::db) compactions: usize,
    /// While above zero, no flush starts.
    pub(in crate::db) flushes: usize,
    /// The database is being closed: nothing is paused any more.
    pub(in crate::db) is_over: bool,
}

/// What the state lock guards.
pub(in crate::db) struct State {
    pub(in crate::db) versions: VersionSet,
    pub(in crate::db) families: BTreeMap<ColumnFamilyId, FamilyState>,
    /// Which of them are to be looked at.
    pub(in crate::db) agenda: Agenda,
    pub(in crate::db) wals: OldWals,
    pub(in crate::db) damage: Damage,
    pub(in crate::db) leftovers: Leftovers,
    /// How fast writers and flushes are.
    pub(in crate::db) pace: Speedometer,
    pub(in crate::db) memtables: AllMemtables,
    pub(in crate::db) running: Running,
    pub(in crate::db) paused: Paused,
}

/// WALs before the active one, with their bytes.
pub(in crate::db) struct OlderWals {
    pub(in crate::db) archived: Vec<(FileNumber, u64)>,
    pub(in crate::db) waiting: Vec<(FileNumber, u64)>,
    pub(in crate::db) live: Vec<(FileNumber, u64)>,
}

impl State {
    pub(in crate::db) fn new(
        versions: VersionSet,
        families: BTreeMap<ColumnFamilyId, FamilyState>,
    ) -> Self {
        let mut state = Self {
            versions,
            families,
            agenda: Agenda::default(),
            wals: OldWals::default(),
            damage: Damage::default(),
            leftovers: Leftovers::default(),
            pace: Speedometer::default(),
            memtables: AllMemtables::default(),
            running: Running::default(),
            paused: Paused::default(),
        };
        state.note_all();
        state
    }

    /// Whether a flush runs, or is about to.
    pub(in crate::db) fn flushes_go_on(&self) -> bool {
        let mut waiting = self.agenda.waiting();
        self.running.flushes > 0 || waiting.any(|(_, id)| self.families[&id].is_ready_to_flush())
    }

    /// Bytes of the memtables that no flush has written.
    pub(in crate::db) fn memtable_bytes(&self) -> u64 {
        let memtables = self.families.values().map(|known| {
            let waiting = known.immutable.iter().map(|waiting| waiting.mem.bytes_in_use());
            known.mem.bytes_in_use() + waiting.sum::<u64>()
        });
        memtables.sum()
    }
}

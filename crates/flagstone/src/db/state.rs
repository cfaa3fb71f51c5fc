//! The engine's state: everything that is changed under one lock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Weak;

use crate::base::{ColumnFamilyId, FileNumber, SequenceNumber};
use crate::compaction::pick::Speedometer;
use crate::db::disk::archive::Archive;
use crate::db::family::FamilyState;
use crate::db::jobs::agenda::Agenda;
use crate::db::jobs::key_faults::KeyFaults;
use crate::manifest::{ObsoleteFile, VersionSet};
use crate::options::DamagedFile;

/// A WAL before the active one that may still be needed.
pub(super) struct LiveWal {
    pub(super) number: FileNumber,
    pub(super) bytes: u64,
    /// Only WALs of this session may be recycled.
    pub(super) created_here: bool,
}

/// The WALs that are not written to any longer.
#[derive(Default)]
pub(super) struct OldWals {
    /// Those that may still be needed, oldest first.
    pub(super) live: VecDeque<LiveWal>,
    /// Obsolete ones whose blocks the next ones will use.
    pub(super) recyclable: VecDeque<FileNumber>,
    /// Those that only the options keep.
    pub(super) archive: Archive,
}

/// What is wrong with the tree, or stands in the way of compactions, as far as it was met.
#[derive(Default)]
pub(super) struct Damage {
    pub(super) files: BTreeMap<FileNumber, DamagedFile>,
    /// Tables set aside for range deletions that snapshots need and no table can hold: until the
    /// oldest snapshot is newer than this.
    pub(super) outnumbered: BTreeMap<FileNumber, (ColumnFamilyId, SequenceNumber)>,
    /// What is wrong with keys that flushes and compactions have met.
    pub(super) key_faults: KeyFaults,
    /// The families of which compactions leave a damaged table alone.
    pub(super) crippled: BTreeSet<ColumnFamilyId>,
    /// The families with tables in level 0 that are kept apart, as far as is known.
    pub(super) apart: BTreeSet<ColumnFamilyId>,
}

/// What changes of the MANIFEST leave behind.
#[derive(Default)]
pub(super) struct Leftovers {
    /// Files of changes that could not be made durable: a MANIFEST may name them until the next one
    /// counts.
    pub(super) unsettled: Vec<ObsoleteFile>,
    /// The MANIFEST beside which there was no older one when it was looked last.
    pub(super) manifest_seen: FileNumber,
}

/// The memtables of all families together.
#[derive(Default)]
pub(super) struct AllMemtables {
    /// Whether they stop writers, and how often that began.
    pub(super) stop_writers: bool,
    pub(super) stops: u64,
    /// How often memtables became immutable.
    pub(super) seals: u64,
}

/// What runs now.
#[derive(Default)]
pub(super) struct Running {
    pub(super) flushes: usize,
    pub(super) compactions: usize,
    /// The compaction that finds out whether the disk has space again, while it is there.
    pub(super) finds_out: Weak<()>,
    /// Checkpoints that callers make.
    pub(super) checkpoints: usize,
}

/// What callers have stopped, and how many of them.
#[derive(Default)]
pub(super) struct Paused {
    /// While above zero, obsolete files stay (checkpoints, backups).
    pub(super) deletions: usize,
    /// While above zero, no automatic compaction starts.
    pub(super) compactions: usize,
}

/// What the state lock guards.
pub(super) struct State {
    pub(super) versions: VersionSet,
    pub(super) families: BTreeMap<ColumnFamilyId, FamilyState>,
    /// Which of them are to be looked at.
    pub(super) agenda: Agenda,
    pub(super) wals: OldWals,
    pub(super) damage: Damage,
    pub(super) leftovers: Leftovers,
    /// How fast writers and flushes are.
    pub(super) pace: Speedometer,
    pub(super) memtables: AllMemtables,
    pub(super) running: Running,
    pub(super) paused: Paused,
}

impl State {
    pub(super) fn new(
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
    pub(super) fn flushes_go_on(&self) -> bool {
        let mut waiting = self.agenda.waiting();
        self.running.flushes > 0 || waiting.any(|(_, id)| self.families[&id].is_ready_to_flush())
    }

    /// Bytes of the memtables that no flush has written.
    pub(super) fn memtable_bytes(&self) -> u64 {
        let memtables = self.families.values().map(|known| {
            let waiting = known.immutable.iter().map(|waiting| waiting.mem.bytes_in_use());
            known.mem.bytes_in_use() + waiting.sum::<u64>()
        });
        memtables.sum()
    }
}

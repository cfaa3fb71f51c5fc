//! The engine's state: everything that is changed under one lock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Weak;

use super::family::FamilyState;
use super::jobs::agenda::Agenda;
use super::jobs::key_faults::KeyFaults;
use super::writing::archive::Archive;
use crate::base::{ColumnFamilyId, FileNumber, SequenceNumber};
use crate::compaction::pick::Speedometer;
use crate::manifest::{ObsoleteFile, VersionSet};
use crate::options::DamagedFile;

/// A WAL before the active one that may still be needed.
pub(super) struct LiveWal {
    pub(super) number: FileNumber,
    pub(super) bytes: u64,
    /// Only WALs of this session may be recycled.
    pub(super) created_here: bool,
}

/// What the state lock guards.
pub(super) struct State {
    pub(super) versions: VersionSet,
    pub(super) families: BTreeMap<ColumnFamilyId, FamilyState>,
    /// Which of them are to be looked at.
    pub(super) agenda: Agenda,
    /// Oldest first, without the active one.
    pub(super) wals: VecDeque<LiveWal>,
    /// Obsolete WALs whose blocks the next ones will use.
    pub(super) recyclable_wals: VecDeque<FileNumber>,
    /// A WAL that could be neither begun nor removed again.
    pub(super) unbegun_wal: Option<FileNumber>,
    /// WALs that only the options keep.
    pub(super) archive: Archive,
    /// Files of changes that could not be made durable: a MANIFEST may name them until the next one counts.
    pub(super) unsettled: Vec<ObsoleteFile>,
    /// The MANIFEST beside which there was no older one when it was looked last.
    pub(super) manifest_seen: FileNumber,
    /// The damaged files that were met.
    pub(super) damaged: BTreeMap<FileNumber, DamagedFile>,
    /// Tables set aside for range deletions that snapshots need and no table can hold: until the oldest snapshot is newer than
    /// this.
    pub(super) outnumbered: BTreeMap<FileNumber, (ColumnFamilyId, SequenceNumber)>,
    /// What is wrong with keys that flushes and compactions have met.
    pub(super) key_faults: KeyFaults,
    /// The families of which compactions leave a damaged table alone.
    pub(super) crippled: BTreeSet<ColumnFamilyId>,
    /// The families with tables in level 0 that are kept apart, as far as is known.
    pub(super) apart: BTreeSet<ColumnFamilyId>,
    /// How fast writers and flushes are.
    pub(super) pace: Speedometer,
    /// Whether all memtables together stop writers, and how often that began.
    pub(super) memtables_stop: bool,
    pub(super) memtable_stops: u64,
    /// How often memtables became immutable.
    pub(super) seals: u64,
    /// Flushes and compactions that are running now.
    pub(super) running_flushes: usize,
    pub(super) running_compactions: usize,
    /// The compaction that finds out whether the disk has space again, while it is there.
    pub(super) finds_out: Weak<()>,
    /// Checkpoints that callers make now.
    pub(super) running_checkpoints: usize,
    /// While above zero, obsolete files stay (checkpoints, backups).
    pub(super) deletions_paused: usize,
    /// While above zero, no automatic compaction starts.
    pub(super) compactions_paused: usize,
}

impl State {
    pub(super) fn new(versions: VersionSet, families: BTreeMap<ColumnFamilyId, FamilyState>) -> Self {
        let mut state = Self {
            versions,
            families,
            agenda: Agenda::default(),
            wals: VecDeque::new(),
            recyclable_wals: VecDeque::new(),
            unbegun_wal: None,
            archive: Archive::default(),
            unsettled: Vec::new(),
            manifest_seen: FileNumber(0),
            damaged: BTreeMap::new(),
            outnumbered: BTreeMap::new(),
            key_faults: KeyFaults::default(),
            crippled: BTreeSet::new(),
            apart: BTreeSet::new(),
            pace: Speedometer::default(),
            memtables_stop: false,
            memtable_stops: 0,
            seals: 0,
            running_flushes: 0,
            running_compactions: 0,
            finds_out: Weak::new(),
            running_checkpoints: 0,
            deletions_paused: 0,
            compactions_paused: 0,
        };
        state.note_all();
        state
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

//! All column families' files, and the MANIFEST that makes their changes durable.
//!
//! This file holds the state and what is read of it; `commit` changes it, `recover` reads it back.
//!
//! **Thread safety**: whoever owns the set serialises changes. Versions, file numbers and the queue
//! of obsolete files are shared by `Arc` and used without it.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use super::edit::CompactCursor;
use super::format::MAX_FILE_NUMBER;
use super::live::ObsoleteFiles;
use super::record::Writer;
use super::version::Version;
use crate::base::sync::{AtomicU64, Ordering};
use crate::base::{
    ColumnFamilyId, Comparator, DataPaths, Error, FileNumber, InternalKeyComparator, Result,
    SequenceNumber,
};
use crate::env::{Env, Names};

/// Of the MANIFEST writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestSettings {
    /// Bytes from which on a new MANIFEST with the full state is begun (or twice the full state, if
    /// that is more).
    pub max_manifest_file_size: u64,
    /// Bytes that are reserved at a time; 0 for none.
    pub preallocation_size: u64,
    /// Bytes that are read at a time; 0 leaves it to the reader.
    pub readahead_size: usize,
}

impl Default for ManifestSettings {
    fn default() -> Self {
        Self { max_manifest_file_size: 1 << 30, preallocation_size: 0, readahead_size: 0 }
    }
}

/// The counter that WAL, table, blob, MANIFEST, OPTIONS and temporary files share; usable without a
/// lock.
#[derive(Debug)]
pub struct FileNumbers(AtomicU64);

impl FileNumbers {
    pub(crate) fn starting_at(next: FileNumber) -> Self {
        Self(AtomicU64::new(next.0))
    }

    /// A number that no other file has.
    pub fn allocate(&self) -> FileNumber {
        FileNumber(self.0.fetch_add(1, Ordering::Relaxed))
    }

    /// The first of `count` numbers in a row that no other file has.
    pub(crate) fn allocate_block(&self, count: u64) -> FileNumber {
        FileNumber(self.0.fetch_add(count, Ordering::Relaxed))
    }

    /// The number that the next allocation returns.
    pub fn next(&self) -> FileNumber {
        FileNumber(self.0.load(Ordering::Relaxed))
    }

    /// A file with this number exists: never hand it out.
    pub fn mark_used(&self, number: FileNumber) {
        // A stray file with an impossible number in its name must not use the counter up.
        if number.0 <= MAX_FILE_NUMBER {
            self.0.fetch_max(number.0 + 1, Ordering::Relaxed);
        }
    }
}

/// A column family to be opened.
#[derive(Debug, Clone)]
pub struct FamilySpec {
    /// Its name.
    pub name: String,
    /// Its order; must bear the name stored in the MANIFEST.
    pub comparator: Comparator,
    /// Where its files lie.
    pub paths: Arc<DataPaths>,
    /// The number of its levels, at least as many as hold files.
    pub num_levels: usize,
    /// Whether its tables keep the timestamps of its keys, if these have some.
    pub persists_timestamps: bool,
}

impl FamilySpec {
    pub(super) fn check(&self) -> Result<()> {
        match self.num_levels {
            0 => Err(Error::invalid_argument(format!(
                "column family '{}' must have a level",
                self.name
            ))),
            _ => Ok(()),
        }
    }
}

/// One column family's place in the set.
#[derive(Debug)]
pub struct Family {
    /// Its number.
    pub id: ColumnFamilyId,
    /// Its name.
    pub name: String,
    /// The order of its internal keys.
    pub comparator: InternalKeyComparator,
    /// The oldest WAL that holds unflushed data of it.
    pub log_number: FileNumber,
    /// The newest WAL that its edits tell of; see [`super::edit::VersionEdit::known_wal`].
    pub known_wal: FileNumber,
    /// Its files now.
    pub current: Arc<Version>,
    /// The next rank in level 0: they are given in the order in which the data was written.
    pub next_epoch_number: u64,
    /// Where the next compactions start, at most one a level.
    pub compact_cursors: Vec<CompactCursor>,
    /// User timestamps below this are no longer kept.
    pub full_history_ts_low: Option<Vec<u8>>,
    /// Whether its tables keep the timestamps of its keys, if these have some.
    pub persists_timestamps: bool,
}

/// The MANIFEST being written.
pub(super) struct Manifest {
    pub(super) writer: Writer,
    pub(super) number: FileNumber,
    /// The size at which the next one is begun.
    pub(super) size_max: u64,
}

impl Manifest {
    pub(super) fn size(&self) -> u64 {
        self.writer.size()
    }
}

/// All column families' files, and the MANIFEST that makes their changes durable.
pub struct VersionSet {
    pub(super) directory: PathBuf,
    pub(super) env: Env,
    pub(super) names: Arc<Names>,
    pub(super) settings: ManifestSettings,
    pub(super) read_only: bool,
    pub(super) families: BTreeMap<ColumnFamilyId, Family>,
    pub(super) file_numbers: Arc<FileNumbers>,
    pub(super) obsolete: Arc<ObsoleteFiles>,
    pub(super) last_sequence: SequenceNumber,
    pub(super) min_log_number_to_keep: FileNumber,
    pub(super) max_column_family: ColumnFamilyId,
    pub(super) identity: Identity,
    pub(super) manifest: ManifestState,
}

/// What the database is called.
pub(super) struct Identity {
    pub(super) db_id: String,
    /// Whether the file IDENTITY has to be written along with the next MANIFEST.
    pub(super) is_file_missing: bool,
}

/// The MANIFEST on the disk.
pub(super) struct ManifestState {
    /// The MANIFEST that CURRENT names.
    pub(super) current: FileNumber,
    /// Whether it does: a database that is still being made has no CURRENT.
    pub(super) is_named: bool,
    /// The MANIFEST that takes the next edits; without one, the next change begins one.
    pub(super) open: Option<Manifest>,
    /// MANIFESTs that CURRENT may name, until the next one is named there.
    pub(super) doubtful: Vec<FileNumber>,
    /// Why a change could not be made durable; all later ones are refused.
    pub(super) poison: Option<Error>,
}

impl ManifestState {
    /// The next change begins a new MANIFEST.
    pub(super) fn new(current: FileNumber, is_named: bool) -> Self {
        Self { current, is_named, open: None, doubtful: Vec::new(), poison: None }
    }
}

impl VersionSet {
    /// The open family with that id.
    pub fn family(&self, id: ColumnFamilyId) -> Option<&Family> {
        self.families.get(&id)
    }

    /// The open family with that name.
    pub fn family_by_name(&self, name: &str) -> Option<&Family> {
        self.families.values().find(|family| family.name == name)
    }

    /// The open families, by id.
    pub fn families(&self) -> impl Iterator<Item = &Family> {
        self.families.values()
    }

    /// How names are made durable; whoever makes one in the same directories does it this way.
    pub fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// The counter of file numbers, to be kept and used without a lock.
    pub fn file_numbers(&self) -> &Arc<FileNumbers> {
        &self.file_numbers
    }

    /// The same state, in which new files get the numbers from `first` on. Whoever writes the
    /// database has reserved them.
    #[must_use]
    pub(crate) fn numbered_from(mut self, first: FileNumber) -> Self {
        self.file_numbers = Arc::new(FileNumbers::starting_at(first));
        self
    }

    /// Where files turn up that nothing uses any longer.
    pub fn obsolete_files(&self) -> &Arc<ObsoleteFiles> {
        &self.obsolete
    }

    /// The last sequence number that the next edit will record.
    pub fn last_sequence(&self) -> SequenceNumber {
        self.last_sequence
    }

    /// Raises the last sequence number; never lowers it.
    pub fn set_last_sequence(&mut self, sequence: SequenceNumber) {
        self.last_sequence = self.last_sequence.max(sequence);
    }

    /// The oldest WAL that any family needs, as recorded; 0 if nothing was.
    pub fn min_log_number_to_keep(&self) -> FileNumber {
        self.min_log_number_to_keep
    }

    /// The oldest WAL that holds unflushed data: older ones need not be replayed and may be
    /// removed.
    pub fn oldest_log_number(&self) -> FileNumber {
        let oldest =
            self.families.values().map(|family| family.log_number).min().unwrap_or_default();
        oldest.max(self.min_log_number_to_keep)
    }

    /// The newest WAL that the edits of any family tell of, and the newest that they name: one of
    /// these is there even if it is empty, or a newer one. Only RocksDB's copies may have none.
    /// None if all that families name are older than those that are needed: of a family that is
    /// dropped.
    pub fn newest_wal(&self) -> Option<RangeInclusive<FileNumber>> {
        let newest = self.families.values().map(|family| family.log_number).max()?;
        let known = self.families.values().map(|family| family.known_wal).max()?;
        (known > FileNumber(0) && newest >= self.oldest_log_number()).then_some(known..=newest)
    }

    /// The database's identity, a UUID in lower case.
    pub fn db_id(&self) -> &str {
        &self.identity.db_id
    }

    /// The MANIFEST that CURRENT names. Older ones may be removed; so may newer ones, but only
    /// before the first change.
    pub fn manifest_number(&self) -> FileNumber {
        self.manifest.current
    }

    /// The environment.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Why changes are refused: an earlier one could not be made durable. See
    /// [`VersionSet::resume`].
    pub fn poison(&self) -> Option<&Error> {
        self.manifest.poison.as_ref()
    }

    /// The number and the bytes of the MANIFEST, if its file says what this state is.
    pub fn manifest_on_disk(&self) -> Option<(FileNumber, u64)> {
        let open = self.manifest.open.as_ref()?;
        let is_current = open.number == self.manifest.current && self.manifest.is_named;
        is_current.then(|| (open.number, open.writer.size()))
    }

    /// The tables and blob files of the newest versions. For a purge of the directory at open,
    /// before older versions are around; later, the queue of obsolete files says what may be
    /// removed.
    pub fn live_files(&self) -> HashSet<FileNumber> {
        let mut live = HashSet::new();
        for version in self.families.values().map(|family| &family.current) {
            live.extend(version.files().map(|(_, file)| file.number()));
            live.extend(version.blob_files.keys());
        }
        live
    }
}

impl Family {
    /// A family whose files are those of `current`.
    pub(super) fn new(
        id: ColumnFamilyId,
        name: String,
        current: Version,
        log_number: FileNumber,
    ) -> Self {
        let newest = current.files().map(|(_, file)| file.meta.epoch_number).max().unwrap_or(0);
        Self {
            id,
            name,
            comparator: current.comparator.clone(),
            log_number,
            known_wal: log_number,
            current: Arc::new(current),
            next_epoch_number: newest.saturating_add(1),
            compact_cursors: Vec::new(),
            full_history_ts_low: None,
            persists_timestamps: true,
        }
    }

    /// What the MANIFEST says of the timestamps in tables, if it need say anything.
    pub(super) fn told_persistence(&self) -> Option<bool> {
        let is_stripped = !self.persists_timestamps && self.comparator.timestamp_size() > 0;
        is_stripped.then_some(false)
    }

    /// Takes what an edit says of the family beside its files.
    pub(super) fn apply_facts(&mut self, edit: &super::edit::VersionEdit) {
        self.log_number = self.log_number.max(edit.log_number.unwrap_or_default());
        self.known_wal = self.known_wal.max(edit.known_wal().unwrap_or_default());
        if let Some(timestamp) = &edit.full_history_ts_low {
            self.full_history_ts_low = Some(timestamp.clone());
        }
        for cursor in &edit.compact_cursors {
            self.compact_cursors.retain(|old| old.level != cursor.level);
            self.compact_cursors.push(cursor.clone());
        }
    }
}

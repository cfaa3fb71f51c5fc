//! All column families' files, and the MANIFEST that makes their changes durable.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::edit::{CompactCursor, VersionEdit};
use super::live::ObsoleteFiles;
use super::recover::{FamilySpec, RecoverOptions};
use super::version::Version;
use crate::base::{ColumnFamilyId, FileNumber, InternalKeyComparator, Result, SequenceNumber};
use crate::env::Env;

/// Of the MANIFEST writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestSettings {
    /// Bytes from which on a new MANIFEST with the full state is begun.
    pub max_manifest_file_size: u64,
}

impl Default for ManifestSettings {
    fn default() -> Self {
        Self { max_manifest_file_size: 1 << 30 }
    }
}

/// The counter that WAL, table, blob, MANIFEST, OPTIONS and temporary files share; usable without a lock.
#[derive(Debug)]
pub struct FileNumbers(AtomicU64);

impl FileNumbers {
    /// A number that no other file has.
    pub fn allocate(&self) -> FileNumber {
        FileNumber(self.0.fetch_add(1, Ordering::Relaxed))
    }

    /// The number that the next allocation returns.
    pub fn next(&self) -> FileNumber {
        FileNumber(self.0.load(Ordering::Relaxed))
    }

    /// A file with this number exists: never hand it out.
    pub fn mark_used(&self, number: FileNumber) {
        self.0.fetch_max(number.0.saturating_add(1), Ordering::Relaxed);
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
    /// The number of its levels.
    pub num_levels: usize,
    /// The oldest WAL that holds unflushed data of it.
    pub log_number: FileNumber,
    /// Its files now.
    pub current: Arc<Version>,
    /// The next rank in level 0; see [`VersionSet::new_epoch_number`].
    pub next_epoch_number: u64,
    /// Where the next compactions start, at most one a level.
    pub compact_cursors: Vec<CompactCursor>,
    /// User timestamps below this are no longer kept.
    pub full_history_ts_low: Option<Vec<u8>>,
}

/// All column families' files, and the MANIFEST that makes their changes durable.
pub struct VersionSet {
    directory: PathBuf,
    env: Env,
    families: BTreeMap<ColumnFamilyId, Family>,
    file_numbers: Arc<FileNumbers>,
    obsolete: Arc<ObsoleteFiles>,
    last_sequence: SequenceNumber,
    min_log_number_to_keep: FileNumber,
    max_column_family: ColumnFamilyId,
}

impl VersionSet {
    /// Makes a new database with the one family `default`: IDENTITY, MANIFEST-000001, CURRENT. The directory exists.
    ///
    /// # Errors
    /// `IoError`; `InvalidArgument` if there is a CURRENT already.
    pub fn create(
        _env: Env,
        _directory: &Path,
        _default: FamilySpec,
        _settings: ManifestSettings,
    ) -> Result<Self> {
        todo!()
    }

    /// Reads the MANIFEST that CURRENT names. Writes nothing; a first change then begins a new MANIFEST.
    ///
    /// # Errors
    /// - `InvalidArgument`: families in the MANIFEST that `options` does not name (unless `read_only`), families
    ///   named that are not there, another comparator than stored, too few levels.
    /// - `Corruption`, `IoError`.
    pub fn recover(_env: Env, _directory: &Path, _options: RecoverOptions) -> Result<Self> {
        todo!()
    }

    /// Makes edits durable in the MANIFEST, then visible in [`VersionSet::family`]. One sync for all of them; after a
    /// crash a prefix of them may have taken place.
    ///
    /// PrevLogNumber, NextFileNumber and LastSequence are added to each. An `epoch_number` of 0 in a new file of level 0
    /// is replaced by the family's next.
    ///
    /// # Errors
    /// - `Corruption`, `ColumnFamilyDropped`, `InvalidArgument` if an edit does not fit: nothing has changed.
    /// - `IoError`: whether the edits are in the MANIFEST is unknown, nothing changes in memory, the files that they add must
    ///   be kept until the next change succeeds. That change begins a new MANIFEST file.
    pub fn log_and_apply(&mut self, _edits: Vec<VersionEdit>) -> Result<()> {
        todo!()
    }

    /// As [`VersionSet::log_and_apply`], and after a crash either all edits or none have taken place.
    ///
    /// # Errors
    /// See [`VersionSet::log_and_apply`].
    pub fn log_and_apply_atomically(&mut self, _edits: Vec<VersionEdit>) -> Result<()> {
        todo!()
    }

    /// Adds a family, durably. `log_number` is the WAL being written: older ones hold nothing of it.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is taken; see [`VersionSet::log_and_apply`].
    pub fn create_column_family(
        &mut self,
        _spec: FamilySpec,
        _log_number: FileNumber,
    ) -> Result<ColumnFamilyId> {
        todo!()
    }

    /// Removes a family, durably; its files become obsolete when the last version that has them is dropped.
    ///
    /// # Errors
    /// `InvalidArgument` for the family `default`; see [`VersionSet::log_and_apply`].
    pub fn drop_column_family(&mut self, _id: ColumnFamilyId) -> Result<()> {
        todo!()
    }

    /// The database directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

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

    /// The next rank in level 0, for a flush or an ingestion; `None` if the family is not open.
    pub fn new_epoch_number(&mut self, id: ColumnFamilyId) -> Option<u64> {
        let family = self.families.get_mut(&id)?;
        family.next_epoch_number += 1;
        Some(family.next_epoch_number - 1)
    }

    /// The counter of file numbers, to be kept and used without a lock.
    pub fn file_numbers(&self) -> &Arc<FileNumbers> {
        &self.file_numbers
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

    /// The oldest WAL that any family needs, as recorded: WALs below it and below the smallest
    /// [`Family::log_number`] may be removed.
    pub fn min_log_number_to_keep(&self) -> FileNumber {
        self.min_log_number_to_keep
    }

    /// The largest id ever given to a family.
    pub fn max_column_family(&self) -> ColumnFamilyId {
        self.max_column_family
    }

    /// The database's identity, a UUID in lower case.
    pub fn db_id(&self) -> &str {
        todo!()
    }

    /// The MANIFEST that CURRENT names.
    pub fn manifest_number(&self) -> FileNumber {
        todo!()
    }

    /// The size of the MANIFEST in bytes.
    pub fn manifest_size(&self) -> u64 {
        todo!()
    }

    /// The environment.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Every file number that a version still alive refers to is kept by its `Arc`; these are the tables and blob files
    /// of the newest versions, for a purge of the directory at open.
    pub fn live_files(&self) -> std::collections::HashSet<FileNumber> {
        todo!()
    }
}

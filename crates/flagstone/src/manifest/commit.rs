//! Changes of the set of files, made durable before they become visible.
//!
//! 1. The edits are completed and the new versions built and checked; an error here changes
//!    nothing.
//! 2. If no MANIFEST is being written or it has grown too large, a new one is begun with the full
//!    state. Also if there are several edits: of such a write, torn by a power loss, a later one
//!    may be left without an earlier. But the edits of an atomic group are appended, which takes
//!    less: a few, each synced before the next; more, with a sync before the last and around each
//!    that begins in one block of the file and ends in another. Of those between, which lie in one
//!    block, a power loss may leave some without those before, but no whole group, and what is left
//!    is no damage ([`super::record`]). (RocksDB syncs its groups once, behind the last edit,
//!    wherever they lie.)
//! 3. The edits are appended; one sync for all of them, except for such a group.
//! 4. A new MANIFEST is then named in CURRENT, which makes it count.
//! 5. The new versions become current, files that are in none of them obsolete.
//!
//! If 2-4 fail, what a reopening would find is unknown: either state. Nothing changes in memory,
//! and all later changes are refused until [`VersionSet::resume`]; the failed file is never written
//! or synced again, the next change begins a new MANIFEST. (A sync that failed once may succeed the
//! second time although the data is lost.)

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::edit::VersionEdit;
use super::identity::new_uuid;
use super::live::{BlobFile, ObsoleteFiles, TableFile};
use super::metadata::{BlobFileAddition, BlobFileGarbage};
use super::record::Writer;
use super::version::Version;
use super::version_builder::VersionBuilder;
use super::version_set::{
    Family, FamilySpec, FileNumbers, Identity, Manifest, ManifestSettings, ManifestState,
    VersionSet,
};
use crate::base::{
    Code, ColumnFamilyId, DEFAULT_COLUMN_FAMILY_NAME, Error, FileNumber, InternalKeyComparator,
    Mutant, Result, Sometimes, SubCode, file_name,
};
use crate::env::{Env, IoMode, Names, NewNames};
use crate::wal::BLOCK_SIZE;

/// The edits of smaller atomic groups are synced one by one.
const SYNCED_ONE_BY_ONE: usize = 4;

/// Larger atomic groups begin a new MANIFEST: to sync them at the end of each block takes longer.
const APPENDED_BYTES_MAX: usize = 2 * BLOCK_SIZE;

/// A family's next version.
struct Successor {
    version: Version,
    removed_tables: Vec<Arc<TableFile>>,
    removed_blob_files: Vec<Arc<BlobFile>>,
}

impl VersionSet {
    /// Makes a new database with the one family `default`: IDENTITY, MANIFEST-000001, CURRENT. The
    /// directory exists.
    ///
    /// # Errors
    /// `IoError`; `InvalidArgument` if there is a CURRENT already, or the family has another name.
    pub fn create(
        env: Env,
        directory: &Path,
        default: FamilySpec,
        settings: ManifestSettings,
    ) -> Result<Self> {
        let mut versions = Self::create_without_current(env, directory, default, settings)?;
        versions.name_in_current()?;
        Ok(versions)
    }

    /// [`VersionSet::create`], but that there is no database before [`VersionSet::name_in_current`]
    /// was called.
    ///
    /// # Errors
    /// As there.
    pub fn create_without_current(
        env: Env,
        directory: &Path,
        default: FamilySpec,
        settings: ManifestSettings,
    ) -> Result<Self> {
        default.check()?;
        if default.name != DEFAULT_COLUMN_FAMILY_NAME {
            return Err(Error::invalid_argument("the first column family is named 'default'"));
        }
        let current = file_name::current(directory);
        match env.fs.metadata(&current) {
            Ok(_) => {
                return Err(Error::invalid_argument("a database already exists").at(&current));
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        let comparator = InternalKeyComparator::new(default.comparator);
        let version = Version::empty(comparator, default.paths, default.num_levels);
        let mut family = Family::new(ColumnFamilyId::DEFAULT, default.name, version, FileNumber(0));
        family.persists_timestamps = default.persists_timestamps;
        let mut versions = Self {
            directory: directory.to_path_buf(),
            identity: Identity { db_id: new_uuid(&*env.random), is_file_missing: true },
            names: Arc::new(Names::new(env.fs.clone())),
            env,
            settings,
            read_only: false,
            families: BTreeMap::from([(ColumnFamilyId::DEFAULT, family)]),
            file_numbers: Arc::new(FileNumbers::starting_at(FileNumber(1))),
            obsolete: Arc::new(ObsoleteFiles::default()),
            last_sequence: 0,
            min_log_number_to_keep: FileNumber(0),
            max_column_family: ColumnFamilyId::DEFAULT,
            manifest: ManifestState::new(FileNumber(0), false),
        };
        // Of an attempt that failed there may be files, of which nobody knows what a power loss
        // leaves.
        versions.mark_listed_numbers()?;
        versions.write(&mut [])?;
        Ok(versions)
    }

    /// Makes edits durable in the MANIFEST, then visible in [`VersionSet::family`]. One sync for
    /// all of them; after a crash a prefix of them may have taken place.
    ///
    /// PrevLogNumber, NextFileNumber and LastSequence are added to each. A new file whose
    /// `epoch_number` is 0 gets the smallest epoch of the files that its edit deletes (a
    /// compaction), or else the family's next one (a flush).
    ///
    /// # Errors
    /// - `Corruption`, `ColumnFamilyDropped`, `InvalidArgument` if an edit does not fit: nothing
    ///   has changed.
    /// - `IoError`: whether the edits are in the MANIFEST is unknown, so the files that they add
    ///   must be kept; nothing changes in memory, and further changes are refused (subcode
    ///   `Poisoned`) until [`VersionSet::resume`].
    pub fn log_and_apply(&mut self, edits: Vec<VersionEdit>) -> Result<()> {
        self.commit(edits)
    }

    /// As [`VersionSet::log_and_apply`], and after a crash either all edits or none have taken
    /// place.
    ///
    /// # Errors
    /// See [`VersionSet::log_and_apply`].
    pub fn log_and_apply_atomically(&mut self, mut edits: Vec<VersionEdit>) -> Result<()> {
        if edits.len() > 1 {
            for (remaining, edit) in edits.iter_mut().rev().enumerate() {
                edit.atomic_group_remaining = Some(remaining as u32);
            }
        }
        self.commit(edits)
    }

    /// Adds a family, durably. `log_number` is the WAL being written: older ones hold nothing of
    /// it.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is taken; see [`VersionSet::log_and_apply`].
    pub fn create_column_family(
        &mut self,
        spec: FamilySpec,
        log_number: FileNumber,
    ) -> Result<ColumnFamilyId> {
        Ok(self.create_column_families(vec![spec], log_number)?[0])
    }

    /// [`VersionSet::create_column_family`] for several: all of them, or none. With more than one,
    /// a new MANIFEST is begun.
    ///
    /// # Errors
    /// As [`VersionSet::create_column_family`].
    pub fn create_column_families(
        &mut self,
        specs: Vec<FamilySpec>,
        log_number: FileNumber,
    ) -> Result<Vec<ColumnFamilyId>> {
        self.check_new(&specs)?;
        let newest = self.max_column_family.0;
        let last = u32::try_from(specs.len()).ok().and_then(|count| newest.checked_add(count));
        let last = last.ok_or_else(|| Error::not_supported("no column family ids are left"))?;
        let ids: Vec<_> = (newest + 1..=last).map(ColumnFamilyId).collect();
        let added = |(id, spec): (&ColumnFamilyId, &FamilySpec)| VersionEdit {
            comparator: Some(spec.comparator.name().to_string()),
            persist_user_timestamps: (!spec.persists_timestamps
                && spec.comparator.timestamp_size() > 0)
                .then_some(false),
            log_number: Some(log_number),
            family_added: Some(spec.name.clone()),
            ..VersionEdit::new(*id)
        };
        let mut edits: Vec<_> = ids.iter().zip(&specs).map(added).collect();
        self.write(&mut edits)?;
        for (id, spec) in ids.iter().zip(specs) {
            let comparator = InternalKeyComparator::new(spec.comparator);
            let version = Version::empty(comparator, spec.paths, spec.num_levels);
            let created = Family::new(*id, spec.name, version, log_number);
            let persists_timestamps = spec.persists_timestamps;
            self.families.insert(*id, Family { persists_timestamps, ..created });
        }
        self.max_column_family = ColumnFamilyId(last);
        Ok(ids)
    }

    /// Whether these families can be added.
    pub(super) fn check_new(&self, specs: &[FamilySpec]) -> Result<()> {
        self.check_writable()?;
        specs.iter().try_for_each(FamilySpec::check)?;
        let taken =
            |name: &str| Error::invalid_argument(format!("column family '{name}' already exists"));
        let mut names = HashSet::new();
        if let Some(twice) = specs.iter().find(|spec| !names.insert(spec.name.as_str())) {
            return Err(taken(&twice.name));
        }
        match self.families.values().find(|family| names.contains(family.name.as_str())) {
            Some(there) => Err(taken(&there.name)),
            None => Ok(()),
        }
    }

    /// Removes a family, durably; its files become obsolete when the last version that has them is
    /// dropped.
    ///
    /// # Errors
    /// `InvalidArgument` for the family `default`; see [`VersionSet::log_and_apply`].
    pub fn drop_column_family(&mut self, id: ColumnFamilyId) -> Result<()> {
        self.check_writable()?;
        if id == ColumnFamilyId::DEFAULT {
            return Err(Error::invalid_argument("the column family 'default' cannot be dropped"));
        }
        self.open_family(id)?;
        let edit = VersionEdit {
            family_dropped: true,
            max_column_family: Some(self.max_column_family),
            ..VersionEdit::new(id)
        };
        self.write(&mut [edit])?;
        if let Some(family) = self.families.remove(&id) {
            family.current.files().for_each(|(_, file)| file.mark_obsolete());
            family.current.blob_files.values().for_each(|blob| blob.file.mark_obsolete());
        }
        Ok(())
    }

    /// Whether a change may be in the MANIFEST that has not taken place here: until the next one,
    /// which begins a new MANIFEST.
    pub fn is_in_doubt(&self) -> bool {
        self.manifest.open.is_none()
    }

    /// Allows changes again after one could not be made durable; the next begins a new MANIFEST
    /// with the full state.
    pub fn resume(&mut self) {
        Sometimes::ManifestReplaced.reached();
        self.manifest.poison = None;
    }

    /// Lets go of the MANIFEST, and of what is reserved for it, while the directory is still this
    /// process's: nothing is to be changed any more.
    pub fn end(&mut self) {
        self.manifest.open = None;
    }

    fn commit(&mut self, mut edits: Vec<VersionEdit>) -> Result<()> {
        self.check_writable()?;
        for edit in &mut edits {
            if edit.family_added.is_some() || edit.family_dropped {
                return Err(Error::invalid_argument(
                    "column families are not created or dropped by an edit",
                ));
            }
            self.open_family(edit.family)?;
        }
        let mut epochs: BTreeMap<ColumnFamilyId, u64> = BTreeMap::new();
        for edit in &mut edits {
            let family = &self.families[&edit.family];
            let next_epoch = epochs.entry(edit.family).or_insert(family.next_epoch_number);
            *next_epoch = assign_epochs(edit, &family.current, *next_epoch);
        }
        let successors = self.successors(&mut edits)?;
        self.write(&mut edits)?;
        self.install(&edits, successors, &epochs);
        Ok(())
    }

    fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(
                Error::not_supported("the database is open for reading only").at(&self.directory)
            );
        }
        match &self.manifest.poison {
            None => Ok(()),
            Some(cause) => Err(cause
                .clone()
                .context("no changes are accepted because an earlier one could not be made durable")
                .with_subcode(SubCode::Poisoned)),
        }
    }

    fn open_family(&self, id: ColumnFamilyId) -> Result<&Family> {
        let dropped = || {
            Error::new(
                Code::ColumnFamilyDropped,
                format!("column family {id} is not open or was dropped"),
            )
        };
        self.families.get(&id).ok_or_else(dropped)
    }

    fn successors(&self, edits: &mut [VersionEdit]) -> Result<BTreeMap<ColumnFamilyId, Successor>> {
        let mut builders = BTreeMap::new();
        for edit in edits.iter_mut().filter(|edit| edit.changes_files()) {
            let builder = match builders.entry(edit.family) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let base = &self.open_family(edit.family)?.current;
                    entry.insert(VersionBuilder::new(base, self.obsolete.clone()))
                }
            };
            builder.bound_garbage(edit);
            builder.apply(edit)?;
        }
        let mut successors = BTreeMap::new();
        for (id, builder) in builders {
            let (version, removed_tables) = builder.build_and_removed()?;
            let base = &self.open_family(id)?.current;
            let gone = base
                .blob_files
                .iter()
                .filter(|(number, _)| !version.blob_files.contains_key(number));
            let removed_blob_files = gone.map(|(_, blob)| blob.file.clone()).collect();
            successors.insert(id, Successor { version, removed_tables, removed_blob_files });
        }
        Ok(successors)
    }

    /// Steps 2 to 4; poisons the set if one fails.
    pub(super) fn write(&mut self, edits: &mut [VersionEdit]) -> Result<()> {
        let newest =
            edits.iter().flat_map(|edit| &edit.new_files).map(|(_, file)| file.largest_seqno).max();
        self.last_sequence = self.last_sequence.max(newest.unwrap_or(0));
        let result = self.try_write(edits);
        if let Err(error) = &result {
            self.manifest.open = None;
            self.manifest.poison = Some(error.clone());
        }
        result
    }

    fn try_write(&mut self, edits: &mut [VersionEdit]) -> Result<()> {
        let name = self.names.before_making(&self.directory);
        let mut manifest = match self.manifest.open.take() {
            Some(manifest) if manifest.size() < manifest.size_max && may_be_appended(edits) => {
                manifest
            }
            full => {
                if full.is_some() {
                    Sometimes::ManifestRolled.reached();
                }
                self.begin_manifest()?
            }
        };
        let is_new = manifest.number != self.manifest.current;
        let appended = self.append(&mut manifest, edits, is_new.then_some(&name));
        if is_new {
            appended.inspect_err(|_| self.remove_manifest(manifest.number))?;
            self.make_current(manifest.number)
                .inspect_err(|_| self.manifest.doubtful.push(manifest.number))?;
            std::mem::take(&mut self.manifest.doubtful)
                .into_iter()
                .for_each(|number| self.remove_manifest(number));
        } else {
            appended?;
        }
        self.manifest.open = Some(manifest);
        Ok(())
    }

    /// Appends edits, durably; a new MANIFEST, of that name, may be named in CURRENT after that.
    fn append(
        &mut self,
        manifest: &mut Manifest,
        edits: &mut [VersionEdit],
        new_name: Option<&NewNames>,
    ) -> Result<()> {
        let count = edits.len();
        // What was added and is not synced yet goes on in another block.
        let mut is_across = false;
        for (index, edit) in edits.iter_mut().enumerate() {
            edit.new_files.iter().for_each(|(_, file)| self.file_numbers.mark_used(file.number));
            edit.blob_file_additions
                .iter()
                .for_each(|blob| self.file_numbers.mark_used(blob.number));
            self.complete(edit);
            if Mutant::ForgetOneEdit.is_on() && !edit.deleted_files.is_empty() {
                continue;
            }
            let record = encoded(edit);
            let goes_across = !manifest.writer.has_room_in_block(&record);
            let is_apart =
                count <= SYNCED_ONE_BY_ONE || index + 1 == count || goes_across || is_across;
            if index > 0 && is_apart && new_name.is_none() {
                manifest.writer.sync()?;
            }
            manifest.writer.add(&record)?;
            is_across = goes_across;
        }
        manifest.writer.sync()?;
        if let Some(name) = new_name {
            self.write_identity()?;
            // The MANIFEST's own name must be durable before CURRENT holds it.
            name.sync()?;
        }
        Ok(())
    }

    /// Adds what every edit says.
    fn complete(&self, edit: &mut VersionEdit) {
        edit.next_file_number = Some(self.file_numbers.next());
        edit.last_sequence = Some(self.last_sequence);
        if edit.family_added.is_none() && !edit.family_dropped {
            edit.prev_log_number = Some(FileNumber(0));
        }
    }

    /// A new MANIFEST with the full state, not yet synced.
    fn begin_manifest(&self) -> Result<Manifest> {
        let number = self.file_numbers.allocate();
        let begin = || {
            let path = file_name::manifest(&self.directory, number);
            let file = self.env.fs.create_writable(&path, IoMode::Buffered)?;
            let mut writer = Writer::new(file)?.reserving(self.settings.preallocation_size);
            for edit in self.full_state() {
                writer.add(&encoded(&edit))?;
            }
            let size_max = self.settings.max_manifest_file_size.max(2 * writer.size());
            Ok(Manifest { writer, number, size_max })
        };
        begin().inspect_err(|_| self.remove_manifest(number))
    }

    /// Removes a MANIFEST that CURRENT surely does not name: on a full disk a change is tried again
    /// and again.
    fn remove_manifest(&self, number: FileNumber) {
        let _ = self.env.fs.remove(&file_name::manifest(&self.directory, number));
    }

    fn write_identity(&mut self) -> Result<()> {
        if self.identity.is_file_missing {
            let temporary = file_name::temporary(&self.directory, FileNumber(0));
            let identity = file_name::identity(&self.directory);
            self.names.replace_file(&temporary, &identity, self.identity.db_id.as_bytes())?;
            self.identity.is_file_missing = false;
        }
        Ok(())
    }

    /// Has CURRENT name the MANIFEST, if it does not yet.
    ///
    /// # Errors
    /// `IoError`.
    pub fn name_in_current(&mut self) -> Result<()> {
        self.manifest.is_named = true;
        self.make_current(self.manifest.current)
    }

    fn make_current(&mut self, number: FileNumber) -> Result<()> {
        if self.manifest.is_named {
            let temporary = file_name::temporary(&self.directory, number);
            let contents = format!("MANIFEST-{number}\n");
            let current = file_name::current(&self.directory);
            self.names.replace_file(&temporary, &current, contents.as_bytes())?;
        }
        self.manifest.current = number;
        Ok(())
    }

    /// The edits from which the present state can be read back, in RocksDB's order.
    pub(super) fn full_state(&self) -> Vec<VersionEdit> {
        let mut edits = vec![VersionEdit {
            db_id: Some(self.identity.db_id.clone()),
            ..VersionEdit::default()
        }];
        for family in self.families.values() {
            let is_default = family.id == ColumnFamilyId::DEFAULT;
            edits.push(VersionEdit {
                family_added: (!is_default).then(|| family.name.clone()),
                comparator: Some(family.comparator.user.name().to_string()),
                persist_user_timestamps: family.told_persistence(),
                ..VersionEdit::new(family.id)
            });
        }
        edits.extend(self.families.values().map(|family| self.family_state(family)));
        edits
    }

    fn family_state(&self, family: &Family) -> VersionEdit {
        let mut edit = VersionEdit {
            log_number: Some(family.log_number),
            last_sequence: Some(self.last_sequence),
            compact_cursors: family.compact_cursors.clone(),
            full_history_ts_low: family.full_history_ts_low.clone(),
            ..VersionEdit::new(family.id)
        };
        if family.id == ColumnFamilyId::DEFAULT {
            edit.next_file_number = Some(self.file_numbers.next());
            // Without it, the id of the last family that was dropped would be given out again.
            edit.max_column_family = Some(self.max_column_family).filter(|id| id.0 != 0);
            edit.min_log_number_to_keep =
                Some(self.min_log_number_to_keep).filter(|number| number.0 != 0);
        }
        edit.new_files =
            family.current.files().map(|(level, file)| (level, file.meta.clone())).collect();
        for (&number, state) in &family.current.blob_files {
            edit.blob_file_additions.push(BlobFileAddition { number, ..state.file.meta.clone() });
            let (count, bytes) = (state.garbage_count, state.garbage_bytes);
            if count > 0 || bytes > 0 {
                edit.blob_file_garbages.push(BlobFileGarbage { number, count, bytes });
            }
        }
        edit
    }

    fn install(
        &mut self,
        edits: &[VersionEdit],
        successors: BTreeMap<ColumnFamilyId, Successor>,
        epochs: &BTreeMap<ColumnFamilyId, u64>,
    ) {
        for (id, successor) in successors {
            let Some(family) = self.families.get_mut(&id) else { continue };
            successor.removed_tables.iter().for_each(|file| file.mark_obsolete());
            for file in &successor.removed_blob_files {
                Sometimes::BlobFileDropped.reached();
                file.mark_obsolete();
            }
            family.current = Arc::new(successor.version);
            family.next_epoch_number =
                family.next_epoch_number.max(epochs.get(&id).copied().unwrap_or(0));
        }
        for edit in edits {
            if let Some(family) = self.families.get_mut(&edit.family) {
                family.apply_facts(edit);
            }
            if let Some(number) = edit.min_log_number_to_keep {
                self.min_log_number_to_keep = self.min_log_number_to_keep.max(number);
            }
        }
    }
}

/// Whether edits need not begin a new MANIFEST.
fn may_be_appended(edits: &[VersionEdit]) -> bool {
    let is_group = || edits.iter().all(|edit| edit.atomic_group_remaining.is_some());
    let bytes = || edits.iter().map(|edit| encoded(edit).len()).sum::<usize>();
    edits.len() <= 1
        || is_group() && (edits.len() <= SYNCED_ONE_BY_ONE || bytes() <= APPENDED_BYTES_MAX)
}

pub(super) fn encoded(edit: &VersionEdit) -> Vec<u8> {
    let mut bytes = Vec::new();
    edit.encode(&mut bytes);
    bytes
}

/// Gives epochs to new files without one; the family's next epoch after that.
fn assign_epochs(edit: &mut VersionEdit, base: &Version, mut next_epoch: u64) -> u64 {
    let deleted =
        |file: &TableFile| edit.deleted_files.iter().any(|&(_, number)| number == file.number());
    let inherited = if edit.new_files.iter().any(|(_, file)| file.epoch_number == 0) {
        base.files().filter(|(_, file)| deleted(file)).map(|(_, file)| file.meta.epoch_number).min()
    } else {
        None
    };
    for (_, file) in &mut edit.new_files {
        if file.epoch_number == 0 {
            file.epoch_number = inherited.unwrap_or(next_epoch);
        }
        next_epoch = next_epoch.max(file.epoch_number.saturating_add(1));
    }
    next_epoch
}

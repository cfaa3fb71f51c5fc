//! Changes of the MANIFEST, and what they make superfluous: WALs, older MANIFESTs and OPTIONS
//! files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::file_name::{self, FileKind};
use crate::base::sync::Ordering;
use crate::base::{ColumnFamilyId, Error, FileNumber, Result, SequenceNumber, Sometimes, SubCode};
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::statistics::Ticker;
use crate::db::tree::Tree;
use crate::db::tree::family_state::FamilyState;
use crate::db::tree::output::JobOutput;
use crate::db::tree::state::{LiveWal, OlderWals, State};
use crate::env::Role;
use crate::manifest::{self, ObsoleteFile, StateCopy, TableFile, Version, VersionEdit, VersionSet};
use crate::options::BackgroundErrorReason;

/// OPTIONS files that are kept, the newest.
pub(in crate::db) const KEPT_OPTIONS_FILES: usize = 2;

impl Tree {
    /// Makes the edits of a job durable and visible, all or none: one of each family, with what was
    /// written for it. After a failure nothing has changed, but what the MANIFEST holds is unknown:
    /// where the disk was only full the next change begins a new one, else the database is
    /// poisoned.
    pub(in crate::db) fn apply_edits(
        &self,
        state: &mut State,
        edits: Vec<VersionEdit>,
        outputs: &[(&Family, &JobOutput)],
    ) -> Result<()> {
        let removed = state.damage.key_faults.tables_removed(&edits);
        let added = self.disk.tracks_files().then(|| edits.clone());
        let outcome = state.versions.log_and_apply_atomically(edits);
        self.after_manifest_change(state, outcome).inspect_err(|_| {
            let files = outputs.iter().flat_map(|(family, output)| output.files(&family.paths));
            state.leftovers.unsettled.extend(files);
        })?;
        state.damage.key_faults.note(&self.context, &removed, outputs);
        self.disk.note_edits(added, &state.versions);
        Ok(())
    }

    /// Recovery is done: makes durable what it wrote, and which WALs are needed from now on, with
    /// `wal` as the active one. Returns the memtables that are written to.
    ///
    /// # Errors
    /// Those of the MANIFEST.
    pub(in crate::db) fn begin_writing(
        &self,
        mut recovered: BTreeMap<ColumnFamilyId, VersionEdit>,
        wals: Vec<LiveWal>,
        wal: FileNumber,
        oldest_kept: FileNumber,
    ) -> Result<Vec<(Arc<Family>, Arc<Generation>)>> {
        let mut state = self.state.lock();
        let mut edits = Vec::new();
        let needed = oldest_kept.min(state.wals.prepared_from());
        let State { versions, families, .. } = &mut *state;
        for known in families.values_mut() {
            let id = known.family.id;
            let mut edit = recovered.remove(&id).unwrap_or_else(|| VersionEdit::new(id));
            known.mem_wal = if known.mem.is_empty() { wal } else { oldest_kept };
            // Never back: what the family's tables have would be replayed on top of them.
            known.mem_wal =
                known.mem_wal.max(versions.family(id).map_or(wal, |family| family.log_number));
            edit.log_number = Some(known.mem_wal);
            edits.push(edit);
        }
        // With the last, so that it cannot hold where an edit before it does not.
        edits.last_mut().expect("there is a family").min_log_number_to_keep = Some(needed);
        versions.log_and_apply(edits)?;
        let mut memtables = Vec::new();
        for known in families.values_mut() {
            let listed = versions.family(known.family.id).expect("open");
            self.disk.note_all(&listed.current);
            known.install_listed(listed, self.context.env.clock.now_us());
            known.compacting.forced_gc_below = self.file_numbers.next();
            memtables.push((known.family.clone(), known.mem.clone()));
        }
        state.note_all();
        state.wals.live = wals.into();
        self.remove_old_wals(&mut state, oldest_kept);
        self.update_stall(&mut state);
        Ok(memtables)
    }

    /// Makes durable that WALs are no longer needed for what was prepared there, and removes them.
    ///
    /// # Errors
    /// Those of the MANIFEST.
    pub(in crate::db) fn let_go_of_decided_wals(&self) -> Result<()> {
        let mut state = self.state.lock();
        let needed = state.oldest_needed_wal(&BTreeMap::new()).min(state.wals.kept_from(|_| false));
        let edit = VersionEdit {
            min_log_number_to_keep: Some(needed),
            ..VersionEdit::new(ColumnFamilyId::DEFAULT)
        };
        self.apply_edits(&mut state, vec![edit], &[])?;
        self.remove_old_wals(&mut state, needed);
        Ok(())
    }

    /// Shows readers what was replayed from these WALs; nothing is written.
    pub(in crate::db) fn show_recovered(&self, wals: Vec<LiveWal>) {
        let mut state = self.state.lock();
        state.wals.live = wals.into();
        let State { versions, families, .. } = &mut *state;
        for known in families.values_mut() {
            let version = versions.family(known.family.id).expect("open").current.clone();
            known.install(version, self.context.env.clock.now_us());
        }
    }

    /// During recovery: takes a family's memtable and gives the family an empty one.
    pub(in crate::db) fn replace_memtable(
        &self,
        id: ColumnFamilyId,
        fresh: impl FnOnce(&Family) -> Arc<Generation>,
    ) -> (Arc<Family>, Arc<Generation>) {
        let mut state = self.state.lock();
        let known = state.families.get_mut(&id).expect("the caller found it");
        let mem = std::mem::replace(&mut known.mem, fresh(&known.family));
        let version = known.family.current.load().version.clone();
        // What is flushed need not be kept in memory.
        known.install(version, self.context.env.clock.now_us());
        (known.family.clone(), mem)
    }

    /// The memtable that a family is written to.
    pub(in crate::db) fn memtable(&self, id: ColumnFamilyId) -> Option<Arc<Generation>> {
        self.state.lock().families.get(&id).map(|known| known.mem.clone())
    }

    /// The families with something in the memtable that they are written to.
    pub(in crate::db) fn filled_families(&self) -> Vec<ColumnFamilyId> {
        let state = self.state.lock();
        let filled = state.families.values().filter(|known| !known.mem.is_empty());
        filled.map(|known| known.family.id).collect()
    }

    /// Whether any such memtable has values in blob files.
    pub(in crate::db) fn has_blobs_in_memory(&self) -> bool {
        self.state.lock().families.values().any(|known| !known.mem.blobs.is_empty())
    }

    /// The families, and the oldest WAL that each needs, as the MANIFEST says.
    pub(in crate::db) fn families_to_replay(&self) -> Vec<(Arc<Family>, FileNumber)> {
        let state = self.state.lock();
        let recorded = state.families.iter().filter_map(|(id, known)| {
            let recorded = state.versions.family(*id)?;
            Some((known.family.clone(), recorded.log_number))
        });
        recorded.collect()
    }

    /// The name of a family whose tables may hold writes from behind a WAL.
    pub(in crate::db) fn family_ahead_of(&self, wal: FileNumber) -> Option<String> {
        let state = self.state.lock();
        let mut families = state.versions.families();
        let ahead =
            families.find(|family| family.log_number > wal && family.current.num_files() > 0);
        ahead.map(|family| family.name.clone())
    }

    /// The last sequence number that the MANIFEST knows of.
    pub(in crate::db) fn recorded_sequence(&self) -> SequenceNumber {
        self.state.lock().versions.last_sequence()
    }

    /// Has the next change of the MANIFEST say so.
    pub(in crate::db) fn record_sequence(&self, last: SequenceNumber) {
        self.state.lock().versions.set_last_sequence(last);
    }

    /// Takes note of the faults that recovery has met.
    pub(in crate::db) fn note_key_faults(&self, family: &Family, output: &JobOutput) {
        self.state.lock().damage.key_faults.note(&self.context, &[], &[(family, output)]);
    }

    /// Makes families by a change of the MANIFEST, all or none, and hands out their memtables.
    /// `make` is told the position among the ids that `create` returns, the id, and the version.
    ///
    /// # Errors
    /// What keeps the database from being written; those of the MANIFEST.
    pub(in crate::db) fn create_families(
        &self,
        create: impl FnOnce(&mut VersionSet) -> Result<Vec<ColumnFamilyId>>,
        mut make: impl FnMut(usize, ColumnFamilyId, Arc<Version>) -> FamilyState,
    ) -> Result<Vec<(Arc<Family>, Arc<Generation>)>> {
        let mut state = self.state.lock();
        self.context.check_writable()?;
        let created = create(&mut state.versions);
        let ids = self.after_manifest_change(&mut state, created)?;
        let mut families = Vec::with_capacity(ids.len());
        for (index, id) in ids.into_iter().enumerate() {
            let version = state.versions.family(id).expect("just created").current.clone();
            self.disk.note_all(&version);
            let known = make(index, id, version);
            families.push((known.family.clone(), known.mem.clone()));
            state.families.insert(id, known);
            state.note(id);
        }
        self.families
            .write()
            .extend(families.iter().map(|(family, _)| (family.id, family.clone())));
        Ok(families)
    }

    /// Removes these files, which a change that failed may have added, behind the next change: the
    /// MANIFEST surely does not have them then.
    pub(in crate::db) fn settle_later(&self, files: Vec<ObsoleteFile>) {
        self.state.lock().leftovers.unsettled.extend(files);
    }

    /// An id for a family that is to come.
    ///
    /// # Errors
    /// `NotSupported` if none is left.
    pub(in crate::db) fn reserve_family(&self) -> Result<ColumnFamilyId> {
        self.state.lock().versions.reserve_column_family()
    }

    /// Drops a family; after a failure it may be gone with the next MANIFEST that is read.
    ///
    /// # Errors
    /// Those of the MANIFEST.
    pub(in crate::db) fn drop_family(&self, family: &Family) -> Result<()> {
        let mut state = self.state.lock();
        let dropped = state.versions.drop_column_family(family.id);
        self.after_manifest_change(&mut state, dropped)?;
        family.mark_dropped();
        if let Some(known) = state.remove_family(family.id) {
            known.generations().for_each(|generation| generation.blobs.give_up());
        }
        self.families.write().remove(&family.id);
        self.update_stall(&mut state);
        self.announce_work(&mut state);
        self.progress.notify_all();
        Ok(())
    }

    /// Makes sure that a family whose drop failed is there still.
    ///
    /// # Errors
    /// Those of the MANIFEST.
    pub(in crate::db) fn settle_drops(&self) -> Result<()> {
        let mut state = self.state.lock();
        if state.versions.is_in_doubt() {
            let settled = state.versions.log_and_apply(Vec::new());
            self.after_manifest_change(&mut state, settled).map_err(|error| {
                error.context("the column family could not be dropped, nor kept")
            })?;
        }
        Ok(())
    }

    fn after_manifest_change<T>(&self, state: &mut State, outcome: Result<T>) -> Result<T> {
        match &outcome {
            // After a failure this was a new MANIFEST: what others may name no longer matters.
            Ok(_) => {
                state.leftovers.unsettled.drain(..).for_each(|file| self.disk.add_obsolete(file));
                self.remove_replaced_manifests(state);
            }
            Err(_) if state.versions.poison().is_none() => {}
            Err(error) if error.subcode() == SubCode::NoSpace => state.versions.resume(),
            Err(error) => self.fail_in(state, BackgroundErrorReason::Manifest, error),
        }
        outcome
    }

    /// Removes the MANIFESTs that a new one has replaced: a full disk makes one with every attempt.
    fn remove_replaced_manifests(&self, state: &mut State) {
        let current = state.versions.manifest_number();
        if current == state.leftovers.manifest_seen || state.paused.deletions > 0 {
            return;
        }
        if self.tidy_metadata_in(state) {
            state.leftovers.manifest_seen = current;
        }
    }

    /// Removes MANIFESTs and OPTIONS files that were replaced; whether they are gone. What cannot
    /// be removed harms nobody, and is tried again, at the latest when the database is opened.
    fn tidy_metadata_in(&self, state: &State) -> bool {
        let removed = self.remove_old_metadata(state);
        if let Err(error) = &removed {
            tracing::warn!(%error, "cannot remove a replaced MANIFEST or OPTIONS file");
            self.context.statistics.add(Ticker::RemovalsPutOff, 1);
        }
        removed.is_ok()
    }

    /// Removes MANIFESTs and OPTIONS files that were replaced, as far as that can be done.
    pub(in crate::db) fn tidy_metadata(&self) {
        self.tidy_metadata_in(&self.state.lock());
    }

    /// At close: nothing is added to the MANIFEST any more.
    pub(in crate::db) fn end_manifest(&self) {
        self.state.lock().versions.end();
    }

    /// Removes MANIFESTs other than the current, and OPTIONS files but the newest two; unless
    /// deletions are paused.
    fn remove_old_metadata(&self, state: &State) -> Result<()> {
        if state.paused.deletions > 0 {
            return Ok(());
        }
        let manifest = state.versions.manifest_number();
        let mut options = Vec::new();
        for name in self.context.env.fs.list(&self.context.path)? {
            match FileKind::parse(&name) {
                Some(FileKind::Manifest(number)) if number < manifest => {
                    self.disk.remove(&self.context.path.join(&name))?
                }
                Some(FileKind::Options(number)) => options.push(number),
                _ => {}
            }
        }
        options.sort_unstable();
        let surplus = options.len().saturating_sub(KEPT_OPTIONS_FILES);
        for number in &options[..surplus] {
            self.disk.remove(&file_name::options(&self.context.path, *number))?;
        }
        Ok(())
    }

    /// Removes (or keeps for recycling, or archives) the WALs below `needed`; the MANIFEST must say
    /// so already.
    ///
    /// The newest are kept: who has lost the MANIFEST takes what lies there for history, and in one
    /// with a hole there are writes whose deletions are gone.
    pub(in crate::db) fn remove_old_wals(&self, state: &mut State, needed: FileNumber) {
        if state.paused.deletions > 0 {
            return;
        }
        let needed = needed.min(state.wals.kept_from(|_| false));
        let recycle = self.context.recycled_wals();
        while let Some(oldest) = state.wals.live.front() {
            if oldest.number >= needed {
                break;
            }
            let (number, bytes, created_here) = (oldest.number, oldest.bytes, oldest.created_here);
            state.wals.live.pop_front();
            let retired = if created_here && recycle > 0 {
                state.wals.recyclable.push_back(number);
                if state.wals.recyclable.len() <= recycle {
                    continue;
                }
                // Where WALs are recycled there is no archive.
                let surplus = state.wals.recyclable.pop_front().unwrap_or(number);
                self.disk.remove(&file_name::wal(&self.context.wal_directory, surplus))
            } else {
                self.disk.retire_wal(&mut state.wals.archive, number, bytes)
            };
            if let Err(error) = retired {
                tracing::warn!(%error, "cannot remove or archive an obsolete WAL");
            }
        }
        self.note_live_wals(state);
    }

    /// A checkpoint begins: closing waits for its end.
    ///
    /// # Errors
    /// `ShutdownInProgress`.
    pub(in crate::db) fn begin_checkpoint(&self) -> Result<()> {
        let mut state = self.state.lock();
        self.context.check_open()?;
        state.running.checkpoints += 1;
        Ok(())
    }

    /// What [`Self::begin_checkpoint`] began has ended.
    pub(in crate::db) fn end_checkpoint(&self) {
        self.state.lock().running.checkpoints -= 1;
        self.progress.notify_all();
    }

    /// Removes no file until [`Self::resume_deletions`] was said as often.
    pub(in crate::db) fn pause_deletions(&self, times: usize) {
        self.state.lock().paused.deletions += times;
    }

    /// Files may be removed again. WALs that flushes would have removed meanwhile go now, if
    /// `is_written` to.
    pub(in crate::db) fn resume_deletions(&self, times: usize, is_written: bool) {
        let mut state = self.state.lock();
        state.paused.deletions -= times;
        if is_written {
            let needed = state.versions.oldest_log_number();
            self.remove_old_wals(&mut state, needed);
            self.update_stall(&mut state);
        }
    }

    /// What a copy of the database, or of `only` one of its families, consists of at this moment,
    /// and the options with it. Families that are made or dropped later are in neither.
    pub(in crate::db) fn copied_state(
        &self,
        only: Option<ColumnFamilyId>,
        options: impl FnOnce() -> String,
    ) -> Copy {
        let state = self.state.lock();
        let blobs = |known: &FamilyState| {
            // No WAL names the files of a memtable that has no entries.
            let written = known.generations().filter(|generation| !generation.is_empty());
            let numbers = written.flat_map(|generation| generation.blobs.numbers());
            numbers.map(|number| known.family.paths.blob(number)).collect::<Vec<_>>()
        };
        let is_copied = |family: &&manifest::Family| only.is_none_or(|id| family.id == id);
        let places = state.versions.families().filter(is_copied).flat_map(|family| {
            let (version, paths) = (&family.current, &family.current.paths);
            let table = |file: &Arc<TableFile>| {
                (file.number(), ObsoleteFile::table(paths, file.number(), file.meta.path_id).path())
            };
            let tables = version.files().map(|(_, file)| table(file));
            let blobs = version
                .blob_files
                .keys()
                .map(|number| (*number, ObsoleteFile::blob(paths, *number).path()));
            tables.chain(blobs).collect::<Vec<_>>()
        });
        // Others are there for the sake of the pause: their memtables are in tables.
        let needed = state.versions.oldest_log_number().min(state.wals.kept_from(|_| false));
        let wals = state.wals.live.iter().filter(|wal| wal.number >= needed);
        Copy {
            live: places.collect(),
            growing: state.families.values().flat_map(blobs).collect(),
            wals: wals.map(|wal| (wal.number, wal.bytes)).collect(),
            options: options(),
            manifest: state.versions.manifest_on_disk(),
            state: match only {
                Some(id) => state.versions.copied_state().of_family(id),
                None => state.versions.copied_state(),
            },
        }
    }

    /// The files that nothing uses any longer, at most so many; `None` while they must stay.
    pub(in crate::db) fn take_obsolete(&self, at_most: usize) -> Option<Vec<ObsoleteFile>> {
        // Under the lock: what becomes obsolete after a checkpoint has paused deletions must stay.
        let state = self.state.lock();
        (state.paused.deletions == 0).then(|| self.disk.take_obsolete(at_most))
    }

    /// At open: removes what a crash left behind among these files, and WALs before the `active`
    /// one. Files with names that are not the engine's stay.
    ///
    /// # Errors
    /// `IoError`.
    pub(in crate::db) fn remove_leftovers(
        &self,
        active: FileNumber,
        files: Vec<(PathBuf, FileKind)>,
        forget_blob_file: impl Fn(FileNumber),
    ) -> Result<()> {
        let mut state = self.state.lock();
        let live = state.versions.live_files();
        for (path, kind) in files {
            let stale = match kind {
                FileKind::Table(number) | FileKind::Blob(number) => !live.contains(&number),
                FileKind::Temporary(_) => true,
                _ => false,
            };
            if let FileKind::Trash(_) = kind {
                self.disk.remove_trash(path)?;
            } else if stale {
                Sometimes::LeftoverRemoved.reached();
                if let FileKind::Blob(number) = kind {
                    forget_blob_file(number);
                }
                self.disk.remove(&path)?;
            }
        }
        state.wals.archive = self.disk.load_archive()?;
        self.disk.remove_trash_of_wals()?;
        let names = self.context.env.fs.list(&self.context.wal_directory)?;
        let is_obsolete = |number: &FileNumber| {
            *number < active && !state.wals.live.iter().any(|wal| wal.number == *number)
        };
        let wals = names.iter().filter_map(|name| match FileKind::parse(name) {
            Some(FileKind::Wal(number)) => Some(number),
            _ => None,
        });
        let mut obsolete: Vec<FileNumber> = wals.filter(is_obsolete).collect();
        obsolete.sort_unstable();
        for number in obsolete {
            let size = self
                .context
                .env
                .fs
                .metadata(&file_name::wal(&self.context.wal_directory, number))?
                .size;
            match self.disk.retire_wal(&mut state.wals.archive, number, size) {
                // Recovery needs none of them.
                Err(error) if self.context.settings.load().archives_wals() => {
                    tracing::warn!(%error, "cannot archive an obsolete WAL");
                }
                outcome => outcome?,
            }
        }
        state.wals.archive.sort();
        self.disk.tidy_archive(&mut state.wals.archive)?;
        self.remove_old_metadata(&state)
    }

    /// The first obsolete WAL that may be written over.
    pub(in crate::db) fn take_recyclable_wal(&self) -> Option<FileNumber> {
        self.state.lock().wals.recyclable.pop_front()
    }

    /// One that could not be written over after all.
    pub(in crate::db) fn put_back_recyclable_wal(&self, number: FileNumber) {
        self.state.lock().wals.recyclable.push_front(number);
    }

    /// The WALs before the active one that may still be needed, oldest first, with their bytes.
    pub(in crate::db) fn live_wals(&self) -> Vec<(FileNumber, u64)> {
        self.state.lock().wals.live.iter().map(|wal| (wal.number, wal.bytes)).collect()
    }

    /// All WALs before the active one: those that are archived, those that wait for that, and those
    /// that may still be needed.
    pub(in crate::db) fn older_wals(&self) -> OlderWals {
        let state = self.state.lock();
        let [archived, waiting] = state.wals.archive.contents();
        let live = state.wals.live.iter().map(|wal| (wal.number, wal.bytes)).collect();
        OlderWals { archived, waiting, live }
    }

    /// Tells writers how much the older WALs take, and which is the oldest.
    pub(in crate::db) fn note_live_wals(&self, state: &State) {
        self.wal_space
            .older_bytes
            .store(state.wals.live.iter().map(|wal| wal.bytes).sum(), Ordering::Relaxed);
        self.wal_space
            .oldest
            .store(state.wals.live.front().map_or(0, |wal| wal.number.0), Ordering::Relaxed);
    }

    /// Takes note of an error of a writer, a flush or a compaction: where it was a full disk, gives
    /// up the reserve. No lock may be held.
    pub(in crate::db) fn note_full_disk(&self, error: &Error) {
        if error.subcode() != SubCode::NoSpace || self.context.poison.is_fatal() {
            return;
        }
        self.remove_recyclable_wals();
        self.disk.give_up_reserve(error);
    }

    /// A write failed, or the drop of a family; no lock may be held.
    #[cold]
    pub(in crate::db) fn refused(&self, error: &Error) {
        self.note_full_disk(error);
        self.context.events.tell();
    }

    /// A flush or compaction failed, perhaps for want of space.
    pub(in crate::db) fn note_starved(&self, role: Role, error: &Error) {
        if role == Role::Flush {
            self.disk.note_exhausted(error);
        }
        self.note_full_disk(error);
    }

    /// Removes the WALs that the next ones would have been written over: the disk is full, or the
    /// database is closed.
    pub(in crate::db) fn remove_recyclable_wals(&self) {
        // Not in the head of the loop: the lock would be held to its end.
        let recyclable = std::mem::take(&mut self.state.lock().wals.recyclable);
        for number in recyclable {
            if let Err(error) =
                self.disk.remove(&file_name::wal(&self.context.wal_directory, number))
            {
                tracing::warn!(%error, "cannot remove an obsolete WAL");
            }
        }
    }
}

/// What a copy of the database consists of.
pub(in crate::db) struct Copy {
    /// Tables and blob files of the current versions, and where they should be.
    pub(in crate::db) live: BTreeMap<FileNumber, PathBuf>,
    /// Blob files of memtables, which may still grow.
    pub(in crate::db) growing: Vec<PathBuf>,
    /// The WALs before the active one that recovery needs, with their bytes.
    pub(in crate::db) wals: Vec<(FileNumber, u64)>,
    pub(in crate::db) options: String,
    /// The MANIFEST with its bytes, if its file says what `state` does.
    pub(in crate::db) manifest: Option<(FileNumber, u64)>,
    pub(in crate::db) state: StateCopy,
}

//! Damaged files are set aside, so that the rest of the database goes on.
//!
//! 1. A compaction that cannot read an input (a checksum that does not match, a file cut off or missing, a failing device,
//!    something that a later RocksDB writes), that met entries out of order, or range deletions of one start that no table can
//!    hold, gives up. The table stays marked as an input of a compaction, so that no other picks it; of a blob file, the tables
//!    among the inputs that refer to it. That ends with the next opening; of range deletions, once the oldest snapshot is
//!    another, since they need not be so many then. Blob files to which they refer cannot be emptied until
//!    then: these are not waited for, and others are.
//! 2. The database is not poisoned: nothing that is written went wrong. Flushes and the other compactions go on.
//!    Writers no longer wait for compactions of that family: those that would let them go on may never come.
//! 3. A read that meets damage fails; nothing is answered from what is older. What a lookup or a scan
//!    meets is noted here, too.
//!
//! Tables of level 0 that are newer than one set aside stay in level 0, merged with one another: below it they would be
//! taken for older. FIFO compaction drops a table that was set aside, or that it cannot read, when its turn comes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::compact::CompactionJob;
use crate::base::file_name::FileKind;
use crate::base::sync::{AtomicBool, Mutex, Ordering};
use crate::base::{Code, Comparator, Error, FileNumber, Result, Sometimes, SubCode};
use crate::compaction::pick::kept_by_damage;
use crate::db::events::Event;
use crate::db::family::{ColumnFamily, Family, FamilyState};
use crate::db::state::State;
use crate::db::{Db, DbInner};
use crate::env::is_out_of_descriptors;
use crate::manifest::{TableFile, Version};
use crate::options::DamagedFile;

impl Db {
    /// The damaged files that lookups, scans and compactions have met since the database was opened. A file that was mended or
    /// restored is in use again after the next opening; [`crate::db::salvage`] saves what the others hold.
    ///
    /// A table whose error is `NotSupported` need not be damaged: no compaction takes it, or this engine cannot read it. The
    /// error says what helps, if anything does.
    pub fn damaged_files(&self) -> Vec<DamagedFile> {
        self.inner().note_suspects();
        self.inner().tree.state.lock().damage.files.values().cloned().collect()
    }

    /// Takes note of a damaged file that a lookup has met.
    pub(in crate::db) fn note_damage(&self, family: &ColumnFamily, error: &Error) {
        self.inner().note_damage(&family.0, error);
    }
}

impl DbInner {
    /// A compaction has failed: sets those of its inputs aside that could not be read, with the lock held under which their
    /// marks would be taken off; which they are.
    pub(in crate::db) fn set_aside(
        &self,
        state: &mut State,
        job: &CompactionJob,
        error: &Error,
    ) -> Vec<FileNumber> {
        if !may_be_damage(error) {
            return Vec::new();
        }
        let inputs = || job.plan.files().map(|(_, file)| file);
        let aside: Vec<FileNumber> = match file_of(error) {
            Some(FileKind::Table(number)) => {
                inputs().map(|file| file.number()).filter(|n| *n == number).collect()
            }
            Some(FileKind::Blob(number)) if job.version.blob_files.contains_key(&number) => {
                inputs().filter(|file| refers_to(file, number)).map(|file| file.number()).collect()
            }
            _ => Vec::new(),
        };
        if !aside.is_empty() {
            Sometimes::TableSetAside.reached();
            self.note_in(state, &job.family, &job.version, error);
            state.damage.crippled.insert(job.family.id);
            if job.is_outnumbered.load(Ordering::Relaxed) {
                let until = (job.family.id, job.oldest_snapshot.load(Ordering::Relaxed));
                state.damage.outnumbered.extend(aside.iter().map(|number| (*number, until)));
            }
            let inputs = inputs().filter(|file| aside.contains(&file.number()));
            inputs.for_each(|file| file.set_aside.store(true, Ordering::Relaxed));
            if let Some(known) = state.families.get_mut(&job.family.id) {
                let kept = kept_by_damage(&known.family.current.load().version);
                known.compacting.collecting.retain(|file| !kept.contains(file));
            }
        }
        aside
    }

    /// Takes back tables that were set aside for the sake of snapshots which are gone.
    pub(in crate::db) fn take_back_outnumbered(&self, state: &mut State) {
        if state.damage.outnumbered.is_empty() {
            return;
        }
        let oldest = self.oldest_snapshot();
        let mut ready = BTreeMap::new();
        state.damage.outnumbered.retain(|number, (family, under)| {
            let stays = oldest <= *under;
            if !stays {
                ready.insert(*number, *family);
            }
            stays
        });
        for (number, id) in &ready {
            let Some(known) = state.families.get(id) else { continue };
            let version = known.family.current.load().version.clone();
            if let Some((_, file)) = version.files().find(|(_, file)| file.number() == *number) {
                Sometimes::TableTakenBack.reached();
                file.set_aside.store(false, Ordering::Relaxed);
                file.being_compacted.store(false, Ordering::Release);
            }
            // What is wrong with it besides stays known.
            if state.damage.files.get(number).is_some_and(DamagedFile::waits_for_snapshots) {
                state.damage.files.remove(number);
            }
            if !version.files().any(|(_, file)| file.is_set_aside()) {
                state.damage.crippled.remove(id);
            }
            state.note(*id);
        }
        if !ready.is_empty() {
            self.update_stall(state);
        }
    }

    /// Whether a compaction failed because an input is damaged, which is then set aside.
    pub(in crate::db) fn is_set_aside(&self, error: &Error) -> bool {
        let number = file_of(error).and_then(FileKind::number);
        may_be_damage(error)
            && number.is_some_and(|number| self.tree.state.lock().damage.files.contains_key(&number))
    }

    /// What a manual compaction of the family would wait for in vain.
    pub(in crate::db) fn blocked_by_damage(&self, state: &State, family: &Family) -> Result<()> {
        let goes_on =
            |known: &FamilyState| !known.compacting.running.is_empty() || known.compacting.in_turn > 0;
        let is_running = state.families.get(&family.id).is_some_and(goes_on);
        let damaged = state.damage.files.values().find(|file| file.family == family.id && !is_running);
        match damaged {
            None => Ok(()),
            Some(file) => Err(file.error.clone().context("a damaged file is in the way of the compaction")),
        }
    }

    /// Takes note of a damaged file.
    #[cold]
    pub(in crate::db) fn note_damage(&self, family: &Family, error: &Error) {
        if may_be_damage(error) {
            let version = family.current.load().version.clone();
            self.note_in(&mut self.tree.state.lock(), family, &version, error);
            self.context.events.tell();
        }
    }

    fn note_in(&self, state: &mut State, family: &Family, version: &Version, error: &Error) {
        let Some(number) = file_of(error).and_then(FileKind::number) else { return };
        let Some(range) = range_of(family.comparator(), version, number) else { return };
        if state.damage.files.contains_key(&number) {
            return;
        }
        let file = DamagedFile {
            family: family.id,
            family_name: family.name.clone(),
            number,
            path: error.path().map(Path::to_path_buf).unwrap_or_default(),
            key_range: range,
            error: error.clone(),
        };
        if file.waits_for_snapshots() {
            tracing::warn!(%error, "a table is set aside")
        } else {
            tracing::error!(%error, "a file is damaged")
        }
        self.context.events.note(|| Event::Damaged(file.clone()));
        state.damage.files.insert(number, file);
    }

    /// Takes note of the damaged files that cursors have met.
    pub(in crate::db) fn note_suspects(&self) {
        for (family, error) in self.tables.suspects().take() {
            self.note_damage(&family, &error);
        }
    }

    /// The damaged files in words, a line each.
    pub(in crate::db) fn damage_text(&self) -> String {
        self.note_suspects();
        let state = self.tree.state.lock();
        state.damage.files.values().map(|file| format!("{file}\n")).collect()
    }
}

/// So many errors wait to be noted at most; what is left out is met again.
const SUSPECTS_MAX: usize = 64;

/// Errors of cursors, who do not know the engine's state. Whoever asks for damaged files takes note of them, and each round of
/// background work.
#[derive(Default)]
pub(in crate::db) struct Suspects {
    met: Mutex<Vec<(Arc<Family>, Error)>>,
    any: AtomicBool,
}

impl Suspects {
    /// A cursor over this family has met this error.
    #[cold]
    pub(in crate::db) fn add(&self, family: &Arc<Family>, error: &Error) {
        if !may_be_damage(error) {
            return;
        }
        let mut met = self.met.lock();
        let is_known = met.iter().any(|(_, known)| known.path() == error.path());
        if !is_known && met.len() < SUSPECTS_MAX {
            met.push((family.clone(), error.clone()));
            self.any.store(true, Ordering::Release);
        }
    }

    fn take(&self) -> Vec<(Arc<Family>, Error)> {
        if self.any.load(Ordering::Acquire) && self.any.swap(false, Ordering::AcqRel) {
            std::mem::take(&mut *self.met.lock())
        } else {
            Vec::new()
        }
    }
}

/// Whether an error says that a file is not what was written, or cannot be read, be it only by this engine.
pub(in crate::db) fn may_be_damage(error: &Error) -> bool {
    matches!(error.code(), Code::Corruption | Code::IoError | Code::NotSupported)
        && error.subcode() != SubCode::NoSpace
        && !is_out_of_descriptors(error)
}

fn file_of(error: &Error) -> Option<FileKind> {
    FileKind::parse(error.path()?.file_name()?.to_str()?)
}

fn refers_to(table: &TableFile, blob_file: FileNumber) -> bool {
    match (&table.meta.blob_references, table.meta.oldest_blob_file) {
        (Some(references), _) => references.bytes_in(blob_file) > 0,
        (None, oldest) => oldest.is_some_and(|oldest| oldest <= blob_file),
    }
}

/// The smallest and the largest key that depend on a file; `None` if the version does not have it.
fn range_of(user: &Comparator, version: &Version, number: FileNumber) -> Option<(Vec<u8>, Vec<u8>)> {
    let is_blob = version.blob_files.contains_key(&number);
    let concerned = version
        .files()
        .map(|(_, file)| file)
        .filter(|file| file.number() == number || is_blob && refers_to(file, number));
    concerned.fold(None, |range: Option<(Vec<u8>, Vec<u8>)>, file| {
        let (smallest, largest) = (file.meta.smallest.user_key(), file.meta.largest.user_key());
        Some(match range {
            None => (smallest.to_vec(), largest.to_vec()),
            Some((low, high)) => (
                if user.compare(smallest, &low).is_lt() { smallest.to_vec() } else { low },
                if user.compare(largest, &high).is_gt() { largest.to_vec() } else { high },
            ),
        })
    })
}

/// Takes the marks off a compaction's inputs, but for those set aside.
pub(in crate::db) fn release_inputs(job: &CompactionJob, aside: &[FileNumber]) {
    for (_, file) in job.plan.files().filter(|(_, file)| !aside.contains(&file.number())) {
        file.being_compacted.store(false, Ordering::Release);
    }
}

//! Damaged files are set aside, so that the rest of the database goes on.
//!
//! 1. A compaction that cannot read an input (a checksum that does not match, a file cut off or
//!    missing, a failing device, something that a later RocksDB writes), that met entries out of
//!    order, or range deletions of one start that no table can hold, gives up. The table stays
//!    marked as an input of a compaction, so that no other picks it; of a blob file, the tables
//!    among the inputs that refer to it. That ends with the next opening; of range deletions, once
//!    the oldest snapshot is another, since they need not be so many then. Blob files to which they
//!    refer cannot be emptied until then: these are not waited for, and others are.
//! 2. The database is not poisoned: nothing that is written went wrong. Flushes and the other
//!    compactions go on. Writers no longer wait for compactions of that family: those that would
//!    let them go on may never come.
//! 3. A read that meets damage fails; nothing is answered from what is older. What a lookup or a
//!    scan meets is noted here, too.
//!
//! Tables of level 0 that are newer than one set aside stay in level 0, merged with one another:
//! below it they would be taken for older. FIFO compaction drops a table that was set aside, or
//! that it cannot read, when its turn comes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::base::file_name::FileKind;
use crate::base::sync::Ordering;
use crate::base::{Comparator, Error, FileNumber, Result, Sometimes};
use crate::compaction::pick::kept_by_damage;
use crate::db::events::Event;
use crate::db::family::Family;
use crate::db::tables::damage_reports::may_be_damage;
use crate::db::tree::Tree;
use crate::db::tree::compaction_job::CompactionJob;
use crate::db::tree::family_state::FamilyState;
use crate::db::tree::state::State;
use crate::manifest::{TableFile, Version};
use crate::options::{DamagedFile, KeyFault};

/// The damaged files that were met.
pub(in crate::db) fn damaged_files(tree: &Tree) -> Vec<DamagedFile> {
    tree.state.lock().damage.files.values().cloned().collect()
}

/// Takes note of a damaged file.
#[cold]
pub(in crate::db) fn note_damage(tree: &Tree, family: &Family, error: &Error) {
    if may_be_damage(error) {
        let version = family.current.load().version.clone();
        note_in(tree, &mut tree.state.lock(), family, &version, error);
        tree.context.events.tell();
    }
}

/// Takes note of the damaged files that cursors have met.
pub(in crate::db) fn note_suspects(tree: &Tree) {
    for (family, error) in tree.tables.suspects().take() {
        note_damage(tree, &family, &error);
    }
}

/// The damaged files in words, a line each.
pub(in crate::db) fn damage_text(tree: &Tree) -> String {
    note_suspects(tree);
    damaged_files(tree).iter().map(|file| format!("{file}\n")).collect()
}

/// What is wrong with keys that flushes and compactions have met.
pub(in crate::db) fn key_faults(tree: &Tree) -> Vec<KeyFault> {
    tree.state.lock().damage.key_faults.all()
}

/// The same in words, and how many there is no room for.
pub(in crate::db) fn key_faults_in_words(tree: &Tree) -> Vec<String> {
    tree.state.lock().damage.key_faults.lines().collect()
}

/// If a compaction was in vain, its inputs, tables of level 0, are not merged with one another
/// again before the oldest snapshot is another than when it began. Writers do not wait for
/// that, but do again once there are no such tables.
pub(in crate::db) fn note_apart(tree: &Tree, state: &mut State, job: &CompactionJob) {
    let oldest = tree.oldest_snapshot();
    let (id, family) = (job.family.id, &job.family.name);
    if job.is_in_vain.load(Ordering::Relaxed) {
        Sometimes::Level0KeptApart.reached();
        state.damage.apart.insert(id);
        tracing::warn!(
            family,
            "the range deletions in level 0 do not fit into fewer tables; the tables stay as they are"
        );
    } else if state.damage.apart.contains(&id) {
        let version = &job.family.current.load().version;
        if !version.levels[0].iter().any(|file| file.is_kept_apart(oldest)) {
            state.damage.apart.remove(&id);
        }
    }
}

/// A compaction has failed: sets those of its inputs aside that could not be read, with the
/// lock held under which their marks would be taken off; which they are.
pub(in crate::db) fn set_aside(
    tree: &Tree,
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
        note_in(tree, state, &job.family, &job.version, error);
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
pub(in crate::db) fn take_back_outnumbered(tree: &Tree, state: &mut State) {
    if state.damage.outnumbered.is_empty() {
        return;
    }
    let oldest = tree.oldest_snapshot();
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
        tree.update_stall(state);
    }
}

/// Whether a compaction failed because an input is damaged, which is then set aside.
pub(in crate::db) fn is_set_aside(tree: &Tree, error: &Error) -> bool {
    let number = file_of(error).and_then(FileKind::number);
    may_be_damage(error)
        && number.is_some_and(|number| tree.state.lock().damage.files.contains_key(&number))
}

/// What a manual compaction of the family would wait for in vain.
pub(in crate::db) fn blocked_by_damage(state: &State, family: &Family) -> Result<()> {
    let goes_on =
        |known: &FamilyState| !known.compacting.running.is_empty() || known.compacting.in_turn > 0;
    let is_running = state.families.get(&family.id).is_some_and(goes_on);
    let damaged = state.damage.files.values().find(|file| file.family == family.id && !is_running);
    match damaged {
        None => Ok(()),
        Some(file) => Err(file.error.clone().context("a damaged file blocks the compaction")),
    }
}

fn note_in(tree: &Tree, state: &mut State, family: &Family, version: &Version, error: &Error) {
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
    tree.context.events.note(|| Event::Damaged(file.clone()));
    state.damage.files.insert(number, file);
}

fn file_of(error: &Error) -> Option<FileKind> {
    FileKind::parse(error.path()?.file_name()?.to_str()?)
}

/// The smallest and the largest key that depend on a file; `None` if the version does not have it.
fn range_of(
    user: &Comparator,
    version: &Version,
    number: FileNumber,
) -> Option<(Vec<u8>, Vec<u8>)> {
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

fn refers_to(table: &TableFile, blob_file: FileNumber) -> bool {
    match (&table.meta.blob_references, table.meta.oldest_blob_file) {
        (Some(references), _) => references.bytes_in(blob_file) > 0,
        (None, oldest) => oldest.is_some_and(|oldest| oldest <= blob_file),
    }
}

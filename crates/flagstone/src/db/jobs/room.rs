//! Compactions that wait for one another, since there is no room for both.
//!
//! - Of those that merge all runs of a family, or a piece or part of them, one has its turn at a time, whoever asked for it: the
//!   scratch that `compaction/pick/scratch.rs` tells is there once. Its turn ends when its inputs are removed.
//! - On a full disk, where one has found no room, those that nobody asked for and that write tables begin one at a time until
//!   one has ended well: two together could take the space from each other, again and again. One that began before is not
//!   waited for: it may take hours, and there may be space in a moment. Nor is anything waited for where the file system tells
//!   of room for all that run and the next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Weak};

use super::compact::CompactionJob;
use crate::base::{ColumnFamilyId, FileNumber, Sometimes};
use crate::compaction::pick::CompactionPlan;
use crate::db::DbInner;
use crate::db::family::FamilyState;
use crate::db::state::State;
use crate::manifest::{TableFile, Version};

/// Bytes that are free in the directories of tables and blob files, as far as their file systems tell.
#[derive(Debug, Default)]
pub(super) struct FreeSpace(BTreeMap<Arc<Path>, u64>);

impl DbInner {
    /// What is free, where a compaction has found no room: else nobody wants to know. Asked without the state lock, since a file
    /// system may take its time to tell.
    pub(super) fn free_space(&self) -> FreeSpace {
        if self.context.poison.check_starved().is_ok() {
            return FreeSpace::default();
        }
        let families = self.tree.families.read();
        let directories = families.values().flat_map(|family| family.paths.directories().iter().cloned());
        let directories: BTreeSet<_> = directories.collect();
        drop(families);
        let free = |directory: Arc<Path>| {
            let free = self.context.env.fs.free_space(&directory).ok().flatten()?;
            Some((directory, free))
        };
        FreeSpace(directories.into_iter().filter_map(free).collect())
    }

    /// The next may have its turn. Whoever looks for work does so at once if this one says so.
    pub(in crate::db) fn end_turn(&self, family: ColumnFamilyId, at_once: bool) {
        let mut state = self.tree.state.lock();
        let Some(known) = state.families.get_mut(&family) else { return };
        known.compacting.in_turn -= 1;
        state.note(family);
        if at_once {
            self.announce_work(&mut state);
        }
        // Somebody may have asked for one.
        self.tree.progress.notify_all();
    }

    /// Whether a compaction finds out whether there is room again, for which those that want some wait.
    pub(super) fn waits_for_space(&self, state: &State) -> bool {
        state.running.finds_out.strong_count() > 0 && self.context.poison.check_starved().is_err()
    }

    /// About the most that the compactions that run may write still.
    pub(super) fn bytes_in_work(state: &State) -> u64 {
        let of_family = |known: &FamilyState| {
            let version = known.family.current.load().version.clone();
            // What is set aside bears the mark as well.
            let is_merged = |file: &TableFile| file.is_being_compacted() && !file.is_set_aside();
            let files = version.files().filter(|(_, file)| is_merged(file));
            let tables = files.map(|(_, file)| file.meta.size).fold(0, u64::saturating_add);
            tables.saturating_add(bytes_of_blobs(&version, &known.compacting.collecting))
        };
        state.families.values().map(of_family).fold(0, u64::saturating_add)
    }

    /// Whether there is room for a compaction beside those that may write so much, and for what is to stay free: where its tables
    /// go, and where its blob files would.
    pub(super) fn has_room_beside(&self, job: &CompactionJob, in_work: u64, free: &FreeSpace) -> bool {
        let plan = &job.plan;
        let tables = plan.files().map(|(_, file)| file.meta.size).fold(0, u64::saturating_add);
        let blobs = bytes_of_blobs(&job.version, &plan.emptied);
        let wanted = [tables, blobs, self.disk.wanted_space()].into_iter().fold(in_work, u64::saturating_add);
        let has_room = |directory: &Path| free.0.get(directory).is_some_and(|free| *free >= wanted);
        let (of_tables, of_blobs) = (job.family.paths.directory(plan.path_id), job.family.paths.of_blobs());
        let writes_blobs = job.family.options.load().separates_values() || !job.version.blob_files.is_empty();
        has_room(of_tables) && (of_tables == of_blobs || !writes_blobs || has_room(of_blobs))
    }

    /// One that is about to begin finds out whether there is room again, where that is the question: unless another does so,
    /// beside which there was room for it.
    pub(super) fn find_out(&self, state: &mut State, job: &mut CompactionJob) {
        let is_asked =
            self.context.poison.check_starved().is_err() && state.running.finds_out.strong_count() == 0;
        if is_asked && job.plan.rewrites() {
            let found_out = job.finds_out.insert(Arc::new(()));
            state.running.finds_out = Arc::downgrade(found_out);
        }
    }

    /// There is room: those that run now were begun while there was some, if it is gone again.
    pub(super) fn found_space(&self, state: &mut State) {
        self.context.poison.record_starved(None);
        state.running.finds_out = Weak::new();
    }

    /// A look found no compaction that could begin: nobody wants room any longer, unless it passed over a family.
    pub(super) fn note_nothing_to_do(&self, state: &mut State) {
        if self.context.poison.check_starved().is_ok() || state.running.finds_out.strong_count() > 0 {
            return;
        }
        // One whose automatic compactions are held wants none until it is let go, of which somebody tells.
        let is_passed_over = |known: &FamilyState| {
            known.compacting.manual > 0
                || known.compacting.in_turn > 0
                || !known.compacting.running.is_empty()
        };
        if !state.families.values().any(is_passed_over) {
            self.found_space(state);
        }
    }
}

fn bytes_of_blobs(version: &Version, files: &BTreeSet<FileNumber>) -> u64 {
    let known = files.iter().filter_map(|number| version.blob_files.get(number));
    known.map(|blob| blob.file.meta.total_bytes).fold(0, u64::saturating_add)
}

/// Whether a compaction needs no room, so that it may begin where others wait for some.
pub(super) fn passes(plan: &CompactionPlan) -> bool {
    if plan.rewrites() {
        Sometimes::CompactionAloneOnFullDisk.reached();
    }
    !plan.rewrites()
}

#[cfg(test)]
mod tests;

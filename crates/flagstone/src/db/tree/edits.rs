//! Changes of the MANIFEST, and what they make superfluous: WALs, older MANIFESTs and OPTIONS files.

use crate::base::file_name::{self, FileKind};
use crate::base::sync::Ordering;
use crate::base::{FileNumber, Mutant, Result, SubCode};
use crate::db::family::Family;
use crate::db::jobs::job::JobOutput;
use crate::db::state::State;
use crate::db::statistics::Ticker;
use crate::db::tree::Tree;
use crate::manifest::VersionEdit;

/// OPTIONS files that are kept, the newest.
pub(in crate::db) const KEPT_OPTIONS_FILES: usize = 2;

impl Tree {
    /// Makes the edits of a job durable and visible, all or none: one of each family, with what was written for it. After a
    /// failure nothing has changed, but what the MANIFEST holds is unknown: where the disk was only full the next change begins
    /// a new one, else the database is poisoned.
    pub(in crate::db) fn apply_edits(
        &self,
        state: &mut State,
        edits: Vec<VersionEdit>,
        outputs: &[(&Family, &JobOutput)],
    ) -> Result<()> {
        let removed = state.damage.key_faults.tables_removed(&edits);
        let outcome = state.versions.log_and_apply_atomically(edits);
        self.after_manifest_change(state, outcome).inspect_err(|_| {
            let files = outputs.iter().flat_map(|(family, output)| output.files(&family.paths));
            state.leftovers.unsettled.extend(files);
        })?;
        state.damage.key_faults.note(&self.context, &removed, outputs);
        Ok(())
    }

    pub(in crate::db) fn after_manifest_change<T>(&self, state: &mut State, outcome: Result<T>) -> Result<T> {
        match &outcome {
            // After a failure this was a new MANIFEST: what others may name no longer matters.
            Ok(_) => {
                state.leftovers.unsettled.drain(..).for_each(|file| self.disk.obsolete.push(file));
                self.remove_replaced_manifests(state);
            }
            Err(_) if state.versions.poison().is_none() => {}
            Err(error) if error.subcode() == SubCode::NoSpace => state.versions.resume(),
            Err(error) => self.fail(state, error),
        }
        outcome
    }

    /// Removes the MANIFESTs that a new one has replaced: a full disk makes one with every attempt.
    pub(in crate::db) fn remove_replaced_manifests(&self, state: &mut State) {
        let current = state.versions.manifest_number();
        if current == state.leftovers.manifest_seen || state.paused.deletions > 0 {
            return;
        }
        if self.tidy_metadata(state) {
            state.leftovers.manifest_seen = current;
        }
    }

    /// Removes MANIFESTs and OPTIONS files that were replaced; whether they are gone. What cannot be removed harms nobody, and is
    /// tried again, at the latest when the database is opened.
    pub(in crate::db) fn tidy_metadata(&self, state: &State) -> bool {
        let removed = self.remove_old_metadata(state);
        if let Err(error) = &removed {
            tracing::warn!(%error, "cannot remove a MANIFEST or OPTIONS file that was replaced");
            self.context.statistics.add(Ticker::RemovalsPutOff, 1);
        }
        removed.is_ok()
    }

    /// Removes MANIFESTs other than the current, and OPTIONS files but the newest two; unless deletions are paused.
    pub(in crate::db) fn remove_old_metadata(&self, state: &State) -> Result<()> {
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

    /// Removes (or keeps for recycling, or archives) the WALs below `needed`; the MANIFEST must say so already.
    ///
    /// The newest are kept: who has lost the MANIFEST takes what lies there for history, and in one with a hole there are writes
    /// whose deletions are gone.
    pub(in crate::db) fn remove_old_wals(&self, state: &mut State, needed: FileNumber) {
        if state.paused.deletions > 0 {
            return;
        }
        let recycle = self.context.settings.load().recycled_wals();
        while let Some(oldest) = state.wals.live.front() {
            if oldest.number > needed || oldest.number == needed && !Mutant::RemoveOneWalTooMany.is_on() {
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

    /// Tells writers how much the older WALs take, and which is the oldest.
    pub(in crate::db) fn note_live_wals(&self, state: &State) {
        self.wal_space
            .older_bytes
            .store(state.wals.live.iter().map(|wal| wal.bytes).sum(), Ordering::Relaxed);
        self.wal_space.oldest.store(state.wals.live.front().map_or(0, |wal| wal.number.0), Ordering::Relaxed);
    }
}

//! Which memtables are flushed next, and how what a flush has written becomes part of the tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{ColumnFamilyId, Mutant, Result, Sometimes};
use crate::db::events::{Event, job_info};
use crate::db::family::{Family, FamilyState, Immutable};
use crate::db::generation::Generation;
use crate::db::jobs::job::JobOutput;
use crate::db::state::State;
use crate::db::statistics::Ticker;
use crate::db::tree::Tree;
use crate::env::Role;
use crate::manifest::VersionEdit;

impl Tree {
    /// Whether all families are flushed together.
    pub(in crate::db) fn flushes_together(&self) -> bool {
        self.context.settings.load().atomic_flush && !Mutant::ForgetAtomicFlush.is_on()
    }

    /// Takes what has waited longest.
    pub(in crate::db) fn take_flush(&self, state: &mut State) -> Option<FlushJob> {
        // Whoever closes waits for those that have begun.
        if self.context.closing.load(Ordering::Acquire) {
            return None;
        }
        let (job, is_more) =
            if self.flushes_together() { self.take_sealed(state)? } else { self.take_family(state)? };
        if job.parts.iter().any(|part| part.memtables.len() > 1) {
            Sometimes::SeveralMemtablesFlushed.reached();
        }
        state.running.flushes += 1;
        if state.running.flushes == 1 {
            state.pace.begin_flushes(self.context.env.clock.now_us());
        }
        if is_more {
            self.announce(Role::Flush);
        }
        Some(job)
    }

    /// The memtables of the family that has waited longest; and whether there is more to flush.
    pub(in crate::db) fn take_family(&self, state: &mut State) -> Option<(FlushJob, bool)> {
        let mut looked_at = 0;
        // In the one thread of a world without workers this one would wait for the flush that it interrupts.
        let is_ready =
            |known: &FamilyState| known.is_ready_to_flush() && (!known.is_flushing() || self.has_workers());
        let waiting = state.agenda.waiting().inspect(|_| looked_at += 1);
        let mut ready = waiting.filter(|(_, id)| is_ready(&state.families[id])).map(|(_, id)| id);
        let (first, is_another) = (ready.next(), ready.next().is_some());
        drop(ready);
        debug_assert!(first.is_some() || !state.families.values().any(is_ready), "who waits is listed");
        self.context.statistics.add(Ticker::FamiliesLookedAt, looked_at);
        let known = state.families.get_mut(&first?)?;
        let seal = known.immutable.iter().find(|waiting| !waiting.flushing)?.seal;
        let part = FlushPart { family: known.family.clone(), memtables: known.take_waiting() };
        // Behind those that another flush has, more may wait, for the sake of which it was asked for.
        known.flush_requested &= known.waiting() > 0;
        let is_more = is_another || known.is_ready_to_flush();
        Some((FlushJob { parts: vec![part], seal }, is_more))
    }

    /// The memtables of all families, from the oldest on that no flush has, up to those that were sealed with one that another
    /// flush has: whatever was sealed together is in one flush. And whether there is more to flush.
    pub(in crate::db) fn take_sealed(&self, state: &mut State) -> Option<(FlushJob, bool)> {
        if state.running.flushes > 0 && !self.has_workers() {
            return None;
        }
        let ids: Vec<ColumnFamilyId> = state.agenda.waiting().map(|(_, id)| id).collect();
        self.context.statistics.add(Ticker::FamiliesLookedAt, ids.len() as u64);
        let seals = |flushing: bool| {
            let immutable = ids.iter().flat_map(|id| &state.families[id].immutable);
            immutable.filter(move |waiting| waiting.flushing == flushing).map(|waiting| waiting.seal)
        };
        let first = seals(false).min()?;
        let end = seals(true).filter(|seal| *seal > first).min().unwrap_or(u64::MAX);
        let mut parts = Vec::new();
        for id in ids {
            let Some(known) = state.families.get_mut(&id) else { continue };
            let memtables = known.take_sealed(first..end);
            known.flush_requested &= known.waiting() > 0;
            if !memtables.is_empty() {
                parts.push(FlushPart { family: known.family.clone(), memtables });
            }
        }
        if parts.len() > 1 {
            Sometimes::SeveralFamiliesFlushed.reached();
        }
        let is_more = end < u64::MAX && state.families.values().any(|known| known.waiting() > 0);
        Some((FlushJob { parts, seal: first }, is_more))
    }

    /// Whether something older must be in tables first: of the same family; of all, where these are flushed together, for a
    /// crash must not leave what was written later without what was written before.
    pub(in crate::db) fn before(&self, state: &State, job: &FlushJob) -> Before {
        let is_older = |oldest: &&Immutable| oldest.seal < job.seal;
        let fronts = |id: ColumnFamilyId| state.families.get(&id).and_then(|known| known.immutable.front());
        let older = if self.flushes_together() && !Mutant::InstallFlushOutOfTurn.is_on() {
            let fronts = state.agenda.waiting().filter_map(|(_, id)| fronts(id));
            fronts.filter(is_older).min_by_key(|oldest| oldest.seal)
        } else {
            job.parts.iter().find_map(|part| fronts(part.family.id).filter(is_older))
        };
        match older {
            None => Before::Nothing,
            Some(oldest) if oldest.flushing => Before::Taken,
            Some(_) => Before::GivenBack,
        }
    }

    /// Makes a flush durable and visible: of several families in one atomic group, so that a crash leaves all or none.
    pub(in crate::db) fn install_flush(
        &self,
        state: &mut State,
        flushed: Vec<(&FlushPart, JobOutput)>,
    ) -> Result<()> {
        let mut log_numbers = BTreeMap::new();
        for (part, _) in &flushed {
            let known =
                state.families.get(&part.family.id).expect("a family that is not dropped has a state");
            let next = known.immutable.get(part.memtables.len());
            log_numbers.insert(part.family.id, next.map_or(known.mem_wal, |next| next.wal));
        }
        let needed = state.oldest_needed_wal(&log_numbers);
        let edits = flushed.iter().map(|(part, output)| {
            let mut edit = VersionEdit::new(part.family.id);
            output.describe(&mut edit, 0);
            edit.log_number = Some(log_numbers[&part.family.id]);
            edit.min_log_number_to_keep = Some(needed);
            edit
        });
        let edits = edits.collect();
        let memtables = flushed.iter().flat_map(|(part, _)| &part.memtables);
        let last = memtables.filter_map(|mem| mem.largest_sequence()).max().unwrap_or(0);
        state.versions.set_last_sequence(last.max(self.snapshots.published.load(Ordering::Acquire)));
        if Mutant::RemoveWalBeforeManifest.is_on() {
            self.remove_old_wals(state, needed);
        }
        let outputs: Vec<_> = flushed.iter().map(|(part, output)| (&*part.family, output)).collect();
        self.apply_edits(state, edits, &outputs)?;
        for (part, output) in &flushed {
            self.show_flushed(state, part, output);
        }
        self.remove_old_wals(state, needed);
        self.update_stall(state);
        Ok(())
    }

    /// Shows readers the new version of a family in place of the memtables.
    pub(in crate::db) fn show_flushed(&self, state: &mut State, part: &FlushPart, output: &JobOutput) {
        let id = part.family.id;
        self.context.events.note(|| Event::Flushed(job_info(&part.family, Vec::new(), 0, output)));
        output.unreferenced.iter().for_each(|file| file.give_up());
        let version = state.versions.family(id).expect("still there").current.clone();
        let known = state.families.get_mut(&id).expect("still there");
        known.immutable.drain(..part.memtables.len());
        known.activity.note_flush(output);
        known.note_deleted(&output.deleted, &version);
        let now_us = self.context.env.clock.now_us();
        if output.is_filtered {
            known.install_another_past(version, now_us)
        } else {
            known.install(version, now_us)
        }
        known.compacting.forced_gc_below = self.file_numbers.next();
        state.note(id);
    }
}

/// Memtables taken for one flush: of one family, or, with `atomic_flush`, of all.
pub(in crate::db) struct FlushJob {
    pub(in crate::db) parts: Vec<FlushPart>,
    /// The oldest seal among them.
    pub(in crate::db) seal: u64,
}

/// Those of one family.
pub(in crate::db) struct FlushPart {
    pub(in crate::db) family: Arc<Family>,
    /// Oldest first.
    pub(in crate::db) memtables: Vec<Arc<Generation>>,
}

/// What a flush waits for.
pub(in crate::db) enum Before {
    Nothing,
    /// Another flush has what is older.
    Taken,
    /// Nobody has: its flush failed.
    GivenBack,
}

/// What became of a flush that has not failed.
#[derive(PartialEq, Eq)]
pub(in crate::db) enum Flushed {
    /// It is in the tree, or its family is gone.
    Done,
    /// What is older was not flushed: its memtables are to be taken together with that.
    GivenBack,
}

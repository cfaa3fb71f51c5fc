//! Flushing: immutable memtables of a family become one table in level 0, large values go to blob
//! files.
//!
//! 1. Under the state lock: take all waiting memtables of a family, oldest first; with
//!    `atomic_flush`, those of all families.
//! 2. Without it: merge them through the drop rules into a table (and blob files) a family, several
//!    at the same time; sync them, sync the directory.
//! 3. When what is older is in tables, under it again: one version edit adds the files and says
//!    which WALs the family still needs; readers get the new version in place of the memtables;
//!    WALs that no family needs go. Where the flush of what is older has failed, the memtables are
//!    given back, to be taken together.

use std::sync::Arc;

use crate::base::{Result, Sometimes};
use crate::db::events::Event;
use crate::db::family::Family;
use crate::db::jobs::{Jobs, flush_parts, output, tracking};
use crate::db::statistics::Ticker;
use crate::db::tree::flushes::{Before, FlushJob, Flushed, Installed};
use crate::db::tree::told;
use crate::env::{ThreadStage, enter_stage};
use crate::options::{FlushReason, ManualFlushInfo};

impl Jobs {
    /// [`DbInner::flush_families`], with no lock held.
    pub(in crate::db) fn flush_asked_for(
        &self,
        families: &[Arc<Family>],
        wait: bool,
        reason: FlushReason,
    ) -> Result<()> {
        let outcome = self
            .flush_families(families, wait, reason)
            .inspect_err(|error| self.tree.note_full_disk(error));
        self.context.events.tell();
        outcome
    }

    /// Switches the memtables of these families (with `atomic_flush`, of all) and, if asked, waits
    /// until they are in tables. A family that is dropped has nothing to flush.
    pub(in crate::db) fn flush_families(
        &self,
        families: &[Arc<Family>],
        wait: bool,
        reason: FlushReason,
    ) -> Result<()> {
        self.disk.check_changeable()?;
        let wanted = self.pipeline.seal(families, reason)?;
        if reason == FlushReason::Manual {
            let info = |family: &Arc<Family>| ManualFlushInfo {
                family: family.id,
                family_name: family.name.clone(),
                reason,
            };
            self.context.events.note(|| Event::ManualFlush(families.iter().map(info).collect()));
        }
        if wait { self.tree.wait_for_flush(wanted) } else { Ok(()) }
    }

    /// Flushes one family if any waits for it; whether one did.
    pub(in crate::db) fn flush_one(&self) -> Result<bool> {
        loop {
            let Some(job) = self.tree.take_flush() else { return Ok(false) };
            if self.flush(job)? == Flushed::Done {
                return Ok(true);
            }
        }
    }

    pub(in crate::db) fn flush(&self, job: FlushJob) -> Result<Flushed> {
        let outcome = self.guarded("flush", || self.run_flush(&job));
        // Memory that is free is free before anybody hears of it.
        let unflushed = (!matches!(outcome, Ok(Flushed::Done))).then_some(job);
        self.tree.end_flush(unflushed, outcome.is_ok());
        outcome
    }

    fn run_flush(&self, job: &FlushJob) -> Result<Flushed> {
        for part in &job.parts {
            self.context.events.note(|| Event::FlushBegun(told::flush_begun(part)));
        }
        self.context.events.tell();
        let _doing = tracking::begin_flush(self, job);
        let mut seat = Some(self.background.seats().flush());
        let mut outputs = flush_parts::write_parts(self, job)?;
        self.context.statistics.add(Ticker::Flushes, 1);
        loop {
            enter_stage(ThreadStage::FlushInstall);
            // WALs that end later have nothing older than what is flushed here.
            let owes_syncs = self.pipeline.owes_syncs_of_older_wals();
            match self.tree.install_flush(job, outputs, owes_syncs) {
                Installed::Lost(lost) => {
                    Sometimes::DroppedWhileFlushing.reached();
                    flush_parts::discard_all(self, job, &lost);
                    return Ok(Flushed::Done);
                }
                Installed::NotYet(kept, before) => {
                    outputs = kept;
                    // Another flush has what is older, and readers would look there first. If that
                    // failed, this one gives its own back: whoever takes up the older memtables
                    // takes all.
                    Sometimes::FlushWaitedForOlder.reached();
                    drop(seat.take());
                    let goes_on = match before {
                        Before::Taken => self.tree.wait_for_older(job),
                        _ => self.tree.check_hope().map(|()| false),
                    };
                    if !matches!(goes_on, Ok(true)) {
                        flush_parts::discard_all(self, job, &outputs);
                        return goes_on.map(|_| Flushed::GivenBack);
                    }
                    seat = Some(self.background.seats().flush());
                }
                Installed::OwesSyncs(kept) => {
                    outputs = kept;
                    Sometimes::OlderWalsSynced.reached();
                    self.pipeline.sync_older_wals()?;
                }
                Installed::Done { outcome, to_open, lost } => {
                    drop(seat);
                    for (family, output) in lost {
                        Sometimes::DroppedWhileFlushing.reached();
                        output::discard(self, &family, &output);
                    }
                    to_open.iter().for_each(|(family, tables)| self.open_tables(family, tables));
                    return outcome.map(|()| Flushed::Done);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! Writers that wait while tables from outside become part of the database.
//!
//! 1. [`Pipeline::hold_back_writes`] lets writes that have their sequence numbers end, and no other
//!    begin. Whoever holds them back may then flush, and sync the WAL: there is nothing newer.
//! 2. [`WritesHeldBack::take_numbers`] hands out the sequence numbers behind the last write, for
//!    entries that are in no WAL, and publishes them once the change has taken place.

use std::sync::Arc;

use crate::base::{Error, FileNumber, MAX_SEQUENCE_NUMBER, Result, SequenceNumber};
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::writing::pipeline::Pipeline;

/// No write begins until this is dropped.
pub(in crate::db) struct WritesHeldBack<'a>(pub(super) &'a Pipeline);

impl WritesHeldBack<'_> {
    /// Between the last write and the next, has `change` make entries part of the database whose
    /// sequence numbers begin at the one that it is told. It returns the last that it used, also if
    /// it failed and the MANIFEST may say otherwise: no write may get it.
    ///
    /// # Errors
    /// Those of `change`; `NotSupported` without `at_most` more sequence numbers.
    pub(in crate::db) fn take_numbers<T>(
        &self,
        at_most: u64,
        change: impl FnOnce(SequenceNumber) -> (Option<SequenceNumber>, Result<T>),
    ) -> Result<T> {
        let Self(pipeline) = self;
        let mut commit = pipeline.commit.lock();
        pipeline.insertions.wait_for_all(&commit.turns)?;
        let last = commit.numbers.last;
        if last.saturating_add(at_most) > MAX_SEQUENCE_NUMBER {
            return Err(Error::not_supported("the database has run out of sequence numbers"));
        }
        let (used, outcome) = change(last + 1);
        if let Some(used) = used.filter(|used| *used > last) {
            commit.numbers.last = used;
            pipeline.insertions.publish(used);
        }
        outcome
    }

    /// Between the last write and the next, makes a family whose entries have sequence numbers up
    /// to `newest`: no later write gets one of them, also if `create` fails, as the MANIFEST may
    /// have the family.
    ///
    /// # Errors
    /// Those of `create`; `Aborted` behind a write that panicked.
    pub(in crate::db) fn add_family(
        &self,
        newest: SequenceNumber,
        create: impl FnOnce(FileNumber) -> Result<Vec<(Arc<Family>, Arc<Generation>)>>,
    ) -> Result<Arc<Family>> {
        let Self(pipeline) = self;
        let mut commit = pipeline.commit.lock();
        pipeline.insertions.wait_for_all(&commit.turns)?;
        if newest > commit.numbers.last {
            commit.numbers.last = newest;
            pipeline.insertions.publish(newest);
        }
        let mut created = pipeline.add_families_to(&mut commit, create)?;
        Ok(created.remove(0))
    }
}

impl Drop for WritesHeldBack<'_> {
    fn drop(&mut self) {
        self.0.commit.lock().are_writes_held_back = false;
        self.0.admission.writes_go_on.notify_all();
    }
}

//! Reading along: what the WALs hand out is what was written, whole, in order, and nothing that a crash has taken.

use std::collections::BTreeMap;

use flagstone::base::{Code, SequenceNumber};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;

/// The batches that were written, by the sequence numbers of their last operations.
#[derive(Debug, Default)]
pub(super) struct Written(BTreeMap<SequenceNumber, Batch>);

#[derive(Debug)]
struct Batch {
    operations: WriteBatch,
    is_logged: bool,
}

impl Written {
    /// Takes note of the last write, unless it had no operations: families were gone, perhaps.
    pub(super) fn note(&mut self, db: &Db, operations: WriteBatch, is_logged: bool) {
        if operations.body().is_empty() {
            return;
        }
        self.0.insert(db.latest_sequence_number(), Batch { operations, is_logged });
    }

    /// Forgets what a crash has taken.
    pub(super) fn found(&mut self, db: &Db) {
        let latest = db.latest_sequence_number();
        self.0.retain(|last, _| *last <= latest);
    }

    /// Reads all that the WALs have.
    ///
    /// # Panics
    /// If it is not what was written.
    pub(super) fn check(&self, db: &Db) {
        let Some(oldest) = db.oldest_update().expect("a look at the WALs") else { return };
        let mut updates = match db.get_updates_since(oldest) {
            Err(error) if is_gap(error.code()) => return,
            updates => updates.expect("the oldest update"),
        };
        loop {
            let update = match updates.next_update() {
                // What was flushed, no WAL need have; nor that of what an archive was not synced for.
                Err(error) if is_gap(error.code()) => return,
                update => update.expect("an update"),
            };
            let Some(update) = update else { return };
            if update.batch.count() == 0 {
                continue;
            }
            let last = update.next_sequence - 1;
            let batch = self.0.get(&last).filter(|batch| batch.is_logged);
            let batch = batch.unwrap_or_else(|| panic!("the update up to {last} was never written"));
            // What went to a family that was dropped since, with its values in blob files, is left out.
            if update.batch.count() < batch.operations.count() {
                continue;
            }
            let is_same = batch.operations.body() == update.batch.body();
            assert!(is_same, "the update up to {last} is handed out otherwise");
            // Each such question reads a WAL to there.
            if !last.is_multiple_of(16) {
                continue;
            }
            let after = db.get_updates_after(update.position).map(|updates| updates.next_sequence());
            assert_eq!(after.ok(), Some(last + 1), "who has the update up to {last} cannot go on");
        }
    }
}

fn is_gap(code: Code) -> bool {
    matches!(code, Code::NotFound | Code::Corruption)
}

//! Reading along: what the WALs hand out is what was written, whole, in order, and nothing that a
//! crash has taken.

use std::collections::{BTreeMap, BTreeSet};

use flagstone::base::{Code, ColumnFamilyId, SequenceNumber};
use flagstone::batch::{Operation, WriteBatch};
use flagstone::db::Db;

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The batches, by the sequence numbers of their last operations.
    batches: BTreeMap<SequenceNumber, Batch>,
    /// A crash may have left damage in a WAL.
    has_crashed: bool,
}

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
        self.batches.insert(db.latest_sequence_number(), Batch { operations, is_logged });
    }

    /// Forgets what a crash has taken.
    pub(super) fn found(&mut self, db: &Db) {
        let latest = db.latest_sequence_number();
        self.batches.retain(|last, _| *last <= latest);
        self.has_crashed = true;
    }

    /// Reads all that the WALs have, to the last write; those `in_memory` are in none yet.
    ///
    /// # Panics
    /// If it is not what was written.
    pub(super) fn check(&self, db: &Db, in_memory: bool) {
        let Some(oldest) = db.oldest_update().expect("a look at the WALs") else { return };
        let mut updates = match db.get_updates_since(oldest) {
            Err(error) if self.is_gap(error.code()) => return,
            updates => updates.expect("the oldest update"),
        };
        loop {
            let update = match updates.next_update() {
                // What was flushed, no WAL need have; nor that of what an archive was not synced
                // for.
                Err(error) if self.is_gap(error.code()) => return,
                update => update.expect("an update"),
            };
            let Some(update) = update else { break };
            if update.batch.count() == 0 {
                continue;
            }
            let last = update.next_sequence - 1;
            let batch = self.batches.get(&last).filter(|batch| batch.is_logged);
            let batch =
                batch.unwrap_or_else(|| panic!("the update up to {last} was never written"));
            // Of what went to a family that was dropped since, with its values in blob files, only
            // the keys are left.
            let is_same = batch.operations.body() == update.batch.body()
                || update.batch.count() == batch.operations.count()
                    && of_living(db, &update.batch) == of_living(db, &batch.operations);
            assert!(is_same, "the update up to {last} is handed out otherwise");
            // Each such question reads a WAL to there.
            if !last.is_multiple_of(16) {
                continue;
            }
            match db.get_updates_after(update.position) {
                // What is read here was flushed meanwhile, and its WAL removed.
                Err(error) if self.is_gap(error.code()) && is_gone(db, last) => return,
                Err(error) => panic!("who has the update up to {last} cannot go on: {error}"),
                Ok(after) => {
                    assert_eq!(after.next_sequence(), last + 1, "who has the update up to {last}")
                }
            }
        }
        let (next, latest) = (updates.next_sequence(), db.latest_sequence_number());
        assert!(
            in_memory || next == latest + 1,
            "the updates end before {next}, the writes with {latest}"
        );
    }

    fn is_gap(&self, code: Code) -> bool {
        code == Code::NotFound || code == Code::Corruption && self.has_crashed
    }
}

/// Whether the WALs have the update with that sequence number no longer.
fn is_gone(db: &Db, last: SequenceNumber) -> bool {
    db.oldest_update().expect("a look at the WALs").is_none_or(|oldest| oldest > last)
}

/// The operations of a batch, without those of families that are gone.
fn of_living<'a>(db: &Db, batch: &'a WriteBatch) -> Vec<Operation<'a>> {
    let living: BTreeSet<ColumnFamilyId> =
        db.column_families().iter().map(|family| family.id()).collect();
    let is_of_living = |operation: &Operation<'_>| match operation {
        Operation::Put { cf, .. }
        | Operation::PutEntity { cf, .. }
        | Operation::Delete { cf, .. }
        | Operation::SingleDelete { cf, .. }
        | Operation::Merge { cf, .. }
        | Operation::DeleteRange { cf, .. } => living.contains(cf),
        _ => true,
    };
    batch.iter().map(|operation| operation.expect("an operation")).filter(is_of_living).collect()
}

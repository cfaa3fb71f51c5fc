//! What becomes of transactions that a replay left undecided.
//!
//! 1. A write-committed one stays prepared, and its WAL is kept. Nothing of it is in tables.
//! 2. What a write-prepared one has written may be in tables, under numbers that no reader may see.
//!    Before the workers start, each of its keys gets back the value that it had before, and the
//!    transaction is prepared once more, as a write-committed one: in one record, so that a crash
//!    leaves it as it was or as it is to be. So nothing has to hide numbers later.
//! 3. A write-unprepared one that was not prepared is rolled back in the same way.
//!
//! Nobody else has written these keys since: the transaction held their locks.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{ColumnFamilyId, Result, SequenceNumber, ValueType};
use crate::batch::{BatchIter, HEADER_SIZE, WriteBatch};
use crate::db::DbInner;
use crate::db::opening::prepared::{Prepared, Transaction};
use crate::db::writing::pipeline::two_phase::PreparedBatch;
use crate::options::ReadOptions;

/// Transactions whose operations may be in tables.
pub(in crate::db) type Unsettled = BTreeMap<Vec<u8>, Transaction>;

impl DbInner {
    /// Refuses what cannot be as it is: a database opened without `allow_2pc` has nothing prepared,
    /// and one that is only read cannot undo what tables hold.
    ///
    /// # Errors
    /// `NotSupported`.
    pub(in crate::db) fn check_prepared(&self, prepared: &Prepared) -> Result<()> {
        if self.context.read_only {
            prepared.refuse(self, Transaction::shares_numbers)
        } else if self.context.settings.load().allow_2pc {
            Ok(())
        } else {
            prepared.refuse(self, |transaction| transaction.is_prepared)
        }
    }

    /// Keeps the WALs of what is undecided, and takes up what is prepared. Returns what is to be
    /// settled when the database can be written.
    ///
    /// # Errors
    /// `InvalidArgument` for a transaction that is too large for one batch.
    pub(in crate::db) fn take_prepared(&self, prepared: Prepared) -> Result<Unsettled> {
        let mut unsettled = Unsettled::new();
        for (name, transaction) in prepared.into_undecided() {
            let wal = transaction.oldest_wal();
            self.tree.keep_prepared(wal);
            if transaction.shares_numbers() {
                unsettled.insert(name, transaction);
                continue;
            }
            let operations = Arc::new(transaction.into_operations()?);
            self.pipeline.two_phase().take_up(PreparedBatch::new(
                name,
                operations,
                wal,
                &self.tables,
            ));
        }
        Ok(unsettled)
    }

    /// Undoes what tables have of undecided transactions.
    ///
    /// # Errors
    /// Those of reading and of writing.
    pub(in crate::db) fn settle(&self, unsettled: Unsettled) -> Result<()> {
        if unsettled.is_empty() {
            return Ok(());
        }
        for (name, transaction) in unsettled {
            let (before, wal) = (self.values_before(&transaction)?, transaction.oldest_wal());
            let prepared =
                if transaction.is_prepared { Some(transaction.into_operations()?) } else { None };
            self.pipeline.two_phase().prepare_anew(&name, &before, prepared)?;
            self.tree.note_decided(wal);
        }
        self.tree.let_go_of_decided_wals()
    }

    /// A batch that gives each key of a transaction the value that it had before.
    fn values_before(&self, transaction: &Transaction) -> Result<WriteBatch> {
        let mut first: BTreeMap<(ColumnFamilyId, &[u8]), SequenceNumber> = BTreeMap::new();
        for run in &transaction.runs {
            for operation in BatchIter::new(&run.batch[HEADER_SIZE..]) {
                let operation = operation?;
                let place = operation.family().zip(operation.entry());
                if let (Some((id, (_, key, _))), Some(sequence)) = (place, run.sequence) {
                    first.entry((id, key)).or_insert(sequence);
                }
            }
        }
        let mut batch = WriteBatch::new();
        for ((id, key), sequence) in first {
            let Some(family) = self.tree.families.read().get(&id).cloned() else { continue };
            let before = sequence.saturating_sub(1);
            match self.reader.get_at(&ReadOptions::default(), &family, before, key)? {
                Some((ValueType::WideColumnEntity, entity)) => {
                    batch.put_encoded_entity(id, key, entity)?
                }
                Some((_, value)) => batch.put_cf(id, key, value)?,
                None => batch.delete_cf(id, key)?,
            }
        }
        Ok(batch)
    }
}

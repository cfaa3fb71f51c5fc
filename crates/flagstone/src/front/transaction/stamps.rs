//! The timestamps of a transaction: as of which it reads, and as of which it is written.

use crate::base::{Code, Error, Result, key_in_words};
use crate::batch::WriteBatch;
use crate::db::ColumnFamily;
use crate::front::family::Family;
use crate::front::transaction::Transaction;

/// What a transaction was told of timestamps.
#[derive(Default)]
pub(super) struct TransactionStamps {
    pub(super) read: Option<Vec<u8>>,
    pub(super) commit: Option<Vec<u8>>,
}

impl TransactionStamps {
    /// As of which it reads.
    pub(super) fn read(&self) -> Option<&[u8]> {
        self.read.as_deref()
    }
}

/// The bytes of a timestamp of the family.
pub(super) fn size_in(family: &Family) -> usize {
    family.engine_family().comparator().timestamp_size()
}

/// Refuses a key that has a version which is newer than what the transaction reads.
///
/// # Errors
/// `Busy`; those of a read.
pub(super) fn check_not_newer(
    transaction: &Transaction,
    family: &ColumnFamily,
    key: &[u8],
) -> Result<()> {
    let has_timestamps = family.comparator().timestamp_size() > 0;
    let Some(read) = transaction.stamps.read.as_ref().filter(|_| has_timestamps) else {
        return Ok(());
    };
    if !transaction.db.engine().is_newer_than(family, key, read)? {
        return Ok(());
    }
    let message = format!(
        "key {} of column family '{}' has a version that is newer than the transaction's read timestamp; roll back, and \
         begin again",
        key_in_words(key),
        family.name()
    );
    Err(Error::new(Code::Busy, message))
}

/// Whether it writes to a family with timestamps.
pub(super) fn writes_timestamps(transaction: &Transaction) -> bool {
    let families = transaction.db.engine().column_families();
    let is_stamped = |family: &ColumnFamily| family.comparator().timestamp_size() > 0;
    families.iter().any(is_stamped)
        && transaction
            .batch
            .batch()
            .iter()
            .flatten()
            .filter_map(|one| one.family())
            .any(|id| families.iter().any(|family| family.id() == id && is_stamped(family)))
}

/// What is prepared: keys of families with timestamps get the least one, until the commit.
///
/// # Errors
/// `InvalidArgument` for families whose timestamps have different sizes.
pub(super) fn batch_to_prepare(transaction: &Transaction) -> Result<WriteBatch> {
    let mut batch = transaction.batch.batch().clone();
    if !writes_timestamps(transaction) {
        return Ok(batch);
    }
    let families = transaction.db.engine().column_families();
    let size_of = |id| {
        let family = families.iter().find(|family| family.id() == id);
        family.map_or(0, |family| family.comparator().timestamp_size())
    };
    let written = batch.iter().flatten().filter_map(|one| one.family());
    let mut sizes: Vec<_> = written.map(size_of).filter(|size| *size > 0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let [size] = sizes[..] else {
        return Err(Error::invalid_argument(
            "the transaction writes to column families whose timestamps have different sizes; \
             prepare one transaction for each size",
        ));
    };
    batch.set_timestamps(vec![0; size], size_of)?;
    Ok(batch)
}

/// What is written: keys of families with timestamps get that of the commit. `None` if there
/// are none.
///
/// # Errors
/// `InvalidArgument` if it is missing, or of another size.
pub(super) fn stamped_batch(transaction: &Transaction) -> Result<Option<WriteBatch>> {
    if !writes_timestamps(transaction) {
        return Ok(None);
    }
    let Some(stamp) = &transaction.stamps.commit else {
        return Err(Error::invalid_argument(
            "the transaction writes to a column family with timestamps; call set_commit_timestamp first",
        ));
    };
    let families = transaction.db.engine().column_families();
    let mut stamped = transaction.batch.batch().clone();
    stamped.set_timestamps(stamp, |id| {
        let family = families.iter().find(|family| family.id() == id);
        family.map_or(0, |family| family.comparator().timestamp_size())
    })?;
    Ok(Some(stamped))
}

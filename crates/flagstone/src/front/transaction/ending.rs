//! Save points, and how a transaction ends.

use crate::base::{Code, Error, Result};
use crate::db::{ColumnFamily, Ticker};
use crate::front::transaction::control::Control;
use crate::front::transaction::{Transaction, TransactionState};
use crate::options::WriteOptions;

impl Transaction {
    /// Remembers the present state for [`Transaction::rollback_to_save_point`]; save points nest.
    pub fn set_save_point(&mut self) {
        self.batch.set_save_point();
        self.tracked.set_save_point();
    }

    /// Takes back what was changed and tracked since the latest save point, and the save point.
    /// Locks that were taken since are released.
    ///
    /// # Errors
    /// `NotFound` if there is none; `InvalidArgument` after a commit.
    pub fn rollback_to_save_point(&mut self) -> Result<()> {
        self.check_started()?;
        self.batch.rollback_to_save_point()?;
        self.tracked.rollback_to_save_point(self.control.owner());
        Ok(())
    }

    /// Removes the latest save point and keeps what was changed since.
    ///
    /// # Errors
    /// `NotFound` if there is none; `InvalidArgument` after a commit.
    pub fn pop_save_point(&mut self) -> Result<()> {
        self.check_started()?;
        self.batch.pop_save_point()?;
        self.tracked.pop_save_point();
        Ok(())
    }

    /// Writes the changes: in a [`TransactionDb`](crate::TransactionDb) always, otherwise if nobody
    /// else wrote a tracked key. Then the transaction has ended, and its locks are released.
    ///
    /// # Errors
    /// - `Busy` if somebody did. `Expired` if it took longer than its `expiration`.
    /// - `InvalidArgument` if it was committed already.
    /// - As [`Family::put`](crate::Family::put).
    ///
    /// Nothing is written then, and the transaction is as it was before.
    pub fn commit(&mut self) -> Result<()> {
        self.commit_with(&WriteOptions::default())
    }

    /// The same, as `options` say.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_with(&mut self, options: &WriteOptions) -> Result<()> {
        self.check_started()?;
        match &self.control {
            Control::Nothing => self.write(options)?,
            Control::Validation => self.write_validated(options)?,
            Control::Locks(locks) => {
                self.tracked.families().try_for_each(ColumnFamily::check_alive)?;
                locks.begin_commit()?;
                let owner = locks.owner.clone();
                self.write(options).inspect_err(|_| owner.resume())?;
            }
        }
        self.state = TransactionState::Committed;
        self.clear();
        if let Some(locks) = self.control.locks() {
            locks.unname();
        }
        Ok(())
    }

    fn write(&mut self, options: &WriteOptions) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.db.engine().write_ref(options, self.batch.batch_mut())
    }

    fn write_validated(&mut self, options: &WriteOptions) -> Result<()> {
        let Some(kept) = self.kept.as_ref().filter(|_| !self.tracked.is_empty()) else {
            return self.write(options);
        };
        let keys = self.tracked.iter().map(|(family, key, tracked)| (family, key, tracked.since));
        let engine = self.db.engine();
        let written = engine.write_if_unwritten(options, self.batch.batch_mut(), kept, keys);
        if matches!(&written, Err(error) if error.code() == Code::Busy) {
            engine.statistics().add(Ticker::TransactionConflicts, 1);
        }
        written
    }

    /// Takes back everything: changes, tracked keys, locks and snapshot. The transaction begins
    /// anew; its `expiration` goes on.
    ///
    /// # Errors
    /// `InvalidArgument` after a commit.
    pub fn rollback(&mut self) -> Result<()> {
        self.check_started()?;
        self.clear();
        Ok(())
    }

    /// Refuses what a transaction that has ended would do.
    pub(super) fn check_started(&self) -> Result<()> {
        match self.state {
            TransactionState::Committed => Err(Error::invalid_argument(
                "the transaction has already been committed; begin another",
            )),
            _ => Ok(()),
        }
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.tracked.clear(self.control.owner());
        self.kept = None;
        self.snapshot = None;
        self.snapshot_is_due = false;
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.tracked.clear(self.control.owner());
        if let Some(locks) = self.control.locks() {
            locks.unname();
        }
    }
}

//! Save points, and how a transaction is prepared and ends.

use crate::base::{Code, Error, Result};
use crate::batch::WriteBatch;
use crate::db::{ColumnFamily, StreamedValue, Ticker, TwoPhase};
use crate::front::transaction::closure::is_conflict;
use crate::front::transaction::control::Control;
use crate::front::transaction::{Parked, Transaction, TransactionState, stamps};
use crate::options::WriteOptions;

impl Transaction {
    /// Adds bytes that go to the WAL with the transaction, and nowhere else. Does nothing once the
    /// transaction is prepared or has ended.
    ///
    /// # Errors
    /// As [`WriteBatch::put_log_data`].
    #[doc(alias = "PutLogData")]
    pub fn put_log_data(&mut self, data: impl AsRef<[u8]>) -> Result<()> {
        if self.state != TransactionState::Started {
            return Ok(());
        }
        self.batch.put_log_data(data)
    }

    /// Remembers the present state for [`Transaction::rollback_to_save_point`]; save points nest.
    /// Does nothing once the transaction is prepared or has ended.
    #[doc(alias = "SetSavePoint")]
    pub fn set_save_point(&mut self) {
        if self.state != TransactionState::Started {
            return;
        }
        self.batch.set_save_point();
        self.tracked.set_save_point();
    }

    /// Takes back what was changed and tracked since the latest save point, and the save point.
    /// Locks that were taken since are released.
    ///
    /// # Errors
    /// `NotFound` if there is none; `InvalidArgument` after a commit, and once it is prepared.
    #[doc(alias = "RollbackToSavePoint")]
    pub fn rollback_to_save_point(&mut self) -> Result<()> {
        self.check_unprepared()?;
        self.batch.rollback_to_save_point()?;
        self.tracked.rollback_to_save_point(self.control.owner());
        Ok(())
    }

    /// Removes the latest save point and keeps what was changed since.
    ///
    /// # Errors
    /// As [`Transaction::rollback_to_save_point`].
    #[doc(alias = "PopSavePoint")]
    pub fn pop_save_point(&mut self) -> Result<()> {
        self.check_unprepared()?;
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
    /// Nothing is written then, and the transaction is as it was before. After a failed sync
    /// (`IoError`, then `Poisoned`) that is not known: reopen, and look whether it is prepared,
    /// committed or neither.
    #[doc(alias = "Commit")]
    pub fn commit(&mut self) -> Result<()> {
        self.commit_with(&WriteOptions::default())
    }

    /// The same, as `options` say.
    ///
    /// # Errors
    /// As [`Transaction::commit`]. `InvalidArgument` if a family was dropped since the transaction
    /// was prepared: then commit it with [`WriteOptions::ignore_missing_column_families`], which
    /// leaves out that family's changes, or roll it back.
    pub fn commit_with(&mut self, options: &WriteOptions) -> Result<()> {
        let committed = self.commit_now(options);
        self.met_conflict = committed.as_ref().err().is_some_and(is_conflict);
        committed
    }

    fn commit_now(&mut self, options: &WriteOptions) -> Result<()> {
        self.check_started()?;
        if self.state == TransactionState::Prepared {
            return self.commit_prepared(options);
        }
        if !self.commit_time.is_empty() {
            let message = "commit_time_batch is for transactions that are prepared";
            return Err(Error::invalid_argument(message));
        }
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
        self.end(TransactionState::Committed);
        Ok(())
    }

    pub(super) fn end(&mut self, state: TransactionState) {
        self.state = state;
        self.clear();
        if let Some(locks) = self.control.locks() {
            locks.unname();
        }
    }

    /// Prepares the changes under the transaction's name: they are in the WAL, and
    /// [`Transaction::commit`] no longer fails for a conflict. Nothing can be changed afterwards.
    ///
    /// A prepared transaction outlives the process: [`TransactionDb::prepared_transactions`]
    /// returns it after the next opening; a timestamp for its commit can be set then. Its locks are
    /// held until it is committed or rolled back; dropping the handle does neither. That WAL and
    /// all later ones are kept for as long, and each opening reads them.
    ///
    /// ```
    /// # use flagstone::TransactionDb;
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path();
    /// let db = TransactionDb::open(path)?;
    /// let mut transaction = db.begin();
    /// transaction.set_name("order-4711")?;
    /// transaction.put(&db, "stock", "9")?;
    /// transaction.prepare()?;
    /// drop(transaction);
    /// drop(db);
    ///
    /// // After a restart, when the other participants have answered:
    /// let db = TransactionDb::open(path)?;
    /// assert!(db.get("stock")?.is_none());
    /// for mut transaction in db.prepared_transactions()? {
    ///     assert_eq!(transaction.name().unwrap(), b"order-4711");
    ///     transaction.commit()?;
    /// }
    /// assert_eq!(db.get("stock")?.unwrap(), "9");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - `InvalidArgument` without a name, or after the transaction was prepared or has ended.
    /// - `NotSupported` in a database without locks, and with a value of more than 1 MiB from
    ///   [`Transaction::put_in_pieces`]. `Expired`.
    /// - As [`Family::put`](crate::Family::put).
    ///
    /// The transaction is then as it was before; after a failed sync, see [`Transaction::commit`].
    ///
    /// [`TransactionDb::prepared_transactions`]: crate::TransactionDb::prepared_transactions
    #[doc(alias = "Prepare")]
    pub fn prepare(&mut self) -> Result<()> {
        self.prepare_with(&WriteOptions::default())
    }

    /// The same, as `options` say: synced, if the prepared changes are to survive a power loss.
    ///
    /// # Errors
    /// As [`Transaction::prepare`].
    pub fn prepare_with(&mut self, options: &WriteOptions) -> Result<()> {
        self.check_unprepared()?;
        let Some(locks) = self.control.locks() else {
            let message = "only transactions of a TransactionDb can be prepared";
            return Err(Error::not_supported(message));
        };
        let name = locks.name().ok_or_else(|| {
            Error::invalid_argument("give the transaction a name before it is prepared")
        })?;
        if !self.batch.streamed().all().is_empty() {
            return Err(Error::not_supported(
                "a transaction with a large value that was put in pieces cannot be prepared; commit \
                 it, or put the value as a whole",
            ));
        }
        self.tracked.families().try_for_each(ColumnFamily::check_alive)?;
        let batch = stamps::batch_to_prepare(self)?;
        locks.begin_commit()?;
        let owner = locks.owner.clone();
        TwoPhase::of(self.db.engine())
            .prepare(options, name, batch)
            .inspect_err(|_| owner.resume())?;
        locks.owner.set_prepared();
        self.state = TransactionState::Prepared;
        Ok(())
    }

    /// Changes that the commit of a prepared transaction writes together with it. The prepared
    /// changes come after these. They are not prepared, and lock nothing. The commit of a
    /// transaction that is not prepared is refused if there are any (`InvalidArgument`).
    #[doc(alias = "GetCommitTimeWriteBatch")]
    pub fn commit_time_batch(&mut self) -> &mut WriteBatch {
        &mut self.commit_time
    }

    /// Commits what is prepared.
    pub(super) fn commit_prepared(&mut self, options: &WriteOptions) -> Result<()> {
        let name = self.name().unwrap_or_default();
        let (beside, timestamp) = (&self.commit_time, self.stamps.commit.as_deref());
        TwoPhase::of(self.db.engine()).commit_as_of(options, name, beside, timestamp)?;
        self.end(TransactionState::Committed);
        Ok(())
    }

    /// Rolls back what is prepared.
    pub(super) fn rollback_prepared(&mut self, options: &WriteOptions) -> Result<()> {
        let name = self.name().unwrap_or_default();
        TwoPhase::of(self.db.engine()).rollback(options, name)?;
        self.end(TransactionState::RolledBack);
        Ok(())
    }

    /// Leaves what is prepared as it is, with its locks.
    pub(super) fn park(&mut self) {
        let tracked = std::mem::take(&mut self.tracked);
        if let Control::Locks(locks) = &self.control
            && let Some(name) = locks.name()
        {
            locks.locking().park(name, Parked::new(locks.owner.clone(), tracked));
        }
    }

    fn write(&mut self, options: &WriteOptions) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let streamed = self.batch.streamed().clone();
        if let Some(mut stamped) = stamps::stamped_batch(self)? {
            self.check_unstreamed()?;
            return StreamedValue::write(self.db.engine(), options, &mut stamped, streamed.all());
        }
        StreamedValue::write(self.db.engine(), options, self.batch.batch_mut(), streamed.all())
    }

    /// Refuses values in pieces: the key in their blob file has no timestamp.
    fn check_unstreamed(&self) -> Result<()> {
        if self.batch.streamed().all().is_empty() {
            return Ok(());
        }
        Err(Error::not_supported(
            "a large value that was put in pieces has no timestamp; put the value as a whole",
        ))
    }

    fn write_validated(&mut self, options: &WriteOptions) -> Result<()> {
        let Some(kept) = self.kept.as_ref().filter(|_| !self.tracked.is_empty()) else {
            return self.write(options);
        };
        let keys = self.tracked.iter().map(|(family, key, tracked)| (family, key, tracked.since));
        let engine = self.db.engine();
        let streamed = self.batch.streamed().clone();
        let mut stamped = stamps::stamped_batch(self)?;
        if stamped.is_some() {
            self.check_unstreamed()?;
        }
        let batch = match &mut stamped {
            Some(stamped) => stamped,
            None => self.batch.batch_mut(),
        };
        let named = (batch, streamed.all());
        let written = StreamedValue::write_if_unwritten(engine, options, named, kept, keys);
        if matches!(&written, Err(error) if error.code() == Code::Busy) {
            engine.statistics().add(Ticker::TransactionConflicts, 1);
        }
        written
    }

    /// Takes back everything: changes, tracked keys, locks and snapshot. The transaction begins
    /// anew; its `expiration` goes on. One that is prepared ends.
    ///
    /// # Errors
    /// `InvalidArgument` after a commit; as [`Family::put`](crate::Family::put) if it is prepared.
    #[doc(alias = "Rollback")]
    pub fn rollback(&mut self) -> Result<()> {
        self.rollback_with(&WriteOptions::default())
    }

    /// Rolls the transaction back with these write options. Without `sync`, a prepared transaction
    /// may be prepared again after a power loss. The options have no effect on a transaction that
    /// is not prepared.
    ///
    /// # Errors
    /// As [`Transaction::rollback`]; `InvalidArgument` with `disable_wal` if it is prepared.
    pub fn rollback_with(&mut self, options: &WriteOptions) -> Result<()> {
        self.check_started()?;
        if self.state == TransactionState::Prepared {
            return self.rollback_prepared(options);
        }
        self.clear();
        Ok(())
    }

    /// Refuses what a transaction that has ended would do.
    pub(super) fn check_started(&self) -> Result<()> {
        match self.state {
            TransactionState::Committed => Err(Error::invalid_argument(
                "the transaction has already been committed; begin another",
            )),
            TransactionState::RolledBack => Err(Error::invalid_argument(
                "the transaction has already been rolled back; begin another",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses what would change it, once it is prepared or has ended.
    pub(super) fn check_unprepared(&self) -> Result<()> {
        self.check_started()?;
        if self.state == TransactionState::Prepared {
            let message = "the transaction is prepared; commit it, or roll it back";
            return Err(Error::invalid_argument(message));
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.commit_time.clear();
        self.tracked.clear(self.control.owner());
        self.kept = None;
        self.snapshot = None;
        self.snapshot_is_due = false;
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.state == TransactionState::Prepared {
            return self.park();
        }
        self.tracked.clear(self.control.owner());
        if let Some(locks) = self.control.locks() {
            locks.unname();
        }
    }
}

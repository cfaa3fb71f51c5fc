//! What packages for other interfaces need of a transaction: reads that say themselves as of when.

use crate::base::{Result, Snapshot as Moment};
use crate::db::Value;
use crate::front::database::Db;
use crate::front::family::Family;
use crate::front::transaction::control::Claim;
use crate::front::transaction::{Transaction, all_unparked};
use crate::options::ReadOptions;
use crate::transactions::OverlaidIter;
use crate::transactions::locks::LockMode;

impl Transaction {
    /// As [`TransactionDb::prepared_transactions`](crate::TransactionDb::prepared_transactions), of
    /// a handle to such a database.
    ///
    /// # Errors
    /// The same.
    #[doc(hidden)]
    pub fn all_prepared(db: &Db) -> Result<Vec<Self>> {
        all_unparked(db)
    }

    /// The value of `key` as of `options.snapshot`, or else as of now; what the transaction's own
    /// snapshot is makes no difference.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    #[doc(hidden)]
    pub fn get_as(
        &self,
        family: &Family,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<Value>> {
        self.check(family)?;
        let (db, family) = (self.db.engine(), family.engine_family());
        self.batch.get_from_batch_and_db(db, family, key, options)
    }

    /// [`Transaction::get_as`] for several keys.
    ///
    /// # Errors
    /// As [`Transaction::get`]; each key has an error of its own, too.
    #[doc(hidden)]
    pub fn multi_get_as<K: AsRef<[u8]>>(
        &self,
        family: &Family,
        keys: &[K],
        options: &ReadOptions,
    ) -> Result<Vec<Result<Option<Value>>>> {
        self.check(family)?;
        let (db, family) = (self.db.engine(), family.engine_family());
        self.batch.multi_get_from_batch_and_db(db, family, keys, options)
    }

    /// A cursor in the way of [`Transaction::get_as`].
    ///
    /// # Errors
    /// As [`View::cursor`](crate::View::cursor).
    #[doc(hidden)]
    #[track_caller]
    pub fn cursor_as(&self, family: &Family, options: &ReadOptions) -> Result<OverlaidIter> {
        self.check(family)?;
        self.batch.iter_over(self.db.engine(), family.engine_family(), options)
    }

    /// Claims `key` as a read for update does, and reads nothing.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    #[doc(hidden)]
    pub fn claim_read(&mut self, family: &Family, key: &[u8], mode: LockMode) -> Result<()> {
        self.claim(family, key, Claim { mode, ..Claim::READ })
    }

    /// Its snapshot, if it has one.
    #[doc(hidden)]
    pub fn moment(&self) -> Option<&Moment> {
        self.snapshot.as_ref()
    }
}

//! A transaction: its changes, and how it ends.

use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flagstone::db::ColumnFamily as EngineFamily;

use crate::column_family::AsColumnFamilyRef;
use crate::error::Error;
use crate::options::WriteOptions;
use crate::store::Store;
use crate::write_batch::WriteBatchWithTransaction;

/// Changes that take place together, or not at all. One that is dropped before its commit changes
/// nothing.
///
/// ```
/// use flagstone_rocksdb::TransactionDB;
///
/// # let directory = tempfile::tempdir().unwrap();
/// let db: TransactionDB = TransactionDB::open_default(directory.path()).unwrap();
/// let transaction = db.transaction();
/// if transaction.get_for_update("ada", true).unwrap().is_none() {
///     transaction.put("ada", "1815").unwrap();
/// }
/// transaction.commit().unwrap();
/// ```
pub struct Transaction<'db, DB> {
    inner: Mutex<flagstone::Transaction>,
    pub(super) store: &'db Store,
    /// How it is committed.
    write: flagstone::WriteOptions,
    database: PhantomData<&'db DB>,
}

impl<'db, DB> Transaction<'db, DB> {
    pub(super) fn new(
        store: &'db Store,
        options: &flagstone::TransactionOptions,
        write: &WriteOptions,
    ) -> Self {
        let engine = store.transactional().begin_with(options);
        Self::around(store, engine, *write.engine())
    }

    fn around(
        store: &'db Store,
        engine: flagstone::Transaction,
        write: flagstone::WriteOptions,
    ) -> Self {
        Self { inner: Mutex::new(engine), store, write, database: PhantomData }
    }

    /// Those that are prepared, and of which nobody has a handle.
    pub(super) fn all_prepared(store: &'db Store) -> Vec<Self> {
        let all = flagstone::Transaction::all_prepared(store.transactional());
        let all = all.inspect_err(|error| tracing::error!(%error, "prepared transactions"));
        let write = flagstone::WriteOptions::default();
        all.unwrap_or_default().into_iter().map(|one| Self::around(store, one, write)).collect()
    }
}

impl<DB> Transaction<'_, DB> {
    pub(super) fn engine(&self) -> MutexGuard<'_, flagstone::Transaction> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn family(&self, family: &EngineFamily) -> flagstone::Family {
        self.store.transactional().family_of(family)
    }

    /// Writes the changes. If that fails, nothing is written.
    ///
    /// # Errors
    /// `Expired` if it took too long; in an
    /// [`OptimisticTransactionDB`](crate::OptimisticTransactionDB) `Busy` if others have written
    /// its keys; as [`DB::write`](crate::DB::write).
    pub fn commit(self) -> Result<(), Error> {
        let mut engine = self.engine();
        Ok(engine.commit_with(&self.write)?)
    }

    /// Gives it a name of 1 to 512 bytes, which no other transaction of the
    /// [`TransactionDB`](crate::TransactionDB) has.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is taken, too long, or a second one.
    pub fn set_name(&self, name: &[u8]) -> Result<(), Error> {
        Ok(self.engine().set_name(name)?)
    }

    /// Its name, if it has one.
    pub fn get_name(&self) -> Option<Vec<u8>> {
        self.engine().name()
    }

    /// Prepares the changes under the transaction's name: they survive the process, and
    /// [`commit`](Self::commit) no longer fails for a conflict. Dropping the handle then decides
    /// nothing.
    ///
    /// # Errors
    /// `InvalidArgument` without a name, or if it is prepared already; `Expired`; as
    /// [`DB::write`](crate::DB::write).
    pub fn prepare(&self) -> Result<(), Error> {
        Ok(self.engine().prepare_with(&self.write)?)
    }

    /// Takes back all changes, and releases the locks.
    ///
    /// # Errors
    /// None.
    pub fn rollback(&self) -> Result<(), Error> {
        Ok(self.engine().rollback()?)
    }

    /// Remembers the present state for [`rollback_to_savepoint`](Self::rollback_to_savepoint); save
    /// points nest.
    pub fn set_savepoint(&self) {
        self.engine().set_save_point();
    }

    /// Takes back what was done since the newest save point, and removes that.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn rollback_to_savepoint(&self) -> Result<(), Error> {
        Ok(self.engine().rollback_to_save_point()?)
    }

    /// Sets a key to a value.
    ///
    /// # Errors
    /// In a [`TransactionDB`](crate::TransactionDB) `TimedOut` if another transaction holds the
    /// key, and `Busy` after a deadlock, or if the key was written after the transaction's
    /// snapshot.
    pub fn put<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, key: K, value: V) -> Result<(), Error> {
        let family = self.family(self.store.default_family());
        Ok(self.engine().put(&family, key, value)?)
    }

    /// Sets a key to a value in a family.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_cf<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        value: V,
    ) -> Result<(), Error> {
        let family = self.family(cf.inner());
        Ok(self.engine().put(&family, key, value)?)
    }

    /// Merges an operand into a key.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidArgument` without a merge operator.
    pub fn merge<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, key: K, value: V) -> Result<(), Error> {
        let family = self.family(self.store.default_family());
        Ok(self.engine().merge(&family, key, value)?)
    }

    /// Merges an operand into a key of a family.
    ///
    /// # Errors
    /// As [`merge`](Self::merge).
    pub fn merge_cf<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        value: V,
    ) -> Result<(), Error> {
        let family = self.family(cf.inner());
        Ok(self.engine().merge(&family, key, value)?)
    }

    /// Deletes a key, whether it exists or not.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete<K: AsRef<[u8]>>(&self, key: K) -> Result<(), Error> {
        let family = self.family(self.store.default_family());
        Ok(self.engine().delete(&family, key)?)
    }

    /// Deletes a key of a family, whether it exists or not.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_cf<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
    ) -> Result<(), Error> {
        let family = self.family(cf.inner());
        Ok(self.engine().delete(&family, key)?)
    }

    /// A copy of the changes, in their order.
    pub fn get_writebatch(&self) -> WriteBatchWithTransaction<true> {
        WriteBatchWithTransaction::from_engine(self.engine().batch().clone())
    }

    /// Makes the changes of a batch, one after the other, behind those that there are.
    ///
    /// # Errors
    /// As [`put`](Self::put); the changes before that at fault are made.
    pub fn rebuild_from_writebatch(
        &self,
        writebatch: &WriteBatchWithTransaction<true>,
    ) -> Result<(), Error> {
        Ok(self.engine().rebuild_from(&writebatch.inner)?)
    }
}

//! The two kinds of databases with transactions.

use std::path::Path;

use super::options::{OptimisticTransactionOptions, TransactionDBOptions, TransactionOptions};
use super::transaction::Transaction;
use crate::column_family::{AsColumnFamilyRef, ColumnFamilyDescriptor};
use crate::db::{Access, DBCommon, DBInner, ThreadMode, named};
use crate::error::Error;
use crate::options::{Options, WriteOptions};
use crate::store::Store;
use crate::write_batch::WriteBatchWithTransaction;

/// What a [`TransactionDB`] holds.
pub struct TransactionDBInner(Store);

/// What an [`OptimisticTransactionDB`] holds.
pub struct OptimisticTransactionDBInner(Store);

impl DBInner for TransactionDBInner {
    fn inner(&self) -> &Store {
        &self.0
    }
}

impl DBInner for OptimisticTransactionDBInner {
    fn inner(&self) -> &Store {
        &self.0
    }
}

/// A database whose transactions lock their keys. Writes outside of transactions lock theirs, too,
/// for the time of the write.
///
/// ```
/// use flagstone_rocksdb::TransactionDB;
///
/// # let directory = tempfile::tempdir().unwrap();
/// let db: TransactionDB = TransactionDB::open_default(directory.path()).unwrap();
/// let transaction = db.transaction();
/// transaction.put("ada", "1815").unwrap();
/// assert!(db.get("ada").unwrap().is_none());
/// transaction.commit().unwrap();
/// assert_eq!(db.get("ada").unwrap().unwrap(), b"1815");
/// ```
#[cfg(not(feature = "multi-threaded-cf"))]
pub type TransactionDB<T = crate::SingleThreaded> = DBCommon<T, TransactionDBInner>;

/// A database whose transactions lock their keys. Writes outside of transactions lock theirs, too,
/// for the time of the write.
#[cfg(feature = "multi-threaded-cf")]
pub type TransactionDB<T = crate::MultiThreaded> = DBCommon<T, TransactionDBInner>;

/// A database whose transactions lock nothing: a commit fails if others have written its keys.
///
/// ```
/// use flagstone_rocksdb::OptimisticTransactionDB;
///
/// # let directory = tempfile::tempdir().unwrap();
/// let db: OptimisticTransactionDB =
///     OptimisticTransactionDB::open_default(directory.path()).unwrap();
/// let transaction = db.transaction();
/// transaction.put("ada", "1815").unwrap();
/// db.put("ada", "1852").unwrap();
/// assert!(transaction.commit().is_err());
/// ```
#[cfg(not(feature = "multi-threaded-cf"))]
pub type OptimisticTransactionDB<T = crate::SingleThreaded> =
    DBCommon<T, OptimisticTransactionDBInner>;

/// A database whose transactions lock nothing: a commit fails if others have written its keys.
#[cfg(feature = "multi-threaded-cf")]
pub type OptimisticTransactionDB<T = crate::MultiThreaded> =
    DBCommon<T, OptimisticTransactionDBInner>;

impl<T: ThreadMode> TransactionDB<T> {
    /// Opens the database in `path` with default options, and makes it if there is none.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_default<P: AsRef<Path>>(path: P) -> Result<Self, Error> {
        let mut options = Options::default();
        options.create_if_missing(true);
        Self::open(&options, &TransactionDBOptions::default(), path)
    }

    /// Opens the database in `path`, which must have no column family but the default one.
    ///
    /// # Errors
    /// As [`DB::open`](crate::DB::open).
    pub fn open<P: AsRef<Path>>(
        opts: &Options,
        txn_db_opts: &TransactionDBOptions,
        path: P,
    ) -> Result<Self, Error> {
        Self::open_cf(opts, txn_db_opts, path, None::<&str>)
    }

    /// Opens the database in `path` with these column families, each with default options.
    ///
    /// # Errors
    /// As [`DB::open_cf`](crate::DB::open_cf).
    pub fn open_cf<P, I, N>(
        opts: &Options,
        txn_db_opts: &TransactionDBOptions,
        path: P,
        cfs: I,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = N>,
        N: AsRef<str>,
    {
        Self::open_cf_descriptors(opts, txn_db_opts, path, named(cfs))
    }

    /// Opens the database in `path` with these column families.
    ///
    /// # Errors
    /// As [`DB::open_cf`](crate::DB::open_cf).
    pub fn open_cf_descriptors<P, I>(
        opts: &Options,
        txn_db_opts: &TransactionDBOptions,
        path: P,
        cfs: I,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        let access = Access::Locking(txn_db_opts.engine.clone());
        let families = cfs.into_iter().collect();
        Self::open_as(opts, path.as_ref(), families, &access, TransactionDBInner)
    }

    /// Begins a transaction.
    pub fn transaction(&self) -> Transaction<'_, Self> {
        self.transaction_opt(&WriteOptions::default(), &TransactionOptions::default())
    }

    /// Begins a transaction, with options; the first ones are for its commit.
    pub fn transaction_opt<'a>(
        &'a self,
        write_opts: &WriteOptions,
        txn_opts: &TransactionOptions,
    ) -> Transaction<'a, Self> {
        Transaction::new(&self.inner.0, &txn_opts.engine, write_opts)
    }

    /// The transactions that are prepared and not decided: those of an earlier process, and those
    /// whose handles were dropped. Each is returned once, until its handle is dropped. Their keys
    /// are locked.
    pub fn prepared_transactions(&self) -> Vec<Transaction<'_, Self>> {
        Transaction::all_prepared(&self.inner.0)
    }

    /// Writes a batch: all of it or nothing.
    ///
    /// # Errors
    /// As [`DB::write`](crate::DB::write); `TimedOut` if a transaction holds one of its keys.
    pub fn write(&self, batch: WriteBatchWithTransaction<true>) -> Result<(), Error> {
        self.write_opt(batch, &WriteOptions::default())
    }

    /// Writes a batch, with options.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_opt(
        &self,
        batch: WriteBatchWithTransaction<true>,
        writeopts: &WriteOptions,
    ) -> Result<(), Error> {
        Ok(self.inner.0.write(writeopts.engine(), batch.into_engine()?)?)
    }
}

impl<T: ThreadMode> OptimisticTransactionDB<T> {
    /// Opens the database in `path` with default options, and makes it if there is none.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_default<P: AsRef<Path>>(path: P) -> Result<Self, Error> {
        let mut options = Options::default();
        options.create_if_missing(true);
        Self::open(&options, path)
    }

    /// Opens the database in `path`, which must have no column family but the default one.
    ///
    /// # Errors
    /// As [`DB::open`](crate::DB::open).
    pub fn open<P: AsRef<Path>>(opts: &Options, path: P) -> Result<Self, Error> {
        Self::open_cf(opts, path, None::<&str>)
    }

    /// Opens the database in `path` with these column families, each with default options.
    ///
    /// # Errors
    /// As [`DB::open_cf`](crate::DB::open_cf).
    pub fn open_cf<P, I, N>(opts: &Options, path: P, cfs: I) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = N>,
        N: AsRef<str>,
    {
        Self::open_cf_descriptors(opts, path, named(cfs))
    }

    /// Opens the database in `path` with these column families.
    ///
    /// # Errors
    /// As [`DB::open_cf`](crate::DB::open_cf).
    pub fn open_cf_descriptors<P, I>(opts: &Options, path: P, cfs: I) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        let families = cfs.into_iter().collect();
        let access = &Access::Optimistic;
        Self::open_as(opts, path.as_ref(), families, access, OptimisticTransactionDBInner)
    }

    /// Begins a transaction.
    pub fn transaction(&self) -> Transaction<'_, Self> {
        self.transaction_opt(&WriteOptions::default(), &OptimisticTransactionOptions::default())
    }

    /// Begins a transaction, with options; the first ones are for its commit.
    pub fn transaction_opt(
        &self,
        writeopts: &WriteOptions,
        otxn_opts: &OptimisticTransactionOptions,
    ) -> Transaction<'_, Self> {
        Transaction::new(&self.inner.0, &otxn_opts.engine, writeopts)
    }

    /// Writes a batch: all of it or nothing.
    ///
    /// # Errors
    /// As [`DB::write`](crate::DB::write).
    pub fn write(&self, batch: WriteBatchWithTransaction<true>) -> Result<(), Error> {
        self.write_opt(batch, &WriteOptions::default())
    }

    /// Writes a batch, with options.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_opt(
        &self,
        batch: WriteBatchWithTransaction<true>,
        writeopts: &WriteOptions,
    ) -> Result<(), Error> {
        Ok(self.inner.0.write(writeopts.engine(), batch.into_engine()?)?)
    }

    /// Writes a batch that is lost if the process dies before the next flush.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_without_wal(&self, batch: WriteBatchWithTransaction<true>) -> Result<(), Error> {
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        self.write_opt(batch, &options)
    }

    /// Deletes the keys of a family from `from` up to but not including `to`, with options.
    ///
    /// # Errors
    /// As [`DB::delete_range_cf_opt`](crate::DB::delete_range_cf_opt).
    pub fn delete_range_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        from: K,
        to: K,
        writeopts: &WriteOptions,
    ) -> Result<(), Error> {
        self.write_batch(writeopts, |batch| batch.delete_range_cf(cf, from, to))
    }

    /// Deletes the keys of a family from `from` up to but not including `to`.
    ///
    /// # Errors
    /// As [`delete_range_cf_opt`](Self::delete_range_cf_opt).
    pub fn delete_range_cf<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        from: K,
        to: K,
    ) -> Result<(), Error> {
        self.delete_range_cf_opt(cf, from, to, &WriteOptions::default())
    }
}

//! Open databases.
//!
//! - [`opening`]: opening, creating and dropping families, destroying and repairing.
//! - [`reading`]: lookups, iterators, snapshots. [`writing`]: writes and batches.
//! - [`upkeep`]: flushes, compactions, options. [`report`]: properties, sizes, files.

mod opening;
mod reading;
mod report;
mod upkeep;
mod writing;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};

use flagstone::db::{ColumnFamily as EngineFamily, HeldFiles};

use crate::column_family::{AsColumnFamilyRef, BoundColumnFamily, ColumnFamily};
use crate::db_pinnable_slice::DBPinnableSlice;
use crate::error::Error;
use crate::options::ReadOptions;
use crate::store::{Cursor, Store};

pub(crate) use opening::named;
pub use opening::{Access, list_families, open_store, repair_database};
pub(crate) use reading::{from, of_all_keys, of_one_prefix};
pub use report::{LiveFile, Range};

/// A database, opened without transactions, whose families are held as `T` says.
pub type DBWithThreadMode<T> = DBCommon<T, DBWithThreadModeInner>;

/// A database. Its column families are created and dropped by whoever holds it exclusively.
#[cfg(not(feature = "multi-threaded-cf"))]
pub type DB = DBWithThreadMode<SingleThreaded>;

/// A database. Its column families may be created and dropped by several threads.
#[cfg(feature = "multi-threaded-cf")]
pub type DB = DBWithThreadMode<MultiThreaded>;

/// An open database; closed when it is dropped. Threads may share it.
pub struct DBCommon<T: ThreadMode, D: DBInner> {
    pub(crate) inner: D,
    cfs: T,
    path: PathBuf,
}

impl<T: ThreadMode, D: DBInner> fmt::Debug for DBCommon<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RocksDB {{ path: {} }}", self.path.display())
    }
}

/// How a database holds its column families.
pub trait ThreadMode {
    /// Takes the families with which the database was opened.
    #[doc(hidden)]
    fn with_families(families: BTreeMap<String, EngineFamily>) -> Self;
}

/// Column families are created and dropped through `&mut DB`.
pub struct SingleThreaded {
    pub(crate) cfs: BTreeMap<String, ColumnFamily>,
}

/// Column families are created and dropped through `&DB`, by any thread.
pub struct MultiThreaded {
    pub(crate) cfs: RwLock<BTreeMap<String, Arc<BoundColumnFamily<'static>>>>,
}

impl ThreadMode for SingleThreaded {
    fn with_families(families: BTreeMap<String, EngineFamily>) -> Self {
        let cfs = families.into_iter().map(|(name, inner)| (name, ColumnFamily { inner }));
        Self { cfs: cfs.collect() }
    }
}

impl ThreadMode for MultiThreaded {
    fn with_families(families: BTreeMap<String, EngineFamily>) -> Self {
        let cfs = families.into_iter().map(|(name, inner)| (name, Self::bound(inner)));
        Self { cfs: RwLock::new(cfs.collect()) }
    }
}

impl MultiThreaded {
    fn bound(inner: EngineFamily) -> Arc<BoundColumnFamily<'static>> {
        Arc::new(BoundColumnFamily { inner, database: PhantomData })
    }
}

/// What a kind of database holds.
pub trait DBInner {
    /// The engine's handle.
    #[doc(hidden)]
    fn inner(&self) -> &Store;
}

/// What a database without transactions holds.
pub struct DBWithThreadModeInner {
    /// Declared first: a file that is held must not stay because the database was closed before.
    held_files: Mutex<Vec<HeldFiles>>,
    store: Store,
}

impl DBInner for DBWithThreadModeInner {
    fn inner(&self) -> &Store {
        &self.store
    }
}

/// Reads that snapshots and iterators are made of.
pub trait DBAccess {
    /// The engine's handle.
    #[doc(hidden)]
    fn store(&self) -> &Store;

    /// A cursor over a family.
    #[doc(hidden)]
    fn cursor(
        &self,
        options: &flagstone::ReadOptions,
        family: &EngineFamily,
    ) -> flagstone::Result<Cursor> {
        self.store().cursor(options, family)
    }

    /// The snapshot as of which [`SnapshotWithThreadMode`](crate::SnapshotWithThreadMode) reads.
    #[doc(hidden)]
    fn take_snapshot(&self) -> Option<flagstone::base::Snapshot> {
        Some(self.store().db().snapshot())
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As [`DBCommon::get`].
    fn get_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        readopts: &ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error>;

    /// The value of a key in a family.
    ///
    /// # Errors
    /// As [`DBCommon::get`].
    fn get_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        readopts: &ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error>;

    /// The value of a key, not copied.
    ///
    /// # Errors
    /// As [`DBCommon::get`].
    fn get_pinned_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        readopts: &ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error>;

    /// The value of a key in a family, not copied.
    ///
    /// # Errors
    /// As [`DBCommon::get`].
    fn get_pinned_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        readopts: &ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error>;

    /// The values of several keys, in their order.
    fn multi_get_opt<K, I>(
        &self,
        keys: I,
        readopts: &ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = K>;

    /// The values of several keys, each in its family.
    fn multi_get_cf_opt<'b, K, I, W>(
        &self,
        keys_cf: I,
        readopts: &ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = (&'b W, K)>,
        W: AsColumnFamilyRef + 'b;
}

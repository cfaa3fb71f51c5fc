//! Reads as of one moment.

use crate::column_family::AsColumnFamilyRef;
use crate::db::{DB, DBAccess};
use crate::db_iterator::{DBIteratorWithThreadMode, DBRawIteratorWithThreadMode, IteratorMode};
use crate::db_pinnable_slice::DBPinnableSlice;
use crate::error::Error;
use crate::options::ReadOptions;

/// A snapshot of a [`DB`].
pub type Snapshot<'a> = SnapshotWithThreadMode<'a, DB>;

/// A consistent view of all families of a database, as of the moment at which it was taken.
///
/// ```
/// use flagstone_rocksdb::DB;
///
/// # let directory = tempfile::tempdir().unwrap();
/// let db = DB::open_default(directory.path()).unwrap();
/// db.put("cat", "grey").unwrap();
/// let before = db.snapshot();
/// db.put("cat", "white").unwrap();
/// assert_eq!(before.get("cat").unwrap().unwrap(), b"grey");
/// ```
pub struct SnapshotWithThreadMode<'a, D: DBAccess> {
    db: &'a D,
    /// None in a transaction without a snapshot: it reads the database as it is.
    pub(crate) inner: Option<flagstone::base::Snapshot>,
}

impl<'a, D: DBAccess> SnapshotWithThreadMode<'a, D> {
    /// Takes a snapshot.
    pub fn new(db: &'a D) -> Self {
        Self { db, inner: db.take_snapshot() }
    }

    /// The sequence number of the last write that it sees; 0 in a transaction without a snapshot.
    pub fn sequence_number(&self) -> u64 {
        self.inner.as_ref().map_or(0, flagstone::base::Snapshot::sequence)
    }

    /// An iterator over the default family.
    pub fn iterator(&self, mode: IteratorMode<'_>) -> DBIteratorWithThreadMode<'a, D> {
        self.iterator_opt(mode, ReadOptions::default())
    }

    /// An iterator over a family.
    pub fn iterator_cf(
        &self,
        cf_handle: &impl AsColumnFamilyRef,
        mode: IteratorMode<'_>,
    ) -> DBIteratorWithThreadMode<'_, D> {
        self.iterator_cf_opt(cf_handle, ReadOptions::default(), mode)
    }

    /// An iterator over the default family, with options.
    pub fn iterator_opt(
        &self,
        mode: IteratorMode<'_>,
        readopts: ReadOptions,
    ) -> DBIteratorWithThreadMode<'a, D> {
        let raw = DBRawIteratorWithThreadMode::new(self.db, &self.bound(readopts));
        DBIteratorWithThreadMode::from_raw(raw, mode)
    }

    /// An iterator over a family, with options.
    pub fn iterator_cf_opt(
        &self,
        cf_handle: &impl AsColumnFamilyRef,
        readopts: ReadOptions,
        mode: IteratorMode<'_>,
    ) -> DBIteratorWithThreadMode<'_, D> {
        let raw = DBRawIteratorWithThreadMode::new_cf(self.db, cf_handle, &self.bound(readopts));
        DBIteratorWithThreadMode::from_raw(raw, mode)
    }

    /// A cursor over the default family.
    pub fn raw_iterator(&self) -> DBRawIteratorWithThreadMode<'_, D> {
        self.raw_iterator_opt(ReadOptions::default())
    }

    /// A cursor over a family.
    pub fn raw_iterator_cf(
        &self,
        cf_handle: &impl AsColumnFamilyRef,
    ) -> DBRawIteratorWithThreadMode<'_, D> {
        self.raw_iterator_cf_opt(cf_handle, ReadOptions::default())
    }

    /// A cursor over the default family, with options.
    pub fn raw_iterator_opt(&self, readopts: ReadOptions) -> DBRawIteratorWithThreadMode<'_, D> {
        DBRawIteratorWithThreadMode::new(self.db, &self.bound(readopts))
    }

    /// A cursor over a family, with options.
    pub fn raw_iterator_cf_opt(
        &self,
        cf_handle: &impl AsColumnFamilyRef,
        readopts: ReadOptions,
    ) -> DBRawIteratorWithThreadMode<'_, D> {
        DBRawIteratorWithThreadMode::new_cf(self.db, cf_handle, &self.bound(readopts))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As [`DBCommon::get`](crate::DBCommon::get).
    pub fn get<K: AsRef<[u8]>>(&self, key: K) -> Result<Option<Vec<u8>>, Error> {
        self.get_opt(key, ReadOptions::default())
    }

    /// The value of a key in a family.
    ///
    /// # Errors
    /// As [`DBCommon::get`](crate::DBCommon::get).
    pub fn get_cf<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.get_cf_opt(cf, key, ReadOptions::default())
    }

    /// The value of a key, with options.
    ///
    /// # Errors
    /// As [`DBCommon::get`](crate::DBCommon::get).
    pub fn get_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        readopts: ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.db.get_opt(key, &self.bound(readopts))
    }

    /// The value of a key in a family, with options.
    ///
    /// # Errors
    /// As [`DBCommon::get`](crate::DBCommon::get).
    pub fn get_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        readopts: ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.db.get_cf_opt(cf, key, &self.bound(readopts))
    }

    /// The value of a key, not copied.
    ///
    /// # Errors
    /// As [`DBCommon::get`](crate::DBCommon::get).
    pub fn get_pinned<K: AsRef<[u8]>>(&self, key: K) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.get_pinned_opt(key, ReadOptions::default())
    }

    /// The value of a key in a family, not copied.
    ///
    /// # Errors
    /// As [`DBCommon::get`](crate::DBCommon::get).
    pub fn get_pinned_cf<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.get_pinned_cf_opt(cf, key, ReadOptions::default())
    }

    /// The value of a key, not copied, with options.
    ///
    /// # Errors
    /// As [`DBCommon::get`](crate::DBCommon::get).
    pub fn get_pinned_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        readopts: ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.db.get_pinned_opt(key, &self.bound(readopts))
    }

    /// The value of a key in a family, not copied, with options.
    ///
    /// # Errors
    /// As [`DBCommon::get`](crate::DBCommon::get).
    pub fn get_pinned_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        readopts: ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.db.get_pinned_cf_opt(cf, key, &self.bound(readopts))
    }

    /// The values of several keys, in their order.
    pub fn multi_get<K: AsRef<[u8]>, I>(&self, keys: I) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        I: IntoIterator<Item = K>,
    {
        self.multi_get_opt(keys, ReadOptions::default())
    }

    /// The values of several keys, each in its family.
    pub fn multi_get_cf<'b, K, I, W>(&self, keys_cf: I) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = (&'b W, K)>,
        W: AsColumnFamilyRef + 'b,
    {
        self.multi_get_cf_opt(keys_cf, ReadOptions::default())
    }

    /// The values of several keys, with options.
    pub fn multi_get_opt<K, I>(
        &self,
        keys: I,
        readopts: ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = K>,
    {
        self.db.multi_get_opt(keys, &self.bound(readopts))
    }

    /// The values of several keys, each in its family, with options.
    pub fn multi_get_cf_opt<'b, K, I, W>(
        &self,
        keys_cf: I,
        readopts: ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = (&'b W, K)>,
        W: AsColumnFamilyRef + 'b,
    {
        self.db.multi_get_cf_opt(keys_cf, &self.bound(readopts))
    }

    /// The options, reading as of this snapshot.
    fn bound(&self, mut options: ReadOptions) -> ReadOptions {
        options.set_snapshot(self);
        options
    }
}

//! What a transaction reads: the database with its own changes laid over it.

use flagstone::Value;
use flagstone::base::Snapshot;
use flagstone::db::ColumnFamily as EngineFamily;
use flagstone::reports::LockMode;

use super::transaction::Transaction;
use crate::column_family::AsColumnFamilyRef;
use crate::db::{DBAccess, from, of_all_keys, of_one_prefix};
use crate::db_iterator::{DBIteratorWithThreadMode, DBRawIteratorWithThreadMode, IteratorMode};
use crate::db_pinnable_slice::DBPinnableSlice;
use crate::error::Error;
use crate::options::ReadOptions;
use crate::snapshot::SnapshotWithThreadMode;
use crate::store::{Cursor, Store};

impl<DB> Transaction<'_, DB> {
    fn lookup(
        &self,
        family: &EngineFamily,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<Value>, Error> {
        Ok(self.engine().get_as(&self.family(family), key, options.engine())?)
    }

    fn lookup_for_update(
        &self,
        family: &EngineFamily,
        key: &[u8],
        exclusive: bool,
        options: &ReadOptions,
    ) -> Result<Option<Value>, Error> {
        let family = self.family(family);
        let mode = if exclusive { LockMode::Exclusive } else { LockMode::Shared };
        let mut engine = self.engine();
        engine.claim_read(&family, key, mode)?;
        Ok(engine.get_as(&family, key, options.engine())?)
    }

    /// The snapshot that it began with, if its options say so. Otherwise one that has no effect:
    /// reads see the database as it is.
    pub fn snapshot(&self) -> SnapshotWithThreadMode<'_, Self> {
        SnapshotWithThreadMode::new(self)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As [`DB::get`](crate::DB::get).
    pub fn get<K: AsRef<[u8]>>(&self, key: K) -> Result<Option<Vec<u8>>, Error> {
        let value =
            self.lookup(self.store.default_family(), key.as_ref(), &ReadOptions::default())?;
        Ok(value.map(Value::into_vec))
    }

    /// The value of a key, not copied.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_pinned<K: AsRef<[u8]>>(&self, key: K) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        let value =
            self.lookup(self.store.default_family(), key.as_ref(), &ReadOptions::default())?;
        Ok(value.map(DBPinnableSlice::new))
    }

    /// The value of a key in a family.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_cf<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
    ) -> Result<Option<Vec<u8>>, Error> {
        let value = self.lookup(cf.inner(), key.as_ref(), &ReadOptions::default())?;
        Ok(value.map(Value::into_vec))
    }

    /// The value of a key in a family, not copied.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_pinned_cf<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        let value = self.lookup(cf.inner(), key.as_ref(), &ReadOptions::default())?;
        Ok(value.map(DBPinnableSlice::new))
    }

    /// The value of a key, with options.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        readopts: &ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        let value = self.lookup(self.store.default_family(), key.as_ref(), readopts)?;
        Ok(value.map(Value::into_vec))
    }

    /// The value of a key, not copied, with options.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_pinned_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        readopts: &ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        let value = self.lookup(self.store.default_family(), key.as_ref(), readopts)?;
        Ok(value.map(DBPinnableSlice::new))
    }

    /// The value of a key in a family, with options.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        readopts: &ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        let value = self.lookup(cf.inner(), key.as_ref(), readopts)?;
        Ok(value.map(Value::into_vec))
    }

    /// The value of a key in a family, not copied, with options.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_pinned_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        readopts: &ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        let value = self.lookup(cf.inner(), key.as_ref(), readopts)?;
        Ok(value.map(DBPinnableSlice::new))
    }

    /// The value of a key. Others may not write the key before the commit.
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`get`](Self::get).
    pub fn get_for_update<K: AsRef<[u8]>>(
        &self,
        key: K,
        exclusive: bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        let value = self.lookup_for_update(
            self.store.default_family(),
            key.as_ref(),
            exclusive,
            &ReadOptions::default(),
        )?;
        Ok(value.map(Value::into_vec))
    }

    /// The value of a key, not copied. Others may not write the key before the commit.
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`get`](Self::get).
    pub fn get_pinned_for_update<K: AsRef<[u8]>>(
        &self,
        key: K,
        exclusive: bool,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        let value = self.lookup_for_update(
            self.store.default_family(),
            key.as_ref(),
            exclusive,
            &ReadOptions::default(),
        )?;
        Ok(value.map(DBPinnableSlice::new))
    }

    /// The value of a key in a family. Others may not write the key before the commit.
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`get`](Self::get).
    pub fn get_for_update_cf<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        exclusive: bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        let value =
            self.lookup_for_update(cf.inner(), key.as_ref(), exclusive, &ReadOptions::default())?;
        Ok(value.map(Value::into_vec))
    }

    /// The value of a key in a family, not copied. Others may not write the key before the commit.
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`get`](Self::get).
    pub fn get_pinned_for_update_cf<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        exclusive: bool,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        let value =
            self.lookup_for_update(cf.inner(), key.as_ref(), exclusive, &ReadOptions::default())?;
        Ok(value.map(DBPinnableSlice::new))
    }

    /// The value of a key, with options. Others may not write the key before the commit.
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`get`](Self::get).
    pub fn get_for_update_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        exclusive: bool,
        opts: &ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        let value =
            self.lookup_for_update(self.store.default_family(), key.as_ref(), exclusive, opts)?;
        Ok(value.map(Value::into_vec))
    }

    /// The value of a key, not copied, with options. Others may not write the key before the
    /// commit.
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`get`](Self::get).
    pub fn get_pinned_for_update_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        exclusive: bool,
        opts: &ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        let value =
            self.lookup_for_update(self.store.default_family(), key.as_ref(), exclusive, opts)?;
        Ok(value.map(DBPinnableSlice::new))
    }

    /// The value of a key in a family, with options. Others may not write the key before the
    /// commit.
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`get`](Self::get).
    pub fn get_for_update_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        exclusive: bool,
        opts: &ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        let value = self.lookup_for_update(cf.inner(), key.as_ref(), exclusive, opts)?;
        Ok(value.map(Value::into_vec))
    }

    /// The value of a key in a family, not copied, with options. Others may not write the key
    /// before the commit.
    ///
    /// # Errors
    /// As [`put`](Self::put), and [`get`](Self::get).
    pub fn get_pinned_for_update_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        exclusive: bool,
        opts: &ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        let value = self.lookup_for_update(cf.inner(), key.as_ref(), exclusive, opts)?;
        Ok(value.map(DBPinnableSlice::new))
    }

    /// The values of several keys, in their order.
    pub fn multi_get<K, I>(&self, keys: I) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = K>,
    {
        self.multi_get_opt(keys, &ReadOptions::default())
    }

    /// The values of several keys, in their order, with options.
    pub fn multi_get_opt<K, I>(
        &self,
        keys: I,
        readopts: &ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = K>,
    {
        let family = self.store.default_family();
        let keys = keys.into_iter();
        keys.map(|key| Ok(self.lookup(family, key.as_ref(), readopts)?.map(Value::into_vec)))
            .collect()
    }

    /// The values of several keys, each in its family.
    pub fn multi_get_cf<'a, 'b: 'a, K, I, W>(
        &'a self,
        keys: I,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = (&'b W, K)>,
        W: 'b + AsColumnFamilyRef,
    {
        self.multi_get_cf_opt(keys, &ReadOptions::default())
    }

    /// The values of several keys, each in its family, with options.
    pub fn multi_get_cf_opt<'a, 'b: 'a, K, I, W>(
        &'a self,
        keys: I,
        readopts: &ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = (&'b W, K)>,
        W: 'b + AsColumnFamilyRef,
    {
        let lookup = |(family, key): (&W, K)| {
            Ok(self.lookup(family.inner(), key.as_ref(), readopts)?.map(Value::into_vec))
        };
        keys.into_iter().map(lookup).collect()
    }

    /// An iterator over the default family.
    pub fn iterator<'a: 'b, 'b>(
        &'a self,
        mode: IteratorMode<'_>,
    ) -> DBIteratorWithThreadMode<'b, Self> {
        self.iterator_opt(mode, ReadOptions::default())
    }

    /// An iterator over the default family, with options.
    pub fn iterator_opt<'a: 'b, 'b>(
        &'a self,
        mode: IteratorMode<'_>,
        readopts: ReadOptions,
    ) -> DBIteratorWithThreadMode<'b, Self> {
        DBIteratorWithThreadMode::from_raw(self.raw_iterator_opt(readopts), mode)
    }

    /// An iterator over a family, with options.
    pub fn iterator_cf_opt<'a: 'b, 'b>(
        &'a self,
        cf_handle: &impl AsColumnFamilyRef,
        readopts: ReadOptions,
        mode: IteratorMode<'_>,
    ) -> DBIteratorWithThreadMode<'b, Self> {
        DBIteratorWithThreadMode::from_raw(self.raw_iterator_cf_opt(cf_handle, readopts), mode)
    }

    /// An iterator over all keys of the default family, whatever their prefixes are.
    pub fn full_iterator<'a: 'b, 'b>(
        &'a self,
        mode: IteratorMode<'_>,
    ) -> DBIteratorWithThreadMode<'b, Self> {
        self.iterator_opt(mode, of_all_keys())
    }

    /// An iterator over the keys of the default family that have the prefix of `prefix`.
    pub fn prefix_iterator<'a: 'b, 'b, P: AsRef<[u8]>>(
        &'a self,
        prefix: P,
    ) -> DBIteratorWithThreadMode<'b, Self> {
        self.iterator_opt(from(prefix.as_ref()), of_one_prefix())
    }

    /// An iterator over a family.
    pub fn iterator_cf<'a: 'b, 'b>(
        &'a self,
        cf_handle: &impl AsColumnFamilyRef,
        mode: IteratorMode<'_>,
    ) -> DBIteratorWithThreadMode<'b, Self> {
        self.iterator_cf_opt(cf_handle, ReadOptions::default(), mode)
    }

    /// As [`full_iterator`](Self::full_iterator), over a family.
    pub fn full_iterator_cf<'a: 'b, 'b>(
        &'a self,
        cf_handle: &impl AsColumnFamilyRef,
        mode: IteratorMode<'_>,
    ) -> DBIteratorWithThreadMode<'b, Self> {
        self.iterator_cf_opt(cf_handle, of_all_keys(), mode)
    }

    /// As [`prefix_iterator`](Self::prefix_iterator), over a family.
    pub fn prefix_iterator_cf<'a, P: AsRef<[u8]>>(
        &'a self,
        cf_handle: &impl AsColumnFamilyRef,
        prefix: P,
    ) -> DBIteratorWithThreadMode<'a, Self> {
        self.iterator_cf_opt(cf_handle, of_one_prefix(), from(prefix.as_ref()))
    }

    /// A cursor over the default family.
    pub fn raw_iterator<'a: 'b, 'b>(&'a self) -> DBRawIteratorWithThreadMode<'b, Self> {
        self.raw_iterator_opt(ReadOptions::default())
    }

    /// A cursor over a family.
    pub fn raw_iterator_cf<'a: 'b, 'b>(
        &'a self,
        cf_handle: &impl AsColumnFamilyRef,
    ) -> DBRawIteratorWithThreadMode<'b, Self> {
        self.raw_iterator_cf_opt(cf_handle, ReadOptions::default())
    }

    /// A cursor over the default family, with options.
    pub fn raw_iterator_opt<'a: 'b, 'b>(
        &'a self,
        readopts: ReadOptions,
    ) -> DBRawIteratorWithThreadMode<'b, Self> {
        DBRawIteratorWithThreadMode::new(self, &readopts)
    }

    /// A cursor over a family, with options.
    pub fn raw_iterator_cf_opt<'a: 'b, 'b>(
        &'a self,
        cf_handle: &impl AsColumnFamilyRef,
        readopts: ReadOptions,
    ) -> DBRawIteratorWithThreadMode<'b, Self> {
        DBRawIteratorWithThreadMode::new_cf(self, cf_handle, &readopts)
    }
}

impl<DB> DBAccess for Transaction<'_, DB> {
    fn store(&self) -> &Store {
        self.store
    }

    fn cursor(
        &self,
        options: &flagstone::ReadOptions,
        family: &EngineFamily,
    ) -> flagstone::Result<Cursor> {
        let cursor = self.engine().cursor_as(&self.family(family), options)?;
        Ok(Cursor::Overlaid(Box::new(cursor)))
    }

    fn take_snapshot(&self) -> Option<Snapshot> {
        self.engine().moment().cloned()
    }

    fn get_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        readopts: &ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.get_opt(key, readopts)
    }

    fn get_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        readopts: &ReadOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.get_cf_opt(cf, key, readopts)
    }

    fn get_pinned_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        readopts: &ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.get_pinned_opt(key, readopts)
    }

    fn get_pinned_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        readopts: &ReadOptions,
    ) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.get_pinned_cf_opt(cf, key, readopts)
    }

    fn multi_get_opt<K, I>(
        &self,
        keys: I,
        readopts: &ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = K>,
    {
        self.multi_get_opt(keys, readopts)
    }

    fn multi_get_cf_opt<'b, K, I, W>(
        &self,
        keys_cf: I,
        readopts: &ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = (&'b W, K)>,
        W: AsColumnFamilyRef + 'b,
    {
        let lookup = |(family, key): (&W, K)| {
            Ok(self.lookup(family.inner(), key.as_ref(), readopts)?.map(Value::into_vec))
        };
        keys_cf.into_iter().map(lookup).collect()
    }
}

//! Lookups, iterators and snapshots.

use std::collections::BTreeMap;

use flagstone::db::ColumnFamily as EngineFamily;
use flagstone::{Code, Value};

use super::{DBAccess, DBCommon, DBInner, ThreadMode};
use crate::column_family::AsColumnFamilyRef;
use crate::db_iterator::{
    DBIteratorWithThreadMode, DBRawIteratorWithThreadMode, Direction, IteratorMode,
};
use crate::db_pinnable_slice::DBPinnableSlice;
use crate::error::Error;
use crate::options::ReadOptions;
use crate::snapshot::SnapshotWithThreadMode;
use crate::store::Store;

/// A value that [`DBCommon::key_may_exist_cf_opt_value`] found.
pub struct KeyMayExistValue(Value);

impl AsRef<[u8]> for KeyMayExistValue {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<T: ThreadMode, D: DBInner> DBCommon<T, D> {
    fn lookup(
        &self,
        family: &EngineFamily,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<Value>, Error> {
        Ok(self.inner.inner().get(options.engine(), family, key)?)
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
        let family = self.inner.inner().default_family();
        Ok(self.lookup(family, key.as_ref(), readopts)?.map(Value::into_vec))
    }

    /// The value of a key; `None` if there is none.
    ///
    /// # Errors
    /// `Corruption`, `IOError`; the refusal of a merge operator.
    pub fn get<K: AsRef<[u8]>>(&self, key: K) -> Result<Option<Vec<u8>>, Error> {
        self.get_opt(key, &ReadOptions::default())
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
        Ok(self.lookup(cf.inner(), key.as_ref(), readopts)?.map(Value::into_vec))
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
        self.get_cf_opt(cf, key, &ReadOptions::default())
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
        let family = self.inner.inner().default_family();
        Ok(self.lookup(family, key.as_ref(), readopts)?.map(DBPinnableSlice::new))
    }

    /// The value of a key, not copied.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_pinned<K: AsRef<[u8]>>(&self, key: K) -> Result<Option<DBPinnableSlice<'_>>, Error> {
        self.get_pinned_opt(key, &ReadOptions::default())
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
        Ok(self.lookup(cf.inner(), key.as_ref(), readopts)?.map(DBPinnableSlice::new))
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
        self.get_pinned_cf_opt(cf, key, &ReadOptions::default())
    }

    /// The values of several keys as of one moment, in their order.
    pub fn multi_get<K, I>(&self, keys: I) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = K>,
    {
        self.multi_get_opt(keys, &ReadOptions::default())
    }

    /// The values of several keys as of one moment, in their order, with options.
    pub fn multi_get_opt<K, I>(
        &self,
        keys: I,
        readopts: &ReadOptions,
    ) -> Vec<Result<Option<Vec<u8>>, Error>>
    where
        K: AsRef<[u8]>,
        I: IntoIterator<Item = K>,
    {
        // Each key is asked for its bytes once: it may answer otherwise the second time.
        let keys: Vec<Box<[u8]>> = keys.into_iter().map(|key| key.as_ref().into()).collect();
        let store = self.inner.inner();
        copied(store.multi_get(readopts.engine(), store.default_family(), &keys))
    }

    /// The values of several keys as of one moment, each in its family.
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

    /// The values of several keys as of one moment, each in its family, with options.
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
        let wanted: Vec<(&EngineFamily, Box<[u8]>)> =
            keys.into_iter().map(|(family, key)| (family.inner(), key.as_ref().into())).collect();
        let mut by_family: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (at, (family, _)) in wanted.iter().enumerate() {
            by_family.entry(family.id()).or_default().push(at);
        }
        let store = self.inner.inner();
        let mut options = readopts.engine().clone();
        if by_family.len() > 1 && options.snapshot.is_none() {
            options.snapshot = store.common_snapshot();
        }
        let mut found: Vec<_> = wanted.iter().map(|_| Ok(None)).collect();
        for places in by_family.into_values() {
            let keys: Vec<&[u8]> = places.iter().map(|at| &*wanted[*at].1).collect();
            let values = store.multi_get(&options, wanted[places[0]].0, &keys);
            for (at, value) in places.into_iter().zip(copied(values)) {
                found[at] = value;
            }
        }
        found
    }

    /// The values of several keys of a family as of one moment, not copied. Whether the keys come
    /// in order makes no difference here.
    pub fn batched_multi_get_cf<'a, K, I>(
        &self,
        cf: &impl AsColumnFamilyRef,
        keys: I,
        sorted_input: bool,
    ) -> Vec<Result<Option<DBPinnableSlice<'_>>, Error>>
    where
        K: AsRef<[u8]> + 'a + ?Sized,
        I: IntoIterator<Item = &'a K>,
    {
        self.batched_multi_get_cf_opt(cf, keys, sorted_input, &ReadOptions::default())
    }

    /// As [`batched_multi_get_cf`](Self::batched_multi_get_cf), with options.
    pub fn batched_multi_get_cf_opt<'a, K, I>(
        &self,
        cf: &impl AsColumnFamilyRef,
        keys: I,
        _sorted_input: bool,
        readopts: &ReadOptions,
    ) -> Vec<Result<Option<DBPinnableSlice<'_>>, Error>>
    where
        K: AsRef<[u8]> + 'a + ?Sized,
        I: IntoIterator<Item = &'a K>,
    {
        let keys: Vec<&[u8]> = keys.into_iter().map(AsRef::as_ref).collect();
        let found = self.inner.inner().multi_get(readopts.engine(), cf.inner(), &keys);
        found.into_iter().map(|value| Ok(value?.map(DBPinnableSlice::new))).collect()
    }

    /// Whether a key may exist. `false` is certain; reads no file.
    pub fn key_may_exist<K: AsRef<[u8]>>(&self, key: K) -> bool {
        self.key_may_exist_opt(key, &ReadOptions::default())
    }

    /// As [`key_may_exist`](Self::key_may_exist), with options.
    pub fn key_may_exist_opt<K: AsRef<[u8]>>(&self, key: K, readopts: &ReadOptions) -> bool {
        let family = self.inner.inner().default_family();
        self.may_exist(family, key.as_ref(), readopts).0
    }

    /// As [`key_may_exist`](Self::key_may_exist), in a family.
    pub fn key_may_exist_cf<K: AsRef<[u8]>>(&self, cf: &impl AsColumnFamilyRef, key: K) -> bool {
        self.key_may_exist_cf_opt(cf, key, &ReadOptions::default())
    }

    /// As [`key_may_exist`](Self::key_may_exist), in a family, with options.
    pub fn key_may_exist_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        readopts: &ReadOptions,
    ) -> bool {
        self.may_exist(cf.inner(), key.as_ref(), readopts).0
    }

    /// As [`key_may_exist`](Self::key_may_exist), in a family, with the value if it is in memory.
    pub fn key_may_exist_cf_opt_value<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        readopts: &ReadOptions,
    ) -> (bool, Option<KeyMayExistValue>) {
        let (may_exist, value) = self.may_exist(cf.inner(), key.as_ref(), readopts);
        (may_exist, value.map(KeyMayExistValue))
    }

    fn may_exist(
        &self,
        family: &EngineFamily,
        key: &[u8],
        options: &ReadOptions,
    ) -> (bool, Option<Value>) {
        let mut options = options.engine().clone();
        options.cache_only = true;
        match self.inner.inner().get(&options, family, key) {
            Ok(value) => (value.is_some(), value),
            Err(error) => (error.code() != Code::NotFound, None),
        }
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

    /// An iterator over the default family that goes through all keys, whatever their prefixes.
    pub fn full_iterator<'a: 'b, 'b>(
        &'a self,
        mode: IteratorMode<'_>,
    ) -> DBIteratorWithThreadMode<'b, Self> {
        self.iterator_opt(mode, of_all_keys())
    }

    /// An iterator over the keys of the default family from `prefix` on that have the prefix of the
    /// first of them, as the prefix extractor says. Without an extractor it does not end there.
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

    /// A consistent view of all families as of now.
    pub fn snapshot(&self) -> SnapshotWithThreadMode<'_, Self> {
        SnapshotWithThreadMode::new(self)
    }
}

fn copied(values: Vec<flagstone::Result<Option<Value>>>) -> Vec<Result<Option<Vec<u8>>, Error>> {
    values.into_iter().map(|value| Ok(value?.map(Value::into_vec))).collect()
}

pub(crate) fn from(key: &[u8]) -> IteratorMode<'_> {
    IteratorMode::From(key, Direction::Forward)
}

pub(crate) fn of_all_keys() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_total_order_seek(true);
    options
}

pub(crate) fn of_one_prefix() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_prefix_same_as_start(true);
    options
}

impl<T: ThreadMode, D: DBInner> DBAccess for DBCommon<T, D> {
    fn store(&self) -> &Store {
        self.inner.inner()
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
        self.multi_get_cf_opt(keys_cf, readopts)
    }
}

//! Lookups.

use std::ffi::c_char;
use std::ptr::{null, null_mut};

use flagstone::db::ColumnFamily;
use flagstone::{Code, Value};
use flagstone_rocksdb as rdb;

use crate::abi::{
    Array, Bytes, Out, Ref, Result, Tagged, copied, copied_text, handles, keys, make,
};
use crate::api::{c_api, destroys};
use crate::calls::ReadOptions;
use crate::db::{Db, Family};

/// A value that is not copied.
pub struct Pinned(pub Value);

/// The same, as the newer functions have it.
pub struct PinnedHandle(Value);

handles! { Pinned = "pinnableslice", PinnedHandle = "pinnable_handle", }
destroys! { rocksdb_pinnableslice_destroy: Pinned, rocksdb_pinnable_handle_destroy: PinnedHandle, }

/// A value that C frees, and its length; NULL for none.
pub fn give(value: Option<Value>, len: Out<usize>) -> *mut c_char {
    len.set(value.as_ref().map_or(0, |value| value.len()));
    value.map_or(null_mut(), |value| copied(&value))
}

/// Copies a value to a buffer, if it has room; returns whether it has.
fn fill(
    value: Option<Value>,
    (buffer, size): (Array<u8>, usize),
    len: Out<usize>,
    found: Out<u8>,
) -> u8 {
    let Some(value) = value else { return 0 };
    found.set(1);
    len.set(value.len());
    let fits = value.len() <= size;
    if fits {
        buffer.fill(&value);
    }
    fits.into()
}

/// A value that C destroys; NULL for none.
#[inline]
pub fn pin(value: Option<Value>) -> *mut Tagged<Pinned> {
    value.map_or(null_mut(), |value| make(Pinned(value)))
}

/// Where the values of several keys go: their bytes, their lengths, and errors.
pub struct Answers {
    pub(crate) values: Array<*mut c_char>,
    pub(crate) sizes: Array<usize>,
    pub(crate) errors: Array<*mut c_char>,
}

impl Answers {
    /// Stores what was found for each key.
    pub fn fill(&self, found: impl IntoIterator<Item = Result<Option<Value>>>) {
        for (at, found) in found.into_iter().enumerate() {
            let (value, size, error) = match found {
                Ok(Some(value)) => (copied(&value), value.len(), null_mut()),
                Ok(None) => (null_mut(), 0, null_mut()),
                Err(error) => (null_mut(), 0, copied_text(error.as_ref())),
            };
            self.values.set(at, value);
            self.sizes.set(at, size);
            self.errors.set(at, error);
        }
    }
}

/// Looks several keys up in their families as of one moment, by one call for each family.
pub fn in_families<T>(
    families: &[&ColumnFamily],
    wanted: &[&[u8]],
    mut lookup: impl FnMut(&ColumnFamily, &[&[u8]]) -> Vec<T>,
) -> Vec<T> {
    let mut found: Vec<Option<T>> = wanted.iter().map(|_| None).collect();
    let mut places: std::collections::BTreeMap<_, Vec<usize>> = std::collections::BTreeMap::new();
    for (at, family) in families.iter().enumerate() {
        places.entry(family.id()).or_default().push(at);
    }
    for places in places.into_values() {
        let keys: Vec<&[u8]> = places.iter().map(|at| wanted[*at]).collect();
        for (at, value) in places.iter().zip(lookup(families[places[0]], &keys)) {
            found[*at] = Some(value);
        }
    }
    found.into_iter().flatten().collect()
}

/// Every key gets the same error.
pub fn all_fail(len: usize, error: &rdb::Error) -> Vec<Result<Option<Value>>> {
    (0..len).map(|_| Err(error.clone())).collect()
}

/// The families of an array.
pub fn families<'a>(list: Array<Ref<Family>>, len: usize) -> Result<Vec<&'a ColumnFamily>> {
    list.slice(len)?.iter().map(|family| Ok(&family.get()?.engine)).collect()
}

impl Db {
    /// The value of a key.
    ///
    /// # Errors
    /// What the engine says.
    #[inline]
    pub fn get(
        &self,
        options: &ReadOptions,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Option<Value>> {
        Ok(self.store.get(options.checked()?, self.family(family), key)?)
    }

    pub(crate) fn multi_get(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: &[&[u8]],
    ) -> Vec<Result<Option<Value>>> {
        match options.checked() {
            Ok(options) => {
                let found = self.store.multi_get(options, family, keys);
                found.into_iter().map(|value| Ok(value?)).collect()
            }
            Err(error) => all_fail(keys.len(), &error),
        }
    }

    pub(crate) fn multi_get_in(
        &self,
        options: &ReadOptions,
        families: &[&ColumnFamily],
        keys: &[&[u8]],
    ) -> Vec<Result<Option<Value>>> {
        let engine = match options.checked() {
            Ok(options) => options,
            Err(error) => return all_fail(keys.len(), &error),
        };
        let mut engine = engine.clone();
        let is_one = families.windows(2).all(|pair| pair[0].id() == pair[1].id());
        if !is_one && engine.snapshot.is_none() {
            engine.snapshot = self.store.common_snapshot();
        }
        in_families(families, keys, |family, keys| {
            let found = self.store.multi_get(&engine, family, keys);
            found.into_iter().map(|value| Ok(value?)).collect()
        })
    }

    /// What memory says of a key.
    fn may_exist(
        &self,
        options: &ReadOptions,
        family: Option<&Family>,
        key: &[u8],
    ) -> flagstone::Result<Option<Value>> {
        let mut options = options.engine.clone();
        options.cache_only = true;
        self.store.get(&options, self.family(family), key)
    }
}

/// What `key_may_exist` returns. The value counts as found unless a file would have to be read: it
/// is empty for a key that does not exist.
fn tell(
    found: flagstone::Result<Option<Value>>,
    value: Out<*mut c_char>,
    len: Out<usize>,
    is_found: Out<u8>,
) -> u8 {
    let (may_exist, found) = match found {
        Ok(found) => (found.is_some(), Some(found)),
        Err(error) if error.code() == Code::Incomplete => (true, None),
        Err(_) => (false, Some(None)),
    };
    is_found.set(found.is_some().into());
    if let Some(found) = found.filter(|_| is_found.wants()) {
        len.set(found.as_ref().map_or(0, |found| found.len()));
        if value.wants() {
            value.set(copied(found.as_deref().unwrap_or_default()));
        }
    }
    may_exist.into()
}

c_api! {
    fn rocksdb_get(
        db: &Db, options: &ReadOptions, key: [u8], len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        give(db.get(options, None, key)?, len)
    }

    fn rocksdb_get_cf(
        db: &Db, options: &ReadOptions, family: &Family, key: [u8], len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        give(db.get(options, Some(family), key)?, len)
    }

    fn rocksdb_get_into_buffer(
        db: &Db, options: &ReadOptions, key: [u8], buffer: Array<u8>, size: usize, len: Out<usize>,
        found: Out<u8>, error
    ) -> u8 {
        len.set(0);
        found.set(0);
        fill(db.get(options, None, key)?, (buffer, size), len, found)
    }

    fn rocksdb_get_into_buffer_cf(
        db: &Db, options: &ReadOptions, family: &Family, key: [u8], buffer: Array<u8>, size: usize,
        len: Out<usize>, found: Out<u8>, error
    ) -> u8 {
        len.set(0);
        found.set(0);
        fill(db.get(options, Some(family), key)?, (buffer, size), len, found)
    }

    fn rocksdb_get_pinned(
        db: &Db, options: &ReadOptions, key: [u8], error
    ) -> *mut Tagged<Pinned> {
        pin(db.get(options, None, key)?)
    }

    fn rocksdb_get_pinned_cf(
        db: &Db, options: &ReadOptions, family: &Family, key: [u8], error
    ) -> *mut Tagged<Pinned> {
        pin(db.get(options, Some(family), key)?)
    }

    fn rocksdb_get_pinned_v2(
        db: &Db, options: &ReadOptions, key: [u8], error
    ) -> *mut Tagged<PinnedHandle> {
        db.get(options, None, key)?.map_or(null_mut(), |value| make(PinnedHandle(value)))
    }

    fn rocksdb_get_pinned_cf_v2(
        db: &Db, options: &ReadOptions, family: &Family, key: [u8], error
    ) -> *mut Tagged<PinnedHandle> {
        db.get(options, Some(family), key)?.map_or(null_mut(), |value| make(PinnedHandle(value)))
    }

    fn rocksdb_pinnableslice_value(value: ?Pinned, len: Out<usize>) -> *const c_char {
        len.set(value.map_or(0, |value| value.0.len()));
        value.map_or(null(), |value| value.0.as_ptr().cast())
    }

    fn rocksdb_pinnable_handle_get_value(value: ?PinnedHandle, len: Out<usize>) -> *const c_char {
        len.set(value.map_or(0, |value| value.0.len()));
        value.map_or(null(), |value| value.0.as_ptr().cast())
    }

    fn rocksdb_multi_get(
        db: &Db, options: &ReadOptions, len: usize, list: Array<Bytes>, list_sizes: Array<usize>,
        values: Array<*mut c_char>, sizes: Array<usize>, errors: Array<*mut c_char>
    ) {
        let wanted = keys(list, list_sizes, len);
        let found = match &wanted {
            Ok(wanted) => db.multi_get(options, db.store.default_family(), wanted),
            Err(error) => all_fail(len, error),
        };
        Answers { values, sizes, errors }.fill(found);
    }

    fn rocksdb_multi_get_cf(
        db: &Db, options: &ReadOptions, families_of: Array<Ref<Family>>, len: usize,
        list: Array<Bytes>, list_sizes: Array<usize>, values: Array<*mut c_char>,
        sizes: Array<usize>, errors: Array<*mut c_char>
    ) {
        let wanted = keys(list, list_sizes, len);
        let found = match (&wanted, families(families_of, len)) {
            (Ok(wanted), Ok(families)) => db.multi_get_in(options, &families, wanted),
            (Err(error), _) => all_fail(len, error),
            (_, Err(error)) => all_fail(len, &error),
        };
        Answers { values, sizes, errors }.fill(found);
    }

    fn rocksdb_batched_multi_get_cf(
        db: &Db, options: &ReadOptions, family: &Family, len: usize, list: Array<Bytes>,
        sizes: Array<usize>, values: Array<*mut Tagged<Pinned>>, errors: Array<*mut c_char>,
        _sorted: bool
    ) {
        let wanted = keys(list, sizes, len);
        let found = match &wanted {
            Ok(wanted) => db.multi_get(options, &family.engine, wanted),
            Err(error) => all_fail(len, error),
        };
        fill_pinned(found, values, errors);
    }

    fn rocksdb_batched_multi_get_cf_slice(
        db: &Db, options: &ReadOptions, family: &Family, len: usize, list: Array<Slice>,
        values: Array<*mut Tagged<Pinned>>, errors: Array<*mut c_char>, _sorted: bool
    ) {
        let wanted = slices(list, len);
        let found = match &wanted {
            Ok(wanted) => db.multi_get(options, &family.engine, wanted),
            Err(error) => all_fail(len, error),
        };
        fill_pinned(found, values, errors);
    }

    fn rocksdb_key_may_exist(
        db: &Db, options: &ReadOptions, key: [u8], value: Out<*mut c_char>, len: Out<usize>,
        _timestamp: [u8], is_found: Out<u8>
    ) -> u8 {
        tell(db.may_exist(options, None, key), value, len, is_found)
    }

    fn rocksdb_key_may_exist_cf(
        db: &Db, options: &ReadOptions, family: &Family, key: [u8], value: Out<*mut c_char>,
        len: Out<usize>, _timestamp: [u8], is_found: Out<u8>
    ) -> u8 {
        tell(db.may_exist(options, Some(family), key), value, len, is_found)
    }
}

/// Bytes and their length, as C passes them by value.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Slice {
    pub(crate) data: Bytes,
    pub(crate) size: usize,
}

impl Slice {
    /// Bytes that are lent.
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        Self { data: Bytes::of(bytes), size: bytes.len() }
    }
}

/// Keys from an array.
///
/// # Errors
/// For NULL.
pub fn slices<'a>(list: Array<Slice>, len: usize) -> Result<Vec<&'a [u8]>> {
    list.slice(len)?.iter().map(|slice| slice.data.get(slice.size)).collect()
}

fn fill_pinned(
    found: Vec<Result<Option<Value>>>,
    values: Array<*mut Tagged<Pinned>>,
    errors: Array<*mut c_char>,
) {
    for (at, found) in found.into_iter().enumerate() {
        let (value, error) = match found {
            Ok(value) => (pin(value), null_mut()),
            Err(error) => (null_mut(), copied_text(error.as_ref())),
        };
        values.set(at, value);
        errors.set(at, error);
    }
}

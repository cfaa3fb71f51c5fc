//! Iterators over keys, and over the writes in the WALs.

use std::ffi::c_char;
use std::ptr::null_mut;
use std::sync::Arc;

use flagstone::db::{ColumnFamily, Update, Updates};
use flagstone::transactions::WriteBatchWithIndex;
use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::{Cursor, Store, Walker};

use crate::abi::{Array, Mut, Out, Ref, Result, Tagged, handles, make};
use crate::api::{c_api, creates, destroys};
use crate::batch::Batch;
use crate::calls::ReadOptions;
use crate::db::{Db, Family};
use crate::reading::Slice;

/// An iterator. It holds the database open.
pub struct Iter {
    walker: Walker,
    /// The value where it stands, as of its last move, if it is valid: C asks for that more often
    /// than it moves.
    value: Option<Slice>,
    store: Arc<Store>,
    /// What it was made with.
    family: ColumnFamily,
    bounds: flagstone::ReadOptions,
}

handles! { Iter = "iterator", WalIter = "wal_iterator", WalReadOptions = "wal_readoptions", }

destroys! {
    rocksdb_iter_destroy: Iter,
    rocksdb_wal_iter_destroy: WalIter,
    rocksdb_wal_readoptions_destroy: WalReadOptions,
}

impl Iter {
    /// One over what `open` returns, or that says why it could not be made.
    pub fn over(
        store: &Arc<Store>,
        options: &ReadOptions,
        family: Option<&Family>,
        open: impl FnOnce(&flagstone::ReadOptions) -> flagstone::Result<Cursor>,
    ) -> *mut Tagged<Self> {
        let cursor = options.checked().and_then(|engine| Ok(open(engine)?));
        let walker = Walker::new(cursor, options.is_tailing);
        let family = family.map_or_else(|| store.default_family(), |family| &family.engine).clone();
        // A snapshot would be held for longer than the iterator needs it.
        let bounds = flagstone::ReadOptions { snapshot: None, ..options.engine.clone() };
        make(Self { walker, value: None, store: Arc::clone(store), family, bounds })
    }

    /// The same with a batch laid over it.
    pub fn overlaid(
        self,
        batch: Result<&WriteBatchWithIndex>,
        family: Option<&Family>,
        options: Option<&ReadOptions>,
    ) -> *mut Tagged<Self> {
        let family = family.map_or(self.family, |family| family.engine.clone());
        let bounds = options.map_or(self.bounds, |options| options.engine.clone());
        let below = self.walker.into_cursor();
        let cursor = batch.and_then(|batch| match below? {
            Cursor::Plain(below) => {
                let overlaid = batch.overlay(&family)?.over(below, &bounds, &family);
                Ok(Cursor::Overlaid(Box::new(overlaid)))
            }
            _ => Err(rdb::Error::not_supported("a batch over this kind of iterator")),
        });
        let walker = Walker::new(cursor, false);
        make(Self { walker, value: None, store: self.store, family, bounds })
    }

    fn seek(&mut self, seek: impl FnOnce(&mut Walker) -> Option<&[u8]>) {
        self.value = self.store.measure_seek(|| seek(&mut self.walker).map(Slice::of));
    }

    fn key(&self) -> Slice {
        Slice::of(self.walker.key().unwrap_or_default())
    }

    fn value(&self) -> Slice {
        self.value.unwrap_or_else(|| Slice::of(&[]))
    }
}

impl Db {
    pub(crate) fn iterate(
        &self,
        options: &ReadOptions,
        family: Option<&Family>,
    ) -> *mut Tagged<Iter> {
        let open = |engine: &flagstone::ReadOptions| self.store.cursor(engine, self.family(family));
        Iter::over(&self.store, options, family, open)
    }
}

/// Bytes that stay until the iterator moves.
fn lend(bytes: Slice, len: Out<usize>) -> *const c_char {
    len.set(bytes.size);
    bytes.data.raw()
}

c_api! {
    fn rocksdb_create_iterator(db: &Db, options: &ReadOptions) -> *mut Tagged<Iter> {
        db.iterate(options, None)
    }

    fn rocksdb_create_iterator_cf(
        db: &Db, options: &ReadOptions, family: &Family
    ) -> *mut Tagged<Iter> {
        db.iterate(options, Some(family))
    }

    fn rocksdb_create_iterators(
        db: &Db, options: &ReadOptions, list: Array<Ref<Family>>,
        iterators: Array<*mut Tagged<Iter>>, len: usize, error
    ) {
        let mut one_moment = options.checked()?.clone();
        if one_moment.snapshot.is_none() {
            one_moment.snapshot = db.store.common_snapshot();
        }
        let families: Vec<&Family> =
            list.slice(len)?.iter().map(|family| family.get()).collect::<Result<_>>()?;
        let cursor = |family: &&Family| Ok(db.store.cursor(&one_moment, &family.engine)?);
        let made: Result<Vec<Cursor>> = families.iter().map(cursor).collect();
        for (at, (cursor, family)) in made?.into_iter().zip(families).enumerate() {
            let iterator = Iter::over(&db.store, options, Some(family), |_| Ok(cursor));
            iterators.set(at, iterator);
        }
    }

    fn rocksdb_iter_valid(iterator: &Iter) -> u8 {
        iterator.value.is_some().into()
    }

    fn rocksdb_iter_seek_to_first(iterator: &mut Iter) {
        iterator.seek(Walker::seek_to_first);
    }

    fn rocksdb_iter_seek_to_last(iterator: &mut Iter) {
        iterator.seek(Walker::seek_to_last);
    }

    fn rocksdb_iter_seek(iterator: &mut Iter, key: [u8]) {
        iterator.seek(|walker| walker.seek(key));
    }

    fn rocksdb_iter_seek_for_prev(iterator: &mut Iter, key: [u8]) {
        iterator.seek(|walker| walker.seek_for_prev(key));
    }

    fn rocksdb_iter_next(iterator: &mut Iter) {
        iterator.value = iterator.walker.next().map(Slice::of);
    }

    fn rocksdb_iter_prev(iterator: &mut Iter) {
        iterator.value = iterator.walker.prev().map(Slice::of);
    }

    fn rocksdb_iter_key(iterator: &Iter, len: Out<usize>) -> *const c_char {
        lend(iterator.key(), len)
    }

    fn rocksdb_iter_value(iterator: &Iter, len: Out<usize>) -> *const c_char {
        lend(iterator.value(), len)
    }

    fn rocksdb_iter_timestamp(iterator: &Iter, len: Out<usize>) -> *const c_char {
        lend(Slice::of(iterator.walker.timestamp().unwrap_or_default()), len)
    }

    fn rocksdb_iter_key_slice(iterator: &Iter) -> Slice {
        iterator.key()
    }

    fn rocksdb_iter_value_slice(iterator: &Iter) -> Slice {
        iterator.value()
    }

    fn rocksdb_iter_timestamp_slice(iterator: &Iter) -> Slice {
        Slice::of(iterator.walker.timestamp().unwrap_or_default())
    }

    fn rocksdb_iter_get_error(iterator: &Iter, error) {
        iterator.walker.status()?
    }

    fn rocksdb_iter_refresh(iterator: Mut<Iter>, error) {
        let iterator = iterator.get()?;
        iterator.value = None;
        iterator.walker.refresh()?
    }
}

/// Options of an iterator over WALs; checksums are always checked.
pub struct WalReadOptions {
    verify_checksums: bool,
}

impl Default for WalReadOptions {
    fn default() -> Self {
        Self { verify_checksums: true }
    }
}

creates! { rocksdb_wal_readoptions_create: WalReadOptions, }

crate::api::c_settings! { "rocksdb_wal_readoptions", WalReadOptions, |o| {
    value u8, verify_checksums: o.verify_checksums;
} }

/// The writes from a sequence number on. It stands on the one that holds the number, or on the
/// next.
pub struct WalIter {
    updates: Updates,
    current: Result<Option<Update>>,
}

impl WalIter {
    fn read(&mut self) {
        self.current = self.updates.next_update().map_err(rdb::Error::from);
    }
}

c_api! {
    fn rocksdb_get_updates_since(
        db: &Db, sequence: u64, _options: ?WalReadOptions, error
    ) -> *mut Tagged<WalIter> {
        if sequence > db.store.latest_sequence_number() {
            return Err(rdb::Error::new("NotFound: Requested sequence not yet written in the db"));
        }
        let updates = db.engine().get_updates_since(sequence.max(1))?;
        let mut iterator = WalIter { updates, current: Ok(None) };
        iterator.read();
        make(iterator)
    }

    fn rocksdb_wal_iter_valid(iterator: &WalIter) -> u8 {
        matches!(iterator.current, Ok(Some(_))).into()
    }

    fn rocksdb_wal_iter_next(iterator: &mut WalIter) {
        iterator.read();
    }

    fn rocksdb_wal_iter_status(iterator: &WalIter, error) {
        iterator.current.as_ref().map(|_| ()).map_err(rdb::Error::clone)?
    }

    fn rocksdb_wal_iter_get_batch(iterator: &WalIter, sequence: Out<u64>) -> *mut Tagged<Batch> {
        match &iterator.current {
            Ok(Some(update)) => {
                sequence.set(update.sequence);
                make(Batch::of(update.batch.clone()))
            }
            _ => null_mut(),
        }
    }

    fn rocksdb_get_latest_sequence_number(db: &Db) -> u64 {
        db.store.latest_sequence_number()
    }
}

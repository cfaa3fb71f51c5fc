//! Batches that can be read before they are written.

use std::ffi::c_char;
use std::ptr::null_mut;

use flagstone::Value;
use flagstone::transactions::{InBatch, WriteBatchWithIndex};
use flagstone_rocksdb as rdb;

use crate::abi::{Array, Bytes, Lent, Out, Own, Result, Tagged, copied, handles, make};
use crate::api::{c_api, destroys};
use crate::batch::{joined, joined_pair};
use crate::calls::{ReadOptions, WriteOptions};
use crate::components::Comparator;
use crate::db::{Db, Family};
use crate::iterator::Iter;
use crate::options::Options;
use crate::reading::{Pinned, give, pin};

/// The engine's order of keys.
type Comparing = flagstone::Comparator;

/// A batch with an index, or the batch of a transaction, which C frees as plain memory.
pub struct IndexedBatch {
    own: Option<Box<OwnBatch>>,
    lent: Lent<flagstone::WriteBatch>,
}

struct OwnBatch {
    engine: WriteBatchWithIndex,
    /// The order of keys in families that are not named.
    order: flagstone::Comparator,
    /// Why an operation could not be added; writing the batch says so.
    refused: Option<rdb::Error>,
}

handles! { IndexedBatch = "writebatch_wi", }
destroys! { rocksdb_writebatch_wi_destroy: IndexedBatch, }

impl IndexedBatch {
    /// The batch of a transaction, which outlives it.
    pub fn lent(batch: &flagstone::WriteBatch) -> Self {
        Self { own: None, lent: Lent::to(batch) }
    }

    /// `most` bytes, or any number of them if it is 0.
    fn new(order: flagstone::Comparator, most: usize) -> *mut Tagged<Self> {
        let mut engine = WriteBatchWithIndex::new();
        if most > 0 {
            engine.set_max_bytes(most);
        }
        let own = OwnBatch { engine, order, refused: None };
        make(Self { own: Some(Box::new(own)), lent: Lent::nothing() })
    }

    /// The operations.
    ///
    /// # Errors
    /// Why one could not be added.
    pub fn operations(&self) -> Result<&flagstone::WriteBatch> {
        match (&self.own, self.lent.get()) {
            (Some(own), _) => match &own.refused {
                Some(error) => Err(error.clone()),
                None => Ok(own.engine.batch()),
            },
            (None, Some(batch)) => Ok(batch),
            (None, None) => Err(of_transaction()),
        }
    }

    fn own(&self) -> Result<&OwnBatch> {
        self.own.as_deref().ok_or_else(of_transaction)
    }

    /// The engine's batch, to be changed as a whole.
    ///
    /// # Errors
    /// Why an operation could not be added; that it is a transaction's.
    pub fn own_engine(&mut self) -> Result<&mut WriteBatchWithIndex> {
        let own = self.own_mut()?;
        match &own.refused {
            Some(error) => Err(error.clone()),
            None => Ok(&mut own.engine),
        }
    }

    fn own_mut(&mut self) -> Result<&mut OwnBatch> {
        self.own.as_deref_mut().ok_or_else(of_transaction)
    }

    fn add(
        &mut self,
        add: impl FnOnce(&mut WriteBatchWithIndex, &flagstone::Comparator) -> flagstone::Result<()>,
    ) {
        let Some(own) = &mut self.own else { return };
        if let Err(error) = add(&mut own.engine, &own.order) {
            own.refused.get_or_insert(error.into());
        }
    }

    fn add_joined<T>(
        &mut self,
        parts: Result<T>,
        add: impl FnOnce(&mut WriteBatchWithIndex, &Comparing, T) -> flagstone::Result<()>,
    ) {
        let Some(own) = &mut self.own else { return };
        let added = parts.and_then(|parts| Ok(add(&mut own.engine, &own.order, parts)?));
        if let Err(error) = added {
            own.refused.get_or_insert(error);
        }
    }

    fn get(
        &self,
        db: &Db,
        options: &ReadOptions,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Option<Value>> {
        let family = db.family(family);
        let options = options.checked()?;
        Ok(self.own()?.engine.get_from_batch_and_db(db.engine(), family, key, options)?)
    }

    fn over(
        &self,
        base: Own<Iter>,
        family: Option<&Family>,
        options: Option<&ReadOptions>,
    ) -> *mut Tagged<Iter> {
        let base = crate::abi::or_abort("base_iterator", base.get());
        match base {
            Some(base) => base.overlaid(self.own().map(|own| &own.engine), family, options),
            None => null_mut(),
        }
    }
}

fn of_transaction() -> rdb::Error {
    rdb::Error::not_supported("this call for the batch of a transaction")
}

/// What a batch alone says of a key.
fn alone(found: InBatch, len: Out<usize>) -> Result<*mut c_char> {
    len.set(0);
    match found {
        InBatch::Value(value) => {
            len.set(value.len());
            Ok(copied(&value))
        }
        InBatch::MergeInProgress => Err(rdb::Error::new("Merge in progress: ")),
        InBatch::Absent | InBatch::Deleted => Ok(null_mut()),
    }
}

c_api! {
    fn rocksdb_writebatch_wi_create(
        _reserved: usize, _overwrite: flag
    ) -> *mut Tagged<IndexedBatch> {
        IndexedBatch::new(flagstone::Comparator::Bytewise, 0)
    }

    fn rocksdb_writebatch_wi_create_with_params(
        order: ?Comparator, _reserved: usize, _overwrite: flag, most: usize, _protection: usize
    ) -> *mut Tagged<IndexedBatch> {
        let order = order.map_or(flagstone::Comparator::Bytewise, Comparator::engine);
        IndexedBatch::new(order, most)
    }

    fn rocksdb_writebatch_wi_clear(batch: &mut IndexedBatch) {
        if let Some(own) = &mut batch.own {
            own.engine.clear();
            own.refused = None;
        }
    }

    fn rocksdb_writebatch_wi_count(batch: &IndexedBatch) -> i32 {
        batch.operations().map_or(0, |operations| operations.count() as i32)
    }

    fn rocksdb_writebatch_wi_data(batch: &IndexedBatch, len: Out<usize>) -> *const c_char {
        let data = batch.operations().map_or(&[][..], flagstone::WriteBatch::data);
        len.set(data.len());
        data.as_ptr().cast()
    }

    fn rocksdb_writebatch_wi_put(batch: &mut IndexedBatch, key: [u8], value: [u8]) {
        batch.add(|batch, order| batch.put_default(order, key, value));
    }

    fn rocksdb_writebatch_wi_put_cf(
        batch: &mut IndexedBatch, family: &Family, key: [u8], value: [u8]
    ) {
        batch.add(|batch, _| batch.put(&family.engine, key, value));
    }

    fn rocksdb_writebatch_wi_merge(batch: &mut IndexedBatch, key: [u8], operand: [u8]) {
        batch.add(|batch, order| batch.merge_default(order, key, operand));
    }

    fn rocksdb_writebatch_wi_merge_cf(
        batch: &mut IndexedBatch, family: &Family, key: [u8], operand: [u8]
    ) {
        batch.add(|batch, _| batch.merge(&family.engine, key, operand));
    }

    fn rocksdb_writebatch_wi_delete(batch: &mut IndexedBatch, key: [u8]) {
        batch.add(|batch, order| batch.delete_default(order, key));
    }

    fn rocksdb_writebatch_wi_delete_cf(batch: &mut IndexedBatch, family: &Family, key: [u8]) {
        batch.add(|batch, _| batch.delete(&family.engine, key));
    }

    fn rocksdb_writebatch_wi_singledelete(batch: &mut IndexedBatch, key: [u8]) {
        batch.add(|batch, order| batch.single_delete_default(order, key));
    }

    fn rocksdb_writebatch_wi_singledelete_cf(
        batch: &mut IndexedBatch, family: &Family, key: [u8]
    ) {
        batch.add(|batch, _| batch.single_delete(&family.engine, key));
    }

    fn rocksdb_writebatch_wi_delete_range(batch: &mut IndexedBatch, _from: [u8], _to: [u8]) {
        batch.add(|_, _| Err(no_ranges()));
    }

    fn rocksdb_writebatch_wi_delete_range_cf(
        batch: &mut IndexedBatch, family: &Family, from: [u8], to: [u8]
    ) {
        batch.add(|batch, _| batch.delete_range(&family.engine, from, to));
    }

    fn rocksdb_writebatch_wi_put_log_data(batch: &mut IndexedBatch, data: [u8]) {
        batch.add(|batch, _| batch.put_log_data(data));
    }

    fn rocksdb_writebatch_wi_set_save_point(batch: &mut IndexedBatch) {
        if let Some(own) = &mut batch.own {
            own.engine.set_save_point();
        }
    }

    fn rocksdb_writebatch_wi_rollback_to_save_point(batch: &mut IndexedBatch, error) {
        batch.own_mut()?.engine.rollback_to_save_point()?
    }

    fn rocksdb_writebatch_wi_get_from_batch(
        batch: &IndexedBatch, options: &Options, key: [u8], len: Out<usize>, error
    ) -> *mut c_char {
        let operator = options.rdb.db.cf.merge_operator.as_deref();
        alone(batch.own()?.engine.get_default(key, operator)?, len)?
    }

    fn rocksdb_writebatch_wi_get_from_batch_cf(
        batch: &IndexedBatch, _options: &Options, family: &Family, key: [u8], len: Out<usize>, error
    ) -> *mut c_char {
        alone(batch.own()?.engine.get(&family.engine, key)?, len)?
    }

    fn rocksdb_writebatch_wi_get_from_batch_and_db(
        batch: &IndexedBatch, db: &Db, options: &ReadOptions, key: [u8], len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        give(batch.get(db, options, None, key)?, len)
    }

    fn rocksdb_writebatch_wi_get_from_batch_and_db_cf(
        batch: &IndexedBatch, db: &Db, options: &ReadOptions, family: &Family, key: [u8],
        len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        give(batch.get(db, options, Some(family), key)?, len)
    }

    fn rocksdb_writebatch_wi_get_pinned_from_batch_and_db(
        batch: &IndexedBatch, db: &Db, options: &ReadOptions, key: [u8], error
    ) -> *mut Tagged<Pinned> {
        pin(batch.get(db, options, None, key)?)
    }

    fn rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
        batch: &IndexedBatch, db: &Db, options: &ReadOptions, family: &Family, key: [u8], error
    ) -> *mut Tagged<Pinned> {
        pin(batch.get(db, options, Some(family), key)?)
    }

    fn rocksdb_writebatch_wi_create_iterator_with_base(
        batch: &IndexedBatch, base: Own<Iter>
    ) -> *mut Tagged<Iter> {
        batch.over(base, None, None)
    }

    fn rocksdb_writebatch_wi_create_iterator_with_base_cf(
        batch: &IndexedBatch, base: Own<Iter>, family: &Family
    ) -> *mut Tagged<Iter> {
        batch.over(base, Some(family), None)
    }

    fn rocksdb_writebatch_wi_create_iterator_with_base_readopts(
        batch: &IndexedBatch, base: Own<Iter>, options: &ReadOptions
    ) -> *mut Tagged<Iter> {
        batch.over(base, None, Some(options))
    }

    fn rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
        batch: &IndexedBatch, base: Own<Iter>, family: &Family, options: &ReadOptions
    ) -> *mut Tagged<Iter> {
        batch.over(base, Some(family), Some(options))
    }

    fn rocksdb_write_writebatch_wi(
        db: &Db, options: &WriteOptions, batch: &IndexedBatch, error
    ) {
        db.store.write(&options.checked()?, batch.operations()?.clone())?
    }
}

fn no_ranges() -> flagstone::Error {
    flagstone::Error::not_supported("a batch with an index takes no range deletions")
}

// Keys and values that are given in parts.
c_api! {
    fn rocksdb_writebatch_wi_putv(
        batch: &mut IndexedBatch, len: i32, list: Array<Bytes>, sizes: Array<usize>,
        value_len: i32, values: Array<Bytes>, value_sizes: Array<usize>
    ) {
        let parts = joined_pair((list, sizes, len), (values, value_sizes, value_len));
        batch.add_joined(parts, |batch, order, (key, value)| {
            batch.put_default(order, &key, &value)
        });
    }

    fn rocksdb_writebatch_wi_putv_cf(
        batch: &mut IndexedBatch, family: &Family, len: i32, list: Array<Bytes>,
        sizes: Array<usize>, value_len: i32, values: Array<Bytes>, value_sizes: Array<usize>
    ) {
        let parts = joined_pair((list, sizes, len), (values, value_sizes, value_len));
        batch.add_joined(parts, |batch, _, (key, value)| batch.put(&family.engine, key, value));
    }

    fn rocksdb_writebatch_wi_mergev(
        batch: &mut IndexedBatch, len: i32, list: Array<Bytes>, sizes: Array<usize>,
        value_len: i32, values: Array<Bytes>, value_sizes: Array<usize>
    ) {
        let parts = joined_pair((list, sizes, len), (values, value_sizes, value_len));
        batch.add_joined(parts, |batch, order, (key, operand)| {
            batch.merge_default(order, &key, &operand)
        });
    }

    fn rocksdb_writebatch_wi_mergev_cf(
        batch: &mut IndexedBatch, family: &Family, len: i32, list: Array<Bytes>,
        sizes: Array<usize>, value_len: i32, values: Array<Bytes>, value_sizes: Array<usize>
    ) {
        let parts = joined_pair((list, sizes, len), (values, value_sizes, value_len));
        batch.add_joined(parts, |batch, _, (key, operand)| {
            batch.merge(&family.engine, key, operand)
        });
    }

    fn rocksdb_writebatch_wi_deletev(
        batch: &mut IndexedBatch, len: i32, list: Array<Bytes>, sizes: Array<usize>
    ) {
        let key = joined(list, sizes, len);
        batch.add_joined(key, |batch, order, key| batch.delete_default(order, &key));
    }

    fn rocksdb_writebatch_wi_deletev_cf(
        batch: &mut IndexedBatch, family: &Family, len: i32, list: Array<Bytes>,
        sizes: Array<usize>
    ) {
        let key = joined(list, sizes, len);
        batch.add_joined(key, |batch, _, key| batch.delete(&family.engine, key));
    }

    fn rocksdb_writebatch_wi_delete_rangev(
        batch: &mut IndexedBatch, _len: i32, _from: Array<Bytes>, _from_sizes: Array<usize>,
        _to: Array<Bytes>, _to_sizes: Array<usize>
    ) {
        batch.add(|_, _| Err(no_ranges()));
    }

    fn rocksdb_writebatch_wi_delete_rangev_cf(
        batch: &mut IndexedBatch, _family: &Family, _len: i32, _from: Array<Bytes>,
        _from_sizes: Array<usize>, _to: Array<Bytes>, _to_sizes: Array<usize>
    ) {
        batch.add(|_, _| Err(no_ranges()));
    }
}

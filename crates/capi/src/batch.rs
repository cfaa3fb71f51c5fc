//! Batches of writes.

use std::ffi::c_char;

use flagstone::base::ColumnFamilyId;
use flagstone_rocksdb as rdb;

use crate::abi::{Array, Bytes, Out, Result, Tagged, count, handles, keys, make};
use crate::api::{c_api, creates, destroys};
use crate::calls::WriteOptions;
use crate::db::{Db, Family};

/// A batch. What could not be added is said when it is written.
#[derive(Default)]
pub struct Batch {
    pub(crate) engine: flagstone::WriteBatch,
    refused: Option<rdb::Error>,
}

handles! { Batch = "writebatch", }
creates! { rocksdb_writebatch_create: Batch, }
destroys! { rocksdb_writebatch_destroy: Batch, }

impl Batch {
    /// One with these operations.
    pub fn of(engine: flagstone::WriteBatch) -> Self {
        Self { engine, refused: None }
    }

    fn add(&mut self, add: impl FnOnce(&mut flagstone::WriteBatch) -> flagstone::Result<()>) {
        if let Err(error) = add(&mut self.engine) {
            self.refuse(error.into());
        }
    }

    fn refuse(&mut self, error: rdb::Error) {
        self.refused.get_or_insert(error);
    }

    /// The operations.
    ///
    /// # Errors
    /// Why one could not be added.
    pub fn checked(&self) -> Result<&flagstone::WriteBatch> {
        self.refused.as_ref().map_or(Ok(&self.engine), |error| Err(error.clone()))
    }
}

impl Db {
    /// Writes a batch, which stays with the caller.
    ///
    /// # Errors
    /// What the engine says; why an operation could not be added.
    pub fn write(&self, options: &WriteOptions, batch: &mut Batch) -> Result<()> {
        batch.checked()?;
        Ok(self.store.write_ref(&options.checked()?, &mut batch.engine)?)
    }

    /// Writes one operation.
    ///
    /// # Errors
    /// What the engine says.
    pub fn write_one(
        &self,
        options: &WriteOptions,
        add: impl FnOnce(&mut flagstone::WriteBatch) -> flagstone::Result<()>,
    ) -> Result<()> {
        let mut batch = flagstone::WriteBatch::new();
        add(&mut batch)?;
        Ok(self.store.write(&options.checked()?, batch)?)
    }
}

/// The number of a family.
pub fn id(family: &Family) -> ColumnFamilyId {
    family.engine.id()
}

c_api! {
    fn rocksdb_write(db: &Db, options: &WriteOptions, batch: &mut Batch, error) {
        db.write(options, batch)?
    }

    fn rocksdb_put(db: &Db, options: &WriteOptions, key: [u8], value: [u8], error) {
        db.write_one(options, |batch| batch.put(key, value))?
    }

    fn rocksdb_put_cf(
        db: &Db, options: &WriteOptions, family: &Family, key: [u8], value: [u8], error
    ) {
        db.write_one(options, |batch| batch.put_cf(id(family), key, value))?
    }

    fn rocksdb_delete(db: &Db, options: &WriteOptions, key: [u8], error) {
        db.write_one(options, |batch| batch.delete(key))?
    }

    fn rocksdb_delete_cf(db: &Db, options: &WriteOptions, family: &Family, key: [u8], error) {
        db.write_one(options, |batch| batch.delete_cf(id(family), key))?
    }

    fn rocksdb_singledelete(db: &Db, options: &WriteOptions, key: [u8], error) {
        db.write_one(options, |batch| batch.single_delete(key))?
    }

    fn rocksdb_singledelete_cf(db: &Db, options: &WriteOptions, family: &Family, key: [u8], error) {
        db.write_one(options, |batch| batch.single_delete_cf(id(family), key))?
    }

    fn rocksdb_delete_range_cf(
        db: &Db, options: &WriteOptions, family: &Family, from: [u8], to: [u8], error
    ) {
        db.write_one(options, |batch| batch.delete_range_cf(id(family), from, to))?
    }

    fn rocksdb_merge(db: &Db, options: &WriteOptions, key: [u8], operand: [u8], error) {
        db.write_one(options, |batch| batch.merge(key, operand))?
    }

    fn rocksdb_merge_cf(
        db: &Db, options: &WriteOptions, family: &Family, key: [u8], operand: [u8], error
    ) {
        db.write_one(options, |batch| batch.merge_cf(id(family), key, operand))?
    }

    fn rocksdb_writebatch_create_from(bytes: [u8]) -> *mut Tagged<Batch> {
        make(match flagstone::WriteBatch::from_bytes(bytes.to_vec()) {
            Ok(engine) => Batch::of(engine),
            Err(error) => Batch { refused: Some(error.into()), ..Batch::default() },
        })
    }

    fn rocksdb_writebatch_create_with_params(
        reserved: usize, most: usize, protection: usize, _timestamp: usize
    ) -> *mut Tagged<Batch> {
        let mut batch = flagstone::WriteBatch::with_capacity(reserved);
        if most > 0 {
            batch.set_max_bytes(most);
        }
        if protection > 0 {
            batch.protect();
        }
        make(Batch::of(batch))
    }

    fn rocksdb_writebatch_clear(batch: &mut Batch) {
        batch.engine.clear();
        batch.refused = None;
    }

    fn rocksdb_writebatch_count(batch: &Batch) -> i32 {
        batch.engine.count() as i32
    }

    fn rocksdb_writebatch_data(batch: &Batch, len: Out<usize>) -> *const c_char {
        len.set(batch.engine.data().len());
        batch.engine.data().as_ptr().cast()
    }

    fn rocksdb_writebatch_put(batch: &mut Batch, key: [u8], value: [u8]) {
        batch.add(|batch| batch.put(key, value));
    }

    fn rocksdb_writebatch_put_cf(batch: &mut Batch, family: &Family, key: [u8], value: [u8]) {
        batch.add(|batch| batch.put_cf(id(family), key, value));
    }

    fn rocksdb_writebatch_merge(batch: &mut Batch, key: [u8], operand: [u8]) {
        batch.add(|batch| batch.merge(key, operand));
    }

    fn rocksdb_writebatch_merge_cf(batch: &mut Batch, family: &Family, key: [u8], operand: [u8]) {
        batch.add(|batch| batch.merge_cf(id(family), key, operand));
    }

    fn rocksdb_writebatch_delete(batch: &mut Batch, key: [u8]) {
        batch.add(|batch| batch.delete(key));
    }

    fn rocksdb_writebatch_delete_cf(batch: &mut Batch, family: &Family, key: [u8]) {
        batch.add(|batch| batch.delete_cf(id(family), key));
    }

    fn rocksdb_writebatch_singledelete(batch: &mut Batch, key: [u8]) {
        batch.add(|batch| batch.single_delete(key));
    }

    fn rocksdb_writebatch_singledelete_cf(batch: &mut Batch, family: &Family, key: [u8]) {
        batch.add(|batch| batch.single_delete_cf(id(family), key));
    }

    fn rocksdb_writebatch_delete_range(batch: &mut Batch, from: [u8], to: [u8]) {
        batch.add(|batch| batch.delete_range(from, to));
    }

    fn rocksdb_writebatch_delete_range_cf(
        batch: &mut Batch, family: &Family, from: [u8], to: [u8]
    ) {
        batch.add(|batch| batch.delete_range_cf(id(family), from, to));
    }

    fn rocksdb_writebatch_put_log_data(batch: &mut Batch, data: [u8]) {
        batch.add(|batch| batch.put_log_data(data));
    }

    fn rocksdb_writebatch_put_cf_with_ts(
        batch: &mut Batch, family: &Family, key: [u8], timestamp: [u8], value: [u8]
    ) {
        batch.add(|batch| batch.put_with_timestamp(id(family), key, timestamp, value));
    }

    fn rocksdb_writebatch_delete_cf_with_ts(
        batch: &mut Batch, family: &Family, key: [u8], timestamp: [u8]
    ) {
        batch.add(|batch| batch.delete_with_timestamp(id(family), key, timestamp));
    }

    fn rocksdb_writebatch_singledelete_cf_with_ts(
        batch: &mut Batch, family: &Family, key: [u8], timestamp: [u8]
    ) {
        batch.add(|batch| batch.single_delete_with_timestamp(id(family), key, timestamp));
    }

    fn rocksdb_writebatch_set_save_point(batch: &mut Batch) {
        batch.engine.set_save_point();
    }

    fn rocksdb_writebatch_rollback_to_save_point(batch: &mut Batch, error) {
        batch.engine.rollback_to_save_point()?
    }

    fn rocksdb_writebatch_pop_save_point(batch: &mut Batch, error) {
        batch.engine.pop_save_point()?
    }
}

/// One key or value of several parts.
///
/// # Errors
/// For NULL.
pub fn joined(list: Array<Bytes>, sizes: Array<usize>, len: i32) -> Result<Vec<u8>> {
    Ok(keys(list, sizes, count(len))?.concat())
}

/// Two of them.
///
/// # Errors
/// For NULL.
pub fn joined_pair(
    first: (Array<Bytes>, Array<usize>, i32),
    second: (Array<Bytes>, Array<usize>, i32),
) -> Result<(Vec<u8>, Vec<u8>)> {
    Ok((joined(first.0, first.1, first.2)?, joined(second.0, second.1, second.2)?))
}

impl Batch {
    fn add_joined<T>(
        &mut self,
        parts: Result<T>,
        add: impl FnOnce(&mut flagstone::WriteBatch, T) -> flagstone::Result<()>,
    ) {
        match parts {
            Ok(parts) => self.add(|batch| add(batch, parts)),
            Err(error) => self.refuse(error),
        }
    }

    /// Adds to a family. As in RocksDB, parts of keys have no room for a timestamp: what would need
    /// one is not added.
    fn add_joined_to<T>(
        &mut self,
        family: &Family,
        parts: Result<T>,
        add: impl FnOnce(&mut flagstone::WriteBatch, ColumnFamilyId, T) -> flagstone::Result<()>,
    ) {
        let parts = parts.and_then(|parts| match family.engine.comparator().timestamp_size() {
            0 => Ok(parts),
            size => Err(rdb::Error::invalid_argument(format_args!(
                "column family '{}' needs a timestamp of {size} bytes, which a key in parts lacks",
                family.engine.name()
            ))),
        });
        self.add_joined(parts, |batch, parts| add(batch, id(family), parts));
    }
}

// Keys and values that are given in parts.
c_api! {
    fn rocksdb_writebatch_putv(
        batch: &mut Batch, len: i32, list: Array<Bytes>, sizes: Array<usize>, value_len: i32,
        values: Array<Bytes>, value_sizes: Array<usize>
    ) {
        let parts = joined_pair((list, sizes, len), (values, value_sizes, value_len));
        batch.add_joined(parts, |batch, (key, value)| batch.put(key, value));
    }

    fn rocksdb_writebatch_putv_cf(
        batch: &mut Batch, family: &Family, len: i32, list: Array<Bytes>, sizes: Array<usize>,
        value_len: i32, values: Array<Bytes>, value_sizes: Array<usize>
    ) {
        let parts = joined_pair((list, sizes, len), (values, value_sizes, value_len));
        batch.add_joined_to(family, parts, |batch, id, (key, value)| batch.put_cf(id, key, value));
    }

    fn rocksdb_writebatch_mergev(
        batch: &mut Batch, len: i32, list: Array<Bytes>, sizes: Array<usize>, value_len: i32,
        values: Array<Bytes>, value_sizes: Array<usize>
    ) {
        let parts = joined_pair((list, sizes, len), (values, value_sizes, value_len));
        batch.add_joined(parts, |batch, (key, value)| batch.merge(key, value));
    }

    fn rocksdb_writebatch_mergev_cf(
        batch: &mut Batch, family: &Family, len: i32, list: Array<Bytes>, sizes: Array<usize>,
        value_len: i32, values: Array<Bytes>, value_sizes: Array<usize>
    ) {
        let parts = joined_pair((list, sizes, len), (values, value_sizes, value_len));
        batch.add_joined_to(family, parts, |batch, id, (key, value)| {
            batch.merge_cf(id, key, value)
        });
    }

    fn rocksdb_writebatch_deletev(
        batch: &mut Batch, len: i32, list: Array<Bytes>, sizes: Array<usize>
    ) {
        batch.add_joined(joined(list, sizes, len), |batch, key| batch.delete(key));
    }

    fn rocksdb_writebatch_deletev_cf(
        batch: &mut Batch, family: &Family, len: i32, list: Array<Bytes>, sizes: Array<usize>
    ) {
        let key = joined(list, sizes, len);
        batch.add_joined_to(family, key, |batch, id, key| batch.delete_cf(id, key));
    }

    fn rocksdb_writebatch_delete_rangev(
        batch: &mut Batch, len: i32, from: Array<Bytes>, from_sizes: Array<usize>,
        to: Array<Bytes>, to_sizes: Array<usize>
    ) {
        let parts = joined_pair((from, from_sizes, len), (to, to_sizes, len));
        batch.add_joined(parts, |batch, (from, to)| batch.delete_range(from, to));
    }

    fn rocksdb_writebatch_delete_rangev_cf(
        batch: &mut Batch, family: &Family, len: i32, from: Array<Bytes>, from_sizes: Array<usize>,
        to: Array<Bytes>, to_sizes: Array<usize>
    ) {
        let parts = joined_pair((from, from_sizes, len), (to, to_sizes, len));
        batch.add_joined_to(family, parts, |batch, id, (from, to)| {
            batch.delete_range_cf(id, from, to)
        });
    }

    fn rocksdb_writebatch_verify_checksum(batch: &Batch, error) {
        let batch = batch.checked()?;
        batch.verify_checksum()?;
        // Without checksums, what cannot be read is found.
        flagstone::WriteBatch::from_bytes(batch.data().to_vec())?;
    }
}

//! Timestamps in keys.

use std::ffi::c_char;
use std::ptr::null_mut;

use crate::abi::{Array, Bytes, Mut, Out, Ref, Result, copied, copied_text, keys};
use crate::api::c_api;
use crate::calls::{CompactOptions, ReadOptions, WriteOptions};
use crate::db::{Db, Family};
use crate::ingest::Writer;

/// A value and its timestamp.
type Found = Option<(flagstone::Value, Vec<u8>)>;

impl Db {
    fn get_stamped(
        &self,
        options: &ReadOptions,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Found> {
        self.get_as_read(options.checked()?, family, key)
    }

    fn get_as_read(
        &self,
        options: &flagstone::ReadOptions,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Found> {
        Ok(self.engine().get_with_timestamp(options, self.family(family), key)?)
    }

    /// A copy of the options with a snapshot, so that one call reads all keys at the same moment.
    fn of_one_moment(&self, options: &ReadOptions) -> Result<flagstone::ReadOptions> {
        let given = options.checked()?;
        let snapshot = given.snapshot.clone().unwrap_or_else(|| self.engine().snapshot());
        Ok(flagstone::ReadOptions { snapshot: Some(snapshot), ..given.clone() })
    }
}

/// Where values go, their timestamps, and errors.
struct Answers {
    values: Array<*mut c_char>,
    sizes: Array<usize>,
    timestamps: Array<*mut c_char>,
    timestamp_sizes: Array<usize>,
    errors: Array<*mut c_char>,
}

impl Answers {
    fn fill(&self, found: impl IntoIterator<Item = Result<Found>>) {
        for (at, found) in found.into_iter().enumerate() {
            let (value, stamp, error) = match found {
                Ok(Some((value, stamp))) => {
                    ((copied(&value), value.len()), (copied(&stamp), stamp.len()), null_mut())
                }
                Ok(None) => ((null_mut(), 0), (null_mut(), 0), null_mut()),
                Err(error) => ((null_mut(), 0), (null_mut(), 0), copied_text(error.as_ref())),
            };
            self.values.set(at, value.0);
            self.sizes.set(at, value.1);
            self.timestamps.set(at, stamp.0);
            self.timestamp_sizes.set(at, stamp.1);
            self.errors.set(at, error);
        }
    }
}

fn tell(
    found: Found,
    len: Out<usize>,
    timestamp: Out<*mut c_char>,
    timestamp_len: Out<usize>,
) -> *mut c_char {
    let Some((value, stamp)) = found else { return null_mut() };
    len.set(value.len());
    timestamp.set(copied(&stamp));
    timestamp_len.set(stamp.len());
    copied(&value)
}

fn id(family: &Family) -> flagstone::ColumnFamilyId {
    family.engine.id()
}

const DEFAULT: flagstone::ColumnFamilyId = flagstone::ColumnFamilyId::DEFAULT;

c_api! {
    fn rocksdb_put_with_ts(
        db: &Db, options: &WriteOptions, key: [u8], timestamp: [u8], value: [u8], error
    ) {
        db.write_one(options, |batch| batch.put_with_timestamp(DEFAULT, key, timestamp, value))?
    }

    fn rocksdb_put_cf_with_ts(
        db: &Db, options: &WriteOptions, family: &Family, key: [u8], timestamp: [u8],
        value: [u8], error
    ) {
        db.write_one(options, |batch| batch.put_with_timestamp(id(family), key, timestamp, value))?
    }

    fn rocksdb_delete_with_ts(
        db: &Db, options: &WriteOptions, key: [u8], timestamp: [u8], error
    ) {
        db.write_one(options, |batch| batch.delete_with_timestamp(DEFAULT, key, timestamp))?
    }

    fn rocksdb_delete_cf_with_ts(
        db: &Db, options: &WriteOptions, family: &Family, key: [u8], timestamp: [u8], error
    ) {
        db.write_one(options, |batch| batch.delete_with_timestamp(id(family), key, timestamp))?
    }

    fn rocksdb_singledelete_with_ts(
        db: &Db, options: &WriteOptions, key: [u8], timestamp: [u8], error
    ) {
        db.write_one(options, |batch| batch.single_delete_with_timestamp(DEFAULT, key, timestamp))?
    }

    fn rocksdb_singledelete_cf_with_ts(
        db: &Db, options: &WriteOptions, family: &Family, key: [u8], timestamp: [u8], error
    ) {
        let family = id(family);
        db.write_one(options, |batch| batch.single_delete_with_timestamp(family, key, timestamp))?
    }

    fn rocksdb_get_with_ts(
        db: &Db, options: &ReadOptions, key: [u8], len: Out<usize>,
        timestamp: Out<*mut c_char>, timestamp_len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        tell(db.get_stamped(options, None, key)?, len, timestamp, timestamp_len)
    }

    fn rocksdb_get_cf_with_ts(
        db: &Db, options: &ReadOptions, family: &Family, key: [u8], len: Out<usize>,
        timestamp: Out<*mut c_char>, timestamp_len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        tell(db.get_stamped(options, Some(family), key)?, len, timestamp, timestamp_len)
    }

    fn rocksdb_multi_get_with_ts(
        db: &Db, options: &ReadOptions, len: usize, list: Array<Bytes>,
        list_sizes: Array<usize>, values: Array<*mut c_char>, sizes: Array<usize>,
        timestamps: Array<*mut c_char>, timestamp_sizes: Array<usize>, errors: Array<*mut c_char>
    ) {
        let answers = Answers { values, sizes, timestamps, timestamp_sizes, errors };
        match (keys(list, list_sizes, len), db.of_one_moment(options)) {
            (Ok(keys), Ok(read)) => {
                answers.fill(keys.iter().map(|key| db.get_as_read(&read, None, key)));
            }
            (Err(error), _) | (_, Err(error)) => answers.fill((0..len).map(|_| Err(error.clone()))),
        }
    }

    fn rocksdb_multi_get_cf_with_ts(
        db: &Db, options: &ReadOptions, families: Array<Ref<Family>>, len: usize,
        list: Array<Bytes>, list_sizes: Array<usize>, values: Array<*mut c_char>,
        sizes: Array<usize>, timestamps: Array<*mut c_char>, timestamp_sizes: Array<usize>,
        errors: Array<*mut c_char>
    ) {
        let answers = Answers { values, sizes, timestamps, timestamp_sizes, errors };
        let given = |list: &[Ref<Family>]| list.iter().map(|family| family.get()).collect();
        let named: Result<Vec<&Family>> = families.slice(len).and_then(given);
        match (keys(list, list_sizes, len), named, db.of_one_moment(options)) {
            (Ok(keys), Ok(named), Ok(read)) => {
                let each = keys.iter().zip(named);
                answers.fill(each.map(|(key, family)| db.get_as_read(&read, Some(family), key)));
            }
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
                answers.fill((0..len).map(|_| Err(error.clone())));
            }
        }
    }

    fn rocksdb_increase_full_history_ts_low(
        db: &Db, family: &Family, timestamp: [u8], error
    ) {
        db.engine().increase_full_history_ts_low(&family.engine, timestamp)?
    }

    fn rocksdb_get_full_history_ts_low(
        db: &Db, family: &Family, len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        let low = db.engine().full_history_ts_low(&family.engine)?.unwrap_or_default();
        len.set(low.len());
        copied(&low)
    }

    fn rocksdb_compactoptions_set_full_history_ts_low(
        options: Mut<CompactOptions>, timestamp: [u8]
    ) {
        if let Ok(options) = options.get() {
            options.0.full_history_ts_low = Some(timestamp.to_vec()).filter(|low| !low.is_empty());
        }
    }

    fn rocksdb_sstfilewriter_put_with_ts(
        writer: &mut Writer, key: [u8], timestamp: [u8], value: [u8], error
    ) {
        writer.opened()?.put_with_timestamp(key, timestamp, value)?
    }

    fn rocksdb_sstfilewriter_delete_with_ts(
        writer: &mut Writer, key: [u8], timestamp: [u8], error
    ) {
        writer.opened()?.delete_with_timestamp(key, timestamp)?
    }
}

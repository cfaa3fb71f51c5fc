//! Timestamps in keys, which there are not: each call says so.

use std::ffi::c_char;

use flagstone_rocksdb as rdb;

use crate::abi::{Array, Bytes, Mut, Out, Ref, Result};
use crate::api::c_api;
use crate::calls::{CompactOptions, ReadOptions, WriteOptions};
use crate::db::{Db, Family};
use crate::ingest::Writer;
use crate::reading::{Answers, all_fail};

fn none<T>() -> Result<T> {
    Err(refusal())
}

fn refusal() -> rdb::Error {
    rdb::Error::not_supported("timestamps in keys")
}

c_api! {
    fn rocksdb_put_with_ts(
        _db: &Db, _options: &WriteOptions, _key: [u8], _timestamp: [u8], _value: [u8], error
    ) {
        none()?
    }

    fn rocksdb_put_cf_with_ts(
        _db: &Db, _options: &WriteOptions, _family: &Family, _key: [u8], _timestamp: [u8],
        _value: [u8], error
    ) {
        none()?
    }

    fn rocksdb_delete_with_ts(
        _db: &Db, _options: &WriteOptions, _key: [u8], _timestamp: [u8], error
    ) {
        none()?
    }

    fn rocksdb_delete_cf_with_ts(
        _db: &Db, _options: &WriteOptions, _family: &Family, _key: [u8], _timestamp: [u8], error
    ) {
        none()?
    }

    fn rocksdb_singledelete_with_ts(
        _db: &Db, _options: &WriteOptions, _key: [u8], _timestamp: [u8], error
    ) {
        none()?
    }

    fn rocksdb_singledelete_cf_with_ts(
        _db: &Db, _options: &WriteOptions, _family: &Family, _key: [u8], _timestamp: [u8], error
    ) {
        none()?
    }

    fn rocksdb_get_with_ts(
        _db: &Db, _options: &ReadOptions, _key: [u8], len: Out<usize>,
        _timestamp: Out<*mut c_char>, _timestamp_len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        none()?
    }

    fn rocksdb_get_cf_with_ts(
        _db: &Db, _options: &ReadOptions, _family: &Family, _key: [u8], len: Out<usize>,
        _timestamp: Out<*mut c_char>, _timestamp_len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        none()?
    }

    fn rocksdb_multi_get_with_ts(
        _db: &Db, _options: &ReadOptions, len: usize, _list: Array<Bytes>,
        _list_sizes: Array<usize>, values: Array<*mut c_char>, sizes: Array<usize>,
        _timestamps: Array<*mut c_char>, _timestamp_sizes: Array<usize>, errors: Array<*mut c_char>
    ) {
        Answers { values, sizes, errors }.fill(all_fail(len, &refusal()));
    }

    fn rocksdb_multi_get_cf_with_ts(
        _db: &Db, _options: &ReadOptions, _families: Array<Ref<Family>>, len: usize,
        _list: Array<Bytes>, _list_sizes: Array<usize>, values: Array<*mut c_char>,
        sizes: Array<usize>, _timestamps: Array<*mut c_char>, _timestamp_sizes: Array<usize>,
        errors: Array<*mut c_char>
    ) {
        Answers { values, sizes, errors }.fill(all_fail(len, &refusal()));
    }

    fn rocksdb_increase_full_history_ts_low(
        _db: &Db, _family: &Family, _timestamp: [u8], error
    ) {
        none()?
    }

    fn rocksdb_get_full_history_ts_low(
        _db: &Db, _family: &Family, len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        none()?
    }

    fn rocksdb_compactoptions_set_full_history_ts_low(
        _options: Mut<CompactOptions>, _timestamp: [u8]
    ) {}

    fn rocksdb_sstfilewriter_put_with_ts(
        _writer: &mut Writer, _key: [u8], _timestamp: [u8], _value: [u8], error
    ) {
        none()?
    }

    fn rocksdb_sstfilewriter_delete_with_ts(
        _writer: &mut Writer, _key: [u8], _timestamp: [u8], error
    ) {
        none()?
    }
}

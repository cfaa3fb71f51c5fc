//! Lookups of several keys whose values are not copied.

use std::ffi::c_char;

use flagstone::Value;

use crate::abi::{Array, Out, Result, Tagged, handles, make};
use crate::api::{c_api, destroys};
use crate::calls::ReadOptions;
use crate::db::{Db, Family};
use crate::event_infos::lend;
use crate::reading::{Slice, all_fail, slices};

/// What was found, key by key.
pub struct Results(Vec<Result<Option<Value>>>);

handles! { Results = "pinnable_multi_get", }
destroys! { rocksdb_pinnable_multi_get_destroy: Results, }

/// The header's numbers of what became of a key.
const NOT_FOUND: i32 = 0;
const FOUND: i32 = 1;
const ERROR: i32 = 2;
const OUT_OF_BOUNDS: i32 = 3;

c_api! {
    fn rocksdb_batched_multi_get_pinned_cf(
        db: &Db, options: &ReadOptions, family: &Family, len: usize, list: Array<Slice>,
        _sorted: flag
    ) -> *mut Tagged<Results> {
        make(Results(match slices(list, len) {
            Ok(keys) => db.multi_get(options, &family.engine, &keys),
            Err(error) => all_fail(len, &error),
        }))
    }

    fn rocksdb_pinnable_multi_get_count(results: &Results) -> usize {
        results.0.len()
    }

    fn rocksdb_pinnable_multi_get_result(
        results: &Results, index: usize, value: Out<*const c_char>, value_len: Out<usize>,
        text: Out<*const c_char>, text_len: Out<usize>
    ) -> i32 {
        value.set(std::ptr::null());
        value_len.set(0);
        text.set(std::ptr::null());
        text_len.set(0);
        match results.0.get(index) {
            Some(Ok(Some(found))) => {
                value.set(lend(found, value_len));
                FOUND
            }
            Some(Ok(None)) => NOT_FOUND,
            Some(Err(error)) => {
                text.set(lend(error.as_ref().as_bytes(), text_len));
                ERROR
            }
            None => OUT_OF_BOUNDS,
        }
    }
}

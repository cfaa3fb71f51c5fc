//! The operations of batches, one by one, and their timestamps.

use std::ffi::{c_char, c_void};

use flagstone::{ColumnFamilyId, Operation};

use crate::abi::calling;
use crate::api::c_api;
use crate::batch::Batch;
use crate::indexed_batch::IndexedBatch;

/// A key is put: state, key, value.
type OnPut = extern "C-unwind" fn(*mut c_void, *const c_char, usize, *const c_char, usize);
/// A key is deleted, or data goes to the WAL.
type OnBytes = extern "C-unwind" fn(*mut c_void, *const c_char, usize);
/// A key of a family is put, or an operand merged into it.
type OnPutCf = extern "C-unwind" fn(*mut c_void, u32, *const c_char, usize, *const c_char, usize);
/// A key of a family is deleted.
type OnDeleteCf = extern "C-unwind" fn(*mut c_void, u32, *const c_char, usize);
/// The size of a family's timestamps.
type SizeOf = extern "C-unwind" fn(*mut c_void, u32) -> usize;

const WHAT: &str = "a batch's callback";

/// The callbacks for the operations on the default family.
struct Told {
    state: *mut c_void,
    put: OnPut,
    deleted: OnBytes,
    data: Option<OnBytes>,
}

/// The callbacks for those on any.
struct ToldCf {
    state: *mut c_void,
    put: OnPutCf,
    deleted: OnDeleteCf,
    merged: OnPutCf,
    data: Option<OnBytes>,
}

fn tell_data(state: *mut c_void, callback: Option<OnBytes>, data: &[u8]) {
    if let Some(callback) = callback {
        calling(WHAT, || callback(state, data.as_ptr().cast(), data.len()));
    }
}

/// Tells the operations in their order. As in RocksDB this ends at the first deletion of a range,
/// and at the first operation on another family.
fn tell(batch: &flagstone::WriteBatch, told: &Told) {
    let state = told.state;
    for operation in batch.iter() {
        match operation {
            Ok(Operation::Put { cf: ColumnFamilyId::DEFAULT, key, value }) => {
                let (bytes, of_value) = (key.as_ptr().cast(), value.as_ptr().cast());
                calling(WHAT, || (told.put)(state, bytes, key.len(), of_value, value.len()));
            }
            Ok(Operation::Delete { cf: ColumnFamilyId::DEFAULT, key }) => {
                calling(WHAT, || (told.deleted)(state, key.as_ptr().cast(), key.len()));
            }
            Ok(Operation::LogData(data)) => tell_data(state, told.data, data),
            Ok(
                Operation::Merge { cf: ColumnFamilyId::DEFAULT, .. }
                | Operation::SingleDelete { cf: ColumnFamilyId::DEFAULT, .. }
                | Operation::Noop,
            ) => {}
            _ => return,
        }
    }
}

/// Tells the operations in their order. As in RocksDB this ends at the first deletion of a range,
/// and at a single deletion in a family other than the default one.
fn tell_cf(batch: &flagstone::WriteBatch, told: &ToldCf) {
    let state = told.state;
    let pair = |callback: OnPutCf, cf: ColumnFamilyId, key: &[u8], value: &[u8]| {
        let (bytes, of_value) = (key.as_ptr().cast(), value.as_ptr().cast());
        calling(WHAT, || callback(state, cf.0, bytes, key.len(), of_value, value.len()));
    };
    for operation in batch.iter() {
        match operation {
            Ok(Operation::Put { cf, key, value }) => pair(told.put, cf, key, value),
            Ok(Operation::Merge { cf, key, operand }) => pair(told.merged, cf, key, operand),
            Ok(Operation::Delete { cf, key }) => {
                calling(WHAT, || (told.deleted)(state, cf.0, key.as_ptr().cast(), key.len()));
            }
            Ok(Operation::LogData(data)) => tell_data(state, told.data, data),
            Ok(Operation::SingleDelete { cf: ColumnFamilyId::DEFAULT, .. } | Operation::Noop) => {}
            _ => return,
        }
    }
}

/// The sizes of timestamps, as a program says them.
fn sizes(state: *mut c_void, size_of: SizeOf) -> impl Fn(ColumnFamilyId) -> usize {
    move |family| calling("a callback for sizes", || size_of(state, family.0))
}

c_api! {
    fn rocksdb_writebatch_iterate(
        batch: &Batch, state: *mut c_void, put: OnPut, deleted: OnBytes
    ) {
        tell(&batch.engine, &Told { state, put, deleted, data: None });
    }

    fn rocksdb_writebatch_iterate_ld(
        batch: &Batch, state: *mut c_void, put: OnPut, deleted: OnBytes, data: Option<OnBytes>
    ) {
        tell(&batch.engine, &Told { state, put, deleted, data });
    }

    fn rocksdb_writebatch_iterate_cf(
        batch: &Batch, state: *mut c_void, put: OnPutCf, deleted: OnDeleteCf, merged: OnPutCf
    ) {
        tell_cf(&batch.engine, &ToldCf { state, put, deleted, merged, data: None });
    }

    fn rocksdb_writebatch_iterate_cf_ld(
        batch: &Batch, state: *mut c_void, put: OnPutCf, deleted: OnDeleteCf, merged: OnPutCf,
        data: Option<OnBytes>
    ) {
        tell_cf(&batch.engine, &ToldCf { state, put, deleted, merged, data });
    }

    fn rocksdb_writebatch_wi_iterate(
        batch: &IndexedBatch, state: *mut c_void, put: OnPut, deleted: OnBytes
    ) {
        if let Ok(operations) = batch.operations() {
            tell(operations, &Told { state, put, deleted, data: None });
        }
    }

    fn rocksdb_writebatch_update_timestamps(
        batch: &mut Batch, timestamp: [u8], state: *mut c_void, size_of: SizeOf, error
    ) {
        batch.checked()?;
        batch.engine.set_timestamps(timestamp, sizes(state, size_of))?
    }

    fn rocksdb_writebatch_wi_update_timestamps(
        batch: &mut IndexedBatch, timestamp: [u8], state: *mut c_void, size_of: SizeOf, error
    ) {
        batch.own_engine()?.set_timestamps(timestamp, sizes(state, size_of))?
    }
}

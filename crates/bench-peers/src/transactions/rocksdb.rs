//! RocksDB. The Rust crate has no way to use a transaction again, so this calls the C interface.
#![expect(unsafe_code, reason = "the C interface of RocksDB")]

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr;

use librocksdb_sys as ffi;

use super::{Batch, CACHE_BYTES, Database, Key, Kind, MEMTABLE_BYTES, Worker};
use crate::engine::Result;

/// What RocksDB says of a transaction that another was in the way of.
const CONFLICTS: [&str; 3] = ["Resource busy", "Operation timed out", "Operation failed"];

#[derive(Clone, Copy)]
enum Handle {
    Pessimistic(*mut ffi::rocksdb_transactiondb_t),
    Optimistic(*mut ffi::rocksdb_optimistictransactiondb_t),
}

/// A database, with the options of its calls.
///
/// The pointers are those that RocksDB has returned, and each is used until it is destroyed in
/// `close`, and nothing else has them.
pub struct Opened {
    db: Handle,
    base: *mut ffi::rocksdb_t,
    write: *mut ffi::rocksdb_writeoptions_t,
    read: *mut ffi::rocksdb_readoptions_t,
    locking: *mut ffi::rocksdb_transaction_options_t,
    validating: *mut ffi::rocksdb_optimistictransaction_options_t,
}

// SAFETY: RocksDB's databases and options may be used by several threads at once; nothing here
// changes an option after `open`, and `close` takes the database itself.
unsafe impl Sync for Opened {}

/// A thread's transaction, which is begun again and again.
struct Thread<'d> {
    opened: &'d Opened,
    transaction: *mut ffi::rocksdb_transaction_t,
}

struct Indexed<'d> {
    opened: &'d Opened,
    batch: *mut ffi::rocksdb_writebatch_wi_t,
}

/// Calls with a place for an error, and takes that.
fn call<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> std::result::Result<T, String> {
    let mut error: *mut c_char = ptr::null_mut();
    let returned = call(&raw mut error);
    if error.is_null() {
        return Ok(returned);
    }
    // SAFETY: RocksDB has set it to a string that ends in a zero byte, and that is the caller's.
    let message = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: as above; it is not used after this.
    unsafe { ffi::rocksdb_free(error.cast()) };
    Err(message)
}

impl Opened {
    pub fn open(directory: &Path, kind: Kind) -> Result<Self> {
        let path = CString::new(directory.as_os_str().as_encoded_bytes())?;
        let set = format!(
            "create_if_missing=true;write_buffer_size={MEMTABLE_BYTES};\
             block_based_table_factory={{block_cache={CACHE_BYTES};filter_policy=bloomfilter:10:false}}"
        );
        let set = CString::new(set)?;
        // SAFETY: each object is made by RocksDB, used while it lives, and options are copied by
        // the call that opens.
        unsafe {
            let (base, options) = (ffi::rocksdb_options_create(), ffi::rocksdb_options_create());
            call(|error| ffi::rocksdb_get_options_from_string(base, set.as_ptr(), options, error))?;
            let db = match kind {
                Kind::Pessimistic => {
                    let locks = ffi::rocksdb_transactiondb_options_create();
                    let opened = call(|error| {
                        ffi::rocksdb_transactiondb_open(options, locks, path.as_ptr(), error)
                    });
                    ffi::rocksdb_transactiondb_options_destroy(locks);
                    Handle::Pessimistic(opened?)
                }
                Kind::Optimistic => Handle::Optimistic(call(|error| {
                    ffi::rocksdb_optimistictransactiondb_open(options, path.as_ptr(), error)
                })?),
            };
            ffi::rocksdb_options_destroy(options);
            ffi::rocksdb_options_destroy(base);
            let base = match db {
                Handle::Pessimistic(db) => ffi::rocksdb_transactiondb_get_base_db(db),
                Handle::Optimistic(db) => ffi::rocksdb_optimistictransactiondb_get_base_db(db),
            };
            Ok(Self {
                db,
                base,
                write: ffi::rocksdb_writeoptions_create(),
                read: ffi::rocksdb_readoptions_create(),
                locking: ffi::rocksdb_transaction_options_create(),
                validating: ffi::rocksdb_optimistictransaction_options_create(),
            })
        }
    }

    /// Begins a transaction, in the place of one that has ended.
    fn begin(&self, old: *mut ffi::rocksdb_transaction_t) -> *mut ffi::rocksdb_transaction_t {
        // SAFETY: all pointers are live; `old` is a transaction of this database, or null.
        unsafe {
            match self.db {
                Handle::Pessimistic(db) => {
                    ffi::rocksdb_transaction_begin(db, self.write, self.locking, old)
                }
                Handle::Optimistic(db) => {
                    ffi::rocksdb_optimistictransaction_begin(db, self.write, self.validating, old)
                }
            }
        }
    }
}

/// Reads a key for update.
fn read_for_update(
    transaction: *mut ffi::rocksdb_transaction_t,
    read: *const ffi::rocksdb_readoptions_t,
    key: &Key,
) -> std::result::Result<(), String> {
    // SAFETY: both are live, the length is that of the key, and what is returned is the caller's.
    unsafe {
        let value = call(|error| {
            let (start, length) = (key.as_ptr().cast(), key.len());
            ffi::rocksdb_transaction_get_pinned_for_update(
                transaction,
                read,
                start,
                length,
                1,
                error,
            )
        })?;
        if !value.is_null() {
            ffi::rocksdb_pinnableslice_destroy(value);
        }
    }
    Ok(())
}

impl Database for Opened {
    fn fill(&self, rows: &mut dyn Iterator<Item = Key>, value: &[u8]) -> Result<()> {
        // SAFETY: batch and options live to the end of this, and lengths are those of the slices.
        unsafe {
            let batch = ffi::rocksdb_writebatch_create();
            loop {
                ffi::rocksdb_writebatch_clear(batch);
                for row in rows.take(1000) {
                    let (key, value_start) = (row.as_ptr().cast(), value.as_ptr().cast());
                    ffi::rocksdb_writebatch_put(batch, key, row.len(), value_start, value.len());
                }
                if ffi::rocksdb_writebatch_count(batch) == 0 {
                    break;
                }
                call(|error| ffi::rocksdb_write(self.base, self.write, batch, error))?;
            }
            ffi::rocksdb_writebatch_destroy(batch);
            let options = ffi::rocksdb_flushoptions_create();
            ffi::rocksdb_flushoptions_set_wait(options, 1);
            let flushed = call(|error| ffi::rocksdb_flush(self.base, options, error));
            ffi::rocksdb_flushoptions_destroy(options);
            flushed?;
            ffi::rocksdb_compact_range(self.base, ptr::null(), 0, ptr::null(), 0);
        }
        Ok(())
    }

    fn worker(&self) -> Result<Box<dyn Worker + '_>> {
        Ok(Box::new(Thread { opened: self, transaction: ptr::null_mut() }))
    }

    fn batch(&self) -> Result<Box<dyn Batch + '_>> {
        // SAFETY: it takes plain numbers. Keys are overwritten: so a transaction uses it.
        let batch = unsafe { ffi::rocksdb_writebatch_wi_create(0, 1) };
        Ok(Box::new(Indexed { opened: self, batch }))
    }

    fn hold(&self, keys: &mut dyn Iterator<Item = Key>, then: &mut dyn FnMut()) -> Result<()> {
        let transaction = self.begin(ptr::null_mut());
        for key in keys {
            read_for_update(transaction, self.read, &key)?;
        }
        then();
        // SAFETY: it lives, and is destroyed once.
        unsafe {
            call(|error| ffi::rocksdb_transaction_rollback(transaction, error))?;
            ffi::rocksdb_transaction_destroy(transaction);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: each is destroyed once, the base before the database that it is a part of.
        unsafe {
            ffi::rocksdb_optimistictransaction_options_destroy(self.validating);
            ffi::rocksdb_transaction_options_destroy(self.locking);
            ffi::rocksdb_readoptions_destroy(self.read);
            ffi::rocksdb_writeoptions_destroy(self.write);
            match self.db {
                Handle::Pessimistic(db) => {
                    ffi::rocksdb_transactiondb_close_base_db(self.base);
                    ffi::rocksdb_transactiondb_close(db);
                }
                Handle::Optimistic(db) => {
                    ffi::rocksdb_optimistictransactiondb_close_base_db(self.base);
                    ffi::rocksdb_optimistictransactiondb_close(db);
                }
            }
        }
        Ok(())
    }
}

impl Thread<'_> {
    fn try_update(&self, keys: &[Key], value: &[u8]) -> std::result::Result<(), String> {
        for key in keys {
            read_for_update(self.transaction, self.opened.read, key)?;
        }
        for key in keys {
            // SAFETY: the transaction lives, and lengths are those of the slices.
            call(|error| unsafe {
                ffi::rocksdb_transaction_put(
                    self.transaction,
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_ptr().cast(),
                    value.len(),
                    error,
                );
            })?;
        }
        // SAFETY: it lives.
        call(|error| unsafe { ffi::rocksdb_transaction_commit(self.transaction, error) })
    }
}

impl Worker for Thread<'_> {
    fn update(&mut self, keys: &[Key], value: &[u8]) -> Result<bool> {
        self.transaction = self.opened.begin(self.transaction);
        match self.try_update(keys, value) {
            Ok(()) => Ok(true),
            Err(message) if CONFLICTS.iter().any(|conflict| message.contains(conflict)) => {
                // SAFETY: it lives.
                let rolled_back = call(|error| unsafe {
                    ffi::rocksdb_transaction_rollback(self.transaction, error);
                });
                Ok(rolled_back.map(|()| false)?)
            }
            Err(message) => Err(message.into()),
        }
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        if !self.transaction.is_null() {
            // SAFETY: it lives, and is destroyed once.
            unsafe { ffi::rocksdb_transaction_destroy(self.transaction) };
        }
    }
}

impl Batch for Indexed<'_> {
    fn put(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let (start, value_start) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the batch lives, and lengths are those of the slices.
        unsafe {
            ffi::rocksdb_writebatch_wi_put(self.batch, start, key.len(), value_start, value.len());
        }
        Ok(())
    }

    fn reads(&self, key: &Key) -> Result<bool> {
        let mut length = 0;
        // SAFETY: all pointers are live, and what is returned is the caller's.
        unsafe {
            let value = call(|error| {
                ffi::rocksdb_writebatch_wi_get_from_batch_and_db(
                    self.batch,
                    self.opened.base,
                    self.opened.read,
                    key.as_ptr().cast(),
                    key.len(),
                    &raw mut length,
                    error,
                )
            })?;
            let is_there = !value.is_null();
            if is_there {
                ffi::rocksdb_free(value.cast());
            }
            Ok(is_there)
        }
    }

    fn iterate(&self) -> Result<u64> {
        // SAFETY: the iterator lives to the end of this, and owns the one that it is laid over.
        unsafe {
            let base = ffi::rocksdb_create_iterator(self.opened.base, self.opened.read);
            let iter = ffi::rocksdb_writebatch_wi_create_iterator_with_base(self.batch, base);
            ffi::rocksdb_iter_seek_to_first(iter);
            let mut count = 0;
            while ffi::rocksdb_iter_valid(iter) != 0 {
                let (mut of_key, mut of_value) = (0, 0);
                ffi::rocksdb_iter_key(iter, &raw mut of_key);
                ffi::rocksdb_iter_value(iter, &raw mut of_value);
                std::hint::black_box((of_key, of_value));
                count += 1;
                ffi::rocksdb_iter_next(iter);
            }
            let status = call(|error| ffi::rocksdb_iter_get_error(iter, error));
            ffi::rocksdb_iter_destroy(iter);
            status?;
            Ok(count)
        }
    }
}

impl Drop for Indexed<'_> {
    fn drop(&mut self) {
        // SAFETY: it lives, and is destroyed once.
        unsafe { ffi::rocksdb_writebatch_wi_destroy(self.batch) };
    }
}

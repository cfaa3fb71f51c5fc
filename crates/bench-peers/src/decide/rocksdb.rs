//! RocksDB's turns. The Rust crate has no policies, so this calls the C interface.
#![expect(unsafe_code, reason = "the C interface of RocksDB")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr;

use librocksdb_sys as ffi;

use super::Decider;
use super::life::{Edits, Policy, Step};
use crate::engine::Result;

/// A database, with the transactions that are prepared there.
///
/// The pointers are those that RocksDB has returned, and each is used until it is destroyed in
/// `close`, and nothing else has them. All calls come from one thread.
pub struct Database {
    db: *mut ffi::rocksdb_transactiondb_t,
    write: *mut ffi::rocksdb_writeoptions_t,
    begin: *mut ffi::rocksdb_transaction_options_t,
    prepared: BTreeMap<Vec<u8>, *mut ffi::rocksdb_transaction_t>,
    /// Never destroyed: that would roll them back.
    abandoned: Vec<*mut ffi::rocksdb_transaction_t>,
}

/// Calls with a place for an error, and takes that.
fn call<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T> {
    let mut error: *mut c_char = ptr::null_mut();
    let returned = call(&raw mut error);
    if error.is_null() {
        return Ok(returned);
    }
    // SAFETY: RocksDB has set it to a string that ends in a zero byte, and that is the caller's.
    let message = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: as above; it is not used after this.
    unsafe { ffi::rocksdb_free(error.cast()) };
    Err(message.into())
}

impl Database {
    pub fn open(directory: &Path, policy: Policy) -> Result<Self> {
        let path = CString::new(directory.as_os_str().as_encoded_bytes())?;
        // SAFETY: each object is made by RocksDB, used while it lives, and options are copied by
        // the call that opens.
        unsafe {
            let options = ffi::rocksdb_options_create();
            ffi::rocksdb_options_set_create_if_missing(options, 1);
            ffi::rocksdb_options_set_level0_file_num_compaction_trigger(options, 3);
            let transactions = ffi::rocksdb_transactiondb_options_create();
            ffi::rocksdb_transactiondb_options_set_write_policy(transactions, policy as _);
            // Each change is written at once, where the policy is to write before preparing.
            ffi::rocksdb_transactiondb_options_set_default_write_batch_flush_threshold(
                transactions,
                1,
            );
            let opened = call(|error| {
                ffi::rocksdb_transactiondb_open(options, transactions, path.as_ptr(), error)
            });
            ffi::rocksdb_transactiondb_options_destroy(transactions);
            ffi::rocksdb_options_destroy(options);
            let mut database = Self {
                db: opened?,
                write: ffi::rocksdb_writeoptions_create(),
                begin: ffi::rocksdb_transaction_options_create(),
                prepared: BTreeMap::new(),
                abandoned: Vec::new(),
            };
            database.take_prepared();
            Ok(database)
        }
    }

    fn take_prepared(&mut self) {
        let mut count = 0;
        // SAFETY: the array has `count` pointers, which are the caller's, and so is the array. A
        // name has the length that is told, and is the caller's.
        unsafe {
            let all = ffi::rocksdb_transactiondb_get_prepared_transactions(self.db, &raw mut count);
            for at in 0..count {
                let transaction = *all.add(at);
                let mut length = 0;
                let name = ffi::rocksdb_transaction_get_name(transaction, &raw mut length);
                let bytes = std::slice::from_raw_parts(name.cast::<u8>(), length).to_vec();
                ffi::rocksdb_free(name.cast());
                self.prepared.insert(bytes, transaction);
            }
            if !all.is_null() {
                ffi::rocksdb_free(all.cast());
            }
        }
    }

    /// A transaction with these changes.
    fn begin(&self, name: &[u8], edits: &Edits) -> Result<*mut ffi::rocksdb_transaction_t> {
        // SAFETY: all pointers are live, and lengths are those of the slices.
        unsafe {
            let transaction =
                ffi::rocksdb_transaction_begin(self.db, self.write, self.begin, ptr::null_mut());
            call(|error| {
                let (name, length) = (name.as_ptr().cast(), name.len());
                ffi::rocksdb_transaction_set_name(transaction, name, length, error);
            })?;
            for (key, value) in edits {
                let (key, length) = (key.as_ptr().cast(), key.len());
                call(|error| match value {
                    Some(value) => ffi::rocksdb_transaction_put(
                        transaction,
                        key,
                        length,
                        value.as_ptr().cast(),
                        value.len(),
                        error,
                    ),
                    None => ffi::rocksdb_transaction_delete(transaction, key, length, error),
                })?;
            }
            Ok(transaction)
        }
    }

    fn write(&self, edits: &Edits) -> Result<()> {
        // SAFETY: the batch lives to the end of this, and lengths are those of the slices.
        unsafe {
            let batch = ffi::rocksdb_writebatch_create();
            for (key, value) in edits {
                let (key, length) = (key.as_ptr().cast(), key.len());
                match value {
                    Some(value) => ffi::rocksdb_writebatch_put(
                        batch,
                        key,
                        length,
                        value.as_ptr().cast(),
                        value.len(),
                    ),
                    None => ffi::rocksdb_writebatch_delete(batch, key, length),
                }
            }
            let written =
                call(|error| ffi::rocksdb_transactiondb_write(self.db, self.write, batch, error));
            ffi::rocksdb_writebatch_destroy(batch);
            written
        }
    }

    fn flush(&self) -> Result<()> {
        // SAFETY: the options live to the end of this.
        unsafe {
            let options = ffi::rocksdb_flushoptions_create();
            ffi::rocksdb_flushoptions_set_wait(options, 1);
            let flushed = call(|error| ffi::rocksdb_transactiondb_flush(self.db, options, error));
            ffi::rocksdb_flushoptions_destroy(options);
            flushed
        }
    }

    fn compact(&self) {
        // SAFETY: the base is closed before the database that it is a part of.
        unsafe {
            let base = ffi::rocksdb_transactiondb_get_base_db(self.db);
            ffi::rocksdb_compact_range(base, ptr::null(), 0, ptr::null(), 0);
            ffi::rocksdb_transactiondb_close_base_db(base);
        }
    }
}

impl Decider for Database {
    fn contents(&self) -> Result<Edits> {
        let mut contents = Edits::new();
        // SAFETY: iterator and options live to the end of this. A key and a value have the lengths
        // that are told, until the iterator moves.
        unsafe {
            let options = ffi::rocksdb_readoptions_create();
            let iter = ffi::rocksdb_transactiondb_create_iterator(self.db, options);
            ffi::rocksdb_iter_seek_to_first(iter);
            let bytes = |get: unsafe extern "C" fn(_, _) -> *const c_char| {
                let mut length = 0;
                let start = get(iter.cast_const(), &raw mut length);
                std::slice::from_raw_parts(start.cast::<u8>(), length).to_vec()
            };
            while ffi::rocksdb_iter_valid(iter) != 0 {
                let (key, value) = (bytes(ffi::rocksdb_iter_key), bytes(ffi::rocksdb_iter_value));
                contents.insert(key, Some(value));
                ffi::rocksdb_iter_next(iter);
            }
            let status = call(|error| ffi::rocksdb_iter_get_error(iter, error));
            ffi::rocksdb_iter_destroy(iter);
            ffi::rocksdb_readoptions_destroy(options);
            status?;
        }
        Ok(contents)
    }

    fn prepared(&mut self) -> Result<Vec<Vec<u8>>> {
        Ok(self.prepared.keys().cloned().collect())
    }

    fn act(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Write(edits) => self.write(edits)?,
            Step::Prepare(name, edits) => {
                let transaction = self.begin(name, edits)?;
                // SAFETY: it lives.
                call(|error| unsafe { ffi::rocksdb_transaction_prepare(transaction, error) })?;
                self.prepared.insert(name.clone(), transaction);
            }
            Step::Commit(name) | Step::Rollback(name) => {
                let transaction = self.prepared.remove(name).ok_or("it is not prepared")?;
                let decide = match step {
                    Step::Commit(_) => ffi::rocksdb_transaction_commit,
                    _ => ffi::rocksdb_transaction_rollback,
                };
                // SAFETY: it lives, and is destroyed once.
                unsafe {
                    call(|error| decide(transaction, error))?;
                    ffi::rocksdb_transaction_destroy(transaction);
                }
            }
            Step::Abandon(edits) => {
                let name = format!("abandoned-{}", self.abandoned.len());
                self.abandoned.push(self.begin(name.as_bytes(), edits)?);
            }
            Step::Flush => self.flush()?,
            Step::Compact => self.compact(),
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: each is destroyed once, transactions before the database; a prepared one that is
        // destroyed stays prepared.
        unsafe {
            for transaction in self.prepared.values() {
                ffi::rocksdb_transaction_destroy(*transaction);
            }
            ffi::rocksdb_transaction_options_destroy(self.begin);
            ffi::rocksdb_writeoptions_destroy(self.write);
            ffi::rocksdb_transactiondb_close(self.db);
        }
        Ok(())
    }
}

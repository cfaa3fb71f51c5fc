//! Databases with transactions: opening them, and their reads and writes outside of transactions.

use std::ffi::c_char;

use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::Access;

use crate::abi::{
    Array, Bytes, Handle, Out, Ref, Result, Tagged, Text, count, handles, keys, make,
};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::batch::{Batch, id};
use crate::calls::{FlushOptions, FlushWalOptions, ReadOptions, WriteOptions};
use crate::db::{Db, Families, Family, open, open_with};
use crate::ingest::Checkpoint;
use crate::iterator::Iter;
use crate::options::Options;
use crate::reading::{Answers, Pinned, all_fail, families, give, pin};
use crate::report::{int_property, property};
use crate::snapshot::Snapshot;
use crate::upkeep::flush_all;

/// A database whose transactions lock their keys.
#[repr(transparent)]
pub struct TransactionDb(pub Db);

/// A database whose transactions lock nothing.
#[repr(transparent)]
pub struct OptimisticDb(pub Db);

/// How a database locks keys.
pub struct TransactionDbOptions {
    engine: flagstone::TransactionDbOptions,
    write_policy: i32,
    /// What has no effect, to be asked for.
    inert: InertOptions,
}

struct InertOptions {
    default_write_batch_flush_threshold: i64,
    enable_udt_validation: bool,
    rollback_merge_operands: bool,
    txn_commit_bypass_memtable_threshold: u32,
    use_per_key_point_lock_mgr: bool,
}

impl Default for TransactionDbOptions {
    fn default() -> Self {
        let inert = InertOptions {
            default_write_batch_flush_threshold: 0,
            enable_udt_validation: true,
            rollback_merge_operands: false,
            txn_commit_bypass_memtable_threshold: u32::MAX,
            use_per_key_point_lock_mgr: false,
        };
        Self { engine: flagstone::TransactionDbOptions::default(), write_policy: COMMITTED, inert }
    }
}

/// The header's number of the policy by which a transaction is written when it is committed.
const COMMITTED: i32 = 0;

impl TransactionDbOptions {
    /// How a database is opened.
    ///
    /// # Errors
    /// `Not implemented` for the other policies.
    fn access(&self) -> Result<Access> {
        if self.write_policy != COMMITTED {
            let policy = self.write_policy;
            return Err(rdb::Error::not_supported(format_args!("write_policy {policy}")));
        }
        if !self.inert.enable_udt_validation {
            let what = "transactions that do not validate timestamps";
            return Err(rdb::Error::not_supported(what));
        }
        Ok(Access::Locking(self.engine.clone()))
    }
}

handles! { TransactionDbOptions = "transactiondb_options", }

impl Handle for TransactionDb {
    const NAME: &'static str = "rocksdb_transactiondb_t";
    #[cfg(debug_assertions)]
    const KIND: &'static str = Db::KIND;
}

impl Handle for OptimisticDb {
    const NAME: &'static str = "rocksdb_optimistictransactiondb_t";
    #[cfg(debug_assertions)]
    const KIND: &'static str = Db::KIND;
}

creates! { rocksdb_transactiondb_options_create: TransactionDbOptions, }

destroys! {
    rocksdb_transactiondb_options_destroy: TransactionDbOptions,
    rocksdb_transactiondb_close_base_db: Db,
    rocksdb_optimistictransactiondb_close_base_db: Db,
}

c_settings! { "rocksdb_transactiondb_options", TransactionDbOptions, |o| {
    value i64, max_num_locks: o.engine.max_num_locks;
    value u32, max_num_deadlocks: o.engine.max_num_deadlocks;
    value usize, num_stripes: o.engine.num_stripes;
    value i64, transaction_lock_timeout: o.engine.transaction_lock_timeout;
    value i64, default_lock_timeout: o.engine.default_lock_timeout;
    value u8, skip_concurrency_control: o.engine.skip_concurrency_control;
    value i32, write_policy: o.write_policy;
    value i64, default_write_batch_flush_threshold: o.inert.default_write_batch_flush_threshold;
    value u8, enable_udt_validation: o.inert.enable_udt_validation;
    value u8, rollback_merge_operands: o.inert.rollback_merge_operands;
    value u32, txn_commit_bypass_memtable_threshold: o.inert.txn_commit_bypass_memtable_threshold;
    value u8, use_per_key_point_lock_mgr: o.inert.use_per_key_point_lock_mgr;
} }

c_api! {
    fn rocksdb_transactiondb_open(
        options: &Options, locks: &TransactionDbOptions, path: path, error
    ) -> *mut Tagged<TransactionDb> {
        let store = open(options, path, &locks.access()?)?;
        make(TransactionDb(Db::of(store)))
    }

    fn rocksdb_transactiondb_open_column_families(
        options: &Options, locks: &TransactionDbOptions, path: path, len: i32, names: Array<Text>,
        families: Array<Ref<Options>>, handles: Array<*mut Tagged<Family>>, error
    ) -> *mut Tagged<TransactionDb> {
        let families = Families { len, names, options: families, handles };
        let store = open_with(options, path, &families, &locks.access()?, None)?;
        make(TransactionDb(Db::of(store)))
    }

    fn rocksdb_optimistictransactiondb_open(
        options: &Options, path: path, error
    ) -> *mut Tagged<OptimisticDb> {
        make(OptimisticDb(Db::of(open(options, path, &Access::Optimistic)?)))
    }

    fn rocksdb_optimistictransactiondb_open_column_families(
        options: &Options, path: path, len: i32, names: Array<Text>, families: Array<Ref<Options>>,
        handles: Array<*mut Tagged<Family>>, error
    ) -> *mut Tagged<OptimisticDb> {
        let families = Families { len, names, options: families, handles };
        let store = open_with(options, path, &families, &Access::Optimistic, None)?;
        make(OptimisticDb(Db::of(store)))
    }

    fn rocksdb_transactiondb_close(db: own TransactionDb) {
        if let Some(db) = db {
            db.0.close();
        }
    }

    fn rocksdb_optimistictransactiondb_close(db: own OptimisticDb) {
        if let Some(db) = db {
            db.0.close();
        }
    }

    fn rocksdb_transactiondb_get_base_db(db: &TransactionDb) -> *mut Tagged<Db> {
        make(db.0.clone())
    }

    fn rocksdb_optimistictransactiondb_get_base_db(db: &OptimisticDb) -> *mut Tagged<Db> {
        make(db.0.clone())
    }

    fn rocksdb_transactiondb_create_column_family(
        db: &TransactionDb, options: &Options, name: str, error
    ) -> *mut Tagged<Family> {
        make(Family { engine: db.0.store.create_family(name, &options.rdb.engine_family()?)? })
    }

    fn rocksdb_transactiondb_checkpoint_object_create(
        db: &TransactionDb, error
    ) -> *mut Tagged<Checkpoint> {
        make(Checkpoint(db.0.clone()))
    }

    fn rocksdb_optimistictransactiondb_checkpoint_object_create(
        db: &OptimisticDb, error
    ) -> *mut Tagged<Checkpoint> {
        make(Checkpoint(db.0.clone()))
    }

    fn rocksdb_transactiondb_create_snapshot(db: &TransactionDb) -> *const Tagged<Snapshot> {
        make(Snapshot::taken(&db.0))
    }

    fn rocksdb_transactiondb_release_snapshot(_db: &TransactionDb, snapshot: own Snapshot) {
        drop(snapshot);
    }

    fn rocksdb_transactiondb_property_value(db: &TransactionDb, name: cstr) -> *mut c_char {
        property(db.0.engine(), db.0.store.default_family(), name)
    }

    fn rocksdb_transactiondb_property_int(
        db: &TransactionDb, name: cstr, value: Out<u64>
    ) -> i32 {
        int_property(db.0.engine(), db.0.store.default_family(), name, value)
    }

    fn rocksdb_transactiondb_flush(db: &TransactionDb, options: &FlushOptions, error) {
        flush_all(&db.0.store, &[db.0.store.default_family()], options)?
    }

    fn rocksdb_transactiondb_flush_cf(
        db: &TransactionDb, options: &FlushOptions, family: &Family, error
    ) {
        flush_all(&db.0.store, &[&family.engine], options)?
    }

    fn rocksdb_transactiondb_flush_cfs(
        db: &TransactionDb, options: &FlushOptions, list: Array<Ref<Family>>, len: i32, error
    ) {
        flush_all(&db.0.store, &families(list, count(len))?, options)?
    }

    fn rocksdb_transactiondb_flush_wal_with_options(
        db: &TransactionDb, options: &FlushWalOptions, error
    ) {
        db.0.engine().flush_wal(options.sync)?
    }

    fn rocksdb_optimistictransactiondb_property_value(
        db: &OptimisticDb, name: cstr
    ) -> *mut c_char {
        property(db.0.engine(), db.0.store.default_family(), name)
    }

    fn rocksdb_optimistictransactiondb_property_int(
        db: &OptimisticDb, name: cstr, value: Out<u64>
    ) -> i32 {
        int_property(db.0.engine(), db.0.store.default_family(), name, value)
    }

    fn rocksdb_transactiondb_flush_wal(db: &TransactionDb, sync: flag, error) {
        db.0.engine().flush_wal(sync)?
    }
}

// Reads and writes of a database outside of transactions.
c_api! {
    fn rocksdb_transactiondb_write(
        db: &TransactionDb, options: &WriteOptions, batch: &mut Batch, error
    ) {
        db.0.write(options, batch)?
    }

    fn rocksdb_optimistictransactiondb_write(
        db: &OptimisticDb, options: &WriteOptions, batch: &mut Batch, error
    ) {
        db.0.write(options, batch)?
    }

    fn rocksdb_transactiondb_put(
        db: &TransactionDb, options: &WriteOptions, key: [u8], value: [u8], error
    ) {
        db.0.write_one(options, |batch| batch.put(key, value))?
    }

    fn rocksdb_transactiondb_put_cf(
        db: &TransactionDb, options: &WriteOptions, family: &Family, key: [u8], value: [u8], error
    ) {
        db.0.write_one(options, |batch| batch.put_cf(id(family), key, value))?
    }

    fn rocksdb_transactiondb_merge(
        db: &TransactionDb, options: &WriteOptions, key: [u8], operand: [u8], error
    ) {
        db.0.write_one(options, |batch| batch.merge(key, operand))?
    }

    fn rocksdb_transactiondb_merge_cf(
        db: &TransactionDb, options: &WriteOptions, family: &Family, key: [u8], operand: [u8],
        error
    ) {
        db.0.write_one(options, |batch| batch.merge_cf(id(family), key, operand))?
    }

    fn rocksdb_transactiondb_delete(
        db: &TransactionDb, options: &WriteOptions, key: [u8], error
    ) {
        db.0.write_one(options, |batch| batch.delete(key))?
    }

    fn rocksdb_transactiondb_delete_cf(
        db: &TransactionDb, options: &WriteOptions, family: &Family, key: [u8], error
    ) {
        db.0.write_one(options, |batch| batch.delete_cf(id(family), key))?
    }

    fn rocksdb_transactiondb_get(
        db: &TransactionDb, options: &ReadOptions, key: [u8], len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        give(db.0.get(options, None, key)?, len)
    }

    fn rocksdb_transactiondb_get_cf(
        db: &TransactionDb, options: &ReadOptions, family: &Family, key: [u8], len: Out<usize>,
        error
    ) -> *mut c_char {
        len.set(0);
        give(db.0.get(options, Some(family), key)?, len)
    }

    fn rocksdb_transactiondb_get_pinned(
        db: &TransactionDb, options: &ReadOptions, key: [u8], error
    ) -> *mut Tagged<Pinned> {
        pin(db.0.get(options, None, key)?)
    }

    fn rocksdb_transactiondb_get_pinned_cf(
        db: &TransactionDb, options: &ReadOptions, family: &Family, key: [u8], error
    ) -> *mut Tagged<Pinned> {
        pin(db.0.get(options, Some(family), key)?)
    }

    fn rocksdb_transactiondb_multi_get(
        db: &TransactionDb, options: &ReadOptions, len: usize, list: Array<Bytes>,
        list_sizes: Array<usize>, values: Array<*mut c_char>, sizes: Array<usize>,
        errors: Array<*mut c_char>
    ) {
        let wanted = keys(list, list_sizes, len);
        let found = match &wanted {
            Ok(wanted) => db.0.multi_get(options, db.0.store.default_family(), wanted),
            Err(error) => all_fail(len, error),
        };
        Answers { values, sizes, errors }.fill(found);
    }

    fn rocksdb_transactiondb_multi_get_cf(
        db: &TransactionDb, options: &ReadOptions, families_of: Array<Ref<Family>>, len: usize,
        list: Array<Bytes>, list_sizes: Array<usize>, values: Array<*mut c_char>,
        sizes: Array<usize>, errors: Array<*mut c_char>
    ) {
        let wanted = keys(list, list_sizes, len);
        let found = match (&wanted, families(families_of, len)) {
            (Ok(wanted), Ok(families)) => db.0.multi_get_in(options, &families, wanted),
            (Err(error), _) => all_fail(len, error),
            (_, Err(error)) => all_fail(len, &error),
        };
        Answers { values, sizes, errors }.fill(found);
    }

    fn rocksdb_transactiondb_create_iterator(
        db: &TransactionDb, options: &ReadOptions
    ) -> *mut Tagged<Iter> {
        db.0.iterate(options, None)
    }

    fn rocksdb_transactiondb_create_iterator_cf(
        db: &TransactionDb, options: &ReadOptions, family: &Family
    ) -> *mut Tagged<Iter> {
        db.0.iterate(options, Some(family))
    }
}

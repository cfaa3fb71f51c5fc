//! Transactions.

use std::ffi::c_char;
use std::sync::Arc;

use flagstone::db::ColumnFamily;
use flagstone::reports::LockMode;
use flagstone::{TransactionState, Value};
use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::{Cursor, Store};

use crate::abi::{
    Array, Bytes, Lent, Mut, Out, Ref, Result, Tagged, copied, copied_array, handles, keys, make,
    make_lent,
};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::batch::Batch;
use crate::calls::{ReadOptions, WriteOptions};
use crate::db::Family;
use crate::indexed_batch::IndexedBatch;
use crate::iterator::Iter;
use crate::reading::{Answers, Pinned, all_fail, families, give, in_families, pin};
use crate::snapshot::Snapshot;
use crate::transaction_db::{OptimisticDb, TransactionDb};

/// How a transaction behaves.
pub struct TransactionOptions {
    engine: flagstone::TransactionOptions,
    skip_prepare: bool,
    inert: InertOptions,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        let inert = InertOptions {
            deadlock_timeout_us: 500,
            write_batch_flush_threshold: -1,
            ..InertOptions::default()
        };
        Self { engine: flagstone::TransactionOptions::default(), skip_prepare: true, inert }
    }
}

/// What has no effect, to be asked for.
#[derive(Default)]
struct InertOptions {
    commit_bypass_memtable: bool,
    deadlock_timeout_us: i64,
    large_txn_commit_optimize_byte_threshold: u64,
    large_txn_commit_optimize_threshold: u32,
    use_only_the_last_commit_time_batch_for_recovery: bool,
    write_batch_flush_threshold: i64,
    write_batch_track_timestamp_size: bool,
}

/// How a transaction that locks nothing behaves.
#[derive(Default)]
pub struct OptimisticOptions(flagstone::TransactionOptions);

/// A transaction.
pub struct Transaction {
    engine: flagstone::Transaction,
    store: Arc<Store>,
    /// How it is committed.
    write: flagstone::WriteOptions,
    /// Whether it must be prepared before it is committed.
    is_prepared_first: bool,
    /// Snapshots that C has pointers to.
    lent: Vec<Arc<flagstone::base::Snapshot>>,
}

handles! {
    TransactionOptions = "transaction_options",
    OptimisticOptions = "optimistictransaction_options",
    Transaction = "transaction",
}

creates! {
    rocksdb_transaction_options_create: TransactionOptions,
    rocksdb_optimistictransaction_options_create: OptimisticOptions,
}

destroys! {
    rocksdb_transaction_options_destroy: TransactionOptions,
    rocksdb_optimistictransaction_options_destroy: OptimisticOptions,
    rocksdb_transaction_destroy: Transaction,
}

c_settings! { "rocksdb_transaction_options", TransactionOptions, |o| {
    value u8, set_snapshot: o.engine.set_snapshot;
    value u8, deadlock_detect: o.engine.deadlock_detect;
    value i64, lock_timeout: o.engine.lock_timeout;
    value i64, expiration: o.engine.expiration;
    value i64, deadlock_detect_depth: o.engine.deadlock_detect_depth;
    value usize, max_write_batch_size: o.engine.max_write_batch_size;
    value u8, skip_concurrency_control: o.engine.skip_concurrency_control;
    value u8, skip_prepare: o.skip_prepare;
    value u8, commit_bypass_memtable: o.inert.commit_bypass_memtable;
    value i64, deadlock_timeout_us: o.inert.deadlock_timeout_us;
    value u64, large_txn_commit_optimize_byte_threshold:
        o.inert.large_txn_commit_optimize_byte_threshold;
    value u32, large_txn_commit_optimize_threshold: o.inert.large_txn_commit_optimize_threshold;
    value u8, use_only_the_last_commit_time_batch_for_recovery:
        o.inert.use_only_the_last_commit_time_batch_for_recovery;
    value i64, write_batch_flush_threshold: o.inert.write_batch_flush_threshold;
    value u8, write_batch_track_timestamp_size: o.inert.write_batch_track_timestamp_size;
} }

c_settings! { "rocksdb_optimistictransaction_options", OptimisticOptions, |o| {
    value u8, set_snapshot: o.0.set_snapshot;
} }

impl Transaction {
    fn begin(
        store: &Arc<Store>,
        (options, is_prepared_first): (&flagstone::TransactionOptions, bool),
        write: &WriteOptions,
        old: Mut<Self>,
    ) -> *mut Tagged<Self> {
        let engine = store.transactional().begin_with(options);
        let write = crate::abi::or_abort("the write options of a transaction", write.checked());
        let new = Self { is_prepared_first, ..Self::around(store, engine, write) };
        match crate::abi::or_abort("old_txn", old.nullable()) {
            Some(old_one) => {
                *old_one = new;
                old.raw()
            }
            None => make(new),
        }
    }

    fn around(
        store: &Arc<Store>,
        engine: flagstone::Transaction,
        write: flagstone::WriteOptions,
    ) -> Self {
        Self { engine, store: Arc::clone(store), write, is_prepared_first: false, lent: Vec::new() }
    }

    fn family(&self, family: Option<&Family>) -> flagstone::Family {
        let family = family.map_or_else(|| self.store.default_family(), |family| &family.engine);
        self.store.transactional().family_of(family)
    }

    fn get(
        &self,
        options: &ReadOptions,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Option<Value>> {
        Ok(self.engine.get_as(&self.family(family), key, options.checked()?)?)
    }

    fn get_for_update(
        &mut self,
        options: &ReadOptions,
        family: Option<&Family>,
        key: &[u8],
        exclusive: bool,
    ) -> Result<Option<Value>> {
        let mode = if exclusive { LockMode::Exclusive } else { LockMode::Shared };
        let claimed = self.family(family);
        self.engine.claim_read(&claimed, key, mode)?;
        self.get(options, family, key)
    }

    fn multi_get(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: &[&[u8]],
    ) -> Vec<Result<Option<Value>>> {
        let family = self.store.transactional().family_of(family);
        let found = options
            .checked()
            .and_then(|options| Ok(self.engine.multi_get_as(&family, keys, options)?));
        match found {
            Ok(found) => found.into_iter().map(|value| Ok(value?)).collect(),
            Err(error) => all_fail(keys.len(), &error),
        }
    }

    fn iterate(&self, options: &ReadOptions, family: Option<&Family>) -> *mut Tagged<Iter> {
        Iter::over(&self.store, options, family, |engine| {
            let cursor = self.engine.cursor_as(&self.family(family), engine)?;
            Ok(Cursor::Overlaid(Box::new(cursor)))
        })
    }
}

// How transactions begin and end.
c_api! {
    fn rocksdb_transaction_begin(
        db: &TransactionDb, write: &WriteOptions, options: &TransactionOptions,
        old: Mut<Transaction>
    ) -> *mut Tagged<Transaction> {
        Transaction::begin(&db.0.store, (&options.engine, !options.skip_prepare), write, old)
    }

    fn rocksdb_optimistictransaction_begin(
        db: &OptimisticDb, write: &WriteOptions, options: ?OptimisticOptions, old: Mut<Transaction>
    ) -> *mut Tagged<Transaction> {
        let options = options.map(|options| options.0.clone()).unwrap_or_default();
        Transaction::begin(&db.0.store, (&options, false), write, old)
    }

    fn rocksdb_transactiondb_get_prepared_transactions(
        db: &TransactionDb, len: Out<usize>
    ) -> *mut *mut Tagged<Transaction> {
        let all = flagstone::Transaction::all_prepared(db.0.store.transactional());
        let all = all.inspect_err(|error| tracing::error!(%error, "prepared transactions"));
        let write = flagstone::WriteOptions::default();
        let wrap = |engine| make(Transaction::around(&db.0.store, engine, write));
        let all: Vec<_> = all.unwrap_or_default().into_iter().map(wrap).collect();
        len.set(all.len());
        if all.is_empty() { std::ptr::null_mut() } else { copied_array(&all) }
    }

    fn rocksdb_transaction_set_name(transaction: &mut Transaction, name: [u8], error) {
        transaction.engine.set_name(name)?
    }

    fn rocksdb_transaction_get_name(transaction: &Transaction, len: Out<usize>) -> *mut c_char {
        let name = transaction.engine.name().unwrap_or_default();
        len.set(name.len());
        copied(&name)
    }

    fn rocksdb_transaction_prepare(transaction: &mut Transaction, error) {
        let write = transaction.write;
        transaction.engine.prepare_with(&write)?
    }

    fn rocksdb_transaction_commit(transaction: &mut Transaction, error) {
        let is_started = transaction.engine.state() == TransactionState::Started;
        if transaction.is_prepared_first && is_started {
            return Err(rdb::Error::invalid_argument("Txn not prepared"));
        }
        let write = transaction.write;
        transaction.engine.commit_with(&write)?
    }

    fn rocksdb_transaction_rollback(transaction: &mut Transaction, error) {
        transaction.engine.rollback()?
    }

    fn rocksdb_transaction_put_log_data(transaction: &mut Transaction, data: [u8]) {
        if let Err(error) = transaction.engine.put_log_data(data) {
            tracing::error!(%error, "data for the WAL of a transaction");
        }
    }

    fn rocksdb_transaction_set_savepoint(transaction: &mut Transaction) {
        transaction.engine.set_save_point();
    }

    fn rocksdb_transaction_rollback_to_savepoint(transaction: &mut Transaction, error) {
        transaction.engine.rollback_to_save_point()?
    }

    fn rocksdb_transaction_get_snapshot(transaction: &mut Transaction) -> *const Tagged<Snapshot> {
        let Some(moment) = transaction.engine.moment().cloned() else {
            return make_lent(Snapshot { owned: None, lent: Lent::nothing() });
        };
        if transaction.lent.last().is_none_or(|last| **last != moment) {
            transaction.lent.push(Arc::new(moment));
        }
        let lent = transaction.lent.last().map_or(Lent::nothing(), |moment| Lent::to(&**moment));
        make_lent(Snapshot { owned: None, lent })
    }

    fn rocksdb_transaction_get_writebatch_wi(
        transaction: &Transaction
    ) -> *mut Tagged<IndexedBatch> {
        make_lent(IndexedBatch::lent(transaction.engine.batch()))
    }

    fn rocksdb_transaction_rebuild_from_writebatch(
        transaction: &mut Transaction, batch: &Batch, error
    ) {
        transaction.engine.rebuild_from(batch.checked()?)?
    }

    fn rocksdb_transaction_rebuild_from_writebatch_wi(
        transaction: &mut Transaction, batch: &IndexedBatch, error
    ) {
        transaction.engine.rebuild_from(batch.operations()?)?
    }

    fn rocksdb_transaction_set_commit_timestamp(transaction: &mut Transaction, timestamp: u64) {
        transaction.engine.set_commit_timestamp(timestamp.to_le_bytes());
    }

    fn rocksdb_transaction_set_read_timestamp_for_validation(
        transaction: &mut Transaction, timestamp: u64
    ) {
        transaction.engine.set_read_timestamp(timestamp.to_le_bytes());
    }
}

// Reads and writes of transactions.
c_api! {
    fn rocksdb_transaction_put(
        transaction: &mut Transaction, key: [u8], value: [u8], error
    ) {
        let family = transaction.family(None);
        transaction.engine.put(&family, key, value)?
    }

    fn rocksdb_transaction_put_cf(
        transaction: &mut Transaction, family: &Family, key: [u8], value: [u8], error
    ) {
        let family = transaction.family(Some(family));
        transaction.engine.put(&family, key, value)?
    }

    fn rocksdb_transaction_merge(
        transaction: &mut Transaction, key: [u8], operand: [u8], error
    ) {
        let family = transaction.family(None);
        transaction.engine.merge(&family, key, operand)?
    }

    fn rocksdb_transaction_merge_cf(
        transaction: &mut Transaction, family: &Family, key: [u8], operand: [u8], error
    ) {
        let family = transaction.family(Some(family));
        transaction.engine.merge(&family, key, operand)?
    }

    fn rocksdb_transaction_delete(transaction: &mut Transaction, key: [u8], error) {
        let family = transaction.family(None);
        transaction.engine.delete(&family, key)?
    }

    fn rocksdb_transaction_delete_cf(
        transaction: &mut Transaction, family: &Family, key: [u8], error
    ) {
        let family = transaction.family(Some(family));
        transaction.engine.delete(&family, key)?
    }

    fn rocksdb_transaction_get(
        transaction: &Transaction, options: &ReadOptions, key: [u8], len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        give(transaction.get(options, None, key)?, len)
    }

    fn rocksdb_transaction_get_cf(
        transaction: &Transaction, options: &ReadOptions, family: &Family, key: [u8],
        len: Out<usize>, error
    ) -> *mut c_char {
        len.set(0);
        give(transaction.get(options, Some(family), key)?, len)
    }

    fn rocksdb_transaction_get_pinned(
        transaction: &Transaction, options: &ReadOptions, key: [u8], error
    ) -> *mut Tagged<Pinned> {
        pin(transaction.get(options, None, key)?)
    }

    fn rocksdb_transaction_get_pinned_cf(
        transaction: &Transaction, options: &ReadOptions, family: &Family, key: [u8], error
    ) -> *mut Tagged<Pinned> {
        pin(transaction.get(options, Some(family), key)?)
    }

    fn rocksdb_transaction_get_for_update(
        transaction: &mut Transaction, options: &ReadOptions, key: [u8], len: Out<usize>,
        exclusive: flag, error
    ) -> *mut c_char {
        len.set(0);
        give(transaction.get_for_update(options, None, key, exclusive)?, len)
    }

    fn rocksdb_transaction_get_for_update_cf(
        transaction: &mut Transaction, options: &ReadOptions, family: &Family, key: [u8],
        len: Out<usize>, exclusive: flag, error
    ) -> *mut c_char {
        len.set(0);
        give(transaction.get_for_update(options, Some(family), key, exclusive)?, len)
    }

    fn rocksdb_transaction_get_pinned_for_update(
        transaction: &mut Transaction, options: &ReadOptions, key: [u8], exclusive: flag, error
    ) -> *mut Tagged<Pinned> {
        pin(transaction.get_for_update(options, None, key, exclusive)?)
    }

    fn rocksdb_transaction_get_pinned_for_update_cf(
        transaction: &mut Transaction, options: &ReadOptions, family: &Family, key: [u8],
        exclusive: flag, error
    ) -> *mut Tagged<Pinned> {
        pin(transaction.get_for_update(options, Some(family), key, exclusive)?)
    }

    fn rocksdb_transaction_multi_get(
        transaction: &Transaction, options: &ReadOptions, len: usize, list: Array<Bytes>,
        list_sizes: Array<usize>, values: Array<*mut c_char>, sizes: Array<usize>,
        errors: Array<*mut c_char>
    ) {
        let wanted = keys(list, list_sizes, len);
        let found = match &wanted {
            Ok(wanted) => {
                transaction.multi_get(options, transaction.store.default_family(), wanted)
            }
            Err(error) => all_fail(len, error),
        };
        Answers { values, sizes, errors }.fill(found);
    }

    fn rocksdb_transaction_multi_get_cf(
        transaction: &Transaction, options: &ReadOptions, families_of: Array<Ref<Family>>,
        len: usize, list: Array<Bytes>, list_sizes: Array<usize>, values: Array<*mut c_char>,
        sizes: Array<usize>, errors: Array<*mut c_char>
    ) {
        let wanted = keys(list, list_sizes, len);
        let found = match (&wanted, families(families_of, len)) {
            (Ok(wanted), Ok(families)) => in_families(&families, wanted, |family, keys| {
                transaction.multi_get(options, family, keys)
            }),
            (Err(error), _) => all_fail(len, error),
            (_, Err(error)) => all_fail(len, &error),
        };
        Answers { values, sizes, errors }.fill(found);
    }

    fn rocksdb_transaction_multi_get_for_update(
        transaction: &mut Transaction, options: &ReadOptions, len: usize, list: Array<Bytes>,
        list_sizes: Array<usize>, values: Array<*mut c_char>, sizes: Array<usize>,
        errors: Array<*mut c_char>
    ) {
        let found = match keys(list, list_sizes, len) {
            Ok(wanted) => {
                let one = |key| transaction.get_for_update(options, None, key, true);
                wanted.into_iter().map(one).collect()
            }
            Err(error) => all_fail(len, &error),
        };
        Answers { values, sizes, errors }.fill(found);
    }

    fn rocksdb_transaction_multi_get_for_update_cf(
        transaction: &mut Transaction, options: &ReadOptions, families_of: Array<Ref<Family>>,
        len: usize, list: Array<Bytes>, list_sizes: Array<usize>, values: Array<*mut c_char>,
        sizes: Array<usize>, errors: Array<*mut c_char>
    ) {
        let found = match (keys(list, list_sizes, len), families_of.slice(len)) {
            (Ok(wanted), Ok(families)) => {
                let one = |(key, family): (&[u8], &Ref<Family>)| {
                    transaction.get_for_update(options, Some(family.get()?), key, true)
                };
                wanted.into_iter().zip(families).map(one).collect()
            }
            (Err(error), _) | (_, Err(error)) => all_fail(len, &error),
        };
        Answers { values, sizes, errors }.fill(found);
    }

    fn rocksdb_transaction_create_iterator(
        transaction: &Transaction, options: &ReadOptions
    ) -> *mut Tagged<Iter> {
        transaction.iterate(options, None)
    }

    fn rocksdb_transaction_create_iterator_cf(
        transaction: &Transaction, options: &ReadOptions, family: &Family
    ) -> *mut Tagged<Iter> {
        transaction.iterate(options, Some(family))
    }
}

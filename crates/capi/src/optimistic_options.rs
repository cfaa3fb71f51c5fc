//! Options of databases whose transactions lock nothing. How RocksDB finds conflicts side by side
//! has no effect here, where the commit does it under one lock.

use crate::abi::{self, Array, Ref, Tagged, Text, handles, make};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::db::{Db, Families, Family, open, open_with};
use crate::options::Options;
use crate::transaction_db::OptimisticDb;
use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::Access;

/// The options.
pub struct OptimisticDbOptions {
    validate_policy: i32,
    occ_lock_buckets: u32,
}

impl Default for OptimisticDbOptions {
    fn default() -> Self {
        Self { validate_policy: VALIDATE_PARALLEL, occ_lock_buckets: 1 << 20 }
    }
}

/// RocksDB's numbers of the ways to look for conflicts.
const VALIDATE_SERIAL: i32 = 0;
const VALIDATE_PARALLEL: i32 = 1;

/// Locks that databases would share.
pub struct LockBuckets;

handles! {
    OptimisticDbOptions = "optimistictransactiondb_options",
    LockBuckets = "optimistictransactiondb_lock_buckets",
}

creates! { rocksdb_optimistictransactiondb_options_create: OptimisticDbOptions, }

destroys! {
    rocksdb_optimistictransactiondb_options_destroy: OptimisticDbOptions,
    rocksdb_optimistictransactiondb_lock_buckets_destroy: LockBuckets,
}

c_settings! { "rocksdb_optimistictransactiondb_options", OptimisticDbOptions, |o| {
    value i32, validate_policy: o.validate_policy;
    value u32, occ_lock_buckets: o.occ_lock_buckets;
} }

fn check(options: Option<&OptimisticDbOptions>) -> abi::Result<()> {
    match options.map_or(VALIDATE_PARALLEL, |options| options.validate_policy) {
        VALIDATE_SERIAL | VALIDATE_PARALLEL => Ok(()),
        number => Err(rdb::Error::not_supported(format_args!("validate_policy {number}"))),
    }
}

c_api! {
    fn rocksdb_optimistictransactiondb_lock_buckets_create(
        _count: usize, _cache_aligned: flag
    ) -> *mut Tagged<LockBuckets> {
        make(LockBuckets)
    }

    fn rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(
        _buckets: &LockBuckets
    ) -> usize {
        0
    }

    fn rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(
        _o: &mut OptimisticDbOptions, _buckets: ?LockBuckets
    ) {}

    fn rocksdb_optimistictransactiondb_open_with_otxn_db_options(
        options: &Options, optimistic: ?OptimisticDbOptions, path: path, error
    ) -> *mut Tagged<OptimisticDb> {
        check(optimistic)?;
        make(OptimisticDb(Db::of(open(options, path, &Access::Optimistic)?)))
    }

    fn rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
        options: &Options, optimistic: ?OptimisticDbOptions, path: path, len: i32,
        names: Array<Text>, families: Array<Ref<Options>>, handles: Array<*mut Tagged<Family>>,
        error
    ) -> *mut Tagged<OptimisticDb> {
        check(optimistic)?;
        let families = Families { len, names, options: families, handles };
        let store = open_with(options, path, &families, &Access::Optimistic, None)?;
        make(OptimisticDb(Db::of(store)))
    }
}

//! Flushes, compactions, options that change while a database is open, and files.

use flagstone::CompactRangeOptions;
use flagstone::db::ColumnFamily;
use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::{Store, has_no_effect};

use crate::abi::{Array, Ref, Result, Text, count};
use crate::api::c_api;
use crate::calls::{CompactOptions, FlushOptions, FlushWalOptions, ReadOptions, WaitOptions};
use crate::db::{Db, Family, flushes_atomically};
use crate::reading::families;

/// Compacts a range. C has no place for an error here.
fn compact(
    db: &Db,
    family: Option<&Family>,
    options: &CompactRangeOptions,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
) {
    if let Err(error) = db.engine().compact_range(db.family(family), begin, end, options) {
        tracing::warn!(%error, "a compaction that the program asked for");
    }
}

/// Options by RocksDB's names and texts, without those that have no effect.
fn changes<'a>(
    len: i32,
    names: Array<Text>,
    values: Array<Text>,
) -> Result<Vec<(&'a str, &'a str)>> {
    if len <= 0 {
        return Err(rdb::Error::invalid_argument("no options are given"));
    }
    let names = names.slice(count(len))?.iter().zip(values.slice(count(len))?);
    let pairs = names.map(|(name, value)| Ok((name.utf8()?, value.utf8()?)));
    let pairs = pairs.collect::<Result<Vec<_>>>()?;
    Ok(pairs.into_iter().filter(|(name, _)| !has_no_effect(name)).collect())
}

/// Changes options of a family.
fn change(
    db: &Db,
    family: Option<&Family>,
    len: i32,
    names: Array<Text>,
    values: Array<Text>,
) -> Result<()> {
    let changes = changes(len, names, values)?;
    Ok(db.engine().set_options(db.family(family), &changes)?)
}

/// Reads all files, and reports the first fault.
fn verify(db: &Db) -> Result<()> {
    let faults = db.engine().verify(|_| {}).faults;
    faults.into_iter().next().map_or(Ok(()), |fault| Err(fault.error.into()))
}

/// Flushes several families.
///
/// # Errors
/// What the engine says.
pub fn flush_all(store: &Store, families: &[&ColumnFamily], options: &FlushOptions) -> Result<()> {
    let flush = options.checked(flushes_atomically(store))?;
    families.iter().try_for_each(|family| store.db().flush(family, &flush))?;
    if options.waits_for_listeners() {
        store.db().wait_for_listeners();
    }
    Ok(())
}

impl Db {
    fn delete_files(
        &self,
        family: Option<&Family>,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        let ranges = [(begin, end)];
        Ok(self.engine().delete_files_in_ranges(self.family(family), &ranges, true)?)
    }
}

#[cfg(not(before_9))]
c_api! {
    fn rocksdb_resume(db: &Db, error) {
        db.engine().resume()?;
    }

    fn rocksdb_enable_file_deletions(db: &Db, error) {
        db.engine().enable_file_deletions(false)?;
    }
}

c_api! {
    fn rocksdb_flush(db: &Db, options: &FlushOptions, error) {
        flush_all(&db.store, &[db.store.default_family()], options)?
    }

    fn rocksdb_flush_cf(db: &Db, options: &FlushOptions, family: &Family, error) {
        flush_all(&db.store, &[&family.engine], options)?
    }

    fn rocksdb_flush_cfs(
        db: &Db, options: &FlushOptions, list: Array<Ref<Family>>, len: i32, error
    ) {
        flush_all(&db.store, &families(list, count(len))?, options)?
    }

    fn rocksdb_flush_wal(db: &Db, sync: flag, error) {
        db.engine().flush_wal(sync)?
    }

    fn rocksdb_flush_wal_with_options(db: &Db, options: &FlushWalOptions, error) {
        db.engine().flush_wal(options.sync)?
    }

    fn rocksdb_compact_range(db: &Db, begin: ?[u8], end: ?[u8]) {
        compact(db, None, &CompactRangeOptions::default(), begin, end);
    }

    fn rocksdb_compact_range_cf(db: &Db, family: &Family, begin: ?[u8], end: ?[u8]) {
        compact(db, Some(family), &CompactRangeOptions::default(), begin, end);
    }

    fn rocksdb_compact_range_opt(db: &Db, options: &CompactOptions, begin: ?[u8], end: ?[u8]) {
        compact(db, None, &options.0, begin, end);
    }

    fn rocksdb_compact_range_cf_opt(
        db: &Db, family: &Family, options: &CompactOptions, begin: ?[u8], end: ?[u8]
    ) {
        compact(db, Some(family), &options.0, begin, end);
    }

    fn rocksdb_disable_manual_compaction(db: &Db) {
        if let Err(error) = db.engine().disable_manual_compaction() {
            tracing::warn!(%error, "disabling compactions that the program asks for");
        }
    }

    fn rocksdb_enable_manual_compaction(db: &Db) {
        if let Err(error) = db.engine().enable_manual_compaction() {
            tracing::warn!(%error, "enabling compactions that the program asks for");
        }
    }

    fn rocksdb_suggest_compact_range(db: &Db, begin: ?[u8], end: ?[u8], error) {
        db.engine().suggest_compact_range(db.store.default_family(), begin, end)?
    }

    fn rocksdb_suggest_compact_range_cf(
        db: &Db, family: &Family, begin: ?[u8], end: ?[u8], error
    ) {
        db.engine().suggest_compact_range(&family.engine, begin, end)?
    }

    fn rocksdb_wait_for_compact(db: &Db, options: &WaitOptions, error) {
        db.engine().wait_for_compact(&options.0)?
    }

    fn rocksdb_set_db_options(
        db: &Db, len: i32, names: Array<Text>, values: Array<Text>, error
    ) {
        let changes = changes(len, names, values)?;
        db.engine().set_db_options(&changes)?
    }

    fn rocksdb_verify_checksum(db: &Db, error) {
        verify(db)?
    }

    fn rocksdb_verify_checksum_with_options(db: &Db, _options: &ReadOptions, error) {
        verify(db)?
    }

    fn rocksdb_set_options(
        db: &Db, len: i32, names: Array<Text>, values: Array<Text>, error
    ) {
        change(db, None, len, names, values)?
    }

    fn rocksdb_set_options_cf(
        db: &Db, family: &Family, len: i32, names: Array<Text>, values: Array<Text>, error
    ) {
        change(db, Some(family), len, names, values)?
    }

    fn rocksdb_delete_file_in_range(db: &Db, begin: ?[u8], end: ?[u8], error) {
        db.delete_files(None, begin, end)?
    }

    fn rocksdb_delete_file_in_range_cf(db: &Db, family: &Family, begin: ?[u8], end: ?[u8], error) {
        db.delete_files(Some(family), begin, end)?
    }

    fn rocksdb_disable_file_deletions(db: &Db, error) {
        db.engine().disable_file_deletions()?
    }

    fn rocksdb_pause_background_work(db: &Db, error) {
        db.engine().pause_background_work()?
    }

    fn rocksdb_continue_background_work(db: &Db, error) {
        db.engine().continue_background_work()?
    }

    fn rocksdb_cancel_all_background_work(db: &Db, wait: flag) {
        if let Err(error) = db.engine().cancel_all_background_work(wait) {
            tracing::warn!(%error, "ending background work");
        }
    }
}

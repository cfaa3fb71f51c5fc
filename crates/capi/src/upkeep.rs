//! Flushes, compactions, options that change while a database is open, and files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flagstone::CompactRangeOptions;
use flagstone::db::ColumnFamily;
use flagstone::options::CompactionControl;
use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::{Store, has_no_effect};

use crate::abi::{Array, Ref, Result, Text, count};
use crate::api::c_api;
use crate::calls::{CompactOptions, FlushOptions, FlushWalOptions, ReadOptions, WaitOptions};
use crate::db::{Db, Family};
use crate::reading::families;

/// Compactions that the program asks for, and whether it lets them run.
#[derive(Default)]
pub struct Manual {
    state: Mutex<ManualState>,
}

#[derive(Default)]
struct ManualState {
    /// How often they were disabled and not enabled again. As in RocksDB, enabling counts before
    /// disabling, too.
    disabled: i64,
    running: Vec<Arc<CompactionControl>>,
}

impl Manual {
    fn locked(&self) -> MutexGuard<'_, ManualState> {
        // No panic leaves the list half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The control of a compaction that begins; none if it must not.
    fn begin(&self) -> Option<Arc<CompactionControl>> {
        let mut state = self.locked();
        if state.disabled > 0 {
            return None;
        }
        let control = CompactionControl::new();
        state.running.push(Arc::clone(&control));
        Some(control)
    }

    fn end(&self, control: &Arc<CompactionControl>) {
        self.locked().running.retain(|running| !Arc::ptr_eq(running, control));
    }

    fn disable(&self) {
        let mut state = self.locked();
        state.disabled = state.disabled.saturating_add(1);
        state.running.iter().for_each(|control| control.cancel());
    }

    fn enable(&self) {
        let mut state = self.locked();
        state.disabled = state.disabled.saturating_sub(1);
    }
}

/// Compacts a range. C has no place for an error here.
fn compact(
    db: &Db,
    family: Option<&Family>,
    options: &CompactRangeOptions,
    begin: Option<&[u8]>,
    end: Option<&[u8]>,
) {
    let Some(control) = db.manual.begin() else { return };
    let options = CompactRangeOptions { control: Some(Arc::clone(&control)), ..options.clone() };
    if let Err(error) = db.engine().compact_range(db.family(family), begin, end, &options) {
        tracing::warn!(%error, "a compaction that the program asked for");
    }
    db.manual.end(&control);
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
    families.iter().try_for_each(|family| Ok(store.db().flush(family, &options.0)?))
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

c_api! {
    fn rocksdb_flush(db: &Db, options: &FlushOptions, error) {
        db.engine().flush(db.store.default_family(), &options.0)?
    }

    fn rocksdb_flush_cf(db: &Db, options: &FlushOptions, family: &Family, error) {
        db.engine().flush(&family.engine, &options.0)?
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
        db.manual.disable();
    }

    fn rocksdb_enable_manual_compaction(db: &Db) {
        db.manual.enable();
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
        if options.flush {
            db.engine().flush_all()?;
        }
        match options.timeout_us {
            0 => db.engine().wait_for_compactions()?,
            limit => db.engine().wait_for_compactions_within(Duration::from_micros(limit))?,
        }
        if options.close_db {
            db.engine().close()?;
        }
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

    fn rocksdb_enable_file_deletions(db: &Db, error) {
        db.engine().enable_file_deletions(false)?;
    }

    fn rocksdb_cancel_all_background_work(db: &Db, _wait: flag) {
        if let Err(error) = db.engine().close() {
            tracing::warn!(%error, "ending background work");
        }
    }
}

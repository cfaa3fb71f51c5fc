//! The public handle.

use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{ColumnFamilyId, Error, Result, SequenceNumber, Snapshot, WideColumns};
use crate::batch::WriteBatch;
use crate::db::DbInner;
use crate::db::family::ColumnFamily;
use crate::db::reading::get_range::{PartBeforeTail, ValuePart};
use crate::db::reading::iterate::Iter;
use crate::db::reading::unchanged::Unchanged;
use crate::db::reading::value::Value;
use crate::db::statistics::Statistics;
use crate::db::writing::condition::Condition;
use crate::env::Env;
use crate::options::{Options, ReadOptions, WriteOptions};

/// An open database.
///
/// Cheap to clone and usable from any thread. The database is closed when [`Db::close`] is called
/// or the last clone is dropped; iterators, values and snapshots that are still alive then stay
/// valid.
///
/// Operations without a family named work on `default`.
///
/// Calls return when they are done, and so may wait: reads for the disk, writes for each other, for
/// a sync, and for flushes and compactions that lag behind ([`WriteOptions::no_slowdown`] refuses
/// to). Tasks of an asynchronous program read with [`Db::get_async`], [`Db::multi_get_async`] and
/// [`Db::iter_async`]; all else, also dropping the last clone of an open database, is for a thread
/// that may wait (tokio's `spawn_blocking`).
#[derive(Clone)]
pub struct Db {
    handle: Arc<Handle>,
}

struct Handle {
    /// Declared first: its memtable is gone before the database, which then sees to it that the
    /// system gets the memory.
    default: ColumnFamily,
    inner: Arc<DbInner>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.inner.context.process.is_this() {
            // Its parts would write, remove files, and wait for threads that are the parent's.
            std::mem::forget(self.inner.clone());
            return;
        }
        // Whoever has closed it knows how that went.
        if !self.inner.lifecycle.is_closed.load(Ordering::Acquire)
            && let Err(error) = self.inner.close()
        {
            tracing::error!(%error, "closing the database");
        }
    }
}

impl Db {
    pub(super) fn from_inner(inner: Arc<DbInner>) -> Self {
        let default = inner.tree.families.read()[&ColumnFamilyId::DEFAULT].clone();
        Self { handle: Arc::new(Handle { inner, default: ColumnFamily(default) }) }
    }

    pub(super) fn inner(&self) -> &Arc<DbInner> {
        &self.handle.inner
    }

    /// Whether both are handles of one opening.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.inner(), other.inner())
    }

    /// The environment that the database was opened with.
    pub(crate) fn env(&self) -> &Env {
        &self.inner().context.env
    }

    /// Refuses a family of another database.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn check_family(&self, family: &ColumnFamily) -> Result<()> {
        self.inner().disk.check_owner(&family.0)
    }

    /// Keeps all writes of this database waiting until the returned guard is dropped.
    #[cfg(test)]
    pub(crate) fn hold_writes(&self) -> impl Sized + '_ {
        self.inner().pipeline.hold_writes()
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.inner().context.path
    }

    /// What the database is called in its MANIFEST and in the properties of its tables (RocksDB's
    /// `GetDbIdentity`). It stays the same for as long as the database lives, and a copy has it,
    /// too.
    pub fn identity(&self) -> &str {
        &self.inner().context.identity.database
    }

    /// What this opening of the database is called in the properties of the tables that it writes
    /// (RocksDB's `GetDbSessionId`).
    pub fn session_id(&self) -> &str {
        &self.inner().context.identity.session
    }

    /// The options in force, as opened and as [`Db::set_db_options`] has changed them since. Its
    /// `cf` is as it was when the database was opened: [`ColumnFamily::options`] tells what holds
    /// for a family now.
    pub fn options(&self) -> Arc<Options> {
        self.inner().context.settings.load_full()
    }

    /// The family `default`.
    pub fn default_column_family(&self) -> &ColumnFamily {
        &self.handle.default
    }

    /// The family of that name, if it exists.
    pub fn column_family(&self, name: &str) -> Option<ColumnFamily> {
        let families = self.inner().tree.families.read();
        families.values().find(|family| family.name == name).cloned().map(ColumnFamily)
    }

    /// All families, in the order of their creation.
    pub fn column_families(&self) -> Vec<ColumnFamily> {
        self.inner().tree.families.read().values().cloned().map(ColumnFamily).collect()
    }

    /// The value of `key`; `None` if there is none.
    ///
    /// Asks the memtables, each table of level 0 whose range and filter admit the key, and at most
    /// one table of each deeper level. What comes from a cached block is not copied: the [`Value`]
    /// keeps that block in memory, so copy what is to be kept for long.
    ///
    /// # Errors
    /// `Corruption`, `IoError`; the refusal of a merge operator.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_with(&ReadOptions::default(), &self.handle.default, key)
    }

    /// The value of `key` in a family.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get_cf(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_with(&ReadOptions::default(), family, key)
    }

    /// The value of `key` in a family, read as `options` say.
    ///
    /// # Errors
    /// As [`Db::get`]; `Incomplete` if `options.cache_only` and a file would have to be read;
    /// `InvalidArgument` for a snapshot of another database.
    pub fn get_with(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Value>> {
        self.inner()
            .reader
            .get(options, &family.0, key.as_ref())
            .inspect_err(|error| self.note_damage(family, error))
    }

    /// Some bytes of the value of `key` in a family, by their positions; `None` if there is no
    /// value. A range that leaves the value is cut off at its end.
    ///
    /// Of a value in a blob file, uncompressed and larger than 64 KiB, only the pieces of 64 KiB
    /// are read in which the bytes lie, and each is verified. The file has one checksum for the
    /// whole value, so the first call for a value reads all of it, once, to make those of its
    /// pieces, and keeps them in the block cache: 4 bytes for a piece. Without
    /// `options.verify_checksums` just the bytes are read. Any other value is read whole.
    ///
    /// # Errors
    /// As [`Db::get_with`].
    pub fn get_range(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        range: Range<u64>,
    ) -> Result<Option<ValuePart>> {
        self.inner()
            .reader
            .get_range(options, &family.0, key.as_ref(), range)
            .inspect_err(|error| self.note_damage(family, error))
    }

    /// The bytes of `range` and the last `tail_size` bytes of the same value. The tail does not
    /// count as part of the value: a range that reaches into it is cut off before it.
    ///
    /// # Errors
    /// As [`Db::get_with`].
    pub(crate) fn get_range_before_tail(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: &[u8],
        range: Range<u64>,
        tail_size: usize,
    ) -> Result<Option<PartBeforeTail>> {
        self.inner()
            .reader
            .get_range_before_tail(options, &family.0, key, range, tail_size)
            .inspect_err(|error| self.note_damage(family, error))
    }

    /// The values of several keys, all as of one moment; in the order of the keys, each with an
    /// error of its own.
    ///
    /// Faster than one [`Db::get`] after the other: waits for memory overlap, and what has to be
    /// read from files is read together.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Value>>> {
        self.multi_get_with(&ReadOptions::default(), &self.handle.default, keys)
    }

    /// The values of several keys of a family, all as of one moment; in the order of the keys.
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: &[K],
    ) -> Vec<Result<Option<Value>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let found = self.inner().reader.multi_get(options, &family.0, &keys);
        found
            .iter()
            .filter_map(|value| value.as_ref().err())
            .for_each(|error| self.note_damage(family, error));
        found
    }

    /// All columns of `key` in a family, read as `options` say. A plain value is one column, the
    /// default one.
    ///
    /// # Errors
    /// As [`Db::get_with`].
    #[doc(alias = "GetEntity")]
    pub fn get_entity(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<WideColumns>> {
        self.inner()
            .reader
            .get_entity(options, &family.0, key.as_ref())
            .inspect_err(|error| self.note_damage(family, error))
    }

    /// The columns of several keys of a family, all as of one moment; in the order of the keys,
    /// each with an error of its own.
    #[doc(alias = "MultiGetEntity")]
    pub fn multi_get_entity<K: AsRef<[u8]>>(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: &[K],
    ) -> Vec<Result<Option<WideColumns>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let found = self.inner().reader.multi_get_entity(options, &family.0, &keys);
        found
            .iter()
            .filter_map(|columns| columns.as_ref().err())
            .for_each(|error| self.note_damage(family, error));
        found
    }

    /// The merge operands of `key` in a family, oldest first, as they are stored: compactions and
    /// [`max_successive_merges`](crate::options::CfSettings) may have merged some. A value below
    /// them comes first, and of wide columns the default one. Empty if the key does not exist.
    ///
    /// No merge operator is asked. Costs what [`Db::get_with`] costs without the merge.
    ///
    /// # Errors
    /// `Incomplete`, with the subcode `MergeOperandsInsufficientCapacity`, if there are more than
    /// `at_most`; as [`Db::get_with`].
    pub fn get_merge_operands(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        at_most: usize,
    ) -> Result<Vec<Value>> {
        self.inner()
            .reader
            .get_merge_operands(options, &family.0, key.as_ref(), at_most)
            .inspect_err(|error| self.note_damage(family, error))
    }

    /// Sets `key` to `value`. When the call returns, that outlives the process, unless
    /// `manual_wal_flush` is set, but not yet a loss of power: for that see [`WriteOptions::sync`]
    /// and [`Db::sync_wal`].
    ///
    /// # Errors
    /// `InvalidArgument` for a key and a value of almost 4 GiB and more together; `IoError`; after
    /// a failed sync, always.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_cf(&self.handle.default, key, value)
    }

    /// Sets `key` to `value` in a family.
    ///
    /// # Errors
    /// As [`Db::put`]; `ColumnFamilyDropped`.
    pub fn put_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        if family.0.separates(value.len(), false) {
            self.inner().disk.check_owner(&family.0)?;
            family.0.check_alive()?;
            return self.inner().pipeline.put_large(
                &WriteOptions::default(),
                &family.0,
                key,
                value,
            );
        }
        self.write_one(family, key.len() + value.len(), |batch| batch.put_cf(family, key, value))
    }

    /// Removes `key`, whether it exists or not.
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_cf(&self.handle.default, key)
    }

    /// Removes `key` from a family.
    ///
    /// # Errors
    /// As [`Db::put_cf`].
    pub fn delete_cf(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.write_one(family, key.len(), |batch| batch.delete_cf(family, key))
    }

    /// Removes a `key` that was put at most once since it was last removed; cheaper than
    /// [`Db::delete`].
    ///
    /// The result is undefined for a key that was put twice or merged.
    ///
    /// # Errors
    /// As [`Db::put`].
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_cf(&self.handle.default, key)
    }

    /// As [`Db::single_delete`], in a family.
    ///
    /// # Errors
    /// As [`Db::put_cf`].
    pub fn single_delete_cf(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.write_one(family, key.len(), |batch| batch.single_delete_cf(family, key))
    }

    /// Removes all keys from `begin` (inclusive) to `end` (exclusive).
    ///
    /// # Errors
    /// As [`Db::put`]; `InvalidArgument` if `begin` is after `end`.
    pub fn delete_range(&self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range_cf(&self.handle.default, begin, end)
    }

    /// As [`Db::delete_range`], in a family.
    ///
    /// # Errors
    /// As [`Db::delete_range`]; `ColumnFamilyDropped`.
    pub fn delete_range_cf(
        &self,
        family: &ColumnFamily,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (begin, end) = (begin.as_ref(), end.as_ref());
        self.write_one(family, begin.len() + end.len(), |batch| {
            batch.delete_range_cf(family, begin, end)
        })
    }

    /// Adds a merge operand to `key`; the family's merge operator combines them when the key is
    /// read.
    ///
    /// # Errors
    /// As [`Db::put`]; `InvalidArgument` if the family has no merge operator.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_cf(&self.handle.default, key, operand)
    }

    /// As [`Db::merge`], in a family.
    ///
    /// # Errors
    /// As [`Db::merge`]; `ColumnFamilyDropped`.
    pub fn merge_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        self.write_one(family, key.len() + operand.len(), |batch| {
            batch.merge_cf(family, key, operand)
        })
    }

    /// Writes a batch: all of it, or after a crash none of it. Readers see all of it or none, in
    /// all families.
    ///
    /// # Errors
    /// As [`Db::put`]; `InvalidArgument` if the batch names a family that does not exist. Nothing
    /// is written then.
    pub fn write(&self, batch: WriteBatch) -> Result<()> {
        self.write_with(&WriteOptions::default(), batch)
    }

    /// Writes a batch as `options` say.
    ///
    /// # Errors
    /// As [`Db::write`]; `Incomplete` if it would have to wait and `options.no_slowdown` is set.
    pub fn write_with(&self, options: &WriteOptions, mut batch: WriteBatch) -> Result<()> {
        self.inner().pipeline.write(options, &mut batch)
    }

    /// As [`Db::write_with`], leaving the batch with the caller, who may clear and use it again.
    ///
    /// # Errors
    /// As [`Db::write_with`].
    pub fn write_ref(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        self.inner().pipeline.write(options, batch)
    }

    /// Writes a batch if none of `keys` was written behind `since`, that is put, deleted (also as
    /// part of a range) or merged into; otherwise nothing is written.
    ///
    /// Right among any number of writers: from the look at the keys to the write no other takes
    /// place. Waits for writes that are being inserted, and may read a table.
    ///
    /// # Errors
    /// `Busy` if a key was written. As [`Db::write_with`]; `InvalidArgument` for a snapshot or
    /// family of another database; `ColumnFamilyDropped`.
    pub fn write_if_unchanged(
        &self,
        options: &WriteOptions,
        mut batch: WriteBatch,
        since: &Snapshot,
        keys: &[(&ColumnFamily, &[u8])],
    ) -> Result<()> {
        let keys = keys.iter().map(|(family, key)| (*family, *key, since.sequence()));
        let unchanged = self.unchanged(since, keys)?;
        self.inner().pipeline.write_if(options, &mut batch, Condition::Unchanged(&unchanged))
    }

    /// That none of `keys` was written behind its sequence number. None of these lies before
    /// `kept`.
    pub(in crate::db) fn unchanged<'a>(
        &self,
        kept: &Snapshot,
        keys: impl Iterator<Item = (&'a ColumnFamily, &'a [u8], SequenceNumber)>,
    ) -> Result<Unchanged<'a>> {
        let inner = self.inner();
        if !kept.belongs_to(&inner.snapshots) {
            return Err(Error::invalid_argument("the snapshot belongs to another database"));
        }
        let mut unchanged = Unchanged::default();
        for (family, key, since) in keys {
            inner.disk.check_owner(&family.0)?;
            family.0.check_alive()?;
            debug_assert!(since >= kept.sequence(), "what was written may have been forgotten");
            unchanged.push(family.0.clone(), key, since);
        }
        Ok(unchanged)
    }

    /// Refuses a key that was written behind `since`. Others must be kept from writing it, by a
    /// lock that each writer holds until its write has returned.
    ///
    /// # Errors
    /// `Busy` if it was written. As [`Db::write_if_unchanged`].
    pub(crate) fn check_unwritten(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        since: &Snapshot,
    ) -> Result<()> {
        let inner = self.inner();
        inner.disk.check_owner(&family.0)?;
        family.0.check_alive()?;
        let mut unchanged = Unchanged::default();
        unchanged.push(family.0.clone(), key, since.sequence());
        unchanged.ask(&inner.reader)
    }

    fn write_one(
        &self,
        family: &ColumnFamily,
        bytes: usize,
        fill: impl FnOnce(&mut WriteBatch) -> Result<()>,
    ) -> Result<()> {
        self.inner().disk.check_owner(&family.0)?;
        family.0.check_alive()?;
        let mut batch = WriteBatch::with_capacity(bytes + 32);
        fill(&mut batch)?;
        self.inner().pipeline.write(&WriteOptions::default(), &mut batch)
    }

    /// A consistent view of all families as of now, for [`ReadOptions::snapshot`].
    ///
    /// Takes a short lock and reads nothing. What it sees stays on the disk until its last clone is
    /// dropped, which releases it, or the database is closed. [`Db::pins`] tells of snapshots that
    /// were forgotten.
    #[doc(alias = "GetSnapshot")]
    #[track_caller]
    pub fn snapshot(&self) -> Snapshot {
        let inner = self.inner();
        inner.snapshots.take(inner.context.env.clock.unix_seconds())
    }

    /// A cursor over the keys of `default`, as of now or of `options.snapshot`; not yet positioned.
    ///
    /// # Errors
    /// As [`Db::iter_cf`].
    #[doc(alias = "NewIterator")]
    #[track_caller]
    pub fn iter(&self, options: &ReadOptions) -> Result<Iter> {
        self.iter_cf(&self.handle.default, options)
    }

    /// A cursor over the keys of a family, as of now or of `options.snapshot`; not yet positioned.
    /// It does not see what is written afterwards ([`Iter::refresh`] does).
    ///
    /// # Errors
    /// `InvalidArgument` for a snapshot of another database; `Corruption` or `IoError` if a file
    /// cannot be opened.
    #[doc(alias = "NewIterator")]
    #[track_caller]
    pub fn iter_cf(&self, family: &ColumnFamily, options: &ReadOptions) -> Result<Iter> {
        self.inner().reader.iterate(options, &family.0, Location::caller())
    }

    /// The sequence number of the last write that readers see.
    pub fn latest_sequence_number(&self) -> SequenceNumber {
        self.inner().snapshots.published.load(Ordering::Acquire)
    }

    /// What the engine has counted since it was opened.
    pub fn statistics(&self) -> &Statistics {
        &self.inner().context.statistics
    }

    /// Stops background work, and gives the directory up to whoever opens it next. What writes or
    /// changes anything through any clone fails from then on (`ShutdownInProgress`); reads still
    /// find what the database held, and nothing of what happens to it afterwards, until a file that
    /// they need is gone. Dropping the last clone does the same, but cannot report an error. If
    /// another thread is closing the database, or has closed it, the call returns when that is
    /// done, and what it came to. Flushes, compactions and checkpoints that run, also those in
    /// their callers' threads, are waited for: none of their filters, merge operators and
    /// comparators may close the database. An OPTIONS file that could not be written is tried once
    /// more; that there is none is only warned of (`tracing`).
    ///
    /// # Errors
    /// That of the last flush (if something was written without the WAL), or what had poisoned the
    /// database.
    pub fn close(&self) -> Result<()> {
        self.inner().close()
    }
}

impl AsRef<Self> for Db {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Db({})", self.path().display())
    }
}

#[cfg(test)]
mod tests;

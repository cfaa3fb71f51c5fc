//! Reads and writes of one column family.

use std::fmt;
use std::ops::RangeBounds;

use crate::base::{ColumnFamilyId, Result};
use crate::batch::WriteBatch;
use crate::db::{self, ColumnFamily, Iter, Value, ValuePart};
use crate::front::range::Range;
use crate::front::view::View;
use crate::options::{
    ColumnFamilyOptions, CompactRangeOptions, FlushOptions, ReadOptions, WriteOptions,
};

/// A column family of an open database: keys with their values, in order.
///
/// Cheap to clone, and usable from any thread. It keeps the database open. After
/// [`Db::drop_column_family`](crate::Db::drop_column_family) reads go on, and writes fail
/// (`ColumnFamilyDropped`).
///
/// ```
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// let db = flagstone::Db::builder(directory.path()).column_family("users", |_| {}).open()?;
/// let users = db.column_family("users")?;
/// users.put("ada", "1815")?;
/// users.put("alan", "1912")?;
/// for user in users.prefix("a").keys().rev() {
///     println!("{}", user?.escape_ascii());
/// }
/// users.delete("alan")?;
/// assert!(!users.contains_key("alan")?);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "ColumnFamilyHandle")]
#[derive(Clone)]
pub struct Family {
    view: View,
}

impl Family {
    pub(super) fn of(db: db::Db, family: ColumnFamily) -> Self {
        Self { view: View { db, family, moment: None } }
    }

    pub(super) fn engine(&self) -> &db::Db {
        &self.view.db
    }

    /// The engine's own handle of the family, for [`Db::engine`](crate::Db::engine).
    pub fn engine_family(&self) -> &ColumnFamily {
        &self.view.family
    }

    /// The family's name.
    pub fn name(&self) -> &str {
        self.view.family.name()
    }

    /// The family's options, as they are now.
    pub fn options(&self) -> std::sync::Arc<ColumnFamilyOptions> {
        self.view.family.options()
    }

    /// The value of `key`; `None` if there is none.
    ///
    /// What comes from a cached block is not copied: the [`Value`] keeps that block in memory, so
    /// copy what is to be kept for long.
    ///
    /// # Errors
    /// `Corruption`, also where a merge operator refuses its operands; `IoError`.
    #[doc(alias = "get_pinned")]
    #[doc(alias = "get_cf")]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.view.get(key.as_ref())
    }

    /// The same, read as `options` say.
    ///
    /// # Errors
    /// As [`Family::get`]; `Incomplete` with `options.cache_only`; `InvalidArgument` for a snapshot
    /// of another database.
    #[doc(alias = "get_opt")]
    pub fn get_with(&self, key: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Option<Value>> {
        self.view.get_with(key.as_ref(), options)
    }

    /// A part of the value of `key`, by the positions of its bytes, cut off where the value ends;
    /// `None` if there is no value. Of a large value that is not compressed little more is read
    /// than that part.
    ///
    /// # Errors
    /// As [`Family::get`].
    pub fn get_part(
        &self,
        key: impl AsRef<[u8]>,
        part: std::ops::Range<u64>,
    ) -> Result<Option<ValuePart>> {
        self.view.get_part(key.as_ref(), part)
    }

    /// The values of several keys, in the order of the keys, all as of one moment. Faster than one
    /// [`Family::get`] after the other.
    ///
    /// # Errors
    /// The first of any key: as [`Family::get`].
    #[doc(alias = "multi_get")]
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.view.get_many(keys)
    }

    /// Whether there is a value of `key`.
    ///
    /// # Errors
    /// As [`Family::get`].
    #[doc(alias = "key_may_exist")]
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// [`Family::get`] for a task that must not wait for a disk. What is in memory is answered at
    /// the first poll; a thread of the engine reads the rest.
    ///
    /// # Errors
    /// As [`Family::get`]; `IoError` if the system has no thread left.
    pub fn get_async<K: AsRef<[u8]>>(
        &self,
        key: K,
    ) -> impl Future<Output = Result<Option<Value>>> + Send + use<K> {
        self.view.get_async(key.as_ref())
    }

    /// [`Family::get_many`] for a task that must not wait for a disk.
    ///
    /// # Errors
    /// As [`Family::get_async`].
    pub fn get_many_async<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
    ) -> impl Future<Output = Result<Vec<Option<Value>>>> + Send + use<K> {
        self.view.get_many_async(keys.iter().map(|key| key.as_ref().to_vec()).collect())
    }

    /// The entries of a range of keys, in order, from either end, as of now.
    ///
    /// `"a".."m"`, `"a"..="m"` and `"a"..` are ranges; `family.range::<&[u8]>(..)` is all of them,
    /// as is [`Family::iter`].
    pub fn range<K: AsRef<[u8]>>(&self, bounds: impl RangeBounds<K>) -> Range {
        self.view.range(&bounds)
    }

    /// The entries whose keys begin with `prefix`, in order, from either end, as of now. For
    /// families in the order of bytes; in others the range's first item is an error
    /// (`NotSupported`).
    #[doc(alias = "prefix_iterator")]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        self.view.prefix(prefix.as_ref())
    }

    /// All entries, in order, from either end, as of now.
    #[doc(alias = "iterator")]
    #[doc(alias = "full_iterator")]
    pub fn iter(&self) -> Range {
        self.range::<&[u8]>(..)
    }

    /// A cursor, which moves to any key and lends out what it stands on. Not positioned yet.
    ///
    /// # Errors
    /// `InvalidArgument` for a snapshot of another database; `Corruption`, `IoError`.
    #[doc(alias = "raw_iterator")]
    #[doc(alias = "NewIterator")]
    #[track_caller]
    pub fn cursor(&self, options: &ReadOptions) -> Result<Iter> {
        self.view.cursor(options)
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// - `InvalidArgument`: key and value are 4 GiB or more together.
    /// - `IoError`, with subcode `NoSpace` if the disk is full: the write did not take place.
    /// - `ColumnFamilyDropped`; `ShutdownInProgress` after the database was closed.
    #[doc(alias = "insert")]
    #[doc(alias = "put_cf")]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.view.db.put_cf(&self.view.family, key, value)
    }

    /// The same, written as `options` say.
    ///
    /// # Errors
    /// As [`Family::put`].
    #[doc(alias = "put_opt")]
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.write(options, |batch, family| batch.put_cf(family, key, value))
    }

    /// Removes `key`, which need not be there.
    ///
    /// # Errors
    /// As [`Family::put`].
    #[doc(alias = "remove")]
    #[doc(alias = "delete_cf")]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.view.db.delete_cf(&self.view.family, key)
    }

    /// The same, written as `options` say.
    ///
    /// # Errors
    /// As [`Family::put`].
    #[doc(alias = "delete_opt")]
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.write(options, |batch, family| batch.delete_cf(family, key))
    }

    /// Removes `key`, which was put at most once since it was last removed, and never merged.
    /// Nothing is left of both once they meet in a compaction.
    ///
    /// # Errors
    /// As [`Family::put`].
    #[doc(alias = "SingleDelete")]
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.view.db.single_delete_cf(&self.view.family, key)
    }

    /// Removes all keys from `range.start` on and before `range.end`, in one step.
    ///
    /// # Errors
    /// As [`Family::put`]; `InvalidArgument` if the range's start is after its end.
    #[doc(alias = "delete_range_cf")]
    pub fn delete_range<K: AsRef<[u8]>>(&self, range: std::ops::Range<K>) -> Result<()> {
        self.view.db.delete_range_cf(&self.view.family, range.start, range.end)
    }

    /// Merges `operand` into the value of `key`, as the family's merge operator does. Nothing is
    /// read now: the next read, or a compaction, brings them together.
    ///
    /// # Errors
    /// As [`Family::put`]; `InvalidArgument` if the family has no merge operator.
    #[doc(alias = "merge_cf")]
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.view.db.merge_cf(&self.view.family, key, operand)
    }

    /// Writes the family's memtable to a table, and waits for that.
    ///
    /// # Errors
    /// `IoError`.
    #[doc(alias = "Flush")]
    pub fn flush(&self) -> Result<()> {
        self.view.db.flush(&self.view.family, &FlushOptions::default())
    }

    /// Compacts all of the family, and waits for that.
    ///
    /// # Errors
    /// `Corruption`, `IoError`.
    #[doc(alias = "CompactRange")]
    pub fn compact(&self) -> Result<()> {
        let options = CompactRangeOptions::default();
        self.view.db.compact_range(&self.view.family, None, None, &options).map(drop)
    }

    /// Writes a batch of one operation.
    fn write(
        &self,
        options: &WriteOptions,
        fill: impl FnOnce(&mut WriteBatch, ColumnFamilyId) -> Result<()>,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        fill(&mut batch, self.view.family.id())?;
        self.view.db.check_family(&self.view.family)?;
        self.view.db.write_with(options, batch)
    }

    pub(super) fn view(&self) -> &View {
        &self.view
    }
}

/// For [`WriteBatch::put_cf`] and its like.
impl From<&Family> for ColumnFamilyId {
    fn from(family: &Family) -> Self {
        family.view.family.id()
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Family").field(&self.name()).finish()
    }
}

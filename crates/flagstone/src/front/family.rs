//! Reads and writes of one column family.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use crate::base::{ColumnFamilyId, Error, Result};
use crate::batch::WriteBatch;
use crate::db::{self, ColumnFamily, ValueWriter};
use crate::front::expiring::whole_seconds;
use crate::front::locking::{Engine, Held};
use crate::front::reports::TableProperties;
use crate::front::view::View;
use crate::options::{ColumnFamilyOptions, WriteOptions};

/// A column family of an open database: keys with their values, in order.
///
/// It dereferences to its [`View`] as of now, which has what reads. Cheap to clone, and usable from
/// any thread. It keeps the database open. After
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
    pub(super) fn of(engine: &Engine, family: ColumnFamily) -> Self {
        Self { view: View::of(engine, family, None) }
    }

    pub(super) fn view(&self) -> &View {
        &self.view
    }

    pub(super) fn engine(&self) -> &db::Db {
        self.view.db()
    }

    /// The engine's own handle of the family.
    #[doc(hidden)]
    pub fn engine_family(&self) -> &ColumnFamily {
        &self.view.family
    }

    /// The family's options, as they are now.
    pub fn options(&self) -> std::sync::Arc<ColumnFamilyOptions> {
        self.view.family.options()
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// - `InvalidArgument`: key and value are 4 GiB or more together.
    /// - `IoError` with subcode `NoSpace`: the disk is full, and the write did not take place.
    ///   Writes are taken again once there is room.
    /// - Any other `IoError`: the next opening finds the write as a whole or not at all. So does it
    ///   after any `IoError` of a write that asks for a sync. After subcode `Poisoned` writes fail
    ///   until then.
    /// - `ColumnFamilyDropped`; `ShutdownInProgress` after the database was closed.
    /// - In a [`TransactionDb`](crate::TransactionDb): `TimedOut` with subcode `LockTimeout` if a
    ///   transaction held the key for longer than `default_lock_timeout`.
    #[doc(alias = "insert")]
    #[doc(alias = "put_cf")]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let _held = self.lock(key.as_ref())?;
        let View { engine, family, expires, .. } = &self.view;
        if *expires {
            engine.put_cf(family, key, value)
        } else {
            engine.base().put_cf(family, key, value)
        }
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
        self.write_one(options, |batch, family| batch.put_cf(family, key, value))
    }

    /// Sets `key` to an entity: several named columns, in any order, in place of one value.
    /// [`View::get_entity`] returns them; [`View::get`] returns the default column, whose name is
    /// empty.
    ///
    /// ```
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = flagstone::Db::open(directory.path())?;
    /// db.put_entity("ada", [("", "Ada Lovelace"), ("born", "1815")])?;
    /// assert_eq!(db.get("ada")?.unwrap(), "Ada Lovelace");
    /// assert_eq!(db.get_entity("ada")?.unwrap().get("born"), Some(&b"1815"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Family::put`]; `InvalidArgument` if two columns have the same name; `NotSupported` in a
    /// family whose values expire.
    #[doc(alias = "PutEntity")]
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        columns: impl IntoIterator<Item = (N, V)>,
    ) -> Result<()> {
        self.put_entity_with(key, columns, &WriteOptions::new())
    }

    /// The same, written as `options` say.
    ///
    /// # Errors
    /// As [`Family::put_entity`].
    pub fn put_entity_with<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        columns: impl IntoIterator<Item = (N, V)>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.view.check_no_expiry()?;
        self.write_one(options, |batch, family| batch.put_entity_cf(family, key, columns))
    }

    /// Sets `key` to a value that lives for `ttl`, and not as long as others of the family: for a
    /// family of [`Builder::expiring_family`](crate::Builder::expiring_family). [`Duration::MAX`]
    /// is for ever. It is rounded up to whole seconds: no value is gone before its time.
    ///
    /// ```
    /// use std::time::Duration;
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let hour = Duration::from_secs(3600);
    /// let db = flagstone::Db::builder(directory.path())
    ///     .expiring_family("sessions", hour, |_| {})
    ///     .open()?;
    /// let sessions = db.column_family("sessions")?;
    /// sessions.put("ada", "an hour")?;
    /// sessions.put_for("alan", "a day", 24 * hour)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Family::put`]; `InvalidArgument` in a family whose values do not expire, for a time to
    /// live of zero, or if the value would expire after January 2038 plus the family's time to
    /// live.
    pub fn put_for(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.put_for_with(key, value, ttl, &WriteOptions::new())
    }

    /// The same, written as `options` say.
    ///
    /// # Errors
    /// As [`Family::put_for`].
    pub fn put_for_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
        options: &WriteOptions,
    ) -> Result<()> {
        let _held = self.lock(key.as_ref())?;
        let View { engine, family, .. } = &self.view;
        let Some(seconds) = whole_seconds(ttl)? else {
            return engine.put_for_ever(options, family, key, value);
        };
        let expiry = engine.base().env().clock.unix_seconds().saturating_add(seconds);
        engine.put_until(options, family, key, value, expiry)
    }

    /// How long the family's values live; `None` if for ever.
    pub fn ttl(&self) -> Option<Duration> {
        let seconds = self.view.engine.ttl(&self.view.family).ok()?;
        Some(Duration::from_secs(seconds)).filter(|ttl| !ttl.is_zero())
    }

    /// Removes `key`, which need not be there.
    ///
    /// # Errors
    /// As [`Family::put`].
    #[doc(alias = "remove")]
    #[doc(alias = "delete_cf")]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let _held = self.lock(key.as_ref())?;
        self.engine().delete_cf(&self.view.family, key)
    }

    /// The same, written as `options` say.
    ///
    /// # Errors
    /// As [`Family::put`].
    #[doc(alias = "delete_opt")]
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.write_one(options, |batch, family| batch.delete_cf(family, key))
    }

    /// Removes `key`, which was put at most once since it was last removed, and never merged.
    /// Nothing is left of both once they meet in a compaction.
    ///
    /// # Errors
    /// As [`Family::put`].
    #[doc(alias = "SingleDelete")]
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let _held = self.lock(key.as_ref())?;
        self.engine().single_delete_cf(&self.view.family, key)
    }

    /// Removes all keys from `range.start` on and before `range.end`, in one step.
    ///
    /// # Errors
    /// As [`Family::put`]; `InvalidArgument` if the range's start is after its end; `NotSupported`
    /// in a [`TransactionDb`](crate::TransactionDb), which cannot lock a range.
    #[doc(alias = "delete_range_cf")]
    pub fn delete_range<K: AsRef<[u8]>>(&self, range: std::ops::Range<K>) -> Result<()> {
        self.view.engine.refuse_ranges()?;
        self.engine().delete_range_cf(&self.view.family, range.start, range.end)
    }

    /// Merges `operand` into the value of `key`, as the family's merge operator does. Nothing is
    /// read now. Each read brings together all operands that no compaction has yet, so it costs
    /// more the more of them there are; `max_successive_merges` limits their number in memory.
    ///
    /// # Errors
    /// As [`Family::put`]; `InvalidArgument` if the family has no merge operator.
    #[doc(alias = "merge_cf")]
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let _held = self.lock(key.as_ref())?;
        let View { engine, family, expires, .. } = &self.view;
        if *expires {
            engine.merge_cf(family, key, operand)
        } else {
            engine.base().merge_cf(family, key, operand)
        }
    }

    /// The same, written as `options` say.
    ///
    /// # Errors
    /// As [`Family::merge`].
    #[doc(alias = "merge_opt")]
    pub fn merge_with(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.write_one(options, |batch, family| batch.merge_cf(family, key, operand))
    }

    /// Begins to set `key` to a value that is written piece by piece and need not fit into memory.
    /// Readers see it once [`ValueWriter::commit`] has returned; dropped before, it leaves nothing.
    ///
    /// ```
    /// use std::io::Write;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = flagstone::Db::open(directory.path())?;
    /// let mut film = db.put_in_pieces("film", &flagstone::WriteOptions::new())?;
    /// (0..3).try_for_each(|_| film.write_all(&[7; 1 << 20]))?;
    /// film.commit()?;
    ///
    /// let mut film = db.get_in_pieces("film")?.expect("it was put");
    /// let mut size = 0;
    /// while let Some(piece) = film.next_piece()? {
    ///     size += piece.len();
    /// }
    /// assert_eq!(size, 3 << 20);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Family::put`]; `NotSupported` in a family whose values expire.
    pub fn put_in_pieces(
        &self,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<ValueWriter> {
        if self.view.expires {
            let message = "a value in pieces has no place for the time at which it expires";
            return Err(Error::not_supported(message));
        }
        let held = self.lock(key.as_ref())?;
        let writer = self.engine().put_stream(&self.view.family, key, options)?;
        Ok(match held {
            Some(held) => writer.holding(held),
            None => writer,
        })
    }

    /// Locks a key for a write, in a database with locks.
    #[inline]
    pub(super) fn lock(&self, key: &[u8]) -> Result<Option<Held>> {
        self.view.engine.lock_key(&self.view.family, key)
    }

    /// Refuses to delete a range in a database with locks.
    pub(super) fn refuse_ranges_while_locking(&self) -> Result<()> {
        self.view.engine.refuse_ranges()
    }

    /// Writes a batch of one operation.
    pub(super) fn write_one(
        &self,
        options: &WriteOptions,
        fill: impl FnOnce(&mut WriteBatch, ColumnFamilyId) -> Result<()>,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        fill(&mut batch, self.view.family.id())?;
        self.engine().check_family(&self.view.family)?;
        write(&self.view.engine, batch, options)
    }

    /// The property `name` as text; `None` if there is none of that name.
    /// [`PROPERTY_NAMES`](crate::reports::PROPERTY_NAMES) lists them.
    #[doc(alias = "GetProperty")]
    #[doc(alias = "property_value")]
    pub fn property(&self, name: &str) -> Option<String> {
        self.engine().property(self.engine_family(), name)
    }

    /// The property `name` as a number; `None` if it is none.
    #[doc(alias = "GetIntProperty")]
    #[doc(alias = "property_int_value")]
    pub fn int_property(&self, name: &str) -> Option<u64> {
        self.engine().int_property(self.engine_family(), name)
    }

    /// The property `name` as a map, with RocksDB's keys; `None` if it is no map. Maps are
    /// `rocksdb.cfstats`, `rocksdb.dbstats`, `rocksdb.cf-write-stall-stats`,
    /// `rocksdb.db-write-stall-stats`, `rocksdb.aggregated-table-properties` and
    /// `rocksdb.aggregated-table-properties-at-level<N>`.
    #[doc(alias = "GetMapProperty")]
    pub fn map_property(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.engine().map_property(self.engine_family(), name)
    }

    /// The properties of all tables, by path. Opens tables that are not open yet.
    ///
    /// # Errors
    /// `Corruption`, `IoError`.
    #[doc(alias = "GetPropertiesOfAllTables")]
    pub fn properties_of_all_tables(&self) -> Result<BTreeMap<PathBuf, TableProperties>> {
        self.engine().properties_of_all_tables(self.engine_family())
    }

    /// The properties of the tables that overlap any of `ranges`, both ends inclusive, by path.
    ///
    /// # Errors
    /// As [`Family::properties_of_all_tables`].
    #[doc(alias = "GetPropertiesOfTablesInRange")]
    pub fn properties_of_tables_in_range<K: AsRef<[u8]>>(
        &self,
        ranges: &[std::ops::RangeInclusive<K>],
    ) -> Result<BTreeMap<PathBuf, TableProperties>> {
        let ranges: Vec<(&[u8], &[u8])> =
            ranges.iter().map(|range| (range.start().as_ref(), range.end().as_ref())).collect();
        self.engine().properties_of_tables_in_range(self.engine_family(), &ranges)
    }

    /// The properties of the tables of each level, by path; as many maps as there are levels.
    ///
    /// # Errors
    /// As [`Family::properties_of_all_tables`].
    #[doc(alias = "GetPropertiesOfTablesByLevel")]
    pub fn properties_of_tables_by_level(&self) -> Result<Vec<BTreeMap<PathBuf, TableProperties>>> {
        self.engine().properties_of_tables_by_level(self.engine_family())
    }
}

impl Deref for Family {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}

/// Writes a batch, with stamps where values expire.
pub(super) fn write(engine: &Engine, batch: WriteBatch, options: &WriteOptions) -> Result<()> {
    let _held = engine.lock_batch(&batch)?;
    write_without_locks(engine, batch, options)
}

/// The same, whatever is locked.
pub(super) fn write_without_locks(
    engine: &Engine,
    batch: WriteBatch,
    options: &WriteOptions,
) -> Result<()> {
    let (stamped, _under_way) = engine.stamp_some(batch)?;
    engine.base().write_with(options, stamped)
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

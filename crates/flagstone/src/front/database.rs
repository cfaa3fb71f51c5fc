//! The database as a whole.

use std::path::Path;
use std::time::Duration;

use crate::base::{Code, Error, Result, WideColumns};
use crate::batch::WriteBatch;
use crate::db::{self, ExportedFamily, WriteCallback};
use crate::front::builder::{Builder, lifetime, open_by};
use crate::front::family::{self, Family};
use crate::front::groups::{FamiliesCursor, no_family};
use crate::front::locking::Engine;
use crate::front::snapshot::Snapshot;
use crate::options::{
    ColumnFamilyOptions, ImportColumnFamilyOptions, Options, ReadOptions, WaitForCompactOptions,
    WriteOptions,
};

/// An open database.
///
/// It dereferences to [`Family`] `default`: `db.get(key)` reads from there. Other column families
/// are handles of their own ([`Db::column_family`]).
///
/// Cheap to clone, and usable from any thread. [`Db::close`] closes the database, or the end of the
/// last clone of a `Db`, `Family` or `Snapshot`; values and iterators that are still alive then
/// stay valid.
///
/// It belongs to the process that opened it: a forked child is refused (`NotSupported`), and
/// leaves its files and its lock alone. Such a child cannot have a database of its own either, so
/// fork before the first one is opened, or `exec` behind the fork.
///
/// A write with default options is in the write-ahead log when the call returns, so it survives the
/// death of the process. It survives a loss of power if it was written with
/// [`WriteOptions::synced`], or after a later [`Db::sync_wal`].
///
/// ```
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("db");
/// let db = flagstone::Db::open(path)?;
/// db.put("stone", "flag")?;
/// assert_eq!(db.get("stone")?.expect("it was put"), "flag");
/// db.close()?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "DB")]
#[derive(Clone)]
pub struct Db {
    pub(super) default: Family,
}

impl Db {
    pub(super) fn of(engine: &Engine) -> Self {
        let family = engine.base().default_column_family().clone();
        Self { default: Family::of(engine, family) }
    }

    pub(super) fn stamping(&self) -> &Engine {
        &self.default.view().engine
    }

    /// Whether its writes lock keys: that of a [`TransactionDb`](crate::TransactionDb).
    pub(super) fn has_locks(&self) -> bool {
        self.stamping().locking().is_some()
    }

    /// Opens the database in the directory `path` with all of its column families, and makes it if
    /// there is none. [`Db::builder`] opens with options.
    ///
    /// # Errors
    /// - `InvalidArgument`: a family was written with a comparator or merge operator of the
    ///   application's own, which a builder takes.
    /// - `Busy`: the database is open elsewhere, in this process or another.
    /// - `Corruption`: its files contradict each other. `IoError`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open()
    }

    /// Says how to open the database in the directory `path`.
    pub fn builder(path: impl AsRef<Path>) -> Builder {
        Builder::new(path.as_ref())
    }

    /// Opens the database in the directory `path` with the options that it was last open with, of
    /// Flagstone or RocksDB, as its newest OPTIONS file tells them. What no file can hold, a merge
    /// operator of one's own for example, [`Builder::stored_options`] lets a program add.
    ///
    /// After a [`TransactionDb`](crate::TransactionDb) this is an ordinary database: it opens even
    /// if transactions are prepared, and writes the keys that they have locked without waiting.
    ///
    /// # Errors
    /// As [`Db::open`]; `InvalidArgument` if there is no database, or no OPTIONS file.
    #[doc(alias = "LoadLatestOptions")]
    pub fn open_with_stored_options(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).stored_options()?.open()
    }

    /// The names of the column families of the database in the directory `path`, in the order of
    /// their creation. The database need not be open, and may be.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no database; `Corruption`, `IoError`.
    #[doc(alias = "list_cf")]
    pub fn list_column_families(path: impl AsRef<Path>) -> Result<Vec<String>> {
        db::Db::list_column_families(path, &Options::default())
    }

    /// The column family of that name.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    #[doc(alias = "cf_handle")]
    pub fn column_family(&self, name: &str) -> Result<Family> {
        let family = self.engine().column_family(name).ok_or_else(|| {
            Error::not_found(format!("there is no column family '{name}'")).at(self.path())
        })?;
        Ok(Family::of(self.stamping(), family))
    }

    /// All column families, in the order of their creation.
    pub fn column_families(&self) -> Vec<Family> {
        let families = self.engine().column_families();
        families.into_iter().map(|family| Family::of(self.stamping(), family)).collect()
    }

    /// Makes a column family, with default options as changed by `with`. Durable when the call
    /// returns.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is empty or taken, or an option is out of range; `IoError`.
    #[doc(alias = "create_cf")]
    pub fn create_column_family(
        &self,
        name: &str,
        with: impl FnOnce(&mut ColumnFamilyOptions),
    ) -> Result<Family> {
        let mut options = ColumnFamilyOptions::default();
        with(&mut options);
        let family = self.engine().create_column_family(name, &options)?;
        Ok(Family::of(self.stamping(), family))
    }

    /// The column family of that name; made with default options as changed by `with` if there is
    /// none. A family that exists keeps its options. Any number of threads may call this at once
    /// with one name: they get the same family.
    ///
    /// ```
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = flagstone::Db::open(directory.path())?;
    /// let users = db.open_column_family("users", |family| family.write_buffer_size = 8 << 20)?;
    /// users.put("ada", "1815")?;
    /// assert!(db.open_column_family("users", |_| {})?.contains_key("ada")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Db::create_column_family`], but that the name may be taken.
    #[doc(alias = "get_or_create")]
    #[doc(alias = "create_if_missing")]
    #[doc(alias = "keyspace")]
    #[doc(alias = "open_partition")]
    #[doc(alias = "open_table")]
    #[doc(alias = "open_tree")]
    pub fn open_column_family(
        &self,
        name: &str,
        with: impl FnOnce(&mut ColumnFamilyOptions),
    ) -> Result<Family> {
        if let Some(family) = self.engine().column_family(name) {
            return Ok(Family::of(self.stamping(), family));
        }
        match self.create_column_family(name, with) {
            // Another thread may have been faster.
            Err(error) if error.code() == Code::InvalidArgument => {
                self.column_family(name).map_err(|_| error)
            }
            created => created,
        }
    }

    /// Makes a column family of one or several exports, whose keys must not overlap, with default
    /// options as changed by `with`: the family with all of their keys, or nothing. Durable when
    /// the call returns.
    ///
    /// Tables are copied; with `move_files` they are linked, and the exports are removed at the
    /// end. Blob files are copied, and the tables that refer to them are rewritten.
    ///
    /// ```
    /// use flagstone::Db;
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = |name| directory.path().join(name);
    /// let source = Db::open(path("source"))?;
    /// let users = source.create_column_family("users", |_| {})?;
    /// users.put("ada", "1815")?;
    /// let exported = users.export(path("users"))?;
    /// let target = Db::open(path("target"))?;
    /// let how = flagstone::ImportColumnFamilyOptions::default();
    /// let people = target.create_column_family_with_import("people", |_| {}, &[exported], &how)?;
    /// assert_eq!(people.get("ada")?.unwrap(), "1815");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - `InvalidArgument`: there is no source, the name is empty or taken, options are out of
    ///   range, the comparator differs, or the sources' key ranges overlap. A directory is no
    ///   export, has WALs with entries, or has several families and `column_family` names none.
    /// - `Corruption`: a file is missing or damaged. `Busy`: the directory is open elsewhere.
    /// - `ShutdownInProgress`; `IoError`.
    #[doc(alias = "CreateColumnFamilyWithImport")]
    pub fn create_column_family_with_import(
        &self,
        name: &str,
        with: impl FnOnce(&mut ColumnFamilyOptions),
        sources: &[ExportedFamily],
        import: &ImportColumnFamilyOptions,
    ) -> Result<Family> {
        let mut options = ColumnFamilyOptions::default();
        with(&mut options);
        let engine = self.engine();
        let family = engine.create_column_family_with_import(name, &options, sources, import)?;
        Ok(Family::of(self.stamping(), family))
    }

    /// Makes a column family whose values live for `ttl`, as
    /// [`Builder::expiring_family`] says, with default options as changed by `with`.
    ///
    /// # Errors
    /// As [`Db::create_column_family`]; `InvalidArgument` for a time to live of zero, or of more
    /// than 68 years that is not [`Duration::MAX`].
    pub fn create_expiring_family(
        &self,
        name: &str,
        ttl: Duration,
        with: impl FnOnce(&mut ColumnFamilyOptions),
    ) -> Result<Family> {
        let mut options = ColumnFamilyOptions::default();
        with(&mut options);
        let engine = self.stamping();
        let family = engine.create_column_family(name, &options, lifetime(ttl)?)?;
        Ok(Family::of(engine, family))
    }

    /// Drops a column family with all that it holds. Durable when the call returns. Reads through
    /// handles and iterators that exist go on; its files are removed when the last of them is gone.
    ///
    /// # Errors
    /// `InvalidArgument` for `default`, or a family of another database; `ColumnFamilyDropped`;
    /// `IoError`.
    #[doc(alias = "drop_cf")]
    pub fn drop_column_family(&self, family: &Family) -> Result<()> {
        self.engine().drop_column_family(family.engine_family())?;
        if let Some(locking) = self.stamping().locking() {
            locking.manager.forget_family(family.engine_family().id());
        }
        Ok(())
    }

    /// Writes a batch: all of it, or nothing, whatever families it names.
    ///
    /// # Errors
    /// As [`Family::put`].
    ///
    /// ```
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = flagstone::Db::open(directory.path())?;
    /// let users = db.create_column_family("users", |_| {})?;
    /// let mut batch = flagstone::WriteBatch::new();
    /// batch.put("last user", "7")?;
    /// batch.put_cf(&users, "7", "Ada")?;
    /// db.write(batch)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn write(&self, batch: WriteBatch) -> Result<()> {
        self.write_with(batch, &WriteOptions::new())
    }

    /// The same, as `options` say.
    ///
    /// # Errors
    /// As [`Family::put`].
    #[doc(alias = "write_opt")]
    pub fn write_with(&self, batch: WriteBatch, options: &WriteOptions) -> Result<()> {
        family::write(self.stamping(), batch, options)
    }

    /// Writes a batch if none of `keys` was written after `since`: put, deleted, merged into, or
    /// deleted in a range. Otherwise nothing is written. Any number of writers may do so at once:
    /// no other write takes place between the look at the keys and this one.
    ///
    /// ```
    /// # use flagstone::{Code, Db, WriteBatch};
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path())?;
    /// // Takes one of the tickets that are left.
    /// fn take_ticket(db: &Db) -> flagstone::Result<bool> {
    ///     loop {
    ///         let before = db.snapshot();
    ///         let left = before.get("tickets")?.map_or(0, |left| left[0]);
    ///         if left == 0 {
    ///             return Ok(false);
    ///         }
    ///         let mut batch = WriteBatch::new();
    ///         batch.put("tickets", [left - 1])?;
    ///         match db.write_if_unchanged(batch, &before, &[(db, "tickets")]) {
    ///             Err(error) if error.code() == Code::Busy => continue,
    ///             outcome => return outcome.map(|()| true),
    ///         }
    ///     }
    /// }
    /// db.put("tickets", [1])?;
    /// assert!(take_ticket(&db)?);
    /// assert!(!take_ticket(&db)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - `Busy` if a key was written: take a new snapshot, read, and try again.
    /// - As [`Family::put`]; `InvalidArgument` for a snapshot or family of another database.
    #[doc(alias = "transaction")]
    #[doc(alias = "compare_and_swap")]
    pub fn write_if_unchanged<K: AsRef<[u8]>>(
        &self,
        batch: WriteBatch,
        since: &Snapshot,
        keys: &[(&Family, K)],
    ) -> Result<()> {
        self.write_if_unchanged_with(batch, since, keys, &WriteOptions::new())
    }

    /// The same, as `options` say.
    ///
    /// # Errors
    /// As [`Db::write_if_unchanged`].
    pub fn write_if_unchanged_with<K: AsRef<[u8]>>(
        &self,
        batch: WriteBatch,
        since: &Snapshot,
        keys: &[(&Family, K)],
        options: &WriteOptions,
    ) -> Result<()> {
        let keys: Vec<_> =
            keys.iter().map(|(family, key)| (family.engine_family(), key.as_ref())).collect();
        let _held = self.stamping().lock_batch(&batch)?;
        let (stamped, _under_way) = self.stamping().stamp_some(batch)?;
        self.engine().write_if_unchanged(options, stamped, since.moment(), &keys)
    }

    /// Writes a batch that a [`WriteCallback`] follows, which may refuse it. All other writers wait
    /// for its check; [`Db::write_if_unchanged`] holds them up for less time.
    ///
    /// # Errors
    /// That of the check, or `Aborted` if it panics: nothing is written. As [`Family::put`].
    pub fn write_with_callback(
        &self,
        batch: WriteBatch,
        callback: &mut dyn WriteCallback,
        options: &WriteOptions,
    ) -> Result<()> {
        let _held = self.stamping().lock_batch(&batch)?;
        let (stamped, _under_way) = self.stamping().stamp_some(batch)?;
        db::write_with_callback(self.engine(), options, stamped, callback)
    }

    /// Sets `key` to an entity in each of several families, its attribute groups: all of it, or
    /// nothing. So columns that are used together lie together.
    ///
    /// ```
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = flagstone::Db::open(directory.path())?;
    /// let life = db.create_column_family("life", |_| {})?;
    /// let work = db.create_column_family("work", |_| {})?;
    /// let groups = [(&life, [("born", "1815")]), (&work, [("field", "maths")])];
    /// db.put_attribute_groups("ada", groups)?;
    /// let ada = db.get_attribute_groups("ada", &[&life, &work])?;
    /// assert_eq!(ada[1].as_ref().unwrap().get("field"), Some(&b"maths"[..]));
    ///
    /// let mut people = db.cursor_of_families(&[&life, &work], &Default::default())?;
    /// people.seek_to_first();
    /// assert_eq!(people.columns()?, [("born", "1815"), ("field", "maths")]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Family::put_entity`]; `InvalidArgument` without a family.
    #[doc(alias = "PutEntity")]
    #[doc(alias = "AttributeGroup")]
    pub fn put_attribute_groups<'a, N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        groups: impl IntoIterator<Item = (&'a Family, impl IntoIterator<Item = (N, V)>)>,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        for (family, columns) in groups {
            self.engine().check_family(family.engine_family())?;
            family.view().check_no_expiry()?;
            batch.put_entity_cf(family, key.as_ref(), columns)?;
        }
        if batch.is_empty() {
            return Err(no_family());
        }
        self.write(batch)
    }

    /// The columns that `key` has in each of several families, all as of one moment; in the order
    /// of the families.
    ///
    /// # Errors
    /// As [`View::get_entity`](crate::View::get_entity).
    #[doc(alias = "GetEntity")]
    #[doc(alias = "PinnableAttributeGroup")]
    pub fn get_attribute_groups(
        &self,
        key: impl AsRef<[u8]>,
        families: &[&Family],
    ) -> Result<Vec<Option<WideColumns>>> {
        let now = self.snapshot();
        let found = families.iter().map(|family| now.family(family)?.get_entity(key.as_ref()));
        found.collect()
    }

    /// A cursor over the keys that any of several families has, all as of one moment or of
    /// `options.snapshot`. Their keys must have the same order. Not positioned yet.
    ///
    /// # Errors
    /// As [`View::cursor`](crate::View::cursor); `InvalidArgument` without a family, or if their
    /// orders differ; `NotSupported` with `iter_start_ts`.
    #[doc(alias = "NewCoalescingIterator")]
    #[doc(alias = "NewAttributeGroupIterator")]
    pub fn cursor_of_families(
        &self,
        families: &[&Family],
        options: &ReadOptions,
    ) -> Result<FamiliesCursor> {
        let now = self.snapshot();
        let options = ReadOptions {
            snapshot: options.snapshot.clone().or_else(|| now.engine_snapshot().cloned()),
            ..options.clone()
        };
        FamiliesCursor::over(families, &options, |family| family.cursor(&options))
    }

    /// A snapshot of all families. The data that it sees is kept until its last clone is dropped.
    #[doc(alias = "GetSnapshot")]
    #[track_caller]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.stamping(), self.engine().snapshot())
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        self.engine().path()
    }

    /// Waits for the flushes and compactions that run, and begins no more of them until
    /// [`Db::continue_background_work`] was called as often. Requested compactions still run once
    /// there is nothing to flush. A requested flush waits, and so do writers whose memtables are
    /// full. Closing the database ends the pause.
    ///
    /// # Errors
    /// `NotSupported` if the database is open for reading; `ShutdownInProgress`.
    #[doc(alias = "PauseBackgroundWork")]
    pub fn pause_background_work(&self) -> Result<()> {
        self.engine().pause_background_work()
    }

    /// Takes back one call of [`Db::pause_background_work`].
    ///
    /// # Errors
    /// As [`Db::pause_background_work`]; `InvalidArgument` if background work is not paused.
    #[doc(alias = "ContinueBackgroundWork")]
    pub fn continue_background_work(&self) -> Result<()> {
        self.engine().continue_background_work()
    }

    /// Ends all compactions, requested ones too, and returns when they have ended, after at most
    /// some 1,000 entries each. What they have written is removed. None begins until as many calls
    /// of [`Db::resume_all_compactions`]; requests fail with `Incomplete`, subcode
    /// `CompactionAborted`. Writers stalled by compactions wait, too.
    ///
    /// # Errors
    /// As [`Db::pause_background_work`].
    #[doc(alias = "AbortAllCompactions")]
    pub fn abort_all_compactions(&self) -> Result<()> {
        self.engine().abort_all_compactions()
    }

    /// Takes back one call of [`Db::abort_all_compactions`].
    ///
    /// # Errors
    /// As [`Db::pause_background_work`]; `InvalidArgument` if no compactions are aborted.
    #[doc(alias = "ResumeAllCompactions")]
    pub fn resume_all_compactions(&self) -> Result<()> {
        self.engine().resume_all_compactions()
    }

    /// Ends requested compactions as [`Db::abort_all_compactions`] does, and refuses them until
    /// [`Db::enable_manual_compaction`] was called as often: they are `Incomplete`, with the
    /// subcode `ManualCompactionPaused`.
    ///
    /// # Errors
    /// As [`Db::pause_background_work`].
    #[doc(alias = "DisableManualCompaction")]
    pub fn disable_manual_compaction(&self) -> Result<()> {
        self.engine().disable_manual_compaction()
    }

    /// Takes back one call of [`Db::disable_manual_compaction`].
    ///
    /// # Errors
    /// As [`Db::pause_background_work`]; `InvalidArgument` if requested compactions are not
    /// disabled.
    #[doc(alias = "EnableManualCompaction")]
    pub fn enable_manual_compaction(&self) -> Result<()> {
        self.engine().enable_manual_compaction()
    }

    /// Ends background work for good: what was written without the WAL is flushed, compactions end
    /// soon, and from then on the database can only be read. With `wait` that is [`Db::close`];
    /// without, the call waits for that flush alone, and the database keeps its directory until it
    /// is closed or dropped.
    ///
    /// # Errors
    /// As [`Db::close`].
    #[doc(alias = "CancelAllBackgroundWork")]
    pub fn cancel_all_background_work(&self, wait: bool) -> Result<()> {
        self.engine().cancel_all_background_work(wait)
    }

    /// Waits until neither flushes nor compactions have anything left to do. While background work
    /// is paused, or compactions are aborted, that is until it goes on.
    ///
    /// # Errors
    /// Why the database takes no more writes; `ShutdownInProgress`; `TimedOut`; `Aborted` if
    /// `options.abort_on_pause` is set and background work is paused or compactions are aborted;
    /// those of the flush and of closing.
    #[doc(alias = "WaitForCompact")]
    pub fn wait_for_compact(&self, options: &WaitForCompactOptions) -> Result<()> {
        self.engine().wait_for_compact(options)
    }

    /// Closes the database, so that it can be opened elsewhere. All logged writes then survive a
    /// loss of power, as after [`Db::sync_wal`]; unlogged ones are flushed to tables, unless
    /// `avoid_flush_during_shutdown` is set. Writes through any handle fail afterwards
    /// (`ShutdownInProgress`); reads still find what it held, until a file that they need is gone.
    /// The same happens when the last handle is dropped, but errors are not reported.
    ///
    /// # Errors
    /// `IoError` if the write-ahead log cannot be brought to an end.
    pub fn close(&self) -> Result<()> {
        self.engine().close()
    }

    /// A handle for a database that is open, in which no family's values expire.
    ///
    /// # Errors
    /// None.
    #[doc(hidden)]
    pub fn around(engine: &db::Db) -> Result<Self> {
        open_by(&Options::default(), &[], |_| Ok(engine.clone()))
    }

    /// A family by the engine's handle.
    #[doc(hidden)]
    pub fn family_of(&self, family: &db::ColumnFamily) -> Family {
        Family::of(self.stamping(), family.clone())
    }

    /// The engine's own handle.
    #[doc(hidden)]
    pub fn engine(&self) -> &db::Db {
        self.default.engine()
    }
}

//! A database that another process writes.

use std::fmt;
use std::path::Path;

use crate::base::Result;
use crate::db::{self, Value};
use crate::front::builder::Builder;
use crate::front::database::Db;
use crate::front::entries::Entries;
use crate::front::family::Family;
use crate::front::shown::Shown;

/// A database that another process writes, Flagstone or RocksDB, followed for reading: made by
/// [`Builder::open_secondary`].
///
/// What it shows is a state of that database, as of the last [`Secondary::catch_up`].
/// [`Secondary::now`] is that state as a [`Db`], which has all that reads, and refuses writes
/// (`NotSupported`). It never changes: like a snapshot, it and its families and iterators go on
/// showing that state. Files that the other process removes stay readable.
///
/// ```
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let (path, own) = (directory.path().join("db"), directory.path().join("own"));
/// let primary = flagstone::Db::open(&path)?;
/// let secondary = flagstone::Db::builder(&path).open_secondary(own)?;
/// primary.put("stone", "flag")?;
/// assert!(secondary.catch_up()?);
/// assert_eq!(secondary.get("stone")?.expect("it was put"), "flag");
/// # Ok(())
/// # }
/// ```
pub struct Secondary {
    engine: db::Secondary,
    shown: Shown,
}

impl Builder {
    /// Follows the database, which another process may write, with all families, including later
    /// ones. `directory` is the secondary's own, and stays empty; it is made if it is not there.
    ///
    /// Opens all files of the database. Costs as much as [`Builder::open_read_only`].
    ///
    /// # Errors
    /// As [`Builder::open_read_only`]; `TryAgain` if the other process changed its files again and
    /// again meanwhile.
    #[doc(alias = "OpenAsSecondary")]
    #[doc(alias = "open_as_secondary")]
    pub fn open_secondary(self, directory: impl AsRef<Path>) -> Result<Secondary> {
        let (engine, shown) = self.follow(|path, options, families, others| {
            let own = directory.as_ref();
            let engine = db::Secondary::open_with_others(path, own, options, families, others)?;
            let first = engine.now();
            Ok((engine, first))
        })?;
        Ok(Secondary { engine, shown })
    }
}

impl Secondary {
    /// The database as of the last time that it caught up.
    ///
    /// # Errors
    /// Of a family that was created since: `Corruption` or `IoError` of the OPTIONS file that says
    /// whether its values expire.
    pub fn now(&self) -> Result<Db> {
        self.shown.at(&self.engine.now())
    }

    /// Goes on to what the other process has written by now. Returns whether there was anything
    /// new. Costs time for what is new alone.
    ///
    /// What is not written completely yet comes with a later call. Writes without the WAL, and
    /// those that wait in the other process's memory (`manual_wal_flush`), come once they are
    /// flushed.
    ///
    /// # Errors
    /// It stays as it was. `TryAgain` if the other process changed its files again and again
    /// meanwhile. `InvalidArgument` if another database, or an earlier state of this one, has taken
    /// its place. `NotSupported` while a transaction is prepared that RocksDB wrote under another
    /// policy than write-committed. `Corruption`, `IoError`.
    #[doc(alias = "try_catch_up_with_primary")]
    #[doc(alias = "TryCatchUpWithPrimary")]
    pub fn catch_up(&self) -> Result<bool> {
        self.engine.catch_up()
    }

    /// The column family of that name, as of now.
    ///
    /// # Errors
    /// `NotFound` if there is none; as [`Secondary::now`].
    #[doc(alias = "cf_handle")]
    pub fn column_family(&self, name: &str) -> Result<Family> {
        self.now()?.column_family(name)
    }

    /// The value of `key` in family `default`, as of now; `None` if there is none.
    ///
    /// # Errors
    /// As [`View::get`](crate::View::get) and [`Secondary::now`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.now()?.get(key)
    }

    /// The values of several keys in family `default`, in the order of the keys, as of now.
    ///
    /// # Errors
    /// As [`Secondary::get`].
    #[doc(alias = "multi_get")]
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.now()?.get_many(keys)
    }

    /// All entries of family `default`, in order, from either end, as of now.
    ///
    /// # Errors
    /// As [`Secondary::now`].
    #[doc(alias = "iterator")]
    pub fn iter(&self) -> Result<Entries> {
        Ok(self.now()?.iter())
    }

    /// The secondary's own directory.
    pub fn directory(&self) -> &Path {
        self.engine.directory()
    }
}

impl fmt::Debug for Secondary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secondary").field(&self.engine).finish()
    }
}

//! A database that another process writes, by what it has flushed.

use std::fmt;
use std::path::Path;

use crate::base::{Error, Result};
use crate::db::{self, Value};
use crate::front::builder::Builder;
use crate::front::database::Db;
use crate::front::entries::Entries;
use crate::front::family::Family;
use crate::front::shown::Shown;

/// A database that another process writes, Flagstone or RocksDB, followed for reading by what it
/// has flushed: made by [`Builder::open_follower`].
///
/// It has a directory of its own, with a hard link of each table and blob file that it reads, or a
/// copy where a link fails, as between devices. So what it shows stays, whatever becomes of the
/// followed database, the leader. [`Follower::now`] is a state of that as a [`Db`], which refuses
/// writes (`NotSupported`) and never changes. A refresh comes every
/// `follower_refresh_catchup_period_ms`, and with [`Follower::catch_up`]. Without `atomic_flush`
/// families may be of different moments: a batch may be visible in one of them only.
///
/// While a link exists, the leader's disk does not get back the space of a file that it removes,
/// and Flagstone as the leader punches no holes into blob files. What the follower no longer needs
/// goes with the next refresh. Links of the last state stay when it is closed: to give the space
/// back, remove its directory.
///
/// ```
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let (path, own) = (directory.path().join("db"), directory.path().join("own"));
/// let leader = flagstone::Db::open(&path)?;
/// let follower = flagstone::Db::builder(&path).open_follower(own)?;
/// leader.put("stone", "flag")?;
/// leader.flush()?;
/// follower.catch_up()?;
/// assert_eq!(follower.get("stone")?.expect("it was flushed"), "flag");
/// # Ok(())
/// # }
/// ```
pub struct Follower {
    engine: db::Follower,
    shown: Shown,
}

impl Builder {
    /// Follows what another process has flushed to the database, in all families, including later
    /// ones. `directory` is the follower's own; it is made if it is not there.
    ///
    /// Opens all files of the database, and raises the process's soft limit of open files. Costs
    /// as much as [`Builder::open_read_only`], and a hard link for each file; on another device
    /// than the database's, a copy of each file, also when the directory has them from an earlier
    /// follower.
    ///
    /// # Errors
    /// As [`Builder::open_read_only`]; `InvalidArgument` if the directory is the leader's, or has
    /// files of a database that no follower has put there, or those of another database; `Busy` if
    /// another follower has it; `TryAgain` if the other process changed its files again and again
    /// meanwhile; `IoError` if there are more files than the process may have open.
    #[doc(alias = "OpenAsFollower")]
    pub fn open_follower(self, directory: impl AsRef<Path>) -> Result<Follower> {
        let (engine, shown) = self.follow(|path, options, families, others| {
            let own = directory.as_ref();
            let engine = db::Follower::open_with_others(own, path, options, families, others)?;
            let first = engine.now();
            Ok((engine, first))
        })?;
        Ok(Follower { engine, shown })
    }
}

impl Follower {
    /// The leader's data as of the last refresh.
    ///
    /// # Errors
    /// Of a family that was created since: `Corruption` or `IoError` of the OPTIONS file that says
    /// whether its values expire.
    pub fn now(&self) -> Result<Db> {
        self.shown.at(&self.engine.now())
    }

    /// Refreshes: goes on to what the leader has flushed by now. Returns whether there was anything
    /// new. Costs time for new edits of the MANIFEST and for each file of the families concerned,
    /// and a link or copy for each new file.
    ///
    /// # Errors
    /// It stays as it was, and the next refresh tries again. `TryAgain` if the leader changed its
    /// files again and again meanwhile. `IoError` with subcode `PathNotFound` if the leader's
    /// database, or a file that its MANIFEST names, is gone. `InvalidArgument` if another database,
    /// or an earlier state of this one, has taken its place. `Corruption`, `IoError`.
    #[doc(alias = "TryCatchUpWithLeader")]
    pub fn catch_up(&self) -> Result<bool> {
        self.engine.catch_up()
    }

    /// Why the last refresh, requested or automatic, failed; `None` if it did not.
    pub fn failure(&self) -> Option<Error> {
        self.engine.failure()
    }

    /// The column family of that name, as of now.
    ///
    /// # Errors
    /// `NotFound` if there is none; as [`Follower::now`].
    #[doc(alias = "cf_handle")]
    pub fn column_family(&self, name: &str) -> Result<Family> {
        self.now()?.column_family(name)
    }

    /// The value of `key` in family `default`, as of now; `None` if there is none.
    ///
    /// # Errors
    /// As [`View::get`](crate::View::get) and [`Follower::now`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.now()?.get(key)
    }

    /// All entries of family `default`, in order, from either end, as of now.
    ///
    /// # Errors
    /// As [`Follower::now`].
    #[doc(alias = "iterator")]
    pub fn iter(&self) -> Result<Entries> {
        Ok(self.now()?.iter())
    }

    /// The follower's own directory.
    pub fn directory(&self) -> &Path {
        self.engine.directory()
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Follower").field(&self.engine).finish()
    }
}

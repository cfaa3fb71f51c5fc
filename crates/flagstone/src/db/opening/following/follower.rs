//! A follower instance: it follows the MANIFEST alone, and has its own names of all files.

use std::path::Path;
use std::sync::Arc;

use crate::base::{Error, Result};
use crate::db::handle::Db;
use crate::db::opening::following::directory::Directory;
use crate::db::opening::following::refresh::Refresh;
use crate::db::opening::following::{Choice, Following, Tail};
use crate::env::LinkedFiles;
use crate::manifest::identity_of;
use crate::options::{ColumnFamilyOptions, Options};

/// A database that another process writes, Flagstone or RocksDB, followed for reading by what is in
/// its tables and blob files: of that database, the leader, a follower reads no WAL.
///
/// [`Follower::now`] is a read-only [`Db`], the state as of the last refresh: a call of
/// [`Follower::catch_up`], or one that comes by itself
/// (`follower_refresh_catchup_period_ms`). It does not change: take it again later. Handles of
/// families belong to one state. A family has what was flushed of it; without `atomic_flush`
/// another one may have older or newer writes.
///
/// The follower's own directory has a hard link of each table and blob file of its states, or a
/// copy where a link fails, as between devices. So the leader may remove its files, and even be
/// destroyed: refreshes then fail, and the last state stays. While a link exists, the leader's
/// disk does not get back the space of a file that it removes, and Flagstone as the leader punches
/// no holes into blob files. Links that no state needs are removed by the next refresh; those of
/// the last state stay when the follower is closed, and the next one goes on with them.
///
/// It opens every table and blob file, and raises the process's soft limit of open files to the
/// hard one.
pub struct Follower {
    /// Declared first: no refresh runs when the directory is released.
    _refresh: Option<Refresh>,
    following: Arc<Following>,
    directory: Directory,
}

impl Follower {
    /// Follows the database in `leader` with all of its families, also those that are created
    /// later, each with `options.cf`. `directory` is the follower's own; it is made if it is not
    /// there.
    ///
    /// Costs as much as an opening for reading, and a hard link for each file; on another device
    /// than the leader's, a copy of each file.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no database, a family has another comparator, an option is out
    /// of range; or `directory` is `leader`, has files of a database that no follower has put
    /// there, or a follower's of a database with another identity. `Busy` if another follower has
    /// the directory. `TryAgain` if the leader changed its files again and again meanwhile.
    /// `Corruption`; `IoError`, also if there are more files than the process may have open.
    #[doc(alias = "OpenAsFollower")]
    pub fn open(
        directory: impl AsRef<Path>,
        leader: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Self> {
        Self::open_chosen(directory.as_ref(), leader.as_ref(), options, Choice::all(options))
    }

    /// The same with these families alone, each with its own options; `default` may be left out and
    /// then has `options.cf`.
    ///
    /// # Errors
    /// As [`Follower::open`]; also `InvalidArgument` for a family that does not exist.
    pub fn open_with_families(
        directory: impl AsRef<Path>,
        leader: impl AsRef<Path>,
        options: &Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Self> {
        Self::open_with_others(directory.as_ref(), leader.as_ref(), options, families, None)
    }

    /// The same; all `others` have these options, also those that are created later.
    pub(crate) fn open_with_others(
        directory: &Path,
        leader: &Path,
        options: &Options,
        families: &[(&str, ColumnFamilyOptions)],
        others: Option<ColumnFamilyOptions>,
    ) -> Result<Self> {
        Self::open_chosen(directory, leader, options, Choice::new(options, families, others))
    }

    fn open_chosen(
        directory: &Path,
        leader: &Path,
        options: &Options,
        choice: Choice,
    ) -> Result<Self> {
        let choice = choice.checked(options)?;
        let directory = Directory::take(directory, leader, options)?;
        let links = Arc::new(LinkedFiles::new(&options.env, &directory.path)?);
        let tail = Tail::begin(leader, options, choice, Some(links))?;
        let stored = identity_of(&*options.env.fs, leader)?;
        directory.follow(leader, tail.manifest.db_id().or(stored.as_deref()))?;
        let following = Arc::new(Following::begin(tail)?);
        following.tail.lock().sweep(&following.now());
        let refresh = Refresh::begin(&following, options)?;
        Ok(Self { _refresh: refresh, following, directory })
    }

    /// The leader's data as of the last refresh. Cheap.
    pub fn now(&self) -> Db {
        self.following.now()
    }

    /// Refreshes: goes on to what the leader has flushed by now. Returns whether there was anything
    /// new.
    ///
    /// Costs time for what is new in the MANIFEST, and for each file of the families concerned, in
    /// memory; a link, or a copy, for each new file.
    ///
    /// # Errors
    /// The state stays as it was, and the next refresh tries again. `TryAgain` if the leader
    /// changed its files again and again meanwhile. `IoError` with subcode `PathNotFound` if the
    /// leader's database, or a file that its MANIFEST names, is gone. `InvalidArgument` if another
    /// database, or an earlier state of this one, has taken its place. `Corruption`, `IoError`.
    #[doc(alias = "TryCatchUpWithLeader")]
    pub fn catch_up(&self) -> Result<bool> {
        self.following.catch_up()
    }

    /// Why the last refresh failed, if it did. A follower that stays behind says so here.
    pub fn failure(&self) -> Option<Error> {
        self.following.failure()
    }

    /// The follower's own directory.
    pub fn directory(&self) -> &Path {
        &self.directory.path
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("state", &self.now()).finish_non_exhaustive()
    }
}

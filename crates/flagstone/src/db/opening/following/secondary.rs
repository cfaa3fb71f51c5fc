//! A secondary instance: it follows MANIFEST and WALs, and has every file open.

use std::path::{Path, PathBuf};

use crate::base::{Error, Result};
use crate::db::handle::Db;
use crate::db::opening::following::{Choice, Following, Tail};
use crate::env::Names;
use crate::options::{ColumnFamilyOptions, Options};

/// A database that another process writes, Flagstone or RocksDB, followed for reading.
///
/// [`Secondary::now`] is a read-only [`Db`], the state as of the last [`Secondary::catch_up`]. It
/// does not change: take it again after catching up. Handles of families belong to one state.
///
/// It opens every table and blob file, so that the other process may remove them, and raises the
/// process's soft limit of open files to the hard one.
pub struct Secondary {
    directory: PathBuf,
    following: Following,
}

impl Secondary {
    /// Follows the database in `path` with all of its families, also those that are created later,
    /// each with `options.cf`. `directory` is the secondary's own, and stays empty; it is made if
    /// it is not there.
    ///
    /// Costs as much as an opening for reading.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no database, a family has another comparator, or merges in the
    /// WALs and no merge operator, an option is out of range, or `directory` is `path`. `TryAgain`
    /// if the other process changed its files again and again meanwhile. `Corruption`; `IoError`,
    /// also if there are more files than the process may have open.
    pub fn open(
        path: impl AsRef<Path>,
        directory: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Self> {
        Self::open_chosen(path.as_ref(), directory.as_ref(), options, Choice::all(options))
    }

    /// The same with these families alone, each with its own options; `default` may be left out and
    /// then has `options.cf`.
    ///
    /// # Errors
    /// As [`Secondary::open`]; also `InvalidArgument` for a family that does not exist.
    pub fn open_with_families(
        path: impl AsRef<Path>,
        directory: impl AsRef<Path>,
        options: &Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Self> {
        Self::open_with_others(path.as_ref(), directory.as_ref(), options, families, None)
    }

    /// The same; all `others` have these options, also those that are created later.
    pub(crate) fn open_with_others(
        path: &Path,
        directory: &Path,
        options: &Options,
        families: &[(&str, ColumnFamilyOptions)],
        others: Option<ColumnFamilyOptions>,
    ) -> Result<Self> {
        Self::open_chosen(path, directory, options, Choice::new(options, families, others))
    }

    fn open_chosen(
        path: &Path,
        directory: &Path,
        options: &Options,
        choice: Choice,
    ) -> Result<Self> {
        let choice = choice.checked(options)?;
        if directory == path {
            let message = "a secondary needs a directory of its own, not the primary's";
            return Err(Error::invalid_argument(message).at(path));
        }
        Names::new(options.env.fs.clone()).create_directory(directory)?;
        let following = Following::begin(Tail::begin(path, options, choice, None)?)?;
        Ok(Self { directory: directory.to_path_buf(), following })
    }

    /// The database as of the last time that it caught up. Cheap.
    pub fn now(&self) -> Db {
        self.following.now()
    }

    /// Goes on to what the other process has written by now. Returns whether there was anything
    /// new.
    ///
    /// What is not written completely yet comes with a later call. Writes without the WAL, and
    /// those that wait in the other process's memory (`manual_wal_flush`), come once they are
    /// flushed.
    ///
    /// Costs time for what is new in the MANIFEST and the WALs; if the MANIFEST has changed, also
    /// for each file of the families concerned, in memory.
    ///
    /// # Errors
    /// The state stays as it was. `TryAgain` if the other process changed its files again and again
    /// meanwhile. `InvalidArgument` if another database, or an earlier state of this one, has taken
    /// its place. `NotSupported` while a transaction is prepared that RocksDB wrote under another
    /// policy than write-committed. `Corruption`, `IoError`.
    #[doc(alias = "try_catch_up_with_primary")]
    #[doc(alias = "TryCatchUpWithPrimary")]
    pub fn catch_up(&self) -> Result<bool> {
        self.following.catch_up()
    }

    /// The secondary's own directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl std::fmt::Debug for Secondary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secondary").field("state", &self.now()).finish_non_exhaustive()
    }
}

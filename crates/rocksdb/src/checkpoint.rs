//! Checkpoints: copies of a database, mostly by hard links.

use std::path::Path;

use flagstone::CheckpointOptions;

use crate::db::{DBCommon, DBInner, ThreadMode};
use crate::error::Error;
use crate::store::Store;
use crate::transactions::TransactionDB;

/// Makes checkpoints of a database.
///
/// ```
/// use flagstone_rocksdb::{DB, checkpoint::Checkpoint};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let (path, copy) = (directory.path().join("db"), directory.path().join("copy"));
/// let db = DB::open_default(path).unwrap();
/// db.put("stone", "flag").unwrap();
/// Checkpoint::new(&db).unwrap().create_checkpoint(&copy).unwrap();
/// assert!(DB::open_default(&copy).unwrap().get("stone").unwrap().is_some());
/// ```
pub struct Checkpoint<'db> {
    store: &'db Store,
}

impl<'db> Checkpoint<'db> {
    /// Prepares checkpoints of `db`; makes none yet.
    ///
    /// # Errors
    /// None.
    pub fn new<T: ThreadMode, I: DBInner>(db: &'db DBCommon<T, I>) -> Result<Self, Error> {
        Ok(Self { store: db.inner.inner() })
    }

    /// Makes a copy in the new directory `path`, after a flush.
    ///
    /// # Errors
    /// `InvalidArgument` if `path` exists; `IOError`.
    pub fn create_checkpoint<P: AsRef<Path>>(&self, path: P) -> Result<(), Error> {
        Ok(self.store.db().checkpoint(path)?)
    }

    /// As [`create_checkpoint`](Self::create_checkpoint), with a flush only if the WALs hold
    /// `log_size_for_flush` bytes or more, or that is 0. Without a flush the copy has WALs that its
    /// first opening replays, and lacks what was written without the WAL.
    ///
    /// # Errors
    /// As [`create_checkpoint`](Self::create_checkpoint).
    pub fn create_checkpoint_with_log_size<P: AsRef<Path>>(
        &self,
        path: P,
        log_size_for_flush: u64,
    ) -> Result<(), Error> {
        let mut options = CheckpointOptions::default();
        options.log_size_for_flush = log_size_for_flush;
        Ok(self.store.db().checkpoint_with(path, &options)?)
    }
}

/// Makes checkpoints of a [`TransactionDB`].
pub struct TransactionDBCheckpoint<'db>(Checkpoint<'db>);

impl<'db> TransactionDBCheckpoint<'db> {
    /// Prepares checkpoints of `db`; makes none yet.
    ///
    /// # Errors
    /// None.
    pub fn new<T: ThreadMode>(db: &'db TransactionDB<T>) -> Result<Self, Error> {
        Checkpoint::new(db).map(Self)
    }

    /// As [`Checkpoint::create_checkpoint`].
    ///
    /// # Errors
    /// As [`Checkpoint::create_checkpoint`].
    pub fn create_checkpoint<P: AsRef<Path>>(&self, path: P) -> Result<(), Error> {
        self.0.create_checkpoint(path)
    }

    /// As [`Checkpoint::create_checkpoint_with_log_size`].
    ///
    /// # Errors
    /// As [`Checkpoint::create_checkpoint`].
    pub fn create_checkpoint_with_log_size<P: AsRef<Path>>(
        &self,
        path: P,
        log_size_for_flush: u64,
    ) -> Result<(), Error> {
        self.0.create_checkpoint_with_log_size(path, log_size_for_flush)
    }
}

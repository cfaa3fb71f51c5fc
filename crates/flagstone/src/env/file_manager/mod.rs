//! What the tables and blob files of several databases take on the disk, and how fast obsolete
//! files are removed: RocksDB's `SstFileManager`.
//!
//! 1. A database tells of each file that joins it, with its size ([`TrackedFiles::note`]), and
//!    removes obsolete files through the manager ([`TrackedFiles::delete`]).
//! 2. With a delete rate, an obsolete file is renamed to `NAME.trash`, and a thread of the manager
//!    removes trash at that rate. If there is more trash than `max_trash_db_ratio` permits, or the
//!    file cannot be renamed, it is removed at once.
//! 3. Whether the files take too much, and whether there is room for a compaction, is asked for
//!    when a file has joined, and before a compaction.
//!
//! A renaming is not synced. After a power loss a file may have its former name; the next opening
//! removes it as any file that the database does not name, and so trash.
//!
//! **Thread safety.** The lock of the sums and that of the trash are held for one look, and no file
//! is touched under them. Any of the engine's locks may be held by a caller.
//!
//! - `space`: the sums
//! - `trash`: the files that wait, and their pace

mod space;
#[cfg(test)]
mod tests;
mod trash;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::threads::{JobLimits, Member, MemberId, Next, Role, Seats};
use super::{BackgroundThreads, Env, FileSystem, LowPriority};
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::base::{Error, Result, Sometimes, file_name};
use space::Space;
use trash::{Trash, TrashFile};

/// RocksDB's default of [`SstFileManager::set_max_trash_db_ratio`].
const MAX_TRASH_DB_RATIO: f64 = 0.25;

/// RocksDB's default of [`SstFileManagerOptions::bytes_max_delete_chunk`].
const BYTES_MAX_DELETE_CHUNK: u64 = 64 << 20;

/// How a [`SstFileManager`] begins; the defaults are those of RocksDB's `NewSstFileManager`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SstFileManagerOptions {
    /// See [`SstFileManager::set_delete_rate_bytes_per_second`].
    pub delete_rate_bytes_per_second: u64,
    /// See [`SstFileManager::set_max_trash_db_ratio`].
    pub max_trash_db_ratio: f64,
    /// Bytes of a larger file that are given back at a time, if the file system supports holes and
    /// nothing else uses the file; 0 removes whole files.
    pub bytes_max_delete_chunk: u64,
}

impl Default for SstFileManagerOptions {
    fn default() -> Self {
        Self {
            delete_rate_bytes_per_second: 0,
            max_trash_db_ratio: MAX_TRASH_DB_RATIO,
            bytes_max_delete_chunk: BYTES_MAX_DELETE_CHUNK,
        }
    }
}

/// Limits the space of the databases whose options hold it, and the rate at which their obsolete
/// files are removed.
pub struct SstFileManager {
    space: Arc<Mutex<Space>>,
    trash: Arc<Trash>,
    databases: AtomicU64,
    member: Mutex<Option<MemberId>>,
    threads: BackgroundThreads,
}

impl SstFileManager {
    /// A manager with threads and clock of the operating system.
    pub fn new(options: SstFileManagerOptions) -> Arc<Self> {
        Self::with_env(options, &Env::default())
    }

    /// A manager with threads and clock of the world `env`. Each database uses its own file system.
    pub fn with_env(options: SstFileManagerOptions, env: &Env) -> Arc<Self> {
        let space: Arc<Mutex<Space>> = Arc::default();
        Arc::new(Self {
            space: space.clone(),
            trash: Arc::new(Trash::new(options, env, space)),
            databases: AtomicU64::new(0),
            member: Mutex::new(None),
            threads: BackgroundThreads::of([0, 1], LowPriority::NONE, env),
        })
    }

    /// Bytes that tables, blob files and trash may take; 0 for no limit. Once they take as much,
    /// writes fail with subcode `SpaceLimit`, until they take less or the limit is
    /// raised.
    pub fn set_max_allowed_space_usage(&self, bytes: u64) {
        self.space.lock().max_allowed = bytes;
    }

    /// Bytes that must be left of the allowed space when a compaction begins, besides the size of
    /// its inputs.
    pub fn set_compaction_buffer_size(&self, bytes: u64) {
        self.space.lock().compaction_buffer = bytes;
    }

    /// Whether the files take what is allowed, or more.
    pub fn is_max_allowed_space_reached(&self) -> bool {
        self.space.lock().is_reached(false)
    }

    /// Whether they would with what running compactions may write.
    pub fn is_max_allowed_space_reached_including_compactions(&self) -> bool {
        self.space.lock().is_reached(true)
    }

    /// Bytes of tables, blob files and trash.
    pub fn total_size(&self) -> u64 {
        self.space.lock().total()
    }

    /// Tables, blob files and trash, with their sizes.
    pub fn tracked_files(&self) -> BTreeMap<PathBuf, u64> {
        self.space.lock().files()
    }

    /// Bytes of obsolete files that are removed each second; 0 for no limit.
    pub fn delete_rate_bytes_per_second(&self) -> u64 {
        self.trash.rate()
    }

    /// Changes the delete rate. With 0, trash is removed at once.
    pub fn set_delete_rate_bytes_per_second(&self, bytes: u64) {
        self.trash.set_rate(bytes);
        self.wake();
    }

    /// See [`SstFileManager::set_max_trash_db_ratio`].
    pub fn max_trash_db_ratio(&self) -> f64 {
        self.trash.max_ratio()
    }

    /// Changes which part of [`SstFileManager::total_size`] trash may be (default: 0.25). While
    /// there is more, obsolete files are removed at once.
    pub fn set_max_trash_db_ratio(&self, ratio: f64) {
        self.trash.set_max_ratio(ratio);
    }

    /// Bytes of trash.
    pub fn total_trash_size(&self) -> u64 {
        self.trash.bytes()
    }

    /// Waits until there is no trash. Without a delete rate there never is.
    pub fn wait_for_empty_trash(&self) {
        self.wake();
        let has_thread = self.member.lock().is_some();
        self.trash.wait_until_empty(has_thread);
    }

    /// Has the thread look for trash.
    fn wake(&self) {
        if !self.trash.has_thread() || self.trash.is_empty() {
            return;
        }
        let mut member = self.member.lock();
        if let Some(member) = *member {
            return self.threads.announce(member, Role::Compaction);
        }
        match self.threads.join(Arc::new(Emptier::new(self.trash.clone()))) {
            Ok(joined) => *member = Some(joined),
            Err(error) => {
                tracing::warn!(%error, "no thread removes trash; the next opening does");
            }
        }
    }
}

impl fmt::Debug for SstFileManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SstFileManager")
            .field("total_size", &self.total_size())
            .field("total_trash_size", &self.total_trash_size())
            .finish_non_exhaustive()
    }
}

/// Removes trash in a thread.
struct Emptier {
    trash: Arc<Trash>,
    seats: Seats,
}

impl Emptier {
    fn new(trash: Arc<Trash>) -> Self {
        Self { trash, seats: Seats::default() }
    }
}

impl Member for Emptier {
    fn work(&self, role: Role) -> Next {
        match role {
            Role::Flush => Next::After(trash::IDLE),
            Role::Compaction => self.trash.step(),
        }
    }

    fn jobs_at_most(&self) -> JobLimits {
        JobLimits::apart(1, 1)
    }

    fn seats(&self) -> &Seats {
        &self.seats
    }
}

/// The files of one database that a manager knows. It forgets them with this.
pub(crate) struct TrackedFiles {
    manager: Arc<SstFileManager>,
    database: u64,
    fs: Arc<dyn FileSystem>,
}

impl TrackedFiles {
    /// None as yet.
    pub(crate) fn new(manager: Arc<SstFileManager>, fs: Arc<dyn FileSystem>) -> Self {
        let database = manager.databases.fetch_add(1, Ordering::Relaxed);
        Self { manager, database, fs }
    }

    /// A table or blob file is part of the database.
    pub(crate) fn note(&self, path: PathBuf, size: u64) {
        self.manager.space.lock().add(self.database, path, size);
    }

    /// The manager no longer counts the database's files. Trash is still removed.
    pub(crate) fn forget(&self) {
        self.manager.space.lock().forget(self.database);
    }

    /// Whether the files take as much as is allowed.
    ///
    /// # Errors
    /// `IoError` with subcode `SpaceLimit`.
    pub(crate) fn check_room(&self) -> Result<()> {
        self.manager.space.lock().check_room()
    }

    /// Keeps room for a compaction whose inputs have this size.
    ///
    /// # Errors
    /// As [`Self::check_room`].
    pub(crate) fn reserve(&self, bytes: u64) -> Result<ReservedSpace> {
        self.manager.space.lock().reserve(bytes)?;
        Ok(ReservedSpace { manager: self.manager.clone(), bytes })
    }

    /// Removes a file at the delete rate, or at once.
    ///
    /// # Errors
    /// `IoError`; with subcode `PathNotFound` if it is not there.
    pub(crate) fn delete(&self, path: &Path) -> Result<()> {
        if self.manager.trash.is_wanted(self.manager.total_size()) {
            let size =
                self.fs.metadata(path).inspect_err(|error| self.note_gone(path, error))?.size;
            let target = self.free_name(path)?;
            match self.fs.rename(path, &target) {
                Ok(()) => {
                    Sometimes::MadeTrash.reached();
                    let mut space = self.manager.space.lock();
                    space.remove(self.database, path);
                    space.add(self.database, target.clone(), size);
                    drop(space);
                    self.discard(target, size);
                    return Ok(());
                }
                Err(error) if error.is_not_found() => {
                    self.note_gone(path, &error);
                    return Err(error);
                }
                Err(error) => tracing::warn!(%error, "an obsolete file is removed at once"),
            }
        }
        self.fs.remove(path).inspect_err(|error| self.note_gone(path, error))?;
        self.manager.space.lock().remove(self.database, path);
        Ok(())
    }

    /// A file that is not there is not counted.
    fn note_gone(&self, path: &Path, error: &Error) {
        if error.is_not_found() {
            self.manager.space.lock().remove(self.database, path);
        }
    }

    /// Removes trash of an earlier life of the database, as [`Self::delete`] does.
    ///
    /// # Errors
    /// `IoError`.
    pub(crate) fn delete_trash(&self, path: PathBuf) -> Result<()> {
        if self.manager.trash.rate() == 0 {
            return self.fs.remove(&path);
        }
        let size = self.fs.metadata(&path)?.size;
        self.note(path.clone(), size);
        self.discard(path, size);
        Ok(())
    }

    fn discard(&self, path: PathBuf, size: u64) {
        let (database, fs) = (self.database, self.fs.clone());
        self.manager.trash.push(TrashFile { database, path, size, fs });
        self.manager.wake();
        if !self.manager.trash.has_thread() {
            self.manager.trash.step();
        }
    }

    /// A name for trash that no other file has: of a number that was given again there may be some
    /// already.
    fn free_name(&self, path: &Path) -> Result<PathBuf> {
        for number in 0.. {
            let target = file_name::trash(path, number);
            match self.fs.metadata(&target) {
                Err(error) if error.is_not_found() => return Ok(target),
                found => found?,
            };
        }
        unreachable!("there are fewer files than numbers")
    }
}

impl Drop for TrackedFiles {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Room that is kept for a compaction, until it is dropped.
pub(crate) struct ReservedSpace {
    manager: Arc<SstFileManager>,
    bytes: u64,
}

impl Drop for ReservedSpace {
    fn drop(&mut self) {
        self.manager.space.lock().release(self.bytes);
    }
}

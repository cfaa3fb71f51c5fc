//! Making file names durable.
//!
//! A name in a directory survives a power loss once the directory was synced. The system reports a
//! failed sync only once: the next sync of the directory succeeds although a name made earlier may
//! be lost. So every caller that makes names follows these steps, and directories are synced in no
//! other way:
//! 1. Before the name is made, [`Names::before_making`] notes how many syncs of the directory have
//!    failed.
//! 2. When the file is complete, [`NewNames::sync`] syncs the directory. It fails if any sync of
//!    the directory has failed since step 1.
//!
//! **Thread safety.** Each directory has a lock, held during a sync of it and taken after all other
//! locks. Without it, one of two concurrent syncs might succeed before the other has recorded its
//! failure. Failures are remembered as long as any caller is between the two steps. Directories are
//! identified by the paths that callers use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use super::{FileSystem, IoMode};
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::base::{Error, Mutant, Result, Sometimes};

/// The names that are being made in a file system.
pub struct Names {
    fs: Arc<dyn FileSystem>,
    /// Those in which somebody makes one.
    directories: Mutex<BTreeMap<PathBuf, Weak<Directory>>>,
}

#[derive(Default)]
struct Directory {
    /// Syncs that failed.
    failures: AtomicU64,
    /// Held while it is synced; why that failed last.
    syncing: Mutex<Option<Error>>,
}

/// Somebody makes names in a directory.
pub struct NewNames {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    directory: Arc<Directory>,
    failures_before: u64,
}

impl Names {
    /// None as yet.
    pub fn new(fs: Arc<dyn FileSystem>) -> Self {
        Self { fs, directories: Mutex::default() }
    }

    /// The file system that they are made in.
    pub fn fs(&self) -> &dyn FileSystem {
        &*self.fs
    }

    /// To be called before the first name is made in a directory that [`NewNames::sync`] is to make
    /// durable.
    pub fn before_making(&self, path: &Path) -> NewNames {
        let mut directories = self.directories.lock();
        let known = directories.get(path).and_then(Weak::upgrade);
        let directory = known.unwrap_or_else(|| {
            directories.retain(|_, directory| directory.strong_count() > 0);
            let fresh = Arc::default();
            directories.insert(path.to_path_buf(), Arc::downgrade(&fresh));
            fresh
        });
        let failures_before = directory.failures.load(Ordering::Acquire);
        NewNames { fs: self.fs.clone(), path: path.to_path_buf(), directory, failures_before }
    }

    /// Replaces `target` by a file with `contents` so that a crash leaves the old or the new one:
    /// writes `temporary`, syncs it, renames it over, syncs the directory.
    ///
    /// # Errors
    /// `IoError`; the target is then unchanged or, if only the directory sync failed, of unknown
    /// durability.
    pub fn replace_file(&self, temporary: &Path, target: &Path, contents: &[u8]) -> Result<()> {
        let name = self.before_making(&directory_of(target));
        let written = self.fs.create_writable(temporary, IoMode::Buffered).and_then(|file| {
            file.write_at(0, contents)?;
            file.sync()
        });
        let renamed = written.and_then(|()| self.fs.rename(temporary, target));
        renamed.inspect_err(|_| {
            // On a full disk this is tried again and again: nothing is to stay behind each time.
            let _ = self.fs.remove(temporary);
        })?;
        name.sync()
    }

    /// Makes a directory and those above it so that a power loss leaves them: syncs the directory
    /// that each one's name stands in. Also where a directory is there already: a process that made
    /// it may have died before it synced.
    ///
    /// # Errors
    /// `IoError`; but directories that were there before, and that this process may not read, it
    /// cannot have made. What was made is removed again, since a sync that is tried again need not
    /// do what this one did not; if it cannot be, the error says so.
    pub fn create_directory(&self, directory: &Path) -> Result<()> {
        let fs = &*self.fs;
        let named = || directory.ancestors().take_while(|path| path.file_name().is_some());
        let mut missing = 0;
        for named in named() {
            match fs.metadata(named) {
                Ok(_) => break,
                Err(error) if error.is_not_found() => missing += 1,
                Err(error) => return Err(error),
            }
        }
        let names: Vec<_> = named().map(|made| self.before_making(&directory_of(made))).collect();
        fs.create_directory(directory)?;
        for (index, name) in names.iter().enumerate() {
            match name.sync() {
                Err(error) if index >= missing.max(1) && is_denied(&error) => {}
                outcome => outcome.map_err(|error| {
                    let mut made = named().take(missing);
                    match made.find(|made| !removed(fs, made)) {
                        None => error,
                        Some(left) => error.context(format!(
                            "{} may not outlive a power loss, and could not be removed again: remove it before the \
                             next attempt",
                            left.display()
                        )),
                    }
                })?,
            }
        }
        Ok(())
    }
}

impl NewNames {
    /// Makes durable what has been made.
    ///
    /// # Errors
    /// `IoError`, perhaps that of another's sync: the names may then be lost, and no later sync
    /// need make them durable. What they stand for is to be made again under others.
    pub fn sync(&self) -> Result<()> {
        let mut failed = self.directory.syncing.lock();
        let is_lost = self.directory.failures.load(Ordering::Acquire) != self.failures_before;
        if let Some(earlier) =
            failed.as_ref().filter(|_| is_lost && !Mutant::ForgetLostNames.is_on())
        {
            Sometimes::NameLostByAnother.reached();
            return Err(earlier
                .clone()
                .context("the name of a file that was made before this may not last"));
        }
        self.fs.sync_directory(&self.path).inspect_err(|error| {
            *failed = Some(error.clone());
            self.directory.failures.fetch_add(1, Ordering::Release);
        })
    }
}

/// Removes an empty directory of a disk that has just failed; whether that worked, at the third
/// attempt at the latest.
fn removed(fs: &dyn FileSystem, directory: &Path) -> bool {
    (0..3).any(|_| fs.remove_directory(directory).is_ok())
}

fn is_denied(error: &Error) -> bool {
    let source =
        std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|source| source.kind() == std::io::ErrorKind::PermissionDenied)
}

/// The directory that a path's name stands in.
pub fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests;

//! Whether the WALs are where they are looked for, before any is replayed or made.
//!
//! Acknowledged writes may be in WALs alone. A `wal_dir` that is not mounted, or is another than
//! before, seems to hold none: what they held would be gone without a word, and the new MANIFEST
//! would let go of them. So an opening fails that misses the newest WAL that the MANIFEST knows of.
//! That WAL is there even if it is empty, or a newer one is, wherever a database was opened for
//! writing; which a LOCK tells, for copies have none. RocksDB's copies leave out a WAL that is
//! empty.

use std::path::Path;

use crate::base::file_name::{self, FileKind};
use crate::base::{Error, Remedy, Result};
use crate::db::tree::directories::is_own;
use crate::env::FileSystem;
use crate::manifest::VersionSet;
use crate::wal::missing_wal;

/// A copy, such as a checkpoint, has its WALs in its own directory. With the original's `wal_dir`
/// it would replay that one's, and remove them; and what is in its own would be lost without a
/// trace.
///
/// # Errors
/// `InvalidArgument`; `IoError`.
pub(in crate::db) fn check_wals_are_not_here(
    fs: &dyn FileSystem,
    path: &Path,
    wal_directory: &Path,
    versions: &VersionSet,
) -> Result<()> {
    if is_own(fs, path, wal_directory)? {
        return Ok(());
    }
    let oldest = versions.oldest_log_number();
    let names = fs.list(path)?;
    let is_needed = |name: &&String| match FileKind::parse(name) {
        Some(FileKind::Wal(number)) => number >= oldest,
        _ => false,
    };
    let Some(name) = names.iter().find(is_needed) else { return Ok(()) };
    Err(Error::invalid_argument(
        "the WAL lies in the database's own directory, but wal_dir names another: a copy, such as a checkpoint, has its WALs \
         here, and is opened without wal_dir; if the WALs are to be there from now on, move this one",
    )
    .at(path.join(name)))
}

/// That the newest WAL which the MANIFEST knows of is there, or a newer one.
///
/// # Errors
/// `Corruption` if it is missing; `IoError`, with subcode `PathNotFound` if there is no such
/// directory.
pub(in crate::db) fn check_newest_wal(
    fs: &dyn FileSystem,
    wal_directory: &Path,
    versions: &VersionSet,
) -> Result<()> {
    let Some(newest) = versions.newest_wal() else { return Ok(()) };
    let names = match fs.list(wal_directory) {
        Err(error) if error.is_not_found() => {
            return Err(error.advise(Remedy::FindWalDirectory));
        }
        listed => listed?,
    };
    let is_newest = |name: &String| {
        let kind = FileKind::parse(name);
        matches!(kind, Some(FileKind::Wal(number)) if number >= *newest.start())
    };
    if names.iter().any(is_newest) {
        return Ok(());
    }
    let is_it = newest.start() == newest.end();
    let what = if is_it { "this WAL" } else { "this WAL, or the one before" };
    Err(missing_wal(&file_name::wal(wal_directory, *newest.end()), what))
}

#[cfg(test)]
mod tests;

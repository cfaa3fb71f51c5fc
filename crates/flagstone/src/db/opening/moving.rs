//! Opening for reading what another process may be writing.
//!
//! 1. Each attempt looks at the MANIFEST, opens and locks every file that it names (`env/held.rs`), replays the WALs, and
//!    looks at the MANIFEST again. If that has changed, the attempt may lack a file, or writes of a WAL that a flush has removed
//!    or recycled meanwhile: the next one begins with what the MANIFEST says now.
//! 2. A writer destroys what a file holds (a hole, a recycled WAL) only once the MANIFEST says that it is garbage, and only if it
//!    gets the exclusive lock. If it got that before the reader's lock, the second look finds the MANIFEST changed, or the first
//!    one had seen the change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::{Code, Error, Remedy, Result, Sometimes};
use crate::db::DbInner;
use crate::env::{FileSystem, HeldFiles, OpenMode, is_out_of_descriptors, out_of_descriptors};
use crate::manifest::{self, VersionSet};
use crate::options::Options;

/// How often a database that is changing is opened, until it holds still.
const ATTEMPTS: usize = 100;

/// Files that the process has open beside those of the database, at least: WALs, MANIFEST, standard streams.
const OTHER_FILES: u64 = 16;

/// The engine of the first attempt during which the MANIFEST did not change. Each has options whose file system holds what is
/// opened.
pub(super) fn at_rest(
    path: &Path,
    options: &Options,
    open: impl Fn(&Options) -> Result<Arc<DbInner>>,
) -> Result<Arc<DbInner>> {
    let fs = &*options.env.fs;
    let mut earlier: Option<Arc<HeldFiles>> = None;
    for _ in 0..ATTEMPTS {
        let before = look(fs, path);
        let files = Arc::new(HeldFiles::new(&options.env, earlier.as_deref()));
        let env = options.env.clone().with_fs(files.clone());
        let opened = open(&Options { env, ..options.clone() });
        if opened.as_ref().is_err_and(is_out_of_descriptors) {
            return opened;
        }
        match (before, look(fs, path)) {
            (Ok(before), Ok(after)) if before == after => {
                files.seal();
                return opened;
            }
            // Removed while it was looked for, or not there at all, which the opening says better.
            (Err(before), Err(after)) if before.is_not_found() && after.is_not_found() => return opened,
            (Err(error), _) | (_, Err(error)) if !error.is_not_found() => {
                return Err(manifest::advised(error));
            }
            _ => {}
        }
        Sometimes::ReadOnlyOpenRepeated.reached();
        earlier = Some(files);
    }
    let message = "the database changes faster than it can be opened for reading; try again";
    Err(Error::new(Code::TryAgain, message).at(path))
}

/// The MANIFEST and its size.
fn look(fs: &dyn FileSystem, path: &Path) -> Result<(PathBuf, u64)> {
    let current = manifest::read_current(fs, path)?;
    let size = fs.metadata(&current)?.size;
    Ok((current, size))
}

/// Finds all tables and blob files of the version set, whose file system holds them from now on. One that is missing, or that
/// this user may not read, is left to the read that needs it.
///
/// # Errors
/// `IoError` if the process may not have that many files open.
pub(super) fn hold_files(versions: &VersionSet, directory: &Path, mode: OpenMode) -> Result<()> {
    let fs = &*versions.env().fs;
    let current = || versions.families().map(|family| &family.current);
    let files = current().map(|version| version.num_files() as u64 + version.blob_files.len() as u64);
    let needed = files.sum::<u64>().saturating_add(OTHER_FILES);
    let limit = fs.raise_open_files();
    let too_many = |error: std::io::Error| {
        let remedy = Remedy::HoldAllFiles { limit, wanted: needed.saturating_add(OTHER_FILES) };
        Error::io("hold all files of the database open for reading", directory, error).advise(remedy)
    };
    if limit.is_some_and(|limit| needed > limit) {
        return Err(too_many(out_of_descriptors()));
    }
    let is_there = |path: &Path| match fs.open(path, mode) {
        Err(error) if is_out_of_descriptors(&error) => Err(too_many(out_of_descriptors())),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) if !error.is_refused() => Err(error),
        _ => Ok(true),
    };
    for version in current() {
        for (_, file) in version.files() {
            let path = file.path();
            if !is_there(&path)? {
                // LevelDB's name for a table.
                is_there(&path.with_extension("ldb"))?;
            }
        }
        version.blob_files.values().try_for_each(|blob| is_there(&blob.file.path()).map(drop))?;
    }
    Ok(())
}

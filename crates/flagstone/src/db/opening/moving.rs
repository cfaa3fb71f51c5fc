//! Opening for reading what another process may be writing.
//!
//! **Algorithm.** Each attempt
//! 1. opens and locks the WALs that there are (`env/held.rs`), `wals_from` being the first number
//!    that none of them has;
//! 2. reads the MANIFEST up to its size at that time, and opens and locks every file that it names;
//! 3. replays the WALs that there are now, those of step 1 among them;
//! 4. checks that what it has read is one state. If not, the next attempt begins with what the
//!    MANIFEST says then, and takes over the tables and blob files that this one holds.
//!
//! **Proof** that what passes step 4 is the history up to the last record that was replayed, though
//! the MANIFEST has grown. A writer removes a file, punches a hole into it, or writes a WAL over
//! only after an edit of the MANIFEST has made that superfluous.
//! 1. *Tables and blob files* never change under their names, but for holes. Numbers are not given
//!    twice. All were found.
//! 2. *Holes.* A writer that is Flagstone punches under the exclusive lock what an edit has called
//!    garbage. A file that an earlier attempt holds was locked before the MANIFEST was read: that
//!    names all garbage in it. For another one, no edit behind what was read names garbage. Nor
//!    does one for a blob file that only WALs name, which therefore is there, and whole.
//! 3. *No WAL is lacking.* Those that there were in step 1 are held. One made later has `wals_from`
//!    or a higher number, and was there in step 3, unless it was removed. Then each family with
//!    writes in it was flushed behind it, in an edit that names a higher log number, or was
//!    dropped; and there is no such edit between step 2 and the opening of the last WAL. Log
//!    numbers that RocksDB raises in memory alone are of families without such writes.
//! 4. *No WAL was written over* before it was replayed: it still has its name, or none at all. A
//!    writer that is Flagstone does so no longer then, because of the lock.
//! 5. *Each WAL but the last is complete*: a writer makes the next one when it has written the last
//!    record. RocksDB does not with `manual_wal_flush`, or where it makes WALs ahead: a WAL that
//!    has grown since the next one was seen fails the check. That does not tell where it is a
//!    recycled one, whose size was larger before.
//!
//! Where the MANIFEST did not change, 1 and 2 hold without a look at any file, and one that is
//! missing is missing. A writer that begins a new MANIFEST is met by the next attempt.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::{Code, Error, FileNumber, Remedy, Result, Sometimes, file_name};
use crate::db::DbInner;
use crate::env::{FileSystem, HeldFiles, IoMode, is_out_of_descriptors, out_of_descriptors};
use crate::manifest::{self, VersionEdit, VersionSet};
use crate::options::Options;

/// How often a database that is changing is opened, until an attempt sees one state.
const ATTEMPTS: usize = 100;

/// Files that the process has open beside those of the database, at least: WALs, MANIFEST, standard
/// streams.
const OTHER_FILES: u64 = 16;

/// The engine of the first attempt that has seen one state. Each has options whose file system
/// holds what is opened.
pub(super) fn at_one_time(
    path: &Path,
    options: &Options,
    open: impl Fn(&Options) -> Result<Arc<DbInner>>,
) -> Result<Arc<DbInner>> {
    let fs = &*options.env.fs;
    let wal_directory = if options.wal_dir.is_empty() { path } else { Path::new(&options.wal_dir) };
    let mut earlier: Option<Arc<HeldFiles>> = None;
    for _ in 0..ATTEMPTS {
        let before = look(fs, path);
        let files = Arc::new(HeldFiles::new(&options.env, earlier.as_deref()));
        let env = options.env.clone().with_fs(files.clone());
        let opened =
            files.hold_wals(wal_directory).and_then(|()| open(&Options { env, ..options.clone() }));
        if opened.as_ref().is_err_and(is_out_of_descriptors) {
            return opened;
        }
        match (before, look(fs, path)) {
            (Ok(before), Ok(after)) => {
                let attempt =
                    Attempt { fs, files: &files, has_changed: before != after, manifest: &after.0 };
                match opened {
                    Ok(inner) if attempt.has_one_state(&inner)? => {
                        let oldest = inner.tree.min_log_number_to_keep();
                        files.check_wals(oldest)?;
                        files.seal(oldest);
                        return Ok(inner);
                    }
                    // The writer has no part in what the disk refuses. Another attempt would hide
                    // it.
                    Err(error)
                        if !attempt.has_changed
                            && (error.code() == Code::IoError && !error.is_not_found()
                                || files.has_whole_wals(FileNumber(0))?) =>
                    {
                        return Err(error);
                    }
                    _ => {}
                }
            }
            // Removed while it was looked for, or not there at all, which the opening says better.
            (Err(before), Err(after)) if before.is_not_found() && after.is_not_found() => {
                return opened;
            }
            (Err(error), _) | (_, Err(error)) if !error.is_not_found() => {
                return Err(manifest::advised(error));
            }
            _ => {}
        }
        Sometimes::ReadOnlyOpenRepeated.reached();
        earlier = Some(files);
    }
    let message = "the database changes too fast to be opened for reading; try again";
    Err(Error::new(Code::TryAgain, message).at(path))
}

/// The MANIFEST and its size.
fn look(fs: &dyn FileSystem, path: &Path) -> Result<(PathBuf, u64)> {
    let current = manifest::read_current(fs, path)?;
    let size = fs.metadata(&current)?.size;
    Ok((current, size))
}

/// What an opening went by.
struct Attempt<'a> {
    /// Where the writer's changes are seen.
    fs: &'a dyn FileSystem,
    files: &'a HeldFiles,
    /// Whether the MANIFEST has changed meanwhile.
    has_changed: bool,
    /// The MANIFEST now.
    manifest: &'a Path,
}

impl Attempt<'_> {
    /// Whether what was opened is the history up to one point; the head of this file says why.
    fn has_one_state(&self, inner: &DbInner) -> Result<bool> {
        // Nobody changes it: it is only read.
        let (tree, wals) = (&inner.tree, inner.tree.live_wals());
        let (manifest, oldest) = (tree.manifest_number(), tree.min_log_number_to_keep());
        let manifest = file_name::manifest(&inner.context.path, manifest);
        if !self.files.has_whole_wals(oldest)? {
            return Ok(false);
        }
        let ended = wals.split_last().map_or(&[][..], |(_, ended)| ended);
        for (number, bytes) in ended {
            let path = file_name::wal(&inner.context.wal_directory, *number);
            if self.files.held_size(&path)? != Some(*bytes) {
                return Ok(false);
            }
        }
        if !self.has_changed {
            return Ok(true);
        }
        if self.manifest != manifest || !self.files.has_all() {
            return Ok(false);
        }
        // Of a group that is not whole yet nothing was read.
        let is_last = |edit: &VersionEdit| edit.atomic_group_remaining.unwrap_or(0) == 0;
        let mut read = 0;
        for (position, (_, edit)) in manifest::dump(self.files, &manifest)?.enumerate() {
            if is_last(&edit?) {
                read = position + 1;
            }
        }
        for (offset, edit) in manifest::dump(self.fs, &manifest)?.skip(read) {
            if self.takes_something(offset, &edit?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a writer may, after this edit, have removed a WAL that was missed, or punched a hole
    /// into what is read.
    fn takes_something(&self, offset: u64, edit: &VersionEdit) -> bool {
        let (wals_from, size) = self.files.wals_missed();
        let wals = [edit.log_number, edit.min_log_number_to_keep, edit.wal_deletion];
        let takes_wals =
            edit.family_dropped || wals.into_iter().flatten().any(|number| number > wals_from);
        (takes_wals && offset < size)
            || edit.blob_file_garbages.iter().any(|garbage| self.files.is_new_blob(garbage.number))
    }
}

/// Finds all tables and blob files of the version set, whose file system holds them from now on.
/// One that is missing, or that this user may not read, is left to the read that needs it.
///
/// # Errors
/// `IoError` if the process may not have that many files open.
pub(super) fn hold_files(versions: &VersionSet, directory: &Path, mode: IoMode) -> Result<()> {
    let fs = &*versions.env().fs;
    let current = || versions.families().map(|family| &family.current);
    let files =
        current().map(|version| version.num_files() as u64 + version.blob_files.len() as u64);
    let needed = files.sum::<u64>().saturating_add(OTHER_FILES);
    let limit = fs.raise_open_files();
    let too_many = |error: std::io::Error| {
        let remedy = Remedy::HoldAllFiles { limit, wanted: needed.saturating_add(OTHER_FILES) };
        Error::io("hold all files of the database open for reading", directory, error)
            .advise(remedy)
    };
    if limit.is_some_and(|limit| needed > limit) {
        return Err(too_many(out_of_descriptors()));
    }
    let is_there = |path: &Path| match fs.open_random_access(path, mode) {
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

//! Checkpoints: a second directory with the same contents, made of links.
//!
//! Tables and blob files never change, so they are linked (copied where links are not possible);
//! WALs grow, so they are copied up to what they hold at one moment under the locks. The MANIFEST
//! is written anew: it must not name directories that the copy does not have. CURRENT comes last: a
//! directory without it is no database.

use std::path::{Path, PathBuf};

use crate::base::file_name::{self, FileKind};
use crate::base::{Error, FileNumber, Result, Sometimes};
use crate::db::DbInner;
use crate::db::copied_files::{Change, CopiedFile, CopyOptions, FileBytes, files_to_copy};
use crate::db::exports::{self, ExportedFamily};
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::env::{FileSystem, IoMode, copy_file, hint_temperature};
use crate::options::CheckpointOptions;

impl Db {
    /// Makes a copy of the database, as of now, in the new directory `target`, whose parents are
    /// made if need be, mostly by hard links. Of a database that is open for reading, it has the
    /// column families that are open, as they were at the opening or, by what another process has
    /// written to the same WALs since, later; files that it has removed since are copied.
    ///
    /// # Errors
    /// `InvalidArgument` if `target` exists or is empty; `Corruption` if a file of the database is
    /// not there; `TryAgain` if large values are streamed so fast that each flush finds new ones;
    /// `ShutdownInProgress`; `IoError`. What was made so far is then removed.
    pub fn checkpoint(&self, target: impl AsRef<Path>) -> Result<()> {
        self.checkpoint_with(target, &CheckpointOptions::default())
    }

    /// As [`Db::checkpoint`], without a flush: the copy has WALs, which its first opening replays.
    /// What was written without the WAL, and is not in a table yet, is not in the copy.
    ///
    /// # Errors
    /// As [`Db::checkpoint`].
    pub fn checkpoint_with_wals(&self, target: impl AsRef<Path>) -> Result<()> {
        let options = CheckpointOptions { log_size_for_flush: u64::MAX, ..Default::default() };
        self.checkpoint_with(target, &options)
    }

    /// As [`Db::checkpoint`], with options.
    ///
    /// # Errors
    /// As [`Db::checkpoint`].
    pub fn checkpoint_with(
        &self,
        target: impl AsRef<Path>,
        options: &CheckpointOptions,
    ) -> Result<()> {
        let copy = CopyOptions {
            with_growing_blobs: true,
            ..CopyOptions::whole(options.log_size_for_flush)
        };
        make_copy(self, target.as_ref(), copy, options.link_files)
    }

    /// Makes a copy of one family in the new directory `target`, as it is after a flush, mostly by
    /// links: a database with that family and an empty `default`.
    /// [`Db::create_column_family_with_import`] takes it.
    ///
    /// # Errors
    /// As [`Db::checkpoint`]; `ColumnFamilyDropped`; `NotSupported` for a database that is open for
    /// reading if the family has entries in WALs.
    pub fn export_column_family(
        &self,
        family: &ColumnFamily,
        target: impl Into<PathBuf>,
    ) -> Result<ExportedFamily> {
        exports::export(self, family, target.into())
    }
}

/// Makes a copy in a new directory, or nothing.
///
/// # Errors
/// As [`Db::checkpoint`].
pub(in crate::db) fn make_copy(
    db: &Db,
    target: &Path,
    options: CopyOptions,
    links: bool,
) -> Result<()> {
    let inner = db.inner();
    check_absent(inner, target)?;
    if !inner.context.read_only {
        inner.context.check_writable()?;
    }
    // Until the last file is written, removed, or known to stay: who closes waits for it.
    let _running = RunningCheckpoint::begin(inner)?;
    {
        // One at a time: of two with the same target, the second must find the directory, and
        // not remove the first's files.
        let _one_at_a_time = inner.lifecycle.checkpoint_begins.lock();
        check_absent(inner, target)?;
        inner.context.names.create_directory(target).inspect_err(|_| {
            // It may have been made all the same.
            let _ = inner.context.env.fs.remove_directory(target);
        })?;
    }
    let made = copy_to(db, target, options, links);
    if made.is_err() {
        remove_partial(inner, target);
    }
    made
}

/// A checkpoint that reads, and then lets others remove, the database's files.
pub(in crate::db) struct RunningCheckpoint<'a>(&'a DbInner);

impl<'a> RunningCheckpoint<'a> {
    /// # Errors
    /// `ShutdownInProgress`.
    pub(in crate::db) fn begin(inner: &'a DbInner) -> Result<Self> {
        inner.tree.begin_checkpoint()?;
        Ok(Self(inner))
    }
}

impl Drop for RunningCheckpoint<'_> {
    fn drop(&mut self) {
        self.0.tree.end_checkpoint();
    }
}

fn check_absent(db: &DbInner, target: &Path) -> Result<()> {
    if target.as_os_str().is_empty() {
        return Err(Error::invalid_argument("the directory of a copy needs a name"));
    }
    match db.context.env.fs.metadata(target) {
        Ok(_) => Err(Error::invalid_argument("the directory already exists").at(target)),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Fills the new directory.
fn copy_to(db: &Db, target: &Path, options: CopyOptions, links: bool) -> Result<()> {
    let context = &db.inner().context;
    let names = context.names.before_making(target);
    let source = files_to_copy(db, options)?;
    for file in &source.files {
        let path = target.join(&file.name);
        if let (FileKind::Current, FileBytes::Made(contents)) = (file.kind, &file.bytes) {
            names.sync()?;
            let temporary = file_name::temporary(target, FileNumber(0));
            context.names.replace_file(&temporary, &path, contents)?;
        } else {
            place(&*context.env.fs, file, &path, links)?;
        }
    }
    Ok(())
}

/// Links, copies or writes a file of the copy, and syncs what is new.
fn place(fs: &dyn FileSystem, file: &CopiedFile, target: &Path, links: bool) -> Result<()> {
    match &file.bytes {
        FileBytes::Made(bytes) => {
            let made = fs.create_writable(target, IoMode::Buffered)?;
            made.write_at(0, bytes)?;
            made.sync()
        }
        FileBytes::OfFile { path, size, change } => {
            hint_temperature(fs, target, file.temperature);
            if *change == Change::Never && links {
                if fs.link(path, target).is_ok() {
                    return Ok(());
                }
                Sometimes::CheckpointCopied.reached();
                // It may have been linked all the same: the copy would be written over the
                // original.
                match fs.remove(target) {
                    Err(error) if !error.is_not_found() => return Err(error),
                    _ => {}
                }
            }
            copy_file(fs, path, target, *size, *change == Change::GrowsOrShrinks)
        }
    }
}

/// Best effort: the error that led here is what the caller hears. CURRENT goes first: without
/// it, what may stay is no database.
fn remove_partial(db: &DbInner, target: &Path) {
    let _ = db.context.env.fs.remove(&file_name::current(target));
    for name in db.context.env.fs.list(target).unwrap_or_default() {
        let _ = db.context.env.fs.remove(&target.join(name));
    }
    let _ = db.context.env.fs.remove_directory(target);
}

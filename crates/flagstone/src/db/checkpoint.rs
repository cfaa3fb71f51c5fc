//! Checkpoints: a second directory with the same contents, made of links.
//!
//! Tables and sealed blob files never change, so they are linked (copied where links are not
//! possible); WALs and the blob files of memtables grow, so they are copied up to what they hold at
//! one moment under the locks. The MANIFEST is written anew: it must not name directories that the
//! copy does not have. CURRENT comes last: a directory without it is no database.

use std::path::{Path, PathBuf};

use crate::base::file_name;
use crate::base::{Error, Mutant, Result, Sometimes};
use crate::db::DbInner;
use crate::db::contents::{Contents, Copied, contents};
use crate::db::handle::Db;
use crate::env::{BufferedWriter, FileSystem, IoMode};

/// Copies go through a buffer of this many bytes.
const COPY_BUFFER: usize = 1 << 20;

impl Db {
    /// Makes a copy of the database, as of now, in the new directory `target`, whose parents are
    /// made if need be, mostly by hard links. Of a database that is open for reading, it has the
    /// column families that are open, as they were at the opening or, by what another process has
    /// written to the same WALs since, later; files that it has removed since are copied.
    ///
    /// # Errors
    /// `InvalidArgument` if `target` exists; `Corruption` if a file of the database is not there;
    /// `ShutdownInProgress`; `IoError`. What was made so far is then removed.
    pub fn checkpoint(&self, target: impl AsRef<Path>) -> Result<()> {
        self.make_checkpoint(target.as_ref(), true)
    }

    /// As [`Db::checkpoint`], without a flush: the copy has WALs, which its first opening replays.
    /// What was written without the WAL, and is not in a table yet, is not in the copy.
    ///
    /// # Errors
    /// As [`Db::checkpoint`].
    pub fn checkpoint_with_wals(&self, target: impl AsRef<Path>) -> Result<()> {
        self.make_checkpoint(target.as_ref(), false)
    }

    fn make_checkpoint(&self, target: &Path, flushes: bool) -> Result<()> {
        let inner = self.inner();
        check_absent(inner, target)?;
        if !inner.context.read_only {
            inner.context.check_writable()?;
            if flushes {
                self.flush_all()?;
            }
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
        let pause = usize::from(!Mutant::DeleteUnderCheckpoint.is_on());
        inner.tree.pause_deletions(pause);
        let made = copy_to(inner, target);
        inner.pipeline.end_pause(pause);
        inner.jobs.purge_obsolete_files();
        if made.is_err() {
            remove_partial(inner, target);
        }
        made
    }
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
    match db.context.env.fs.metadata(target) {
        Ok(_) => {
            Err(Error::invalid_argument("the checkpoint's directory already exists").at(target))
        }
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Fills the new directory.
fn copy_to(db: &DbInner, target: &Path) -> Result<()> {
    let fs = &*db.context.env.fs;
    let names = db.context.names.before_making(target);
    let Contents { linked, others, growing, wals, state, options, .. } = contents(db)?;
    for source in linked {
        let target = within(target, &source);
        if fs.link(&source, &target).is_err() {
            Sometimes::CheckpointCopied.reached();
            // It may have been linked all the same: the copy would be written over the
            // original.
            match fs.remove(&target) {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
            let size = fs.metadata(&source)?.size;
            copy(fs, &Copied { source, size, may_shrink: false }, &target)?;
        }
    }
    for file in others.into_iter().chain(growing).chain(wals) {
        copy(fs, &file, &within(target, &file.source))?;
    }
    let manifest = state.write(fs, target)?;
    write_checkpoint_options(db, target, &options)?;
    names.sync()?;
    let temporary = file_name::temporary(target, manifest);
    let current = format!("MANIFEST-{manifest}\n");
    db.context.names.replace_file(&temporary, &file_name::current(target), current.as_bytes())
}

/// All files of the checkpoint lie in its own directory: with the original's `wal_dir` or
/// `db_paths` in its OPTIONS file, whoever opens it as it says would replay, and then remove,
/// the original's WALs, and its tables.
fn write_checkpoint_options(db: &DbInner, target: &Path, text: &str) -> Result<()> {
    let number = db.tree.file_numbers.next();
    let temporary = file_name::temporary(target, number);
    db.context.names.replace_file(&temporary, &file_name::options(target, number), text.as_bytes())
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

/// The name of the copy of `source` in the checkpoint.
fn within(target: &Path, source: &Path) -> PathBuf {
    target.join(source.file_name().unwrap_or_default())
}

/// Copies the first bytes of a file and syncs the copy.
fn copy(fs: &dyn FileSystem, file: &Copied, target: &Path) -> Result<()> {
    let Copied { source, size, may_shrink } = file;
    let input = fs.open_random_access(source, IoMode::Buffered)?;
    let mut output =
        BufferedWriter::new(fs.create_writable(target, IoMode::Buffered)?, 0, COPY_BUFFER);
    let mut buffer = vec![0; COPY_BUFFER];
    let mut offset = 0;
    while offset < *size {
        let wanted = COPY_BUFFER.min((size - offset) as usize);
        let read = input.read_at(offset, &mut buffer[..wanted])?;
        if read == 0 && *may_shrink {
            Sometimes::CopiedFileShrank.reached();
            break;
        }
        if read == 0 {
            return Err(Error::corruption(format!("file ends before its {size} bytes"))
                .at(source)
                .at_offset(offset));
        }
        output.append(&buffer[..read])?;
        offset += read as u64;
    }
    output.sync()
}

//! The files of a copy that is made file by file, such as a backup.
//!
//! 1. Deletions are paused: what is listed stays until [`FilesToCopy`] is dropped.
//! 2. Where asked for, all memtables are flushed.
//! 3. The files are listed between two commits. If the WALs go along and name blob files that the
//!    MANIFEST lacks, all memtables are flushed and the files are listed again. Large values stay
//!    in the WAL meanwhile, so that only values that are streamed can make another round necessary.

use std::path::PathBuf;

use crate::base::file_name::{self, FileKind};
use crate::base::{Code, Error, Result, SequenceNumber, Temperature};
use crate::db::DbInner;
use crate::db::checkpoint::RunningCheckpoint;
use crate::db::contents::{Contents, Copied, contents};
use crate::db::handle::Db;
use crate::env::Env;

/// How often memtables are flushed for the sake of blob files before the copy is given up.
const ROUNDS: usize = 16;

/// What a copy is to have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyOptions {
    /// Whether memtables are flushed before.
    pub(crate) flush: bool,
    /// Whether the WALs are copied.
    pub(crate) with_wals: bool,
}

/// Where the bytes of a file come from.
#[derive(Debug)]
pub(crate) enum FileBytes {
    /// The first `size` bytes of a file; those that there are if it `may_shrink`.
    OfFile { path: PathBuf, size: u64, may_shrink: bool },
    /// Bytes that are in no file.
    Made(Vec<u8>),
}

/// A file of the copy.
#[derive(Debug)]
pub(crate) struct CopiedFile {
    /// Its name in a database directory.
    pub(crate) name: String,
    pub(crate) kind: FileKind,
    pub(crate) bytes: FileBytes,
    pub(crate) temperature: Temperature,
}

/// The files of a copy; none of them is removed while this lives.
pub(crate) struct FilesToCopy<'a> {
    paused: Pause<'a>,
    /// CURRENT last.
    pub(crate) files: Vec<CopiedFile>,
    /// The last sequence number that the copy has.
    pub(crate) sequence: SequenceNumber,
}

impl FilesToCopy<'_> {
    /// The world of the database.
    pub(crate) fn env(&self) -> &Env {
        &self.paused.db.context.env
    }
}

/// Keeps files from being removed, and the database from being closed.
struct Pause<'a> {
    db: &'a DbInner,
    _running: RunningCheckpoint<'a>,
}

impl<'a> Pause<'a> {
    fn begin(db: &'a DbInner) -> Result<Self> {
        let running = RunningCheckpoint::begin(db)?;
        db.tree.pause_deletions(1);
        Ok(Self { db, _running: running })
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.db.pipeline.end_pause(1);
        self.db.jobs.purge_obsolete_files();
    }
}

/// Lists the files of a copy of the database as it is now, and keeps them.
///
/// # Errors
/// `NotSupported` for a database that is open for reading whose WALs name blob files that its
/// MANIFEST lacks; `TryAgain` if values are streamed so fast that each flush finds new ones;
/// `Corruption` if a file is missing; `ShutdownInProgress`; `IoError`.
pub(crate) fn files_to_copy(db: &Db, options: CopyOptions) -> Result<FilesToCopy<'_>> {
    let inner = db.inner();
    if !inner.context.read_only {
        inner.context.check_writable()?;
    }
    let paused = Pause::begin(inner)?;
    if options.flush && !inner.context.read_only {
        db.flush_all()?;
    }
    let contents = settled_contents(db, options.with_wals)?;
    let sequence = contents.sequence;
    let files = listed(db, contents, options.with_wals)?;
    Ok(FilesToCopy { paused, files, sequence })
}

fn settled_contents(db: &Db, with_wals: bool) -> Result<Contents> {
    let inner = db.inner();
    let _separation = inner.pipeline.pause_separation();
    for _ in 0..ROUNDS {
        let found = contents(inner)?;
        if !with_wals || found.growing.is_empty() {
            return Ok(found);
        }
        if inner.context.read_only {
            let message = "the WALs name this blob file, but the MANIFEST does not list it yet, and a database that \
                           is open for reading cannot flush; open it for writing";
            return Err(Error::not_supported(message).at(&found.growing[0].source));
        }
        db.flush_all()?;
    }
    let message = "values are streamed into the database so fast that each flush finds new ones";
    Err(Error::new(Code::TryAgain, message).at(&inner.context.path))
}

fn listed(db: &Db, contents: Contents, with_wals: bool) -> Result<Vec<CopiedFile>> {
    let inner = db.inner();
    let Contents { linked, wals, state, options, .. } = contents;
    let mut live = db.live_files();
    live.sort_unstable_by_key(|file| file.number);
    let temperature = |kind: FileKind| {
        let found = kind
            .number()
            .and_then(|number| live.binary_search_by_key(&number, |file| file.number).ok());
        found.map_or(Temperature::UNKNOWN, |at| live[at].temperature)
    };
    let mut files = Vec::new();
    for path in linked {
        let size = inner.context.env.fs.metadata(&path)?.size;
        files.push(of_file(Copied { source: path, size, may_shrink: false })?);
    }
    for file in &mut files {
        file.temperature = temperature(file.kind);
    }
    if with_wals {
        for wal in wals {
            files.push(of_file(wal)?);
        }
    }
    let (number, manifest) = state.to_bytes()?;
    files.push(made(FileKind::Options(inner.tree.file_numbers.next()), options.into_bytes()));
    files.push(made(FileKind::Manifest(number), manifest));
    files.push(made(FileKind::Current, format!("MANIFEST-{number}\n").into_bytes()));
    Ok(files)
}

fn of_file(file: Copied) -> Result<CopiedFile> {
    let Copied { source, size, may_shrink } = file;
    let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let kind = FileKind::parse(&name);
    let kind =
        kind.ok_or_else(|| Error::corruption("not the name of a database's file").at(&source))?;
    let bytes = FileBytes::OfFile { path: source, size, may_shrink };
    Ok(CopiedFile { name, kind, bytes, temperature: Temperature::UNKNOWN })
}

fn made(kind: FileKind, bytes: Vec<u8>) -> CopiedFile {
    let path = match kind {
        FileKind::Options(number) => file_name::options("".as_ref(), number),
        FileKind::Manifest(number) => file_name::manifest("".as_ref(), number),
        _ => file_name::current("".as_ref()),
    };
    let name = path.to_string_lossy().into_owned();
    CopiedFile { name, kind, bytes: FileBytes::Made(bytes), temperature: Temperature::UNKNOWN }
}

//! The files of a copy of the database: of checkpoints, exports, backups, and copies that programs
//! make.
//!
//! 1. Deletions are paused: what is listed stays until [`FilesToCopy`] is dropped.
//! 2. Memtables are flushed if there is as much in the WALs as the caller says.
//! 3. The files are listed between two commits. If the WALs go along and name blob files that the
//!    MANIFEST lacks, all memtables are flushed and the files are listed again. Large values stay
//!    in the WAL meanwhile, so that only values that are streamed can make another round necessary.

use std::path::PathBuf;

use crate::base::file_name::{self, FileKind};
use crate::base::{
    Code, ColumnFamilyId, Error, FileChecksum, Mutant, Result, SequenceNumber, Sometimes,
    Temperature,
};
use crate::db::DbInner;
use crate::db::checkpoint::RunningCheckpoint;
use crate::db::contents::{Contents, Copied, contents};
use crate::db::handle::Db;
use crate::db::wal_files::wal_files;
use crate::env::{Env, read_file};
use crate::options::FlushReason;

/// How often memtables are flushed for the sake of blob files before the copy is given up.
const ROUNDS: usize = 16;

/// What a copy is to have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyOptions {
    /// Memtables are flushed before if the WALs that recovery would need have as many bytes of
    /// records; 0 flushes always, `u64::MAX` never.
    pub(crate) log_size_for_flush: u64,
    /// Whether the WALs are copied.
    pub(crate) with_wals: bool,
    /// Of a database that is open for reading, and so cannot flush, copies blob files that the WALs
    /// name and the MANIFEST lacks. RocksDB does not read such a copy.
    pub(crate) with_growing_blobs: bool,
    /// How the MANIFEST goes along.
    pub(crate) manifest: ManifestForm,
    /// Copies one family, without WALs: what it has in tables.
    pub(crate) only: Option<ColumnFamilyId>,
}

impl CopyOptions {
    /// All that the database holds, in one directory.
    pub(crate) fn whole(log_size_for_flush: u64) -> Self {
        Self {
            log_size_for_flush,
            with_wals: true,
            with_growing_blobs: false,
            manifest: ManifestForm::ForOneDirectory,
            only: None,
        }
    }

    /// One family, in one directory, after a flush.
    pub(crate) fn family(id: ColumnFamilyId) -> Self {
        Self { with_wals: false, only: Some(id), ..Self::whole(0) }
    }
}

/// How the MANIFEST goes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ManifestForm {
    /// Written anew, with all files in one directory.
    ForOneDirectory,
    /// As it is, with the directories that it names, if its file says what the database is now.
    AsItIs,
}

/// Where the bytes of a file come from.
#[derive(Debug)]
pub(crate) enum FileBytes {
    /// The first `size` bytes of a file.
    OfFile { path: PathBuf, size: u64, change: Change },
    /// Bytes that are in no file.
    Made(Vec<u8>),
}

/// How a file may change while it is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Not at all: it may be linked.
    Never,
    /// It may grow behind its `size`.
    Grows,
    /// It may also end before it; what there is suffices.
    GrowsOrShrinks,
}

/// A file of the copy.
#[derive(Debug)]
pub(crate) struct CopiedFile {
    /// Its name in a database directory.
    pub(crate) name: String,
    pub(crate) kind: FileKind,
    pub(crate) bytes: FileBytes,
    pub(crate) temperature: Temperature,
    pub(crate) checksum: Option<FileChecksum>,
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
    pauses: usize,
    _running: RunningCheckpoint<'a>,
}

impl<'a> Pause<'a> {
    fn begin(db: &'a DbInner) -> Result<Self> {
        let running = RunningCheckpoint::begin(db)?;
        let pauses = usize::from(!Mutant::DeleteUnderCheckpoint.is_on());
        db.tree.pause_deletions(pauses);
        Ok(Self { db, pauses, _running: running })
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.db.pipeline.end_pause(self.pauses);
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
    if !inner.context.read_only && logged(inner) >= options.log_size_for_flush {
        match options.only {
            Some(id) => flush_one(inner, id)?,
            None => flush_all(inner)?,
        }
    }
    let contents = settled_contents(db, options)?;
    let sequence = contents.sequence;
    let files = listed(db, contents, options)?;
    Ok(FilesToCopy { paused, files, sequence })
}

fn flush_all(db: &DbInner) -> Result<()> {
    let families: Vec<_> = db.tree.families.read().values().cloned().collect();
    db.jobs.flush_asked_for(&families, true, FlushReason::Copy)
}

fn flush_one(db: &DbInner, id: ColumnFamilyId) -> Result<()> {
    let family = db.tree.families.read().get(&id).cloned();
    family.map_or(Ok(()), |family| db.jobs.flush_asked_for(&[family], true, FlushReason::Copy))
}

/// The bytes of records in the WALs that recovery would need.
fn logged(db: &DbInner) -> u64 {
    let (wals, _) = wal_files(db);
    wals.iter().filter(|wal| !wal.archived).map(|wal| wal.size).sum()
}

fn settled_contents(db: &Db, options: CopyOptions) -> Result<Contents> {
    let inner = db.inner();
    let _separation = inner.pipeline.pause_separation();
    for _ in 0..ROUNDS {
        let found = contents(inner, options.only)?;
        if !options.with_wals || found.growing.is_empty() {
            return Ok(found);
        }
        if inner.context.read_only && options.with_growing_blobs {
            return Ok(found);
        }
        if inner.context.read_only {
            let message = "the WALs name this blob file, but the MANIFEST does not list it yet, and a database that \
                           is open for reading cannot flush; open it for writing";
            return Err(Error::not_supported(message).at(&found.growing[0].source));
        }
        Sometimes::FlushedForCopy.reached();
        flush_all(inner)?;
    }
    let message = "values are streamed into the database so fast that each flush finds new ones";
    Err(Error::new(Code::TryAgain, message).at(&inner.context.path))
}

fn listed(db: &Db, contents: Contents, options: CopyOptions) -> Result<Vec<CopiedFile>> {
    let inner = db.inner();
    let Contents { linked, growing, wals, manifest, state, options: text, .. } = contents;
    let mut live = db.live_files();
    live.sort_unstable_by_key(|file| file.number);
    let mut files = Vec::new();
    for path in linked {
        let size = inner.context.env.fs.metadata(&path)?.size;
        files.push(of_file(path, size, Change::Never)?);
    }
    for file in &mut files {
        let number = file.kind.number().unwrap_or_default();
        if let Ok(at) = live.binary_search_by_key(&number, |file| file.number) {
            (file.temperature, file.checksum) = (live[at].temperature, live[at].checksum.clone());
        }
    }
    let grown = growing.into_iter().chain(wals).filter(|_| options.with_wals);
    for Copied { source, size, may_shrink } in grown {
        let change = if may_shrink { Change::GrowsOrShrinks } else { Change::Grows };
        files.push(of_file(source, size, change)?);
    }
    let on_disk = match options.manifest {
        ManifestForm::AsItIs => options_on_disk(inner, text.as_bytes())?,
        ManifestForm::ForOneDirectory => None,
    };
    files.push(on_disk.unwrap_or_else(|| {
        made(FileKind::Options(inner.tree.file_numbers.next()), text.into_bytes())
    }));
    let number = match manifest.filter(|_| options.manifest == ManifestForm::AsItIs) {
        Some((number, size)) => {
            let path = file_name::manifest(&inner.context.path, number);
            files.push(of_file(path, size, Change::Grows)?);
            number
        }
        None => {
            let (number, bytes) = state.to_bytes()?;
            files.push(made(FileKind::Manifest(number), bytes));
            number
        }
    };
    files.push(made(FileKind::Current, format!("MANIFEST-{number}\n").into_bytes()));
    Ok(files)
}

/// The newest OPTIONS file, if it has this text.
fn options_on_disk(db: &DbInner, text: &[u8]) -> Result<Option<CopiedFile>> {
    let (env, directory) = (&db.context.env, &db.context.path);
    let names = env.fs.list(directory)?;
    let numbers = names.iter().filter_map(|name| match FileKind::parse(name) {
        Some(FileKind::Options(number)) => Some(number),
        _ => None,
    });
    let Some(number) = numbers.max() else { return Ok(None) };
    let path = file_name::options(directory, number);
    let size = text.len() as u64;
    let has_text = || -> Result<bool> {
        Ok(env.fs.metadata(&path)?.size == size && read_file(&*env.fs, &path, size)? == text)
    };
    match has_text() {
        Ok(true) => of_file(path, size, Change::Never).map(Some),
        Ok(false) => Ok(None),
        // Another process that writes the database has replaced it meanwhile.
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn of_file(path: PathBuf, size: u64, change: Change) -> Result<CopiedFile> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let kind = FileKind::parse(&name);
    let kind =
        kind.ok_or_else(|| Error::corruption("not the name of a database's file").at(&path))?;
    let bytes = FileBytes::OfFile { path, size, change };
    Ok(CopiedFile { name, kind, bytes, temperature: Temperature::UNKNOWN, checksum: None })
}

fn made(kind: FileKind, bytes: Vec<u8>) -> CopiedFile {
    let path = match kind {
        FileKind::Options(number) => file_name::options("".as_ref(), number),
        FileKind::Manifest(number) => file_name::manifest("".as_ref(), number),
        _ => file_name::current("".as_ref()),
    };
    let (name, bytes) = (path.to_string_lossy().into_owned(), FileBytes::Made(bytes));
    CopiedFile { name, kind, bytes, temperature: Temperature::UNKNOWN, checksum: None }
}

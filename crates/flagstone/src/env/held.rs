//! The files of a database that is read without its lock: opened once, and held open.
//!
//! **Algorithm.**
//! 1. A file opened for reading is locked against changes in place ([`RandomAccessFile::share`])
//!    and kept open until the handle goes. Later requests for its name get that file, because
//!    another process may have removed the name, or written a new log over the old one.
//! 2. A directory still lists the names of the held files, with the sizes of the open files. A
//!    MANIFEST ends where it ended when it was opened.
//! 3. If the directory changes during an opening, the opening is repeated. Tables and blob files
//!    never change under their names, so the next attempt takes over those already found.
//! 4. What an attempt may lack is noted: the tables and blob files that it did not find, and the
//!    number from which it may have missed a WAL, if that was removed before the MANIFEST had a
//!    certain size.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::followed::open_shared;
use super::{
    AnyFile, Clock, Env, FileAround, FileSystem, FileSystemAround, IoMode, Metadata, OpenMode,
    RandomAccessFile, is_out_of_descriptors,
};
use crate::base::file_name::FileKind;
use crate::base::sync::{AtomicBool, Mutex, Ordering};
use crate::base::{Error, FileNumber, Result, file_name};

type Files = HashMap<PathBuf, Arc<dyn RandomAccessFile>>;

/// A [`FileSystem`] in which the files of a database that were opened for reading stay as they
/// were.
pub(crate) struct HeldFiles {
    fs: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    files: Mutex<Files>,
    /// Tables and blob files that an earlier attempt has found.
    found_before: Mutex<Files>,
    lacks: Mutex<Lacks>,
    /// Nothing is added any more.
    is_sealed: AtomicBool,
}

/// What an attempt may lack.
#[derive(Default)]
struct Lacks {
    /// Tables and blob files that were not found.
    files: HashSet<PathBuf>,
    /// Blob files that were found by this attempt, and not by an earlier one.
    new_blobs: HashSet<FileNumber>,
    /// WALs below this number are held, or were removed before anything else was read.
    wals_from: FileNumber,
    /// WALs that were there and could not be opened.
    refused_wals: Vec<(FileNumber, Error)>,
    /// The MANIFEST that was read.
    manifest: Option<PathBuf>,
    /// Its size when a WAL was asked for the last time.
    manifest_size: Option<u64>,
}

impl HeldFiles {
    /// A view of `env`'s files; `before` is the view of an attempt that failed.
    pub(crate) fn new(env: &Env, before: Option<&Self>) -> Self {
        let mut found_before = Files::default();
        if let Some(before) = before {
            found_before.extend(before.found_before.lock().drain());
            found_before.extend(before.files.lock().drain());
            found_before.retain(|path, _| never_changes(path));
        }
        Self {
            fs: env.fs.clone(),
            clock: env.clock.clone(),
            files: Mutex::default(),
            found_before: Mutex::new(found_before),
            lacks: Mutex::default(),
            is_sealed: AtomicBool::new(false),
        }
    }

    /// Holds the WALs that are in `directory`. Whether one that cannot be opened is needed,
    /// [`Self::check_wals`] tells later.
    ///
    /// # Errors
    /// `IoError` if the directory cannot be listed; but whether it is there, others say.
    pub(crate) fn hold_wals(&self, directory: &Path) -> Result<()> {
        let names = match self.fs.list(directory) {
            Err(error) if error.is_not_found() => return Ok(()),
            listed => listed?,
        };
        let mut numbers: Vec<_> =
            names.iter().filter_map(|name| wal_number(FileKind::parse(name)?)).collect();
        numbers.sort_unstable();
        let mut wals_from =
            numbers.last().map_or(FileNumber(0), |newest| FileNumber(newest.0.saturating_add(1)));
        for number in numbers {
            let path = file_name::wal(directory, number);
            match self.find(&path, IoMode::Buffered) {
                Ok(file) => drop(self.files.lock().insert(path, file)),
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    wals_from = wals_from.min(number);
                    // The limit of open files is raised after this; the replay finds out whether
                    // that is enough.
                    if !is_out_of_descriptors(&error) {
                        self.lacks.lock().refused_wals.push((number, error));
                    }
                }
            }
        }
        self.lacks.lock().wals_from = wals_from;
        Ok(())
    }

    /// Fails if a WAL from `oldest` on was there and could not be held, even if it was opened
    /// later.
    ///
    /// # Errors
    /// The error of opening it.
    pub(crate) fn check_wals(&self, oldest: FileNumber) -> Result<()> {
        let lacks = self.lacks.lock();
        let refused = lacks.refused_wals.iter().find(|(number, _)| *number >= oldest);
        refused.map_or(Ok(()), |(_, error)| Err(error.clone()))
    }

    /// The attempt was the last one: the files of earlier ones that it did not ask for are closed,
    /// and so are WALs below `oldest`. WALs that it has not opened are no part of the state.
    pub(crate) fn seal(&self, oldest: FileNumber) {
        let _closed_without_lock = std::mem::take(&mut *self.found_before.lock());
        let is_older =
            |path: &Path| kind(path).and_then(wal_number).is_some_and(|number| number < oldest);
        self.files.lock().retain(|path, _| !is_older(path));
        self.is_sealed.store(true, Ordering::Release);
    }

    /// Whether each table and blob file that was asked for was found.
    pub(crate) fn has_all(&self) -> bool {
        let files = self.files.lock();
        // LevelDB's name for a table.
        self.lacks.lock().files.iter().all(|path| files.contains_key(&path.with_extension("ldb")))
    }

    /// A WAL of this number or above may have been missed, if it was removed before the MANIFEST
    /// had this size.
    pub(crate) fn wals_missed(&self) -> (FileNumber, u64) {
        let lacks = self.lacks.lock();
        (lacks.wals_from, lacks.manifest_size.unwrap_or(u64::MAX))
    }

    /// The size of a file that is held.
    ///
    /// # Errors
    /// `IoError`.
    pub(crate) fn held_size(&self, path: &Path) -> Result<Option<u64>> {
        self.held(path).map(|file| file.size()).transpose()
    }

    /// Whether a blob file was found by this attempt, and not by an earlier one.
    pub(crate) fn is_new_blob(&self, number: FileNumber) -> bool {
        self.lacks.lock().new_blobs.contains(&number)
    }

    /// Whether no held WAL from `oldest` on was written over until now, which RocksDB does under a
    /// new name.
    ///
    /// # Errors
    /// `IoError`.
    pub(crate) fn has_whole_wals(&self, oldest: FileNumber) -> Result<bool> {
        let files: Vec<_> = {
            let files = self.files.lock();
            files.iter().map(|(path, file)| (path.clone(), file.clone())).collect()
        };
        for (path, file) in files {
            if kind(&path).and_then(wal_number).is_none_or(|number| number < oldest) {
                continue;
            }
            let held = file.metadata()?;
            let is_whole = match self.fs.metadata(&path) {
                Ok(found) => found.id == held.id,
                Err(error) if error.is_not_found() => held.links == 0,
                Err(error) => return Err(error),
            };
            if !is_whole {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn held(&self, path: &Path) -> Option<Arc<dyn RandomAccessFile>> {
        self.files.lock().get(path).cloned()
    }

    fn find(&self, path: &Path, io: IoMode) -> Result<Arc<dyn RandomAccessFile>> {
        if let Some(file) = self.found_before.lock().remove(path) {
            return Ok(file);
        }
        self.found(path, open_shared(&*self.fs, &*self.clock, path, io)?)
    }

    fn found(
        &self,
        path: &Path,
        file: Arc<dyn RandomAccessFile>,
    ) -> Result<Arc<dyn RandomAccessFile>> {
        Ok(match kind(path) {
            Some(FileKind::Manifest(_)) => {
                self.lacks.lock().manifest = Some(path.to_path_buf());
                Arc::new(Beginning { size: file.size()?, file: file.into() })
            }
            Some(FileKind::Blob(number)) => {
                self.lacks.lock().new_blobs.insert(number);
                file
            }
            _ => file,
        })
    }

    /// What the MANIFEST says from now on takes no WAL away that was asked for.
    fn note_manifest_size(&self) {
        let Some(manifest) = self.lacks.lock().manifest.clone() else { return };
        let found = self.fs.metadata(&manifest);
        self.lacks.lock().manifest_size = found.ok().map(|found| found.size);
    }

    fn note_missing(&self, path: &Path) {
        let mut lacks = self.lacks.lock();
        match kind(path) {
            Some(FileKind::Wal(number)) => lacks.wals_from = lacks.wals_from.min(number),
            Some(FileKind::Table(_) | FileKind::Blob(_)) => {
                lacks.files.insert(path.to_path_buf());
            }
            _ => {}
        }
    }
}

impl FileSystemAround for HeldFiles {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let io = match mode {
            OpenMode::RandomAccess(io) if is_held(path) => io,
            _ => return mode.open(&*self.fs, path),
        };
        let found = self.held(path).map_or_else(|| self.find(path, io), Ok);
        if found.as_ref().is_err_and(Error::is_not_found) {
            self.note_missing(path);
        }
        if !self.is_sealed.load(Ordering::Acquire) && kind(path).and_then(wal_number).is_some() {
            self.note_manifest_size();
        }
        // Another thread may have been faster: all readers have one.
        Ok(self.files.lock().entry(path.to_path_buf()).or_insert(found?).clone().into())
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        let mut names = self.fs.list(directory)?;
        let files = self.files.lock();
        let held = files.keys().filter(|path| path.parent() == Some(directory));
        names.extend(held.filter_map(|path| path.file_name()?.to_str().map(ToString::to_string)));
        names.sort_unstable();
        names.dedup();
        if self.is_sealed.load(Ordering::Acquire) {
            let is_wal = |name: &str| matches!(FileKind::parse(name), Some(FileKind::Wal(_)));
            names.retain(|name| !is_wal(name) || files.contains_key(&directory.join(name)));
        }
        Ok(names)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        match self.held(path) {
            Some(file) => file.metadata(),
            None => self.fs.metadata(path),
        }
    }
}

/// The first bytes of a file that grows.
struct Beginning {
    file: AnyFile,
    size: u64,
}

impl FileAround for Beginning {
    fn inner(&self) -> &AnyFile {
        &self.file
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let rest = self.size.saturating_sub(offset);
        let length = usize::try_from(rest).map_or(buffer.len(), |rest| rest.min(buffer.len()));
        self.file.read_at(offset, &mut buffer[..length])
    }

    fn size(&self) -> Result<u64> {
        Ok(self.size)
    }

    fn metadata(&self) -> Result<Metadata> {
        Ok(Metadata { size: self.size, ..self.file.metadata()? })
    }
}

fn wal_number(kind: FileKind) -> Option<FileNumber> {
    match kind {
        FileKind::Wal(number) => Some(number),
        _ => None,
    }
}

fn kind(path: &Path) -> Option<FileKind> {
    FileKind::parse(path.file_name()?.to_str()?)
}

/// Whether what is there is part of the state that a reader sees.
fn is_held(path: &Path) -> bool {
    let kind = kind(path);
    never_changes(path)
        || matches!(kind, Some(FileKind::Wal(_) | FileKind::Manifest(_) | FileKind::Current))
}

fn never_changes(path: &Path) -> bool {
    matches!(kind(path), Some(FileKind::Table(_) | FileKind::Blob(_)))
}

#[cfg(test)]
mod tests;

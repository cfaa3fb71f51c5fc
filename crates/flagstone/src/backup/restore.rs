//! Restoring a backup.
//!
//! 1. Files of the database that is replaced are kept if the backup has the same and the options
//!    ask for it.
//! 2. All other files of the backup are copied beside them as `<number>.dbtmp` and synced, and
//!    their checksums compared. Up to here a failure changes nothing: the copies are removed.
//! 3. The old MANIFEST is removed: from then on the directory has no database. Then all other
//!    files of the old database go.
//! 4. The copies get their names, the MANIFEST after all others, and last CURRENT, each once what
//!    was before it is durable.
//!
//! Files whose names are not a database's stay. What an interruption left is removed by the next
//! call, or by opening the database that was not replaced.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::base::file_name::{self, FileKind};
use crate::base::{Error, FileNumber, Result};
use crate::env::{Env, FileLock, FileSystem, IoMode, Names, read_file};
use crate::sst::read_table_properties;

use super::directory::{Backup, Directory, size_of};
use super::format::MetaFile;
use super::layout::BackupPath;
use super::options::{RestoreMode, RestoreOptions};
use super::transfer::{Passed, Transfer, on_all};
use super::verify::check_checksum;

/// CURRENT names one file.
const CURRENT_SIZE_MAX: u64 = 4096;

/// Restores one backup.
pub(super) struct Restoration<'a> {
    pub(super) directory: &'a Directory,
    pub(super) backup: &'a Backup,
    pub(super) options: &'a RestoreOptions,
    pub(super) transfer: Transfer<'a>,
    pub(super) threads: usize,
    /// The world of the database.
    pub(super) env: &'a Env,
    pub(super) names: &'a Names,
    pub(super) db_dir: &'a Path,
    pub(super) wal_dir: &'a Path,
}

/// A file of the backup, and where it lies.
#[derive(Clone)]
struct Source<'a> {
    directory: &'a Directory,
    file: MetaFile,
    name: String,
    kind: FileKind,
}

/// A copy that has no name yet that counts.
struct Copied {
    temporary: PathBuf,
    target: PathBuf,
    kind: FileKind,
}

impl Restoration<'_> {
    /// # Errors
    /// As [`super::BackupEngineReadOnly::restore_db_from_backup`].
    pub(super) fn run(&self) -> Result<()> {
        let sources = self.sources()?;
        for directory in [self.db_dir, self.wal_dir] {
            self.names.create_directory(directory)?;
        }
        let lock = self.lock()?;
        let kept = self.kept(&sources)?;
        let missing = |source: &Source<'_>| {
            !kept.contains(&source.name) && source.kind != FileKind::Current && !self.stays(source)
        };
        let excluded = self.excluded(&kept)?;
        let wanted = sources.iter().cloned().chain(excluded).filter(missing).collect();
        let current = self.current(&sources)?;
        self.remove_temporaries()?;
        let is_manifest =
            |name: &str, kind| matches!(kind, FileKind::Manifest(_)) && !kept.contains(name);
        let (copied, manifests) = self
            .copy(wanted)
            .and_then(|copied| Ok((copied, self.old(self.db_dir, is_manifest)?)))
            .inspect_err(|_| {
                let _ = self.remove_temporaries();
            })?;
        let replaced = self.replace(&kept, manifests, copied, lock).and_then(|()| {
            let temporary = file_name::temporary(self.db_dir, self.first_number()?);
            self.names.replace_file(&temporary, &file_name::current(self.db_dir), &current)
        });
        replaced.map_err(|error| {
            let state =
                "the old database may be gone, and the backup is not in its place; restore again";
            error.context(state)
        })
    }

    fn fs(&self) -> &dyn FileSystem {
        &*self.env.fs
    }

    /// The files of the backup.
    fn sources(&self) -> Result<Vec<Source<'_>>> {
        let files = self.backup.meta.files.iter().map(|file| of(self.directory, file.clone()));
        let sources: Vec<_> = files.collect::<Result<_>>()?;
        let mut names = BTreeSet::new();
        for source in &sources {
            if !names.insert(source.name.as_str()) {
                let message = format!("the backup has two files for {}", source.name);
                return Err(Error::corruption(message).at(source.path()));
            }
        }
        Ok(sources)
    }

    /// The bytes of CURRENT, which names a MANIFEST that the backup has.
    fn current(&self, sources: &[Source<'_>]) -> Result<Vec<u8>> {
        let current = sources.iter().find(|source| source.kind == FileKind::Current);
        let lacks = |what: &str| Error::corruption(format!("the backup has no {what}"));
        let current = current.ok_or_else(|| lacks("CURRENT").at(&self.directory.path))?;
        let bytes = read_file(current.directory.fs(), &current.path(), CURRENT_SIZE_MAX)?;
        let found = crate::base::checksum::crc32c(&bytes);
        let expected = current.file.crc32c.unwrap_or(found);
        check_checksum(expected, found).map_err(|error| error.at(current.path()))?;
        let named = String::from_utf8_lossy(&bytes);
        if !sources.iter().any(|source| source.name == named.trim_end()) {
            return Err(lacks("MANIFEST that CURRENT names").at(current.path()));
        }
        Ok(bytes)
    }

    /// Keeps others from opening the database that is replaced. One that is not there cannot be
    /// open.
    fn lock(&self) -> Result<Option<Box<dyn FileLock>>> {
        let path = file_name::lock(self.db_dir);
        if size_of(self.fs(), &path)?.is_none() {
            return Ok(None);
        }
        let locked = self.fs().lock(&path);
        locked
            .map(Some)
            .map_err(|error| error.context("the database that is to be replaced is open"))
    }

    /// The names of files that the options keep, because the backup has the same.
    fn kept(&self, sources: &[Source<'_>]) -> Result<BTreeSet<String>> {
        let mut kept = BTreeSet::new();
        if self.options.mode == RestoreMode::PurgeAllFiles {
            return Ok(kept);
        }
        let present: BTreeSet<String> = self.fs().list(self.db_dir)?.into_iter().collect();
        let candidates = sources.iter().filter(|source| present.contains(&source.name)).collect();
        let same = on_all(&*self.env.spawner, self.threads, candidates, |source: &Source<'_>| {
            Ok(self.is_same(source)?.then(|| source.name.clone()))
        })?;
        kept.extend(same.into_iter().flatten());
        if self.options.mode == RestoreMode::KeepLatestDbSessionIdFiles {
            for path in &self.backup.meta.excluded {
                let name = path.database_name();
                let is_table = matches!(path.kind(), Some(FileKind::Table(_)));
                if is_table && present.contains(&name) && self.is_by_session(path, &name) {
                    kept.insert(name);
                }
            }
        }
        Ok(kept)
    }

    /// Whether the database has the file already. One that cannot be read is not the same.
    fn is_same(&self, source: &Source<'_>) -> Result<bool> {
        let path = self.db_dir.join(&source.name);
        let is_data = matches!(source.kind, FileKind::Table(_) | FileKind::Blob(_));
        match self.options.mode {
            RestoreMode::KeepLatestDbSessionIdFiles => {
                Ok(matches!(source.kind, FileKind::Table(_))
                    && self.is_by_session(&source.file.path, &source.name))
            }
            RestoreMode::VerifyChecksum if is_data => {
                let own = match source.file.crc32c {
                    Some(crc32c) => crc32c,
                    None => {
                        let place = source.path();
                        self.transfer.checksum((source.directory.fs(), &place))?.crc32c
                    }
                };
                let found = self.transfer.checksum((self.fs(), &path));
                Ok(found.is_ok_and(|found| found.crc32c == own))
            }
            RestoreMode::VerifyChecksum | RestoreMode::PurgeAllFiles => Ok(false),
        }
    }

    /// Whether the table of that name was written by the session, and has the size, in the path.
    fn is_by_session(&self, path: &BackupPath, name: &str) -> bool {
        let own = || -> Result<bool> {
            let table = self.fs().open_random_access(&self.db_dir.join(name), IoMode::Buffered)?;
            let size = table.size()?;
            let session = read_table_properties(table, size)?.session_identity;
            Ok(!session.is_empty() && *path == BackupPath::by_session(name, &session, Some(size)))
        };
        own().unwrap_or(false)
    }

    /// The files that the backup was made without, from other directories.
    fn excluded(&self, kept: &BTreeSet<String>) -> Result<Vec<Source<'_>>> {
        let mut found = Vec::new();
        for path in &self.backup.meta.excluded {
            if kept.contains(&path.database_name()) {
                continue;
            }
            let elsewhere = self
                .options
                .alternate_dirs
                .iter()
                .find_map(|other| Some((other.directory(), other.file(path).transpose()?)));
            let Some((directory, file)) = elsewhere else {
                let message = format!(
                    "the backup was made without this file, and none of {} alternate_dirs has it",
                    self.options.alternate_dirs.len()
                );
                return Err(Error::invalid_argument(message).at(path.within(&self.directory.path)));
            };
            found.push(of(directory, file?)?);
        }
        Ok(found)
    }

    /// Whether a WAL of this name is there that the options keep.
    fn stays(&self, source: &Source<'_>) -> bool {
        let is_wal = matches!(source.kind, FileKind::Wal(_));
        is_wal
            && self.options.keep_log_files
            && [self.wal_dir.to_path_buf(), file_name::archive(self.wal_dir)]
                .iter()
                .any(|directory| self.fs().metadata(&directory.join(&source.name)).is_ok())
    }

    /// A number for temporary files that no file of the directories has.
    fn first_number(&self) -> Result<FileNumber> {
        let mut last = 0;
        for directory in [self.db_dir, self.wal_dir] {
            let numbers = self.fs().list(directory)?;
            let numbers = numbers.iter().filter_map(|name| FileKind::parse(name)?.number());
            last = numbers.fold(last, |last, number| last.max(number.0));
        }
        Ok(FileNumber(last.saturating_add(1)))
    }

    fn copy(&self, wanted: Vec<Source<'_>>) -> Result<Vec<Copied>> {
        let first = self.first_number()?.0;
        let numbered = wanted.into_iter().zip(first..).collect();
        let new_names: Vec<_> =
            [self.db_dir, self.wal_dir].map(|path| self.names.before_making(path)).into();
        let copied = on_all(&*self.env.spawner, self.threads, numbered, |(source, number)| {
            let is_wal = matches!(source.kind, FileKind::Wal(_));
            let directory = if is_wal { self.wal_dir } else { self.db_dir };
            let temporary = file_name::temporary(directory, FileNumber(number));
            let place = source.path();
            let passed = self.transfer.copy(
                (source.directory.fs(), &place),
                None,
                (self.fs(), &temporary),
            )?;
            check(&source, passed)?;
            Ok(Copied { temporary, target: directory.join(&source.name), kind: source.kind })
        })?;
        if self.transfer.sync {
            for names in new_names {
                names.sync()?;
            }
        }
        Ok(copied)
    }

    /// Removes the old database, and gives the copies their names.
    fn replace(
        &self,
        kept: &BTreeSet<String>,
        manifests: Vec<PathBuf>,
        copied: Vec<Copied>,
        lock: Option<Box<dyn FileLock>>,
    ) -> Result<()> {
        self.remove(manifests)?;
        self.sync_names()?;
        let is_old = |name: &str, kind: FileKind| match kind {
            FileKind::Wal(_) => !self.options.keep_log_files,
            FileKind::Table(_) | FileKind::Blob(_) => !kept.contains(name),
            FileKind::Options(_) | FileKind::Identity => true,
            _ => false,
        };
        self.remove_old(self.db_dir, is_old)?;
        self.remove_old(self.wal_dir, |name, kind| {
            matches!(kind, FileKind::Wal(_)) && is_old(name, kind)
        })?;
        self.settle_archive()?;
        let (manifests, others): (Vec<_>, Vec<_>) =
            copied.into_iter().partition(|file| matches!(file.kind, FileKind::Manifest(_)));
        for files in [others, manifests] {
            let new_names = [self.db_dir, self.wal_dir].map(|path| self.names.before_making(path));
            for file in files {
                self.fs().rename(&file.temporary, &file.target)?;
            }
            if self.transfer.sync {
                new_names.iter().try_for_each(crate::env::NewNames::sync)?;
            }
        }
        // A copy without LOCK is known to be one: an empty WAL may be missing in it.
        if lock.is_some() {
            self.fs().remove(&file_name::lock(self.db_dir))?;
        }
        Ok(())
    }

    /// WALs of the archive go back to the others, or away.
    fn settle_archive(&self) -> Result<()> {
        let archive = file_name::archive(self.wal_dir);
        let names = match self.fs().list(&archive) {
            Err(error) if error.is_not_found() => return Ok(()),
            listed => listed?,
        };
        let is_wal = |name: &&String| matches!(FileKind::parse(name), Some(FileKind::Wal(_)));
        for name in names.iter().filter(is_wal) {
            let path = archive.join(name);
            if self.options.keep_log_files {
                self.fs().rename(&path, &self.wal_dir.join(name))?;
            } else {
                self.fs().remove(&path)?;
            }
        }
        Ok(())
    }

    fn remove_temporaries(&self) -> Result<()> {
        for directory in [self.db_dir, self.wal_dir] {
            self.remove_old(directory, |_, kind| matches!(kind, FileKind::Temporary(_)))?;
        }
        Ok(())
    }

    fn remove_old(&self, directory: &Path, is_old: impl Fn(&str, FileKind) -> bool) -> Result<()> {
        self.remove(self.old(directory, is_old)?)
    }

    /// The files of a directory that `is_old` chooses.
    fn old(
        &self,
        directory: &Path,
        is_old: impl Fn(&str, FileKind) -> bool,
    ) -> Result<Vec<PathBuf>> {
        let mut names = self.fs().list(directory)?;
        names.retain(|name| FileKind::parse(name).is_some_and(|kind| is_old(name, kind)));
        Ok(names.iter().map(|name| directory.join(name)).collect())
    }

    fn remove(&self, files: Vec<PathBuf>) -> Result<()> {
        for path in files {
            match self.fs().remove(&path) {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn sync_names(&self) -> Result<()> {
        if !self.transfer.sync {
            return Ok(());
        }
        [self.db_dir, self.wal_dir]
            .iter()
            .try_for_each(|path| self.names.before_making(path).sync())
    }
}

impl Source<'_> {
    fn path(&self) -> PathBuf {
        self.file.path.within(&self.directory.path)
    }
}

fn of(directory: &Directory, file: MetaFile) -> Result<Source<'_>> {
    let name = file.path.database_name();
    let kind = FileKind::parse(&name).filter(|kind| {
        use FileKind::{Blob, Current, Identity, Manifest, Options, Table, Wal};
        matches!(kind, Wal(_) | Table(_) | Blob(_) | Manifest(_) | Options(_) | Current | Identity)
    });
    let kind = kind.ok_or_else(|| {
        let message = "a backup has no file of this kind";
        Error::corruption(message).at(file.path.within(&directory.path))
    })?;
    Ok(Source { directory, file, name, kind })
}

fn check(source: &Source<'_>, passed: Passed) -> Result<()> {
    let found = source.directory.check_size(&source.file, Some(passed.size));
    found?;
    let expected = source.file.crc32c.unwrap_or(passed.crc32c);
    check_checksum(expected, passed.crc32c).map_err(|error| error.at(source.path()))
}

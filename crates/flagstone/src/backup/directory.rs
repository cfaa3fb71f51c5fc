//! What is in a directory of backups.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::base::{Code, Error, Result};
use crate::env::{FileLock, FileSystem, Names, read_file};

use super::format::{META_SIZE_MAX, Meta, MetaFile};
use super::info::{BackupFileInfo, BackupInfo};
use super::layout::{BackupPath, META, PRIVATE, SHARED, SHARED_CHECKSUM, parse_id};
use super::options::BackupId;

/// A directory of backups.
pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) names: Names,
}

/// A backup whose meta file can be read and whose files are there.
pub(super) struct Backup {
    pub(super) meta: Meta,
    /// Of the files, in the order of the meta file.
    pub(super) sizes: Vec<u64>,
}

/// A backup that cannot be restored.
pub(super) struct Corrupt {
    pub(super) error: Error,
    /// `None` if it cannot be read.
    pub(super) meta: Option<Meta>,
}

/// All backups.
#[derive(Default)]
pub(super) struct Backups {
    pub(super) whole: BTreeMap<BackupId, Backup>,
    pub(super) corrupt: BTreeMap<BackupId, Corrupt>,
}

impl Directory {
    pub(super) fn fs(&self) -> &dyn FileSystem {
        self.names.fs()
    }

    pub(super) fn meta(&self) -> PathBuf {
        self.path.join(META)
    }

    pub(super) fn meta_file(&self, id: BackupId) -> PathBuf {
        self.meta().join(id.to_string())
    }

    pub(super) fn private(&self, id: BackupId) -> PathBuf {
        self.path.join(PRIVATE).join(id.to_string())
    }

    /// Makes the directories that are missing.
    pub(super) fn create(&self, shared: Option<&str>) -> Result<()> {
        for name in [META, PRIVATE].into_iter().chain(shared) {
            self.names.create_directory(&self.path.join(name))?;
        }
        Ok(())
    }

    /// Keeps other engines from writing to the directory.
    ///
    /// # Errors
    /// `Busy` if one writes to it now.
    pub(super) fn lock(&self) -> Result<Box<dyn FileLock>> {
        self.fs().lock(&self.path.join("LOCK")).map_err(|error| match error.code() {
            Code::Busy => error.context("another engine changes this directory of backups"),
            _ => error,
        })
    }

    /// Reads all meta files and looks for the files that they name.
    ///
    /// # Errors
    /// `NotFound` if there is no directory of meta files; `IoError`. A backup that is damaged is
    /// listed as such.
    pub(super) fn load(&self) -> Result<Backups> {
        let names = self.fs().list(&self.meta()).map_err(|error| {
            if error.is_not_found() {
                Error::not_found("there is no directory of backups, which has a directory \"meta\"")
                    .at(&self.path)
            } else {
                error
            }
        })?;
        let mut backups = Backups::default();
        let mut sizes = BTreeMap::new();
        for id in names.iter().filter_map(|name| parse_id(name)) {
            let path = self.meta_file(id);
            let bytes = match read_file(self.fs(), &path, META_SIZE_MAX) {
                Ok(bytes) => bytes,
                Err(error) if error.is_corruption() => {
                    backups.corrupt.insert(id, Corrupt { error, meta: None });
                    continue;
                }
                // Another engine has just removed it.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            match Meta::parse(&bytes, id) {
                Err(error) => {
                    let corrupt = Corrupt { error: error.at(&path), meta: None };
                    backups.corrupt.insert(id, corrupt);
                }
                Ok(meta) => match self.sizes(&meta, &mut sizes)? {
                    Ok(sizes) => {
                        backups.whole.insert(id, Backup { meta, sizes });
                    }
                    Err(error) => {
                        backups.corrupt.insert(id, Corrupt { error, meta: Some(meta) });
                    }
                },
            }
        }
        Ok(backups)
    }

    /// The sizes of a backup's files, or what is wrong with one.
    fn sizes(
        &self,
        meta: &Meta,
        known: &mut BTreeMap<BackupPath, Option<u64>>,
    ) -> Result<Result<Vec<u64>>> {
        let mut sizes = Vec::with_capacity(meta.files.len());
        for file in &meta.files {
            let found = match known.get(&file.path) {
                Some(found) => *found,
                None => {
                    let found = size_of(self.fs(), &file.path.within(&self.path))?;
                    known.insert(file.path.clone(), found);
                    found
                }
            };
            match self.check_size(file, found) {
                Ok(size) => sizes.push(size),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(sizes))
    }

    /// The size of a file, unless it is missing or differs from what is recorded.
    pub(super) fn check_size(&self, file: &MetaFile, found: Option<u64>) -> Result<u64> {
        let path = file.path.within(&self.path);
        let Some(found) = found else {
            return Err(Error::corruption("a file of the backup is missing").at(path));
        };
        match file.known_size().filter(|expected| *expected != found) {
            Some(expected) => {
                let message = format!("the file has {found} bytes, not {expected}");
                Err(Error::corruption(message).at(path))
            }
            None => Ok(found),
        }
    }
}

/// The size of a file; `None` if there is none.
pub(super) fn size_of(fs: &dyn FileSystem, path: &Path) -> Result<Option<u64>> {
    match fs.metadata(path) {
        Ok(metadata) if metadata.is_directory => Ok(None),
        Ok(metadata) => Ok(Some(metadata.size)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Backups {
    /// The largest number of a backup, or 0.
    pub(super) fn newest(&self) -> BackupId {
        let newest = |last: Option<&BackupId>| last.copied().unwrap_or_default();
        newest(self.whole.keys().next_back()).max(newest(self.corrupt.keys().next_back()))
    }

    pub(super) fn has(&self, id: BackupId) -> bool {
        self.whole.contains_key(&id) || self.corrupt.contains_key(&id)
    }

    /// # Errors
    /// `NotFound`; for a corrupt one what is wrong with it.
    pub(super) fn get(&self, id: BackupId) -> Result<&Backup> {
        if let Some(corrupt) = self.corrupt.get(&id) {
            return Err(corrupt.error.clone().context(format!("backup {id} is damaged")));
        }
        self.whole.get(&id).ok_or_else(|| not_found(id))
    }

    /// Files that backups share and that are whole, with what is recorded of them.
    pub(super) fn shared(&self) -> BTreeMap<BackupPath, (MetaFile, u64)> {
        let mut shared: BTreeMap<BackupPath, (MetaFile, u64)> = BTreeMap::new();
        for backup in self.whole.values() {
            let files = backup.meta.files.iter().zip(&backup.sizes);
            for (file, size) in files.filter(|(file, _)| file.path.is_shared()) {
                let known =
                    shared.entry(file.path.clone()).or_insert_with(|| (file.clone(), *size));
                known.0.crc32c = known.0.crc32c.or(file.crc32c);
            }
        }
        shared
    }

    /// The files that any backup names, damaged ones included; `None` if a meta file cannot be
    /// read.
    pub(super) fn named(&self) -> Option<BTreeSet<BackupPath>> {
        let mut named = BTreeSet::new();
        let whole = self.whole.values().map(|backup| Some(&backup.meta));
        let corrupt = self.corrupt.values().map(|corrupt| corrupt.meta.as_ref());
        for meta in whole.chain(corrupt) {
            named.extend(meta?.files.iter().map(|file| file.path.clone()));
        }
        Some(named)
    }
}

pub(super) fn not_found(id: BackupId) -> Error {
    Error::not_found(format!("there is no backup {id}"))
}

impl Backup {
    pub(super) fn info(&self, id: BackupId, directory: &Path, with_details: bool) -> BackupInfo {
        let meta = &self.meta;
        let mut info = BackupInfo {
            backup_id: id,
            timestamp: meta.timestamp,
            sequence_number: meta.sequence,
            size: self.sizes.iter().sum(),
            number_files: meta.files.len(),
            app_metadata: meta.app_metadata.clone(),
            ..BackupInfo::default()
        };
        if with_details {
            let files = meta.files.iter().zip(&self.sizes).map(|(file, size)| BackupFileInfo {
                path: file.path.within(directory),
                relative_filename: file.path.as_str().to_string(),
                size: *size,
                crc32c: file.crc32c,
                temperature: file.temperature,
                is_shared: file.path.is_shared(),
            });
            info.file_details = files.collect();
            info.excluded_files =
                meta.excluded.iter().map(|path| path.as_str().to_string()).collect();
        }
        info
    }
}

/// The directory of shared files for these options.
pub(super) fn shared_directory(is_shared: bool, with_checksum: bool) -> Option<&'static str> {
    match (is_shared, with_checksum) {
        (false, _) => None,
        (true, false) => Some(SHARED),
        (true, true) => Some(SHARED_CHECKSUM),
    }
}

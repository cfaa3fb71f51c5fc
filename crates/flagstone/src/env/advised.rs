//! Files that hold no tables, with the temperatures that the options give them.
//!
//! RocksDB's rules: a WAL gets `wal_write_temperature`; MANIFEST, CURRENT, IDENTITY and OPTIONS get
//! `metadata_write_temperature`, also under the temporary names that three of them have first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{AnyFile, FileSystem, FileSystemAround, OpenMode, hint_temperature};
use crate::base::file_name::FileKind;
use crate::base::sync::Mutex;
use crate::base::{Result, Temperature};

/// A file system around another one, which is told a temperature before such a file is made.
pub(crate) struct AdvisedFiles {
    fs: Arc<dyn FileSystem>,
    of_wals: Temperature,
    of_metadata: Temperature,
    /// Files under temporary names that are to be something else, as their makers have said.
    told: Mutex<BTreeSet<PathBuf>>,
}

impl AdvisedFiles {
    pub(crate) fn new(
        fs: Arc<dyn FileSystem>,
        of_wals: Temperature,
        of_metadata: Temperature,
    ) -> Self {
        Self { fs, of_wals, of_metadata, told: Mutex::default() }
    }

    fn temperature(&self, path: &Path) -> Temperature {
        match kind(path) {
            Some(FileKind::Temporary(_)) if self.told.lock().remove(path) => Temperature::UNKNOWN,
            Some(FileKind::Wal(_)) => self.of_wals,
            Some(
                FileKind::Manifest(_)
                | FileKind::Options(_)
                | FileKind::Temporary(_)
                | FileKind::Current
                | FileKind::Identity,
            ) => self.of_metadata,
            _ => Temperature::UNKNOWN,
        }
    }
}

fn kind(path: &Path) -> Option<FileKind> {
    path.file_name().and_then(|name| FileKind::parse(name.to_str()?))
}

impl FileSystemAround for AdvisedFiles {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn advise(&self, path: &Path, temperature: Temperature) {
        if matches!(kind(path), Some(FileKind::Temporary(_))) {
            self.told.lock().insert(path.to_path_buf());
        }
        self.fs.advise(path, temperature);
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        if mode.creates() || mode == OpenMode::ReopenLog {
            hint_temperature(&*self.fs, path, self.temperature(path));
        }
        mode.open(&*self.fs, path)
    }
}

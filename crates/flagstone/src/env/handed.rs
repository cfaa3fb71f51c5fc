//! Writes that are handed to a file with their checksums (`checksum_handoff_file_types`), for file
//! systems that compare them where the bytes come to rest.

use std::path::Path;
use std::sync::Arc;

use super::{AnyFile, FileAround, FileSystem, FileSystemAround, OpenMode};
use crate::base::Result;
use crate::base::checksum::crc32c;
use crate::base::file_name::FileKind;

/// The kinds of files whose writes are handed over with checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChecksumHandoff {
    /// WALs. They are then written by calls, never through mappings.
    pub wals: bool,
    /// Tables.
    pub tables: bool,
    /// MANIFESTs.
    pub manifests: bool,
    /// Blob files.
    pub blobs: bool,
}

impl ChecksumHandoff {
    /// No kind.
    pub const NONE: Self = Self { wals: false, tables: false, manifests: false, blobs: false };

    /// All kinds.
    pub const ALL: Self = Self { wals: true, tables: true, manifests: true, blobs: true };

    fn has(self, path: &Path) -> bool {
        match path.file_name().and_then(|name| FileKind::parse(name.to_str()?)) {
            Some(FileKind::Wal(_)) => self.wals,
            Some(FileKind::Table(_)) => self.tables,
            Some(FileKind::Manifest(_)) => self.manifests,
            Some(FileKind::Blob(_)) => self.blobs,
            _ => false,
        }
    }
}

/// A file system around another one, to which files of some kinds hand checksums.
pub(crate) struct HandedFiles {
    fs: Arc<dyn FileSystem>,
    kinds: ChecksumHandoff,
}

impl HandedFiles {
    /// Around `fs`.
    pub(crate) fn new(fs: Arc<dyn FileSystem>, kinds: ChecksumHandoff) -> Self {
        Self { fs, kinds }
    }
}

impl FileSystemAround for HandedFiles {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&*self.fs, path)?;
        let is_handed = !mode.only_reads() && self.kinds.has(path);
        Ok(if is_handed { AnyFile::around(HandedFile(file)) } else { file })
    }
}

struct HandedFile(AnyFile);

impl FileAround for HandedFile {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.write_handed(offset, data, crc32c(data))
    }
}

#[cfg(test)]
mod tests;

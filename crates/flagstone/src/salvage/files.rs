//! The source's files. They are only read, and a limited number of them is open at a time.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::Result;
use crate::base::sync::Mutex;
use crate::env::{FileSystem, IoMode, RandomAccessFile, read_until_end};

/// Files that are open at a time: processes are often limited to 1024.
const OPEN_MAX: usize = 256;

/// Bytes of two files that are compared at a time.
const COMPARED_BYTES: usize = 64 << 10;

/// Opens files, and closes those that have been open longest.
pub(super) struct SourceFiles {
    fs: Arc<dyn FileSystem>,
    open: Mutex<VecDeque<Arc<dyn RandomAccessFile>>>,
}

impl SourceFiles {
    pub(super) fn new(fs: Arc<dyn FileSystem>) -> Arc<Self> {
        Arc::new(Self { fs, open: Mutex::default() })
    }

    /// The file at `path`, which is opened when it is read.
    pub(super) fn at(self: &Arc<Self>, path: &Path) -> Arc<dyn RandomAccessFile> {
        Arc::new(SourceFile { files: self.clone(), path: path.to_path_buf() })
    }

    /// Whether the one at `path` is what `whole` begins with, as a copy is that was broken off.
    pub(super) fn is_front(&self, path: &Path, whole: &Path) -> bool {
        let (mut own, mut other) = (vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]);
        let read =
            |path, offset, bytes: &mut [u8]| read_until_end(&*self.opened(path)?, offset, bytes);
        let mut offset = 0;
        loop {
            let Ok(count) = read(path, offset, &mut own) else { return false };
            if count == 0 {
                return true;
            }
            let found = read(whole, offset, &mut other);
            if !found.is_ok_and(|found| found >= count && own[..count] == other[..count]) {
                return false;
            }
            offset += count as u64;
        }
    }

    fn opened(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        let mut open = self.open.lock();
        // The one that was asked for last is asked for next.
        if let Some(file) = open.iter().rev().find(|file| file.path() == path) {
            return Ok(file.clone());
        }
        let file = self.fs.open_random_access(path, IoMode::Buffered)?;
        if open.len() >= OPEN_MAX {
            open.pop_front();
        }
        open.push_back(file.clone());
        Ok(file)
    }
}

struct SourceFile {
    files: Arc<SourceFiles>,
    path: PathBuf,
}

impl RandomAccessFile for SourceFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.files.opened(&self.path)?.read_at(offset, buffer)
    }

    fn size(&self) -> Result<u64> {
        self.files.opened(&self.path)?.size()
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests;

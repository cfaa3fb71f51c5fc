//! A file system in memory, for tests and for databases that need not outlive the process.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::direct::is_aligned;
use super::{
    FileLock, FileSystem, IoMode, LogFile, Metadata, OpenMode, RandomAccessFile, ReclaimableFile,
    WritableFile, directory_of,
};
use crate::base::{Code, Error, Result, SubCode};

/// Bytes of a block, unless it is said otherwise.
const BLOCK_SIZE: u64 = 4096;

/// Bytes that a file shares, until it is written to, with whoever laid them down.
type Content = Arc<RwLock<Arc<Vec<u8>>>>;

/// Files and directories in memory; clones share them.
#[derive(Clone, Default)]
pub struct MemoryFileSystem {
    tree: Arc<Mutex<Tree>>,
}

struct Tree {
    files: BTreeMap<PathBuf, Content>,
    directories: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
    block_size: u64,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            files: BTreeMap::new(),
            directories: BTreeSet::new(),
            locked: BTreeSet::new(),
            block_size: BLOCK_SIZE,
        }
    }
}

impl MemoryFileSystem {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty one with blocks of so many bytes: small files may have many holes.
    pub fn with_block_size(block_size: u64) -> Self {
        let tree = Tree { block_size, ..Tree::default() };
        Self { tree: Arc::new(Mutex::new(tree)) }
    }

    /// Lays down a file, and the directories on the way to it, without copying `bytes`.
    pub fn put(&self, path: &Path, bytes: Arc<Vec<u8>>) {
        let mut tree = self.tree.lock();
        tree.directories.extend(path.ancestors().skip(1).map(Path::to_path_buf));
        tree.files.insert(path.to_path_buf(), Arc::new(RwLock::new(bytes)));
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<MemoryFile>> {
        let mut tree = self.tree.lock();
        let content = match (mode.creates(), tree.files.get(path)) {
            (true, Some(existing)) => {
                *existing.write() = Arc::default();
                existing.clone()
            }
            (true, None) => {
                if !tree.directories.contains(&directory_of(path)) {
                    return Err(missing("create", path));
                }
                let content = Content::default();
                tree.files.insert(path.to_path_buf(), content.clone());
                content
            }
            (_, Some(existing)) => existing.clone(),
            (_, None) => return Err(missing("open", path)),
        };
        let (is_direct, block_size) = (mode.is_direct(), tree.block_size);
        Ok(Arc::new(MemoryFile { path: path.to_path_buf(), content, is_direct, block_size }))
    }

    /// All files and their bytes as they are now, by path.
    pub fn files(&self) -> Vec<(PathBuf, Arc<Vec<u8>>)> {
        let tree = self.tree.lock();
        tree.files.iter().map(|(path, content)| (path.clone(), content.read().clone())).collect()
    }
}

struct MemoryFile {
    path: PathBuf,
    content: Content,
    is_direct: bool,
    block_size: u64,
}

/// The bytes of blocks that are not all zeros: such blocks are taken for holes.
fn allocated(bytes: &[u8], block_size: u64) -> u64 {
    let is_hole =
        |block: &&[u8]| block[0] == 0 && block.iter().fold(0, |all, byte| all | byte) == 0;
    let blocks = bytes.chunks(block_size as usize).filter(|block| !is_hole(block));
    blocks.count() as u64 * block_size
}

fn missing(doing: &str, path: &Path) -> Error {
    Error::io(doing, path, io::Error::from(io::ErrorKind::NotFound))
}

impl RandomAccessFile for MemoryFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let content = self.content.read();
        let rest = content.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn size(&self) -> Result<u64> {
        Ok(self.content.read().len() as u64)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn metadata(&self) -> Result<Metadata> {
        let (bytes, block_size) = (self.content.read(), self.block_size);
        let (size, allocated) = (bytes.len() as u64, allocated(&bytes, block_size));
        Ok(Metadata {
            size,
            allocated,
            block_size,
            is_directory: false,
            modified: None,
            links: 1,
            id: None,
        })
    }

    fn is_direct(&self) -> bool {
        self.is_direct
    }
}

impl WritableFile for MemoryFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        if self.is_direct && !is_aligned(offset, data) {
            // What the system would answer.
            let source = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(Error::io("write directly", &self.path, source).at_offset(offset));
        }
        let mut content = self.content.write();
        let content = Arc::make_mut(&mut content);
        let (start, end) = (offset as usize, offset as usize + data.len());
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(data);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn truncate(&self, length: u64) -> Result<()> {
        Arc::make_mut(&mut self.content.write()).resize(length as usize, 0);
        Ok(())
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        let mut content = self.content.write();
        if !keep_size && (content.len() as u64) < length {
            Arc::make_mut(&mut content).resize(length as usize, 0);
        }
        Ok(())
    }
}

impl LogFile for MemoryFile {}

impl ReclaimableFile for MemoryFile {
    fn punch_hole(&self, range: Range<u64>) -> Result<bool> {
        let mut content = self.content.write();
        let end = range.end.min(content.len() as u64);
        let start = range.start.min(end);
        Arc::make_mut(&mut content)[start as usize..end as usize].fill(0);
        Ok(true)
    }
}

impl FileSystem for MemoryFileSystem {
    fn open_random_access(&self, path: &Path, io: IoMode) -> Result<Arc<dyn RandomAccessFile>> {
        Ok(self.open(path, OpenMode::RandomAccess(io))?)
    }

    fn create_writable(&self, path: &Path, io: IoMode) -> Result<Arc<dyn WritableFile>> {
        Ok(self.open(path, OpenMode::CreateWritable(io))?)
    }

    fn reopen_writable(&self, path: &Path) -> Result<Arc<dyn WritableFile>> {
        Ok(self.open(path, OpenMode::ReopenWritable)?)
    }

    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        Ok(self.open(path, OpenMode::CreateLog)?)
    }

    fn reopen_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        Ok(self.open(path, OpenMode::ReopenLog)?)
    }

    fn open_reclaimable(&self, path: &Path) -> Result<Arc<dyn ReclaimableFile>> {
        Ok(self.open(path, OpenMode::Reclaimable)?)
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        let mut tree = self.tree.lock();
        let content = tree.files.remove(source).ok_or_else(|| missing("rename", source))?;
        tree.files.insert(target.to_path_buf(), content);
        Ok(())
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        let mut tree = self.tree.lock();
        let content = tree.files.get(source).cloned().ok_or_else(|| missing("link", source))?;
        if tree.files.contains_key(target) {
            return Err(Error::io("link", target, io::Error::from(io::ErrorKind::AlreadyExists)));
        }
        tree.files.insert(target.to_path_buf(), content);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.tree.lock().files.remove(path).map(drop).ok_or_else(|| missing("remove", path))
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        let mut tree = self.tree.lock();
        tree.directories.extend(path.ancestors().map(Path::to_path_buf));
        Ok(())
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        let mut tree = self.tree.lock();
        if tree.files.keys().chain(&tree.directories).any(|inner| inner.parent() == Some(path)) {
            let source = io::Error::from(io::ErrorKind::DirectoryNotEmpty);
            return Err(Error::io("remove the directory", path, source));
        }
        if tree.directories.remove(path) {
            Ok(())
        } else {
            Err(missing("remove the directory", path))
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        let tree = self.tree.lock();
        if !tree.directories.contains(directory) {
            return Err(missing("list the directory", directory));
        }
        let inside = tree
            .files
            .keys()
            .chain(&tree.directories)
            .filter(|path| path.parent() == Some(directory));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_string())).collect())
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        if self.tree.lock().directories.contains(directory) {
            Ok(())
        } else {
            Err(missing("sync the directory", directory))
        }
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let tree = self.tree.lock();
        let block_size = tree.block_size;
        let nothing = Metadata {
            size: 0,
            is_directory: true,
            modified: None,
            allocated: 0,
            block_size,
            links: 1,
            id: None,
        };
        if let Some(content) = tree.files.get(path) {
            let links =
                tree.files.values().filter(|other| Arc::ptr_eq(other, content)).count() as u64;
            let bytes = content.read();
            let allocated = allocated(&bytes, block_size);
            return Ok(Metadata {
                size: bytes.len() as u64,
                is_directory: false,
                allocated,
                links,
                ..nothing
            });
        }
        if tree.directories.contains(path) { Ok(nothing) } else { Err(missing("look up", path)) }
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        drop(self.create_writable(path, IoMode::Buffered)?);
        if !self.tree.lock().locked.insert(path.to_path_buf()) {
            return Err(Error::new(
                Code::Busy,
                "the database is in use by another handle; close it there first",
            )
            .with_subcode(SubCode::LockHeld)
            .at(path));
        }
        Ok(Box::new(MemoryLock { tree: self.tree.clone(), path: path.to_path_buf() }))
    }
}

struct MemoryLock {
    tree: Arc<Mutex<Tree>>,
    path: PathBuf,
}

impl FileLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.tree.lock().locked.remove(&self.path);
    }
}

#[cfg(test)]
mod tests;

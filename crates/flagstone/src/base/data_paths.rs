//! Where the tables and blob files of a column family lie.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file_name;
use super::ids::FileNumber;

/// The directories of a family's tables, by their path ids, each with the bytes that it should
/// hold.
///
/// Blob files lie in the first. A path id that there is no directory for means the last one, as in
/// RocksDB: so a checkpoint, whose files all lie in one directory, is a database like any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPaths {
    directories: Vec<Arc<Path>>,
    target_sizes: Vec<u64>,
}

impl DataPaths {
    /// All files in one directory.
    pub fn single(directory: &Path) -> Arc<Self> {
        Self::new(directory, &[])
    }

    /// In `directories`, each with the bytes that it should hold; in `database` if there are none.
    pub fn new(database: &Path, directories: &[(PathBuf, u64)]) -> Arc<Self> {
        let (directories, target_sizes) = match directories {
            [] => (vec![Arc::from(database)], vec![u64::MAX]),
            _ => directories.iter().map(|(path, size)| (Arc::from(path.as_path()), *size)).unzip(),
        };
        Arc::new(Self { directories, target_sizes })
    }

    /// The directory of the tables with that path id.
    pub fn directory(&self, path_id: u32) -> &Arc<Path> {
        &self.directories[(path_id as usize).min(self.directories.len() - 1)]
    }

    /// The directory of the blob files.
    pub fn of_blobs(&self) -> &Arc<Path> {
        &self.directories[0]
    }

    /// A blob file's name.
    pub fn blob(&self, number: FileNumber) -> PathBuf {
        file_name::blob(self.of_blobs(), number)
    }

    /// All of them, by path id.
    pub fn directories(&self) -> &[Arc<Path>] {
        &self.directories
    }

    /// The bytes that each should hold; the last one takes the rest.
    pub fn target_sizes(&self) -> &[u64] {
        &self.target_sizes
    }
}

impl Default for DataPaths {
    /// The process's directory, for versions whose files nobody opens.
    fn default() -> Self {
        Self { directories: vec![Arc::from(Path::new(""))], target_sizes: vec![u64::MAX] }
    }
}

#[cfg(test)]
mod tests;

//! Small files in which a process says something to others while it runs.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::base::{Error, Result};

/// A file that one process writes, again and again as a whole, and others read. It is removed when
/// it is dropped.
///
/// A reader may meet a mixture of two contents: they should have a checksum.
pub trait PublishedFile: Send + Sync {
    /// Replaces the contents.
    ///
    /// # Errors
    /// `IoError`.
    fn publish(&self, contents: &[u8]) -> Result<()>;
}

/// A file of the operating system.
pub(super) struct OsPublishedFile {
    file: fs::File,
    path: PathBuf,
    /// A forked child leaves the file to its parent.
    pid: u32,
}

impl OsPublishedFile {
    /// Begins a new file, in the place of one that a process has left behind.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.open(path).map_err(|error| Error::io("create", path, error))?;
        Ok(Self { file, path: path.to_path_buf(), pid: std::process::id() })
    }

    /// Whether the path still leads to this file and not to one that was put there since.
    fn is_in_place(&self) -> bool {
        let identity = |found: fs::Metadata| (found.dev(), found.ino());
        match (self.file.metadata(), fs::symlink_metadata(&self.path)) {
            (Ok(own), Ok(found)) => identity(own) == identity(found),
            _ => false,
        }
    }
}

impl PublishedFile for OsPublishedFile {
    fn publish(&self, contents: &[u8]) -> Result<()> {
        let failed = |error| Error::io("write", &self.path, error);
        self.file.write_all_at(contents, 0).map_err(failed)?;
        self.file.set_len(contents.len() as u64).map_err(failed)
    }
}

impl Drop for OsPublishedFile {
    fn drop(&mut self) {
        // What is left says itself that its process is gone.
        if std::process::id() == self.pid && self.is_in_place() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// When the process of that number started, in clock ticks since the system did; `None` if there is
/// none, or none that is visible here. With the number it tells a process from a later one.
pub fn process_start(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold any characters.
    let behind_name = stat.rsplit_once(") ")?.1;
    let mut fields = behind_name.split(' ');
    // A process that nobody has waited for yet has ended.
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests;

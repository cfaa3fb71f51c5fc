//! The sums of a [`SstFileManager`](super::SstFileManager).

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use crate::base::{Code, Error, Result, SubCode};

/// What files take, what they may take, and what is kept for compactions.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// Sizes, by database and path.
    files: HashMap<(u64, PathBuf), u64>,
    total: u64,
    /// For running compactions.
    reserved: u64,
    /// 0 for no limit.
    pub(super) max_allowed: u64,
    pub(super) compaction_buffer: u64,
}

impl Space {
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn files(&self) -> BTreeMap<PathBuf, u64> {
        self.files.iter().map(|((_, path), size)| (path.clone(), *size)).collect()
    }

    /// Adds a file, or gives one that is known another size.
    pub(super) fn add(&mut self, database: u64, path: PathBuf, size: u64) {
        let before = self.files.insert((database, path), size).unwrap_or(0);
        self.total = self.total.saturating_sub(before).saturating_add(size);
    }

    pub(super) fn remove(&mut self, database: u64, path: &Path) {
        let size = self.files.remove(&(database, path.to_path_buf())).unwrap_or(0);
        self.total = self.total.saturating_sub(size);
    }

    /// Removes all files of a database.
    pub(super) fn forget(&mut self, database: u64) {
        self.files.retain(|(of, _), _| *of != database);
        self.total = self.files.values().fold(0, |sum, size| sum.saturating_add(*size));
    }

    /// Whether the files, perhaps with what is reserved, take what is allowed.
    pub(super) fn is_reached(&self, with_reserved: bool) -> bool {
        let reserved = if with_reserved { self.reserved } else { 0 };
        self.max_allowed > 0 && self.total.saturating_add(reserved) >= self.max_allowed
    }

    pub(super) fn check_room(&self) -> Result<()> {
        if self.is_reached(false) { Err(self.refusal("")) } else { Ok(()) }
    }

    /// Keeps `bytes` for a compaction, if they and the buffer are left.
    pub(super) fn reserve(&mut self, bytes: u64) -> Result<()> {
        let reserved = self.reserved.saturating_add(bytes);
        let wanted = [self.total, reserved, self.compaction_buffer];
        let wanted = wanted.into_iter().fold(0, u64::saturating_add);
        if self.max_allowed > 0 && wanted > self.max_allowed {
            return Err(self.refusal(&format!(
                ", {} are reserved for compactions, and one needs {bytes} and a buffer of {}",
                self.reserved, self.compaction_buffer
            )));
        }
        self.reserved = reserved;
        Ok(())
    }

    pub(super) fn release(&mut self, bytes: u64) {
        self.reserved = self.reserved.saturating_sub(bytes);
    }

    fn refusal(&self, more: &str) -> Error {
        let message = format!(
            "tables, blob files and trash take {} bytes of the {} that the SstFileManager allows{more}; drop column \
             families, remove the files of key ranges (delete_files_in_ranges), or raise max_allowed_space_usage",
            self.total, self.max_allowed
        );
        Error::new(Code::IoError, message).with_subcode(SubCode::SpaceLimit)
    }
}

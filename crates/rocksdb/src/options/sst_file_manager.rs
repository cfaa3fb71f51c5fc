//! One limit for the files of several databases.

use std::sync::Arc;

use flagstone::options as engine;

use crate::env::Env;

/// Limits the space of the databases that have it, and the rate at which their obsolete files are
/// removed. Clones are the same manager.
#[derive(Clone)]
pub struct SstFileManager {
    pub(super) engine: Arc<engine::SstFileManager>,
}

impl SstFileManager {
    /// A manager without limits.
    pub fn new(env: &Env) -> Self {
        let options = engine::SstFileManagerOptions::default();
        Self { engine: engine::SstFileManager::with_env(options, &env.engine) }
    }

    /// Bytes that tables, blob files and files that wait to be removed may take; 0 for no limit.
    /// Once they take as much, writes fail with `Space limit reached`.
    pub fn set_max_allowed_space_usage(&self, max_allowed_space: u64) {
        self.engine.set_max_allowed_space_usage(max_allowed_space);
    }

    /// Bytes that must be left of the allowed space when a compaction begins, besides the size of
    /// its inputs.
    pub fn set_compaction_buffer_size(&self, compaction_buffer_size: u64) {
        self.engine.set_compaction_buffer_size(compaction_buffer_size);
    }

    /// Whether the files take what is allowed, or more.
    pub fn is_max_allowed_space_reached(&self) -> bool {
        self.engine.is_max_allowed_space_reached()
    }

    /// Whether they would with what running compactions may write.
    pub fn is_max_allowed_space_reached_including_compactions(&self) -> bool {
        self.engine.is_max_allowed_space_reached_including_compactions()
    }

    /// Bytes of all these files.
    pub fn get_total_size(&self) -> u64 {
        self.engine.total_size()
    }

    /// Bytes of obsolete files that are removed each second; 0 for no limit.
    pub fn get_delete_rate_bytes_per_second(&self) -> i64 {
        i64::try_from(self.engine.delete_rate_bytes_per_second()).unwrap_or(i64::MAX)
    }

    /// Changes the rate; 0 or less for no limit.
    pub fn set_delete_rate_bytes_per_second(&self, delete_rate: i64) {
        let rate = u64::try_from(delete_rate).unwrap_or(0);
        self.engine.set_delete_rate_bytes_per_second(rate);
    }

    /// See [`set_max_trash_db_ratio`](Self::set_max_trash_db_ratio).
    pub fn get_max_trash_db_ratio(&self) -> f64 {
        self.engine.max_trash_db_ratio()
    }

    /// Which part of all bytes files that wait to be removed may have. Default: 0.25.
    pub fn set_max_trash_db_ratio(&self, ratio: f64) {
        self.engine.set_max_trash_db_ratio(ratio);
    }

    /// Bytes of files that wait to be removed.
    pub fn get_total_trash_size(&self) -> u64 {
        self.engine.total_trash_size()
    }
}

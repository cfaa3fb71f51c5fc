//! One limit for the memtables of several databases.

use std::sync::Arc;

use flagstone::options as engine;

use crate::cache::Cache;

/// Limits the memory of memtables. Clones are the same limit.
#[derive(Clone)]
pub struct WriteBufferManager {
    pub(super) engine: Arc<engine::WriteBufferManager>,
}

impl WriteBufferManager {
    /// A limit of `buffer_size` bytes for all databases that have it together; 0 for no limit. The
    /// largest memtables are flushed when those that are written to have seven eighths of it, or
    /// half of it while all together have reached it. With `allow_stall` writers wait meanwhile.
    pub fn new_write_buffer_manager(buffer_size: usize, allow_stall: bool) -> Self {
        let engine = engine::WriteBufferManager::new(buffer_size as u64, allow_stall);
        Self { engine }
    }

    /// As [`new_write_buffer_manager`](Self::new_write_buffer_manager); memtables take their memory
    /// from what `cache` has for its entries.
    pub fn new_write_buffer_manager_with_cache(
        buffer_size: usize,
        allow_stall: bool,
        cache: Cache,
    ) -> Self {
        let size = buffer_size as u64;
        let engine = engine::WriteBufferManager::with_cache(size, allow_stall, &cache.engine);
        Self { engine }
    }

    pub(crate) fn engine(&self) -> &engine::WriteBufferManager {
        &self.engine
    }

    /// Bytes of the memtables of these databases.
    pub fn get_usage(&self) -> usize {
        self.engine.memory_usage() as usize
    }

    /// The limit in bytes.
    pub fn get_buffer_size(&self) -> usize {
        self.engine.buffer_size() as usize
    }

    /// Changes the limit.
    pub fn set_buffer_size(&self, new_size: usize) {
        self.engine.set_buffer_size(new_size as u64);
    }

    /// Whether there is a limit.
    pub fn enabled(&self) -> bool {
        self.engine.enabled()
    }

    /// Changes whether writers wait.
    pub fn set_allow_stall(&self, allow_stall: bool) {
        self.engine.set_allow_stall(allow_stall);
    }
}

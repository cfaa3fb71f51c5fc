//! Records what the block cache is asked for.

use std::path::Path;

use crate::base::Result;
use crate::base::sync::Ordering;
use crate::cache::{TraceOptions, TraceSummary};
use crate::db::DbInner;
use crate::db::handle::Db;

impl Db {
    /// Begins to record in a new file which blocks, and values of blob files, the block cache is
    /// asked for (RocksDB's `StartBlockCacheTrace`). `flagstone cache-sim` tells from such a trace
    /// what other policies and sizes would do. Ends with [`Db::end_block_cache_trace`] or when the
    /// database is closed.
    ///
    /// Values that have a cache of their own (`blob_cache`) are not in it.
    ///
    /// Of a cache that several databases share, the requests of all are recorded, until the
    /// database is closed that began it.
    ///
    /// While it goes on, each request takes a lock that all threads share. The file is not synced.
    ///
    /// # Errors
    /// `Busy` if that goes on already; `InvalidArgument` for a sampling frequency of 0, or a file
    /// that exists; `IoError`; `ShutdownInProgress`.
    pub fn start_block_cache_trace(
        &self,
        path: impl AsRef<Path>,
        options: &TraceOptions,
    ) -> Result<()> {
        let inner = self.inner();
        inner.context.check_open()?;
        inner.tables.caches().blocks().start_trace(&inner.context.env, path.as_ref(), options)?;
        inner.lifecycle.records_cache.store(true, Ordering::Release);
        Ok(())
    }

    /// Ends the recording, and tells what came of it; `None` if there is none (RocksDB's
    /// `EndBlockCacheTrace`).
    ///
    /// # Errors
    /// The first that writing the file met; what was asked for after it is not in the file.
    pub fn end_block_cache_trace(&self) -> Result<Option<TraceSummary>> {
        let inner = self.inner();
        inner.lifecycle.records_cache.store(false, Ordering::Release);
        inner.tables.caches().blocks().end_trace()
    }
}

/// Writes what a recording still has in memory. That it cannot be written makes no database
/// worse.
pub(super) fn end_traces(db: &DbInner) {
    // Another's, in a cache that is shared, goes on.
    if db.lifecycle.records_cache.swap(false, Ordering::AcqRel)
        && let Err(error) = db.tables.caches().blocks().end_trace()
    {
        tracing::error!(%error, "writing the block cache trace");
    }
}

#[cfg(test)]
mod tests;

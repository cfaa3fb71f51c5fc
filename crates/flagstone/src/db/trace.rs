//! Records what a database is asked for, and what its block cache is.

use std::path::Path;

use crate::base::Result;
use crate::base::sync::Ordering;
use crate::cache::{TraceOptions, TraceSummary};
use crate::db::DbInner;
use crate::db::handle::Db;
use crate::trace::{OperationTraceOptions, OperationTraceSummary, TraceWriter};

impl Db {
    /// Begins to record the operations of programs: writes, lookups, and seeks of iterators, with
    /// their times (RocksDB's `StartTrace`). [`Replayer`](crate::replay::Replayer) repeats them,
    /// and so does RocksDB. Ends with [`Db::end_trace`] or when the database is closed.
    ///
    /// A write is recorded when it is logged, in the order of the WAL; a read when it begins. Not
    /// recorded are values that are written in pieces, prepared transactions and their commits,
    /// ingested tables, and seeks to the first or last key.
    ///
    /// While it goes on, each operation takes a lock that all threads share.
    ///
    /// # Errors
    /// `Busy` if that goes on already; `InvalidArgument` for a sampling frequency of 0;
    /// `ShutdownInProgress`; those of the writer.
    pub fn start_trace(
        &self,
        options: &OperationTraceOptions,
        writer: Box<dyn TraceWriter>,
    ) -> Result<()> {
        let inner = self.inner();
        inner.context.check_open()?;
        inner.context.statistics.operations().start(&inner.context.env.clock, options, writer)
    }

    /// Ends the recording of operations, and tells what came of it; `None` if there is none
    /// (RocksDB's `EndTrace`).
    ///
    /// # Errors
    /// The first that the writer met; what came after it is not in the trace.
    pub fn end_trace(&self) -> Result<Option<OperationTraceSummary>> {
        self.inner().context.statistics.operations().end()
    }

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
    if let Err(error) = db.context.statistics.operations().end() {
        tracing::error!(%error, "writing the trace of operations");
    }
    // Another's, in a cache that is shared, goes on.
    if db.lifecycle.records_cache.swap(false, Ordering::AcqRel)
        && let Err(error) = db.tables.caches().blocks().end_trace()
    {
        tracing::error!(%error, "writing the block cache trace");
    }
}

#[cfg(test)]
mod tests;

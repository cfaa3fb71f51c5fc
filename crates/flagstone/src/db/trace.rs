//! Records what a database is asked for, and what its block cache and its files are; lists what the
//! cache has.

use std::path::Path;
use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{Error, Result};
use crate::cache::{TraceOptions, TraceSummary};
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::handle::Db;
use crate::db::reading::warming::{CachedBlocks, cached_blocks, warm};
use crate::trace::{
    IoTrace, IoTraceOptions, IoTraceSummary, OperationTraceOptions, OperationTraceSummary,
    TraceWriter,
};

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

    /// Which data blocks of the database the block cache has, for [`Db::warm_block_cache`]. Looks
    /// at every entry of the cache.
    ///
    /// ```
    /// # fn main() -> flagstone::base::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let mut options = flagstone::options::Options::default();
    /// # options.create_if_missing = true;
    /// # use flagstone::db::Db;
    /// # let db = Db::open(directory.path(), &options)?;
    /// let list = db.cached_blocks().to_string();
    /// // Later, in another process:
    /// db.warm_block_cache(&list.parse()?)?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "CacheDumper")]
    #[must_use]
    pub fn cached_blocks(&self) -> CachedBlocks {
        cached_blocks(&self.inner().reader, &self.families())
    }

    /// Reads the listed data blocks into the block cache, many at a time, until they take about
    /// three quarters of its capacity, uncompressed. Returns how many it has read. Tables that are
    /// gone, and blocks that the cache has or that cannot be read, are passed over.
    ///
    /// # Errors
    /// `Corruption`, `IoError` of opening a table or of its index.
    #[doc(alias = "CacheDumpedLoader")]
    pub fn warm_block_cache(&self, blocks: &CachedBlocks) -> Result<usize> {
        warm(&self.inner().reader, &self.families(), blocks)
    }

    fn families(&self) -> Vec<Arc<Family>> {
        self.column_families().into_iter().map(|family| family.0).collect()
    }

    /// Begins to record the calls of files: reads, writes, syncs, opening and closing, names and
    /// sizes, each with its time, its bytes and its status (RocksDB's `StartIOTrace`).
    /// `flagstone io-trace` prints such a trace, and so does RocksDB's `io_tracer_parser`. Ends
    /// with [`Db::end_io_trace`] or when the database is closed.
    ///
    /// Calls on files that are open already are recorded, too. Among the calls are copies into the
    /// mapped WAL (`MappedWrite`), of which the device sees nothing before a sync, and reads that
    /// the kernel does together (`MultiRead`, each with its time since the first was handed over).
    /// Where the environment encrypts files, the calls are those above the encryption.
    ///
    /// While it goes on, each call takes a lock that all threads share. Calls that writing the
    /// trace itself makes are left out.
    ///
    /// # Errors
    /// `Busy` if that goes on already; `InvalidArgument` for a sampling frequency of 0;
    /// `NotSupported` for a state of a database that follows another; `ShutdownInProgress`; those
    /// of the writer.
    pub fn start_io_trace(
        &self,
        options: &IoTraceOptions,
        writer: Box<dyn TraceWriter>,
    ) -> Result<()> {
        let context = &self.inner().context;
        context.check_open()?;
        let trace = context.statistics.io().ok_or_else(|| {
            Error::not_supported("the I/O of a database that follows another is not traced")
        })?;
        trace.start(&context.env.clock, options, writer)
    }

    /// Ends the recording of I/O, and tells what came of it; `None` if there is none (RocksDB's
    /// `EndIOTrace`).
    ///
    /// # Errors
    /// The first that the writer met; what came after it is not in the trace.
    pub fn end_io_trace(&self) -> Result<Option<IoTraceSummary>> {
        self.inner().context.statistics.io().map_or(Ok(None), IoTrace::end)
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

/// As [`end_traces`], of I/O, which goes on until the directory is let go.
pub(super) fn end_io_trace(db: &DbInner) {
    if let Some(Err(error)) = db.context.statistics.io().map(IoTrace::end) {
        tracing::error!(%error, "writing the trace of I/O");
    }
}

#[cfg(test)]
mod tests;

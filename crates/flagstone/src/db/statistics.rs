//! Counters of the engine, and where its operations are recorded. Names follow RocksDB's tickers.

use std::sync::Arc;

use crate::base::Counters;
use crate::trace::{IoTrace, OperationTrace};

macro_rules! tickers {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal,)*) => {
        /// A counter that only grows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Ticker {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl Ticker {
            /// All of them, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// What it counts.
            pub(crate) fn help(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)* }
            }

            /// RocksDB's name for it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

tickers! {
    /// Keys written.
    KeysWritten => "rocksdb.number.keys.written",
    /// Keys looked up.
    KeysRead => "rocksdb.number.keys.read",
    /// Lookups of a table that the row cache answered.
    RowCacheHits => "rocksdb.row.cache.hit",
    /// Lookups of a table that it did not.
    RowCacheMisses => "rocksdb.row.cache.miss",
    /// Bytes of the batches written.
    BytesWritten => "rocksdb.bytes.written",
    /// Bytes of the values returned by point lookups.
    BytesRead => "rocksdb.bytes.read",
    /// Batches written; each is one commit.
    Writes => "rocksdb.write.self",
    /// Batches written to the WAL.
    LoggedWrites => "rocksdb.write.wal",
    /// Bytes appended to the WAL.
    WalBytes => "rocksdb.wal.bytes",
    /// Syncs of the WAL.
    WalSyncs => "rocksdb.wal.synced",
    /// Table bytes written by flushes.
    FlushWriteBytes => "rocksdb.flush.write.bytes",
    /// Table bytes read by compactions.
    CompactReadBytes => "rocksdb.compact.read.bytes",
    /// Table bytes written by compactions.
    CompactWriteBytes => "rocksdb.compact.write.bytes",
    /// Blob file bytes written by flushes, by compactions, and by writers before they commit.
    BlobWriteBytes => "rocksdb.blobdb.blob.file.bytes.written",
    /// Blob file bytes written by flushes alone.
    BlobFlushBytes => "rocksdb.blobdb.flush.bytes.written",
    /// Blob file bytes that compactions read to relocate values.
    BlobGcRelocatedBytes => "rocksdb.blobdb.gc.bytes.relocated",
    /// Values in blob files that compactions relocated.
    BlobGcRelocatedKeys => "rocksdb.blobdb.gc.num.keys.relocated",
    /// Blob file bytes returned to the file system by punching holes.
    BlobPunchedBytes => "flagstone.blob.punched.bytes",
    /// Flushes done.
    Flushes => "flagstone.flushes",
    /// Compactions done.
    Compactions => "flagstone.compactions",
    /// Table and blob file bytes read by compactions that a compaction service did.
    RemoteCompactReadBytes => "rocksdb.remote.compact.read.bytes",
    /// Table and blob file bytes written by compactions that a compaction service did.
    RemoteCompactWriteBytes => "rocksdb.remote.compact.write.bytes",
    /// Compactions that the database did itself because its compaction service failed, or its
    /// result did not pass the checks.
    RemoteCompactionsFailed => "flagstone.remote.compactions.failed",
    /// Entries left unchanged because a compaction filter's result could not be stored.
    FilterUnstorable => "flagstone.filter.unstorable",
    /// Encounters of flushes and compactions with a faulty key: its operands are left unmerged
    /// because the merge operator refuses them, or it was deleted both by `delete` and
    /// `single_delete`.
    KeyFaults => "flagstone.key.faults",
    /// Parts that compactions ran in; one for a compaction that was not split.
    Subcompactions => "flagstone.subcompactions",
    /// Turns of flushes and compactions that did not yield (`background_niceness`) because a writer
    /// was waiting for them.
    PromptTurns => "flagstone.prompt.turns",
    /// Compactions that only moved files between levels.
    TrivialMoves => "flagstone.trivial.moves",
    /// Reads of blocks and blob values that lookups of several keys made together.
    ReadsTogether => "flagstone.reads.together",
    /// Reads of `ReadsTogether` that were made through io_uring; none if the kernel does not permit
    /// it.
    ReadsInKernel => "flagstone.reads.in.kernel",
    /// Failed attempts to find or remove obsolete files; they are retried.
    RemovalsPutOff => "flagstone.removals.put.off",
    /// Failed attempts to write an OPTIONS file after column families or options changed; they are
    /// retried.
    OptionsFilesPutOff => "flagstone.options.files.put.off",
    /// Flushes to reclaim deleted space (`deletion_compaction_delay`) that could not start because
    /// no new WAL could be created. The next deletion or a full memtable requests them again.
    FlushesPutOff => "flagstone.flushes.put.off",
    /// Tables that could not be opened or searched for an optional purpose: ahead of readers, or
    /// for an estimate. A reader that needs the table tries again and gets the error.
    TablesNotOpened => "flagstone.tables.not.opened",
    /// Checks of column families for flushes, compactions and write stalls.
    FamiliesLookedAt => "flagstone.families.looked.at",
    /// Microseconds that writers were delayed or stopped.
    StallMicros => "rocksdb.stall.micros",
    /// Bytes that passed a rate limiter.
    RateLimiterBytes => "flagstone.rate.limiter.bytes",
    /// Microseconds that a rate limiter delayed flushes, compactions, and writes that use it.
    RateLimiterMicros => "flagstone.rate.limiter.micros",
    /// Locks that transactions and other writes of a `TransactionDb` had to wait for.
    LockWaits => "flagstone.lock.waits",
    /// Waits for locks that ended with their time-out.
    LockTimeouts => "flagstone.lock.timeouts",
    /// Locks that were refused because transactions would have waited for each other.
    LockDeadlocks => "flagstone.lock.deadlocks",
    /// Locks that were refused because of `max_num_locks`.
    LockLimits => "flagstone.lock.limits",
    /// Locks that were taken from transactions that had expired.
    LocksTakenOver => "flagstone.locks.taken.over",
    /// Locks and commits of transactions that were refused because another had written the key.
    TransactionConflicts => "flagstone.transaction.conflicts",
    /// Seeks of iterators.
    Seeks => "rocksdb.number.db.seek",
    /// Bytes read of tables that are hot.
    HotFileReadBytes => "rocksdb.hot.file.read.bytes",
    /// Reads of tables that are hot.
    HotFileReads => "rocksdb.hot.file.read.count",
    /// Bytes read of tables that are warm.
    WarmFileReadBytes => "rocksdb.warm.file.read.bytes",
    /// Reads of tables that are warm.
    WarmFileReads => "rocksdb.warm.file.read.count",
    /// Bytes read of tables that are cool.
    CoolFileReadBytes => "rocksdb.cool.file.read.bytes",
    /// Reads of tables that are cool.
    CoolFileReads => "rocksdb.cool.file.read.count",
    /// Bytes read of tables that are cold.
    ColdFileReadBytes => "rocksdb.cold.file.read.bytes",
    /// Reads of tables that are cold.
    ColdFileReads => "rocksdb.cold.file.read.count",
    /// Bytes read of tables that are ice.
    IceFileReadBytes => "rocksdb.ice.file.read.bytes",
    /// Reads of tables that are ice.
    IceFileReads => "rocksdb.ice.file.read.count",
}

/// The counters of one database.
///
/// Every lookup updates some, so each thread uses cache lines of its own.
#[derive(Debug, Default)]
pub struct Statistics {
    counters: Counters<{ Ticker::ALL.len() }>,
    operations: OperationTrace,
    io: Option<Arc<IoTrace>>,
}

impl Statistics {
    /// Those of a database whose files tell their calls to `io`.
    pub(in crate::db) fn of_files(io: Arc<IoTrace>) -> Self {
        Self { io: Some(io), ..Self::default() }
    }

    /// Adds to a counter.
    #[inline]
    pub(crate) fn add(&self, ticker: Ticker, count: u64) {
        self.counters.add(ticker as usize, count);
    }

    /// Adds to a counter that is only ever raised with the commit lock held.
    #[inline]
    pub(in crate::db) fn add_committing(&self, ticker: Ticker, count: u64) {
        self.counters.add_alone(ticker as usize, count);
    }

    /// Where operations are recorded, if a trace is.
    #[inline]
    pub(in crate::db) fn operations(&self) -> &OperationTrace {
        &self.operations
    }

    /// Where calls of files are recorded, if a trace is; `None` if these files cannot tell.
    pub(in crate::db) fn io(&self) -> Option<&IoTrace> {
        self.io.as_deref()
    }

    /// The value of a counter.
    pub fn get(&self, ticker: Ticker) -> u64 {
        self.counters.get(ticker as usize)
    }
}

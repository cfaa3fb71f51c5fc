//! What flushes and compactions ask of the rate limiter that the options hold.
//!
//! Flushes go before compactions, and these before compactions for the sake of blob files; while
//! writers are held up, all of them are as urgent as what a user waits for (as in RocksDB). The
//! WAL, the MANIFEST, and what writers put into blob files at commit are not limited, unless a
//! write asks for it. Once the database is being closed, nobody waits any longer.

use std::sync::Arc;

use crate::base::sync::{AtomicBool, Ordering};
use crate::db::background::Background;
use crate::db::statistics::{Statistics, Ticker};
use crate::env::{
    IoPriority, IoWatch, LimitedFile, RandomAccessFile, RangeSyncedFile, RangeSyncs, RateLimiter,
    UnreservedFile, WritableFile,
};
use crate::options::WriteOptions;

/// `bytes_per_sync` where it is not set, but a rate limiter is, or a file is a flush's.
const USUAL_BYTES_PER_SYNC: u64 = 1 << 20;

/// What requests are judged by.
pub(in crate::db) struct IoState {
    statistics: Arc<Statistics>,
    is_closing: AtomicBool,
    holds_writers_up: AtomicBool,
}

impl IoState {
    pub(in crate::db) fn new(statistics: Arc<Statistics>) -> Self {
        Self {
            statistics,
            is_closing: AtomicBool::new(false),
            holds_writers_up: AtomicBool::new(false),
        }
    }

    pub(in crate::db) fn set_closing(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    pub(in crate::db) fn set_holds_writers_up(&self, holds: bool) {
        self.holds_writers_up.store(holds, Ordering::Release);
    }
}

impl IoWatch for IoState {
    fn priority(&self, usual: IoPriority) -> IoPriority {
        if self.holds_writers_up.load(Ordering::Acquire) { IoPriority::User } else { usual }
    }

    fn is_over(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    fn note(&self, bytes: u64, waited_us: u64) {
        self.statistics.add(Ticker::RateLimiterBytes, bytes);
        self.statistics.add(Ticker::RateLimiterMicros, waited_us);
    }
}

/// A limiter, and whose reads and writes it limits.
#[derive(Clone)]
pub(in crate::db) struct Limit {
    limiter: Arc<RateLimiter>,
    usual: IoPriority,
    state: Arc<IoState>,
}

impl Limit {
    /// The file, so that each read asks first.
    pub(in crate::db) fn limit_reads(
        &self,
        file: Arc<dyn RandomAccessFile>,
    ) -> Arc<dyn RandomAccessFile> {
        Arc::new(self.around(file))
    }

    /// The file, so that each write asks first.
    pub(in crate::db) fn limit_writes(&self, file: Arc<dyn WritableFile>) -> Arc<dyn WritableFile> {
        Arc::new(self.around(file))
    }

    fn around<F: ?Sized>(&self, file: Arc<F>) -> LimitedFile<F> {
        LimitedFile::new(file, self.limiter.clone(), self.usual, self.state.clone())
    }

    fn pass(&self, bytes: u64) {
        let waited =
            self.limiter.request(bytes, self.state.priority(self.usual), || self.state.is_over());
        self.state.note(bytes, waited);
    }
}

impl Background {
    pub(in crate::db) fn limit(
        &self,
        usual: IoPriority,
        applies: impl FnOnce(&RateLimiter) -> bool,
    ) -> Option<Limit> {
        let settings = self.context.settings.load();
        let limiter = settings.rate_limiter.clone().filter(|limiter| applies(limiter))?;
        Some(Limit { limiter, usual, state: self.io.clone() })
    }

    /// A new file of values that writers append to, so that it is written back while it grows, if
    /// it is to be.
    pub(in crate::db) fn range_synced(&self, file: Arc<dyn WritableFile>) -> Arc<dyn WritableFile> {
        self.range_synced_by(file, 0)
    }

    /// The same of a job's new file. The sync at a flush's end is waited for, perhaps by writers:
    /// it is to have little left to do.
    pub(in crate::db) fn written_back(
        &self,
        file: Arc<dyn WritableFile>,
        priority: IoPriority,
    ) -> Arc<dyn WritableFile> {
        self.range_synced_by(
            file,
            if priority == IoPriority::High { USUAL_BYTES_PER_SYNC } else { 0 },
        )
    }

    fn range_synced_by(
        &self,
        file: Arc<dyn WritableFile>,
        unless_set: u64,
    ) -> Arc<dyn WritableFile> {
        let settings = self.context.settings.load();
        let every = match settings.bytes_per_sync {
            // As in RocksDB: a rate that is kept to in writing should not gather in the system's
            // cache.
            0 if settings.rate_limiter.is_some() => USUAL_BYTES_PER_SYNC,
            0 => unless_set,
            every => every,
        };
        match RangeSyncs::new(every, settings.strict_bytes_per_sync) {
            Some(syncs) => Arc::new(RangeSyncedFile::following(file, syncs)),
            None => file,
        }
    }

    /// A new file that goes around the system's cache, so that space is reserved as it grows,
    /// unless none is to be.
    pub(in crate::db) fn reserved_ahead(
        &self,
        file: Arc<dyn WritableFile>,
    ) -> Arc<dyn WritableFile> {
        if self.context.settings.load().allow_fallocate {
            file
        } else {
            Arc::new(UnreservedFile::new(file))
        }
    }

    /// What limits writing, if anything does.
    pub(in crate::db) fn write_limit(&self, usual: IoPriority) -> Option<Limit> {
        self.limit(usual, RateLimiter::limits_writes)
    }

    /// What limits reading, if anything does.
    pub(in crate::db) fn read_limit(&self, usual: IoPriority) -> Option<Limit> {
        self.limit(usual, RateLimiter::limits_reads)
    }

    /// Waits until a job may read so many bytes.
    pub(in crate::db) fn before_job_reads(&self, bytes: u64, usual: IoPriority) {
        if let Some(limit) = self.read_limit(usual) {
            limit.pass(bytes);
        }
    }

    /// Waits until a write that asked for it may go on.
    pub(in crate::db) fn before_limited_write(&self, options: &WriteOptions, bytes: u64) {
        if let Some(priority) = options.rate_limiter_priority
            && let Some(limit) = self.write_limit(priority)
        {
            limit.pass(bytes);
        }
    }
}

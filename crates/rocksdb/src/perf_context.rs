//! What single operations of a thread cost.

use flagstone::reports as engine;

/// How much a thread counts.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
#[repr(i32)]
pub enum PerfStatsLevel {
    /// Nothing.
    Uninitialized = 0,
    /// Nothing. A thread begins with this here, and with `EnableCount` in RocksDB.
    Disable,
    /// Numbers and bytes.
    EnableCount,
    /// Also times, but for those of locks.
    EnableTimeExceptForMutex,
    /// Also processor time.
    EnableTimeAndCPUTimeExceptForMutex,
    /// Also the time that is waited for locks.
    EnableTime,
    /// As `EnableTime`.
    OutOfBound,
}

macro_rules! metrics {
    ($($name:ident)*) => {
        /// A counter of single operations; see [`flagstone::reports::PerfMetric`].
        #[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(i32)]
        #[allow(missing_docs, reason = "the engine's metrics of these names have them")]
        pub enum PerfMetric {
            $($name,)*
            TotalMetricCount,
        }

        impl PerfMetric {
            fn of_engine(self) -> Option<engine::PerfMetric> {
                match self {
                    $(Self::$name => Some(engine::PerfMetric::$name),)*
                    Self::TotalMetricCount => None,
                }
            }
        }
    };
}

metrics! {
    UserKeyComparisonCount
    BlockCacheHitCount
    BlockReadCount
    BlockReadByte
    BlockReadTime
    BlockChecksumTime
    BlockDecompressTime
    GetReadBytes
    MultigetReadBytes
    IterReadBytes
    InternalKeySkippedCount
    InternalDeleteSkippedCount
    InternalRecentSkippedCount
    InternalMergeCount
    GetSnapshotTime
    GetFromMemtableTime
    GetFromMemtableCount
    GetPostProcessTime
    GetFromOutputFilesTime
    SeekOnMemtableTime
    SeekOnMemtableCount
    NextOnMemtableCount
    PrevOnMemtableCount
    SeekChildSeekTime
    SeekChildSeekCount
    SeekMinHeapTime
    SeekMaxHeapTime
    SeekInternalSeekTime
    FindNextUserEntryTime
    WriteWalTime
    WriteMemtableTime
    WriteDelayTime
    WritePreAndPostProcessTime
    DbMutexLockNanos
    DbConditionWaitNanos
    MergeOperatorTimeNanos
    ReadIndexBlockNanos
    ReadFilterBlockNanos
    NewTableBlockIterNanos
    NewTableIteratorNanos
    BlockSeekNanos
    FindTableNanos
    BloomMemtableHitCount
    BloomMemtableMissCount
    BloomSstHitCount
    BloomSstMissCount
    KeyLockWaitTime
    KeyLockWaitCount
    EnvNewSequentialFileNanos
    EnvNewRandomAccessFileNanos
    EnvNewWritableFileNanos
    EnvReuseWritableFileNanos
    EnvNewRandomRwFileNanos
    EnvNewDirectoryNanos
    EnvFileExistsNanos
    EnvGetChildrenNanos
    EnvGetChildrenFileAttributesNanos
    EnvDeleteFileNanos
    EnvCreateDirNanos
    EnvCreateDirIfMissingNanos
    EnvDeleteDirNanos
    EnvGetFileSizeNanos
    EnvGetFileModificationTimeNanos
    EnvRenameFileNanos
    EnvLinkFileNanos
    EnvLockFileNanos
    EnvUnlockFileNanos
    EnvNewLoggerNanos
}

/// Sets how much the calling thread counts.
pub fn set_perf_stats(lvl: PerfStatsLevel) {
    engine::set_perf_level(match lvl {
        PerfStatsLevel::Uninitialized | PerfStatsLevel::Disable => engine::PerfLevel::Disable,
        PerfStatsLevel::EnableCount => engine::PerfLevel::EnableCount,
        PerfStatsLevel::EnableTimeExceptForMutex => engine::PerfLevel::EnableTimeExceptForMutex,
        PerfStatsLevel::EnableTimeAndCPUTimeExceptForMutex => {
            engine::PerfLevel::EnableTimeAndCpuTimeExceptForMutex
        }
        PerfStatsLevel::EnableTime | PerfStatsLevel::OutOfBound => engine::PerfLevel::EnableTime,
    });
}

/// The counters of the thread that calls.
#[derive(Default)]
pub struct PerfContext(());

impl PerfContext {
    /// Sets all to 0.
    pub fn reset(&mut self) {
        engine::PerfContext::reset();
    }

    /// All counters on one line, as in `block_read_count = 3, block_read_byte = 4096`.
    pub fn report(&self, exclude_zero_counters: bool) -> String {
        engine::PerfContext::now().to_text(exclude_zero_counters)
    }

    /// The value of one; 0 for `TotalMetricCount`.
    pub fn metric(&self, id: PerfMetric) -> u64 {
        id.of_engine().map_or(0, |metric| engine::PerfContext::now().get(metric))
    }
}

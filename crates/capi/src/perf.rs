//! What single operations of a thread cost.

use std::ffi::c_char;

use flagstone_rocksdb as rdb;
use rdb::parts::perf::{PerfContext as Counted, PerfLevel, PerfMetric, set_perf_level};

use crate::abi::{copied_text, handles};
use crate::api::{c_api, creates, destroys};

/// Stands for the counters of the thread that calls.
#[derive(Default)]
pub struct PerfContext;

handles! { PerfContext = "perfcontext", }

creates! {
    rocksdb_perfcontext_create: PerfContext,
}

destroys! {
    rocksdb_perfcontext_destroy: PerfContext,
}

/// The counters by their numbers in the header.
const METRICS: [PerfMetric; 84] = [
    PerfMetric::UserKeyComparisonCount,
    PerfMetric::BlockCacheHitCount,
    PerfMetric::BlockReadCount,
    PerfMetric::BlockReadByte,
    PerfMetric::BlockReadTime,
    PerfMetric::BlockChecksumTime,
    PerfMetric::BlockDecompressTime,
    PerfMetric::GetReadBytes,
    PerfMetric::MultigetReadBytes,
    PerfMetric::IterReadBytes,
    PerfMetric::InternalKeySkippedCount,
    PerfMetric::InternalDeleteSkippedCount,
    PerfMetric::InternalRecentSkippedCount,
    PerfMetric::InternalMergeCount,
    PerfMetric::GetSnapshotTime,
    PerfMetric::GetFromMemtableTime,
    PerfMetric::GetFromMemtableCount,
    PerfMetric::GetPostProcessTime,
    PerfMetric::GetFromOutputFilesTime,
    PerfMetric::SeekOnMemtableTime,
    PerfMetric::SeekOnMemtableCount,
    PerfMetric::NextOnMemtableCount,
    PerfMetric::PrevOnMemtableCount,
    PerfMetric::SeekChildSeekTime,
    PerfMetric::SeekChildSeekCount,
    PerfMetric::SeekMinHeapTime,
    PerfMetric::SeekMaxHeapTime,
    PerfMetric::SeekInternalSeekTime,
    PerfMetric::FindNextUserEntryTime,
    PerfMetric::WriteWalTime,
    PerfMetric::WriteMemtableTime,
    PerfMetric::WriteDelayTime,
    PerfMetric::WritePreAndPostProcessTime,
    PerfMetric::DbMutexLockNanos,
    PerfMetric::DbConditionWaitNanos,
    PerfMetric::MergeOperatorTimeNanos,
    PerfMetric::ReadIndexBlockNanos,
    PerfMetric::ReadFilterBlockNanos,
    PerfMetric::NewTableBlockIterNanos,
    PerfMetric::NewTableIteratorNanos,
    PerfMetric::BlockSeekNanos,
    PerfMetric::FindTableNanos,
    PerfMetric::BloomMemtableHitCount,
    PerfMetric::BloomMemtableMissCount,
    PerfMetric::BloomSstHitCount,
    PerfMetric::BloomSstMissCount,
    PerfMetric::KeyLockWaitTime,
    PerfMetric::KeyLockWaitCount,
    PerfMetric::EnvNewSequentialFileNanos,
    PerfMetric::EnvNewRandomAccessFileNanos,
    PerfMetric::EnvNewWritableFileNanos,
    PerfMetric::EnvReuseWritableFileNanos,
    PerfMetric::EnvNewRandomRwFileNanos,
    PerfMetric::EnvNewDirectoryNanos,
    PerfMetric::EnvFileExistsNanos,
    PerfMetric::EnvGetChildrenNanos,
    PerfMetric::EnvGetChildrenFileAttributesNanos,
    PerfMetric::EnvDeleteFileNanos,
    PerfMetric::EnvCreateDirNanos,
    PerfMetric::EnvCreateDirIfMissingNanos,
    PerfMetric::EnvDeleteDirNanos,
    PerfMetric::EnvGetFileSizeNanos,
    PerfMetric::EnvGetFileModificationTimeNanos,
    PerfMetric::EnvRenameFileNanos,
    PerfMetric::EnvLinkFileNanos,
    PerfMetric::EnvLockFileNanos,
    PerfMetric::EnvUnlockFileNanos,
    PerfMetric::EnvNewLoggerNanos,
    PerfMetric::NumberAsyncSeek,
    PerfMetric::BlobCacheHitCount,
    PerfMetric::BlobReadCount,
    PerfMetric::BlobReadByte,
    PerfMetric::BlobReadTime,
    PerfMetric::BlobChecksumTime,
    PerfMetric::BlobDecompressTime,
    PerfMetric::InternalRangeDelReseekCount,
    PerfMetric::BlockReadCpuTime,
    PerfMetric::InternalMergePointLookupCount,
    PerfMetric::DataBlockReadByte,
    PerfMetric::IndexBlockReadByte,
    PerfMetric::FilterBlockReadByte,
    PerfMetric::CompressionDictBlockReadByte,
    PerfMetric::MetadataBlockReadByte,
    PerfMetric::BlobCacheReadByte,
];

/// The header's numbers 3 and 4 stand for lower levels in RocksDB's library than their names say:
/// each counts at least what its name and the library promise.
fn level_of(number: i32) -> PerfLevel {
    match number {
        ..=1 => PerfLevel::Disable,
        2 => PerfLevel::EnableCount,
        3 => PerfLevel::EnableTimeExceptForMutex,
        _ => PerfLevel::EnableTime,
    }
}

c_api! {
    fn rocksdb_set_perf_level(level: i32) {
        set_perf_level(level_of(level));
    }

    fn rocksdb_perfcontext_reset(_context: &PerfContext) {
        Counted::reset();
    }

    fn rocksdb_perfcontext_report(_context: &PerfContext, without_zeros: flag) -> *mut c_char {
        copied_text(Counted::now().to_text(without_zeros))
    }

    fn rocksdb_perfcontext_metric(_context: &PerfContext, metric: i32) -> u64 {
        let metric = usize::try_from(metric).ok().and_then(|metric| METRICS.get(metric));
        metric.map_or(0, |metric| Counted::now().get(*metric))
    }
}

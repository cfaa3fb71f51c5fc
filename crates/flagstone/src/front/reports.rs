//! What a database tells of itself.
//!
//! - To an [`EventListener`](crate::EventListener): of flushes and compactions ([`JobInfo`] with
//!   [`JobReason`], [`JobStats`], [`MemtableFigures`], [`TreeShape`], [`TableInfo`],
//!   [`BlobFileInfo`], [`BlobGarbageInfo`]; [`SubcompactionInfo`], [`ManualFlushInfo`],
//!   [`MemtableInfo`], [`BackgroundJobPressure`]), of files ([`FileCreationInfo`], [`FileInfo`],
//!   [`FileOperationInfo`]), of errors
//!   ([`BackgroundErrorReason`], [`ErrorRecoveryInfo`]), and [`StallCondition`],
//!   [`WalReserveInfo`], [`DamagedFile`], [`KeyFault`], [`IngestionInfo`]
//! - When it is opened: [`OpenProgress`]; of options that it does not act on: [`KeptSetting`],
//!   [`KeptSection`]
//! - Asked for: its files ([`LiveFile`], [`StoredFile`], [`WalFile`]), what they take
//!   ([`SpaceUsage`]), its memory ([`MemoryUsage`]), old snapshots and iterators ([`Pins`]),
//!   properties ([`PROPERTY_NAMES`]), those of tables ([`TableProperties`]),
//!   counters over time ([`StatsSnapshot`]), all versions of keys ([`KeyVersion`], [`ValueType`])
//! - Of threads, by [`thread_list`](crate::thread_list): [`ThreadStatus`] with [`ThreadType`],
//!   [`ThreadOperation`], [`ThreadStage`]
//! - What single operations of a thread cost: [`set_perf_level`], [`PerfContext`],
//!   [`IoStatsContext`]
//! - Of transactions: [`TransactionInfo`], [`AwaitedKey`], [`KeyLock`], [`LockMode`],
//!   [`Deadlock`], [`DeadlockStep`]
//! - Whether its files are in order: [`VerifyReport`], [`CheckReport`]; what is wrong with it, and
//!   how serious that is: [`Finding`], [`Severity`]; what was saved of a damaged one:
//!   [`SalvageReport`]

pub use crate::base::LiveSnapshot;
pub use crate::base::file_name::FileKind;
pub use crate::base::{
    IoMetric, IoStatsContext, PerfContext, PerfLevel, PerfLevelMetric, PerfMetric, ValueType,
    WriteTime, WriteTimes, perf_level, set_perf_level,
};
pub use crate::cache::CacheStatistics;
pub use crate::db::{
    AutoCacheMemory, CacheMemory, CheckReport, Fault, FileChecksum, Finding, Kept, KeyVersion,
    LiveFile, LostValue, MemoryUsage, PROPERTY_NAMES, PinningIterator, PinningSnapshot, Pins,
    SalvageProgress, SalvageReport, SalvagedFamily, SalvagedFile, SalvagedKind, Severity,
    SpaceUsage, StatsSnapshot, StoredFile, VerifyReport, WalFile,
};
pub use crate::env::{ThreadOperation, ThreadStage, ThreadStatus, ThreadType};
pub use crate::front::transaction_db::{
    AwaitedKey, Deadlock, DeadlockStep, KeyLock, TransactionInfo,
};
pub use crate::options::{
    BackgroundErrorReason, BackgroundJobPressure, BlobFileInfo, BlobGarbageInfo,
    CompactionProgress, CompactionReason, DamagedFile, ErrorRecoveryInfo, FileCreationInfo,
    FileInfo, FileOperation, FileOperationInfo, FlushReason, IngestionInfo, JobInfo, JobReason,
    JobStats, KeptSection, KeptSetting, KeyFault, ManualFlushInfo, MemtableFigures, MemtableInfo,
    OpenProgress, StallCondition, SubcompactionInfo, TableInfo, TreeShape, WalReserveInfo,
    WriteStallInfo,
};
pub use crate::sst::TableProperties;
pub use crate::transactions::locks::LockMode;

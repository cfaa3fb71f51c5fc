//! Settings (each declared once, in one table), components, and the OPTIONS file.
//!
//! - [`table`]: the one macro that defines everything about a setting; `nested`: settings inside
//!   another setting
//! - [`db_settings`], [`cf_settings`], [`table_settings`]: the rows
//! - [`known`]: RocksDB's other names, accepted only with RocksDB's default; [`former`]: names that
//!   RocksDB once had; [`removed`]: our own former names
//! - [`value`], [`choices`], `data_path`, `filter_bits`, `filter_policy`, `memory_budget`,
//!   `memtable_factory`, `secondary_cache`, `temperature`: how values are parsed and printed
//! - [`assembled`]: [`Options`] and [`ColumnFamilyOptions`], settings and components together;
//!   `by_name`: set and read by name; `validate`: constraints between them; `bounded`: settings
//!   limited by others, with the values that were asked for
//! - [`names`]: which names can be set, for what, and when
//! - [`block_cache`]: a cache that databases can share; `calls`, `ingestion`, `copies`: options of
//!   single calls
//! - `compaction_service`, `compaction_worker`: compactions that other processes do
//! - `progress`: progress of opening a database; `wal_filter`: which WAL records it replays;
//!   `info_log`: where messages go
//! - [`mod@file`]: the OPTIONS file; `parser`: its lines; `kept`: settings in it that have no
//!   effect

pub mod assembled;
mod blob_defaults;
pub mod block_cache;
mod bounded;
mod by_name;
mod calls;
pub mod cf_settings;
pub mod choices;
mod compaction_service;
mod compaction_worker;
mod control;
mod copies;
mod data_path;
pub mod db_settings;
pub mod file;
mod filter_bits;
mod filter_policy;
mod filters;
#[cfg(test)]
mod foreign_tests;
pub mod former;
mod hooks;
mod info_log;
mod ingestion;
mod job_info;
mod kept;
pub mod known;
mod listener;
mod memory_budget;
mod memtable_factory;
mod missing;
pub mod names;
mod nested;
mod parser;
mod progress;
mod rate_limiter;
pub mod removed;
mod secondary_cache;
pub mod table;
mod table_filter;
pub mod table_settings;
mod temperature;
#[cfg(test)]
mod tests;
mod text;
mod ttl;
mod validate;
pub mod value;
mod wal_filter;

pub use crate::base::checksum::ChecksumType;
pub use crate::base::compression::CompressionType;
pub use crate::base::{
    CollectedEntry, CollectorContext, CollectorFactories, CompactOnDeletionCollectorFactory,
    CompactionFilter, CompactionFilterContext, CompactionFilterFactory, Crc32cFileChecksums,
    DEFAULT_COLUMN_FAMILY_NAME, EntryKind, FileChecksum, FileChecksumFactory,
    FileChecksumGenerator, FilterDecision, FilteredKind, KeepEverything, MergeFailureScope,
    MergeOperator, PartitionRequest, PartitionerContext, PrefixExtractor, SstPartitioner,
    SstPartitionerFactory, SstPartitionerFixedPrefixFactory, TableFileCreationReason,
    TablePropertiesCollector, TablePropertiesCollectorFactory, Temperature, UserProperties,
};
pub use crate::cache::{CacheSettings, CacheStatistics, PolicyKind, WriteBufferManager};
pub use crate::env::{
    BackgroundThreads, BackgroundThreadsOptions, ChecksumHandoff, CompactionLimiter, IoPriority,
    RateLimiter, RateLimiterMode, RateLimiterOptions, SstFileManager, SstFileManagerOptions,
};
pub use crate::env::{FileOperation, FileOperationInfo};
pub use crate::sst::{FilterPolicy, IndexShortening, IndexType};
pub use crate::wal::{RecoveryMode, WalCompression, WalWriteMode};
pub use assembled::{ColumnFamilyOptions, Options};
pub use block_cache::BlockCache;
pub(crate) use bounded::BoundedSettings;
pub use calls::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactFilesOptions,
    CompactRangeOptions, FlushOptions, ReadOptions, SizeApproximationOptions,
    WaitForCompactOptions, WriteOptions,
};
pub use cf_settings::{
    CfSettings, CompressionSettings, FifoCompactionOptions, UniversalCompactionOptions,
};
pub use choices::{
    BlobWriteMode, CompactionPri, CompactionStopStyle, CompactionStyle, DataBlockIndexType,
    FileChecksumGenFactory, PrepopulateBlobCache, PrepopulateBlockCache, ProtectionBytes,
};
pub use compaction_service::{
    CompactionService, CompactionServiceJobInfo, CompactionServiceJobStatus,
    CompactionServiceScheduleResponse,
};
pub use compaction_worker::{
    CompactionServiceOptionsOverride, OpenAndCompactOptions, StatisticsReceiver,
};
pub use control::{CompactionControl, CompactionProgress};
pub use copies::{CheckpointOptions, ImportColumnFamilyOptions};
pub use data_path::{DataPath, DataPathList, PathText};
pub use db_settings::DbSettings;
pub use file::{LoadedOptions, load_latest, load_readable};
pub use filter_bits::FilterBits;
pub use info_log::{InfoLog, InfoLogLevel, Logger};
pub use ingestion::IngestExternalFileOptions;
pub use job_info::{
    BackgroundErrorReason, BackgroundJobPressure, BlobFileInfo, BlobGarbageInfo, CompactionReason,
    ErrorRecoveryInfo, FileCreationInfo, FlushReason, JobInfo, JobReason, JobStats,
    ManualFlushInfo, MemtableFigures, MemtableInfo, SubcompactionInfo, TableInfo, TreeShape,
};
pub use kept::{KeptSection, KeptSetting};
pub use listener::{
    DamagedFile, EventListener, FileInfo, IngestionInfo, KEY_FAULT_KEY_MAX, KEY_FAULTS_MAX,
    KeyFault, Listeners, StallCondition, WalReserveInfo, WriteStallInfo,
};
pub use memory_budget::MemoryBudget;
pub use memtable_factory::MemTableFactory;
pub use progress::{OpenProgress, OpenProgressCallback};
pub use table::{Row, Section};
pub use table_filter::TableFilter;
pub use table_settings::TableSettings;
pub use temperature::{FileTemperatureAge, FileTemperatureAges};
pub use wal_filter::{ReplayedFamily, WalDecision, WalFilter};

//! What every other part stands on: no I/O, no threads, no options.

pub mod allocator;
pub mod checksum;
pub(crate) mod chunk;
pub mod coding;
mod compaction_filter;
pub mod comparator;
pub mod compression;
mod counted;
mod covered_groups;
mod covered_parts;
mod data_paths;
mod digits;
pub mod entity;
mod error;
mod file_checksum;
pub mod file_name;
mod fragmented;
pub mod hash;
mod hex;
mod ids;
mod iterator;
mod key;
mod key_buffer;
pub mod merge;
pub mod mutant;
pub(crate) mod perf;
mod prefetch;
pub mod prefix;
mod properties_collector;
pub mod range_tombstone;
pub mod remedy;
mod shared_piece;
pub(crate) mod slab;
mod snapshot;
pub mod sometimes;
mod sorted_keys;
mod sorted_numbers;
mod sst_partitioner;
mod stripes;
pub(crate) mod sync;
mod temperature;
pub mod timestamp;
pub mod unique_id;
mod wide_columns;
mod write_times;

pub use compaction_filter::{
    CompactionFilter, CompactionFilterContext, CompactionFilterFactory, FilterDecision,
    FilteredKind, KeepEverything, TableFileCreationReason,
};
pub use comparator::{Comparator, UserComparator};
pub use counted::{counted, form};
pub use data_paths::DataPaths;
pub(crate) use error::path_in_words;
pub use error::{Code, Error, Result, SubCode};
pub use file_checksum::{
    Crc32cFileChecksums, FILE_CHECKSUM_CRC32C, FileChecksum, FileChecksumFactory,
    FileChecksumGenerator, FileChecksums, RunningFileChecksum,
};
pub(crate) use fragmented::Within;
pub(crate) use hex::from_hex;
pub use ids::{ColumnFamilyId, DEFAULT_COLUMN_FAMILY_NAME, FileNumber, SequenceNumber};
pub use iterator::{InternalIterator, PinnedValue};
pub use key::{
    InternalKey, InternalKeyBuf, InternalKeyComparator, MAX_SEQUENCE_NUMBER, PACKED_SIZE,
    ValueType, key_in_words, pack_sequence_and_type, unpack_sequence_and_type,
};
pub(crate) use key_buffer::KeyBuffer;
pub use merge::{MergeBase, MergeFailureScope, MergeOperator, Merged};
pub use mutant::Mutant;
pub use perf::{
    IoMetric, IoStatsContext, PerfContext, PerfLevel, PerfLevelMetric, PerfMetric, perf_level,
    set_perf_level,
};
pub(crate) use prefetch::prefetch;
pub use prefix::PrefixExtractor;
pub use properties_collector::{
    CollectedEntry, CollectorContext, CollectorFactories, CompactOnDeletionCollectorFactory,
    EntryKind, TablePropertiesCollector, TablePropertiesCollectorFactory, UserProperties,
};
pub use range_tombstone::{FragmentedRangeTombstones, RangeTombstone, TruncatedRangeTombstones};
pub use remedy::{Remedy, RemedyKind};
pub use shared_piece::{SharedPiece, SharedRoom};
pub use snapshot::{LiveSnapshot, Snapshot, SnapshotList};
pub use sometimes::Sometimes;
pub use sst_partitioner::{
    PartitionRequest, PartitionerContext, Partitioning, SstPartitioner, SstPartitionerFactory,
    SstPartitionerFixedPrefixFactory,
};
pub(crate) use stripes::{Counters, STRIPES, own_stripe};
pub use temperature::Temperature;
pub use unique_id::UniqueId;
pub use wide_columns::{DEFAULT_COLUMN_NAME, WideColumns};
pub use write_times::{WriteTime, WriteTimes};

//! The engine: opening, writing, reading, and the background work that keeps the tree in shape.
//!
//! - The way of a write: `writing` (large values in `direct_blob`, the commit in `write`, memtables
//!   in `switch`), `jobs::flush`.
//! - The way of a read: `reading` (point lookups in `read`, cursors in `iterate`).
//! - The way of a compaction: `jobs` (picked and run in `compact`, written in `output`; `obsolete`
//!   removes old files).
//! - Opening: `opening` (`open`, `recovery`). One lock guards what changes (`tree`); readers pin a
//!   super version without it.
//! - Looking after it: `checks` (every byte), `facts` (what a doctor goes by).
//!
//! `salvage`, `doctor` and `ttl` stand on the engine, outside of it: they use what any user has,
//! and the few crate-visible names below. Nothing here uses them.

mod async_read;
mod background;
mod budget;
mod checkpoint;
mod checks;
mod column_family;
mod contents;
mod context;
mod copied_files;
mod destroy;
mod disk;
mod events;
mod exports;
mod facts;
mod family;
#[cfg(test)]
mod filter_bits_tests;
mod handle;
mod info_log;
mod ingestion;
mod inner;
mod jobs;
mod limits;
mod live_files;
mod maintenance;
mod memory;
mod memory_report;
mod offline;
mod open_files;
mod opening;
mod options_file;
#[cfg(test)]
mod parts_tests;
mod pins;
mod poison;
mod properties;
#[cfg(test)]
mod protection_tests;
mod ranges;
mod reading;
mod settings;
mod space;
mod statistics;
mod stats_history;
mod tables;
mod trace;
mod tree;
mod two_phase;
mod updates;
mod value_pieces;
mod wal_files;
mod wal_space;
mod write_callback;
mod write_control;
mod writing;

use std::sync::Arc;

use crate::base::SnapshotList;
use crate::base::allocator::ReleasedAtEnd;
use crate::base::sync::Mutex;
use crate::memtable::ArenaPool;

pub(crate) use opening::open::existing_families;

pub use async_read::AsyncIter;
pub(crate) use copied_files::{
    Change, CopiedFile, CopyOptions, FileBytes, FilesToCopy, files_to_copy,
};

pub use crate::base::FileChecksum;
pub use checks::verify::{CheckReport, Fault, VerifyReport};
pub use destroy::destroy;
pub use exports::ExportedFamily;
pub use facts::{DatabaseFacts, Facts, FamilyFacts, LogFacts, LogFate};
pub use family::ColumnFamily;
pub use handle::Db;
pub use ingestion::ExternalFiles;
pub(crate) use ingestion::begin_temporary_table;
pub use live_files::{LiveFile, StoredFile};
pub use maintenance::held::{HeldCompactions, HeldFiles};
pub use memory::{AutoCacheMemory, CacheMemory, MemoryUsage};
pub use offline::{OfflineManifest, OfflineTable, TableFacts};
pub use open_files::OpenFiles;
pub use opening::following::{Follower, Secondary, check_no_follower};
pub use opening::worker::open_and_compact;
pub use pins::{Kept, PinningIterator, PinningSnapshot, Pins};
pub use properties::PROPERTY_NAMES;
pub(crate) use properties::human;
pub(crate) use reading::ahead::AheadLimits;
pub use reading::ahead::UserRange;
pub(crate) use reading::get_range::PartBeforeTail;
pub use reading::get_range::ValuePart;
pub use reading::iterate::Iter;
pub use reading::value::Value;
pub use reading::value_reader::ValueReader;
pub use reading::versions::KeyVersion;
pub use reading::warming::CachedBlocks;
pub(crate) use settings::{
    compression_options, leveled_settings, strips_timestamps, table_builder_settings,
    table_temperatures,
};
pub use space::SpaceUsage;
pub use statistics::{Statistics, Ticker};
pub use stats_history::StatsSnapshot;
pub use tree::directory_owner::another_owner;
pub use two_phase::{PreparedTransaction, TwoPhase};
pub use updates::position::UpdatePosition;
pub use updates::{Update, Updates};
pub use value_pieces::{Streamed, StreamedValue, ValueWriter};
pub use wal_files::WalFile;
pub use write_callback::write_with_callback;
pub use writing::condition::WriteCallback;

// What stands on the engine, for its users to find here. Nothing in the engine uses these names.
pub use crate::doctor::{Finding, Severity, diagnose};
pub use crate::salvage::{
    LostValue, SalvageProgress, SalvageReport, SalvagedFamily, SalvagedFile, SalvagedKind, salvage,
    salvage_with_older_options,
};
pub use crate::ttl::{
    ExpiringValue, TtlAsyncIter, TtlBlobWriter, TtlDb, TtlFamily, TtlIter, TtlOptions,
};

/// The database behind its handles.
///
/// **Lock order**: `commit`, then `state`, then everything else. Readers take none of the two.
pub(crate) struct DbInner {
    context: Arc<context::Context>,
    pipeline: Arc<writing::pipeline::Pipeline>,
    tree: Arc<tree::Tree>,
    /// The last sequence number that readers see, and the snapshots taken of it.
    snapshots: Arc<SnapshotList>,
    tables: Arc<tables::Tables>,
    reader: Arc<reading::Reader>,
    /// Since when `rocksdb.dbstats` counts, and what it said last.
    reports: Mutex<properties::db_stats::DbReports>,
    limits: Arc<limits::Limits>,
    /// Memory of flushed memtables, for the next ones.
    arenas: Arc<ArenaPool>,
    background: Arc<background::Background>,
    options_file: Arc<options_file::OptionsFile>,
    jobs: Arc<jobs::Jobs>,
    lifecycle: inner::Lifecycle,
    disk: Arc<disk::Disk>,
    /// Declared last: what all others had is free by then.
    released: ReleasedAtEnd,
}

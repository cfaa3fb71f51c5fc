//! The engine: opening, writing, reading, and the background work that keeps the tree in shape.
//!
//! - The way of a write: `writing` (large values in `direct_blob`, the commit in `write`, memtables in `switch`), `jobs::flush`.
//! - The way of a read: `reading` (point lookups in `read`, cursors in `iterate`).
//! - A handle over all of it whose values expire: `ttl`.
//! - The way of a compaction: `jobs` (picked and run in `compact`, written in `output`), `disk` (`obsolete` removes old files).
//! - Opening: `opening` (`open`, `recovery`). One lock guards what changes (`state`); readers pin a super version without it.
//! - Looking after it: `checks` (every byte), `doctor` (what is wrong, in words), `salvage` (what is left of a damaged one).

mod budget;
mod caches;
mod checkpoint;
mod checks;
mod column_family;
mod disk;
mod doctor;
mod events;
mod family;
mod files;
#[cfg(test)]
mod filter_bits_tests;
mod generation;
mod handle;
mod jobs;
mod live_files;
mod memory;
mod open_files;
mod opening;
mod pins;
mod poison;
mod properties;
mod ranges;
mod reading;
mod salvage;
mod settings;
mod state;
mod statistics;
mod trace;
mod ttl;
mod writing;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::allocator::ReleasedAtEnd;
use crate::base::sync::{ArcSwap, AtomicBool, AtomicU64, Condvar, Mutex, RwLock};
use crate::base::{ColumnFamilyId, CombiningLock, Result, SnapshotList};
use crate::env::{Env, FileLock, Listed, Names, Sharer};
use crate::manifest::{FileNumbers, ObsoleteFiles};
use crate::memtable::ArenaPool;
use crate::options::Options;

pub use checks::verify::{CheckReport, Fault, VerifyReport};
pub use disk::space::SpaceUsage;
pub use doctor::{DatabaseFacts, Facts, FamilyFacts, Finding, LogFacts, LogFate, Severity, diagnose};
pub use family::ColumnFamily;
pub use handle::Db;
pub use jobs::held::HeldCompactions;
pub use live_files::LiveFile;
pub use memory::{CacheMemory, MemoryUsage};
pub use open_files::OpenFiles;
pub use opening::directory_owner::another_owner;
pub use pins::{Kept, PinningIterator, PinningSnapshot, Pins};
pub use properties::PROPERTY_NAMES;
pub use reading::async_read::AsyncIter;
pub use reading::get_range::ValuePart;
pub use reading::iterate::Iter;
pub use reading::update_position::UpdatePosition;
pub use reading::updates::{Update, Updates};
pub use reading::value::Value;
pub use reading::value_reader::ValueReader;
pub use salvage::{
    LostValue, SalvageProgress, SalvageReport, SalvagedFamily, SalvagedFile, SalvagedKind, salvage,
    salvage_with_older_options,
};
pub use statistics::{Statistics, Ticker};
pub use ttl::{ExpiringValue, TtlAsyncIter, TtlBlobWriter, TtlDb, TtlFamily, TtlIter, TtlOptions};
pub use writing::archive::WalFile;
pub use writing::direct_blob::BlobWriter;

/// The database behind its handles.
///
/// **Lock order**: `commit`, then `state`, then everything else. Readers take none of the two.
pub(crate) struct DbInner {
    path: PathBuf,
    wal_directory: PathBuf,
    env: Env,
    names: Arc<Names>,
    read_only: bool,
    opened_at_us: u64,
    settings: ArcSwap<Options>,
    /// Identity of the database and of this session, for table properties.
    identity: String,
    session: String,

    commit: CombiningLock<writing::write::Commit>,
    wal_sync: writing::wal_sync::WalSync,
    state: Mutex<state::State>,
    /// By id; what handles and readers go through.
    families: RwLock<BTreeMap<ColumnFamilyId, Arc<family::Family>>>,

    /// The last sequence number that readers see, and the snapshots taken of it.
    snapshots: Arc<SnapshotList>,
    file_numbers: Arc<FileNumbers>,
    obsolete: Arc<ObsoleteFiles>,
    tables: Arc<files::Tables>,
    reader: reading::Reader,
    /// A recording of the block cache was begun here, and perhaps not ended.
    records_cache: AtomicBool,
    /// Memory of flushed memtables, for the next ones.
    arenas: Arc<ArenaPool>,
    write_control: writing::write_control::WriteControl,
    poison: poison::Poison,
    reserve: disk::reserve::Reserve,
    events: Arc<events::Events>,
    statistics: Arc<Statistics>,
    /// What `rocksdb.dbstats` said last.
    last_report: Mutex<properties::db_stats::DbFigures>,
    io: Arc<jobs::io_limit::IoState>,

    /// Bytes of the WALs before the active one, the number of the oldest, when to flush for their sake, and what all may have.
    older_wal_bytes: AtomicU64,
    /// Bytes that the active WAL was to reserve, and found no room for.
    wal_reserve_missing: AtomicU64,
    oldest_wal: AtomicU64,
    wal_bytes_limit: AtomicU64,
    wal_bytes_cap: AtomicU64,
    /// Bytes of the active one, where there is a cap.
    active_wal_bytes: AtomicU64,
    /// Bytes of the memtables that are written to at which the largest are switched.
    memtable_bytes_limit: AtomicU64,
    largest_write_buffer: AtomicU64,
    /// The smallest value that any family puts into a blob file when it is committed.
    direct_blob_min: AtomicU64,
    /// Bytes of the smallest hole that gives space back; 0 where files can have none.
    hole_size: AtomicU64,
    hole_speed: disk::hole_speed::HoleSpeed,
    /// How many bytes of range deletions go into one table.
    range_deletion_bytes_max: AtomicU64,
    /// Something was written without the WAL since the database was opened, be it flushed by now or not.
    unlogged: AtomicBool,

    /// The threads that do the background work; `announced` counts how often they were told that there may be some.
    workers: jobs::background::Workers,
    announced: AtomicU64,
    /// Signalled when a worker changed the tree or failed.
    progress: Condvar,
    closing: AtomicBool,
    /// How closing went; held meanwhile, before all other locks.
    closed: Mutex<Option<Result<()>>>,
    /// Somebody left a compaction for later since another thread was removing files.
    removal_awaited: AtomicBool,
    /// Its part of the memory of all databases of the process, while it is open.
    memory_share: Mutex<Option<Sharer>>,
    /// Its place in the list of the open databases of the process, while it is open.
    listed: Mutex<Option<Listed>>,
    /// Held while a checkpoint looks for its directory and makes it.
    checkpoint_begins: Mutex<()>,
    /// Held while an OPTIONS file is written; taken before all other locks. Whether one is due that could not be written.
    options_file: Mutex<opening::due_options::DueOptions>,
    /// Held from the look at all options until what follows from them counts; taken after all other locks.
    limits: Mutex<()>,
    lock: Mutex<Option<Box<dyn FileLock>>>,
    /// Declared last: what all others had is free by then.
    released: ReleasedAtEnd,
}

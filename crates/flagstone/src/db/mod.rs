//! The engine: opening, writing, reading, and the background work that keeps the tree in shape.
//!
//! - The way of a write: `direct_blob` (large values), `write` (commit), `switch` (memtables), `flush`.
//! - The way of a read: `read` (point lookups), `iterate` (cursors).
//! - A handle over all of it whose values expire: `ttl`.
//! - The way of a compaction: `compact` (picks and runs), `output` (writes files), `obsolete` (removes old ones).
//! - Opening: `open`, `recovery`. One lock guards what changes (`state`); readers pin a super version without it.

mod agenda;
mod archive;
mod async_read;
mod background;
mod blob_values;
mod budget;
mod checkpoint;
mod column_family;
mod compact;
mod compact_files;
mod covers;
mod cursor_blobs;
mod data_directories;
mod deletions;
mod direct_blob;
mod directory_owner;
mod doctor;
mod dropping;
mod events;
mod family;
mod files;
#[cfg(test)]
mod filter_bits_tests;
mod flush;
mod generation;
mod get_range;
mod handle;
mod io_limit;
mod iterate;
mod job;
mod level_files;
mod lifecycle;
mod live_cursors;
mod live_files;
mod manual;
mod memory;
mod merged_onto;
mod multi_read;
mod obsolete;
mod open;
mod operations;
mod output;
mod overwriting;
mod parked;
mod part;
mod pins;
mod placement;
mod poison;
mod pressure;
mod properties;
mod punch;
mod quarantine;
mod ranges;
mod read;
mod recovery;
mod refresh;
mod replay_inserts;
mod replayed;
mod reserve;
mod salvage;
mod seek_cost;
mod settings;
mod space;
mod stall;
mod state;
mod statistics;
mod successive_merges;
mod switch;
mod trace;
mod ttl;
mod value;
mod verify;
mod verify_logs;
mod verify_manifest;
mod waits;
mod wal_sync;
mod write;
mod written;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::allocator::ReleasedAtEnd;
use crate::base::sync::{ArcSwap, AtomicBool, AtomicU64, Condvar, Mutex, RwLock};
use crate::base::{ColumnFamilyId, Result, SnapshotList};
use crate::env::{Env, FileLock, Names, Sharer};
use crate::manifest::{FileNumbers, ObsoleteFiles};
use crate::memtable::ArenaPool;
use crate::options::Options;

pub use archive::WalFile;
pub use async_read::AsyncIter;
pub use direct_blob::BlobWriter;
pub use directory_owner::another_owner;
pub use doctor::{DatabaseFacts, Facts, FamilyFacts, Finding, LogFacts, LogFate, Severity, diagnose};
pub use family::ColumnFamily;
pub use get_range::ValuePart;
pub use handle::Db;
pub use iterate::Iter;
pub use live_files::LiveFile;
pub use memory::{CacheMemory, MemoryUsage};
pub use pins::{Kept, PinningIterator, PinningSnapshot, Pins};
pub use properties::PROPERTY_NAMES;
pub use salvage::{
    LostValue, SalvageProgress, SalvageReport, SalvagedFamily, SalvagedFile, SalvagedKind, salvage,
};
pub use space::SpaceUsage;
pub use statistics::{Statistics, Ticker};
pub use ttl::{ExpiringValue, TtlAsyncIter, TtlDb, TtlFamily, TtlIter, TtlOptions};
pub use value::Value;
pub use verify::{CheckReport, Fault, VerifyReport};

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

    commit: Mutex<write::Commit>,
    wal_sync: wal_sync::WalSync,
    state: Mutex<state::State>,
    /// By id; what handles and readers go through.
    families: RwLock<BTreeMap<ColumnFamilyId, Arc<family::Family>>>,

    /// The last sequence number that readers see, and the snapshots taken of it.
    snapshots: Arc<SnapshotList>,
    file_numbers: Arc<FileNumbers>,
    obsolete: Arc<ObsoleteFiles>,
    tables: Arc<files::Tables>,
    /// A recording of the block cache was begun here, and perhaps not ended.
    records_cache: AtomicBool,
    /// Memory of flushed memtables, for the next ones.
    arenas: Arc<ArenaPool>,
    write_control: stall::WriteControl,
    poison: poison::Poison,
    reserve: reserve::Reserve,
    events: Arc<events::Events>,
    statistics: Arc<Statistics>,
    io: Arc<io_limit::IoState>,

    /// Bytes of the WALs before the active one, the number of the oldest, when to flush for their sake, and what all may have.
    older_wal_bytes: AtomicU64,
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
    hole_speed: punch::HoleSpeed,
    /// Something was written without the WAL since the last flush of everything.
    unlogged: AtomicBool,

    /// The threads that do the background work; `announced` counts how often they were told that there may be some.
    workers: background::Workers,
    announced: AtomicU64,
    /// Signalled when a worker changed the tree or failed.
    progress: Condvar,
    closing: AtomicBool,
    /// How closing went; held meanwhile, before all other locks.
    closed: Mutex<Option<Result<()>>>,
    /// Its part of the memory of all databases of the process, while it is open.
    memory_share: Mutex<Option<Sharer>>,
    /// Held while a checkpoint looks for its directory and makes it.
    checkpoint_begins: Mutex<()>,
    /// Held while an OPTIONS file is written; taken before all other locks.
    options_file: Mutex<()>,
    /// Held from the look at all options until what follows from them counts; taken after all other locks.
    limits: Mutex<()>,
    lock: Mutex<Option<Box<dyn FileLock>>>,
    /// Declared last: what all others had is free by then.
    released: ReleasedAtEnd,
}

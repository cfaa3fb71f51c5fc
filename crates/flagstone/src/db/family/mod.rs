//! Column families: what readers see of them, and what the engine's state knows of them.

pub(in crate::db) mod direct_blobs;
pub(in crate::db) mod generation;
pub(in crate::db) mod parked;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::base::sync::{ArcSwap, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::base::{
    ColumnFamilyId, Comparator, DataPaths, Error, InternalKeyComparator, Result, timestamp,
};
use crate::compaction::pick::blob_file_size;
use crate::db::family::generation::Generation;
use crate::db::family::parked::ParkedCursors;
use crate::env::Process;
use crate::iter::{DeadRanges, HistoryEpoch};
use crate::manifest::{ObsoleteFiles, Version};
use crate::options::{BlobWriteMode, BoundedSettings, ColumnFamilyOptions, DbSettings};

/// Everything that a read looks at, as of one moment; readers pin it without a lock.
pub(crate) struct SuperVersion {
    /// Takes the writes.
    pub(crate) mem: Arc<Generation>,
    /// Waiting for their flush, newest first.
    pub(crate) immutable: Vec<Arc<Generation>>,
    /// The files.
    pub(crate) version: Arc<Version>,
    /// Which of the family's pasts it shows.
    pub(super) past: HistoryEpoch,
    /// The oldest timestamp as of which the version can be read, where there is one.
    pub(super) history_low: Option<Arc<[u8]>>,
}

impl SuperVersion {
    /// What a family begins with.
    pub(super) fn first(mem: Arc<Generation>, version: Arc<Version>) -> Self {
        Self {
            mem,
            immutable: Vec::new(),
            version,
            past: HistoryEpoch::default(),
            history_low: None,
        }
    }

    /// The same, which can be read as of that timestamp or later.
    pub(super) fn with_history_low(self, low: Option<&[u8]>) -> Self {
        Self { history_low: low.map(Arc::from), ..self }
    }

    /// The memtables, newest first.
    pub(super) fn generations(&self) -> impl Iterator<Item = &Arc<Generation>> {
        std::iter::once(&self.mem).chain(&self.immutable)
    }
}

/// The database that a family belongs to.
struct Owner {
    /// Something that only the family's own database shares with it.
    shared: Arc<ObsoleteFiles>,
    /// The process that opened it.
    process: Process,
}

/// One column family, shared by its handles, readers and background work.
pub(crate) struct Family {
    owner: Owner,
    pub(crate) id: ColumnFamilyId,
    pub(crate) name: String,
    pub(crate) order: InternalKeyComparator,
    /// Where its files lie.
    pub(super) paths: Arc<DataPaths>,
    pub(crate) options: ArcSwap<ColumnFamilyOptions>,
    /// What was asked for in the place of some of them.
    bounded: Mutex<BoundedSettings>,
    /// Which values go to blob files at commit, as far as the database's options say.
    at_commit: AtCommit,
    /// Options that every write and flush asks for.
    pub(super) limits: FamilyLimits,
    /// How many keys of the database had been looked up before its last flush.
    keys_read: AtomicU64,
    pub(crate) current: ArcSwap<SuperVersion>,
    pub(super) parked: ParkedCursors,
    /// Where scans found nothing.
    pub(super) dead_ranges: Arc<DeadRanges>,
    dropped: AtomicBool,
    /// How many hold automatic compactions back until further notice, which nobody waits for
    /// meanwhile. Changed under the state's lock.
    held: AtomicUsize,
}

/// Whether values may go to blob files when they are committed, as far as the database's options
/// say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtCommit {
    /// The family's options decide.
    AsFamilySays,
    /// Only where the family asks for it: WALs are kept for others to read.
    OnRequest,
    /// Secondaries of RocksDB read the WALs.
    Never,
}

impl AtCommit {
    pub(crate) fn of(settings: &DbSettings) -> Self {
        if settings.readable_by_rocksdb_secondaries {
            Self::Never
        } else if settings.archives_wals() {
            Self::OnRequest
        } else {
            Self::AsFamilySays
        }
    }
}

/// What follows from a family's options, as numbers that are read without a lock.
pub(super) struct FamilyLimits {
    pub(super) write_buffer_size: AtomicUsize,
    /// Bytes at which a blob file is closed: `options.blob_file_size`, or fewer to keep within
    /// `options.max_space_amplification`.
    pub(super) blob_file_size: AtomicU64,
    /// The smallest value that goes to a blob file when it is committed; more than any if none
    /// does.
    pub(super) direct_blob_min: AtomicU64,
    /// The smallest one for a write that asks for a sync.
    direct_blob_min_synced: AtomicU64,
    pub(super) max_successive_merges: AtomicU64,
}

impl FamilyLimits {
    fn of(options: &ColumnFamilyOptions, version: &Version, at_commit: AtCommit) -> Self {
        Self {
            write_buffer_size: AtomicUsize::new(options.write_buffer_size as usize),
            blob_file_size: AtomicU64::new(blob_file_size_of(options, version)),
            direct_blob_min: AtomicU64::new(direct_blob_min(options, at_commit, false)),
            direct_blob_min_synced: AtomicU64::new(direct_blob_min(options, at_commit, true)),
            max_successive_merges: AtomicU64::new(options.max_successive_merges),
        }
    }

    fn set(&self, new: &Self) {
        let copy = |to: &AtomicU64, from: &AtomicU64| {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed)
        };
        self.write_buffer_size
            .store(new.write_buffer_size.load(Ordering::Relaxed), Ordering::Relaxed);
        copy(&self.blob_file_size, &new.blob_file_size);
        copy(&self.direct_blob_min, &new.direct_blob_min);
        copy(&self.direct_blob_min_synced, &new.direct_blob_min_synced);
        copy(&self.max_successive_merges, &new.max_successive_merges);
    }
}

impl Family {
    /// With the options that were asked for.
    pub(crate) fn new(
        id: ColumnFamilyId,
        name: &str,
        asked_for: &ColumnFamilyOptions,
        first: SuperVersion,
        owner: Arc<ObsoleteFiles>,
        at_commit: AtCommit,
    ) -> Arc<Self> {
        let options = asked_for.sanitized();
        Arc::new(Self {
            bounded: Mutex::new(BoundedSettings::of(asked_for)),
            owner: Owner { shared: owner, process: Process::this() },
            at_commit,
            id,
            name: name.to_string(),
            order: InternalKeyComparator::new(options.comparator.clone()),
            paths: first.version.paths.clone(),
            dead_ranges: Arc::new(DeadRanges::new(options.comparator.clone())),
            limits: FamilyLimits::of(&options, &first.version, at_commit),
            keys_read: AtomicU64::new(0),
            options: ArcSwap::from_pointee(options),
            current: ArcSwap::from_pointee(first),
            parked: ParkedCursors::default(),
            dropped: AtomicBool::new(false),
            held: AtomicUsize::new(0),
        })
    }

    pub(crate) fn comparator(&self) -> &Comparator {
        &self.order.user
    }

    /// The place before all that is stored of a key of the program's.
    pub(super) fn stored_from<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        match self.order.timestamp_size() {
            0 => Cow::Borrowed(key),
            size => Cow::Owned(timestamp::before_all(key, size)),
        }
    }

    /// The last of what is stored of a key of the program's.
    pub(super) fn stored_until<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        match self.order.timestamp_size() {
            0 => Cow::Borrowed(key),
            size => Cow::Owned(timestamp::last_of(key, size)),
        }
    }

    /// The super version, and the sequence number that `read` comes to then: it has all writes up
    /// to there.
    ///
    /// Were it replaced between the two, what is published by then might lie in the next memtable.
    /// A lookup would be as of the switch; but a scan, which tells as of which number it found
    /// nothing ([`DeadRanges`]), would tell of keys that it could not see.
    pub(super) fn pinned<T>(&self, read: impl Fn() -> T) -> (Arc<SuperVersion>, T) {
        loop {
            let current = self.current.load_full();
            let sequence = read();
            if Arc::ptr_eq(&current, &self.current.load()) {
                return (current, sequence);
            }
        }
    }

    /// Bytes of memory that a memtable may use before it is flushed.
    pub(super) fn write_buffer_size(&self) -> usize {
        self.limits.write_buffer_size.load(Ordering::Relaxed)
    }

    /// Bytes of values in blob files that it may have.
    pub(super) fn blob_file_size(&self) -> u64 {
        self.limits.blob_file_size.load(Ordering::Relaxed)
    }

    /// The options that were asked for.
    pub(super) fn options_asked_for(&self) -> ColumnFamilyOptions {
        let mut options = (*self.options.load_full()).clone();
        self.bounded.lock().put_into(&mut options);
        options
    }

    /// Takes over what was changed while the database is open.
    pub(super) fn set_options(&self, asked_for: &ColumnFamilyOptions) {
        *self.bounded.lock() = BoundedSettings::of(asked_for);
        let options = asked_for.sanitized();
        self.limits.set(&FamilyLimits::of(&options, &self.current.load().version, self.at_commit));
        self.options.store(Arc::new(options));
        // Their cursors read by the former ones.
        self.parked.clear();
    }

    /// Whether a value of `size` bytes goes to a blob file when it is committed; `synced` if that
    /// asks for a sync. One that the codec cannot compress goes through the WAL, and stays in a
    /// table.
    #[inline]
    pub(super) fn separates(&self, size: usize, synced: bool) -> bool {
        let smallest =
            if synced { &self.limits.direct_blob_min_synced } else { &self.limits.direct_blob_min };
        size as u64 >= smallest.load(Ordering::Relaxed)
            && (size <= ANY_CODEC_TAKES || self.codec_takes(size))
    }

    #[cold]
    fn codec_takes(&self, size: usize) -> bool {
        size <= self.options.load().blob_compression().raw_size_max()
    }

    /// Whether a memtable of the family is to be flushed: for its own size or for that of its
    /// values in blob files, which recovery would have to read. One without entries never is, as
    /// there is nothing to flush: its values may all be garbage.
    #[inline]
    pub(super) fn is_full(&self, mem: &Generation) -> bool {
        let has_enough = mem.memory_usage() >= self.write_buffer_size()
            || mem.blobs.bytes() >= self.blob_file_size();
        // However small the limit is: an empty one is not switched.
        has_enough && !mem.is_empty()
    }

    /// Whether a flush of so many entries is to make a filter that is kept in memory: if none is
    /// written, and enough of the `keys_read` so far were looked up since the last flush to pay for
    /// it. A lookup that a table of level 0 does not rule out reads a block of it, and takes as
    /// long as some fifty keys take to be put into a filter.
    pub(super) fn wants_key_filter(&self, entries: u64, keys_read: u64) -> bool {
        let lately = keys_read.saturating_sub(self.keys_read.swap(keys_read, Ordering::Relaxed));
        // Other orders may take keys of different bytes for equal.
        let is_by_bytes = self.comparator().tells_bytes_apart();
        is_by_bytes && self.options.load().table.filter_policy.is_none() && lately > entries / 64
    }

    /// One more, or one fewer, holds automatic compactions back; with the state lock held.
    pub(super) fn hold(&self, begins: bool) {
        if begins {
            self.held.fetch_add(1, Ordering::Relaxed)
        } else {
            self.held.fetch_sub(1, Ordering::Relaxed)
        };
    }

    /// Whether somebody holds automatic compactions back.
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
        self.parked.close();
    }

    /// # Errors
    /// `NotSupported` in a forked child; `InvalidArgument` for a handle of another database: its
    /// number would mean another family here.
    #[inline]
    pub(crate) fn check_owner(&self, owner: &Arc<ObsoleteFiles>) -> Result<()> {
        self.owner.process.check()?;
        if Arc::ptr_eq(&self.owner.shared, owner) {
            Ok(())
        } else {
            Err(Error::invalid_argument(format!(
                "the handle of column family '{}' belongs to another database",
                self.name
            )))
        }
    }

    /// # Errors
    /// `ColumnFamilyDropped`.
    pub(crate) fn check_alive(&self) -> Result<()> {
        if !self.is_dropped() {
            Ok(())
        } else {
            Err(Error::new(
                crate::base::Code::ColumnFamilyDropped,
                format!("column family '{}' was dropped", self.name),
            ))
        }
    }
}

fn direct_blob_min(options: &ColumnFamilyOptions, of_db: AtCommit, synced: bool) -> u64 {
    let at_commit = match (options.blob_write_mode, of_db) {
        (BlobWriteMode::Flush, _) | (_, AtCommit::Never) => false,
        (BlobWriteMode::Commit, _) => true,
        (BlobWriteMode::Auto, of_db) => of_db == AtCommit::AsFamilySays,
    };
    // Values that are to begin their life in tables do not begin it in blob files.
    let is_wanted =
        options.separates_values() && at_commit && options.blob_file_starting_level <= 0;
    let at_least = if synced { options.blob_commit_synced_min_size } else { 1 };
    if is_wanted {
        options.smallest_blob().max(options.blob_commit_min_size).max(at_least).max(1)
    } else {
        u64::MAX
    }
}

/// Bytes up to which each codec takes a value.
const ANY_CODEC_TAKES: usize = 1 << 30;

/// A handle to a column family; cheap to clone, usable from any thread, valid as long as anybody
/// holds it.
///
/// After the family is dropped, reads through an existing handle go on and writes fail.
#[derive(Clone)]
pub struct ColumnFamily(pub(crate) Arc<Family>);

impl ColumnFamily {
    /// The family's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The family's number.
    pub fn id(&self) -> ColumnFamilyId {
        self.0.id
    }

    /// The order of its keys.
    pub fn comparator(&self) -> &Comparator {
        self.0.comparator()
    }

    /// Its options as they are now.
    pub fn options(&self) -> Arc<ColumnFamilyOptions> {
        self.0.options.load_full()
    }

    /// Refuses a family that was dropped.
    ///
    /// # Errors
    /// `ColumnFamilyDropped`.
    pub(crate) fn check_alive(&self) -> Result<()> {
        self.0.check_alive()
    }
}

impl From<&ColumnFamily> for ColumnFamilyId {
    fn from(family: &ColumnFamily) -> Self {
        family.0.id
    }
}

impl From<&ColumnFamily> for ColumnFamily {
    fn from(family: &ColumnFamily) -> Self {
        family.clone()
    }
}

impl fmt::Debug for ColumnFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColumnFamily({} {})", self.0.id, self.0.name)
    }
}

/// How large a blob file of the family is to become.
pub(in crate::db) fn blob_file_size_of(options: &ColumnFamilyOptions, version: &Version) -> u64 {
    blob_file_size(version, options.max_space_amplification, options.blob_file_size)
}

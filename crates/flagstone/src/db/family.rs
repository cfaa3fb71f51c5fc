//! Column families: what readers see of them, and what the engine's state knows of them.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Weak};

use crate::base::sync::{ArcSwap, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::base::{
    ColumnFamilyId, Comparator, DataPaths, Error, FileNumber, InternalKeyComparator, Mutant, Result,
};
use crate::compaction::pick::{
    DeletedRanges, Merging, Overwriting, RunningCompaction, blob_file_size,
};
use crate::db::generation::Generation;
use crate::db::jobs::agenda::Listed;
use crate::db::jobs::deletions::WaitingDeletions;
use crate::db::jobs::punch::Punching;
use crate::db::properties::activity::Activity;
use crate::db::reading::parked::ParkedCursors;
use crate::db::state::State;
use crate::db::writing::pressure::Remembered;
use crate::iter::{DeadRanges, HistoryEpoch};
use crate::manifest::{ObsoleteFiles, Version};
use crate::options::{BlobWriteMode, BoundedSettings, ColumnFamilyOptions};

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
}

impl SuperVersion {
    /// What a family begins with.
    pub(super) fn first(mem: Arc<Generation>, version: Arc<Version>) -> Self {
        Self { mem, immutable: Vec::new(), version, past: HistoryEpoch::default() }
    }

    /// The memtables, newest first.
    pub(super) fn generations(&self) -> impl Iterator<Item = &Arc<Generation>> {
        std::iter::once(&self.mem).chain(&self.immutable)
    }
}

/// One column family, shared by its handles, readers and background work.
pub(crate) struct Family {
    /// Something that only the family's own database shares with it.
    owner: Arc<ObsoleteFiles>,
    pub(crate) id: ColumnFamilyId,
    pub(crate) name: String,
    pub(crate) order: InternalKeyComparator,
    /// Where its files lie.
    pub(super) paths: Arc<DataPaths>,
    pub(crate) options: ArcSwap<ColumnFamilyOptions>,
    /// What was asked for in the place of some of them.
    bounded: Mutex<BoundedSettings>,
    /// Whether the database keeps WALs for whoever reads along.
    archives_wals: bool,
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
    fn of(options: &ColumnFamilyOptions, version: &Version, archives_wals: bool) -> Self {
        Self {
            write_buffer_size: AtomicUsize::new(options.write_buffer_size as usize),
            blob_file_size: AtomicU64::new(blob_file_size_of(options, version)),
            direct_blob_min: AtomicU64::new(direct_blob_min(options, archives_wals, false)),
            direct_blob_min_synced: AtomicU64::new(direct_blob_min(options, archives_wals, true)),
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
        archives_wals: bool,
    ) -> Arc<Self> {
        let options = asked_for.sanitized();
        Arc::new(Self {
            bounded: Mutex::new(BoundedSettings::of(asked_for)),
            owner,
            archives_wals,
            id,
            name: name.to_string(),
            order: InternalKeyComparator::new(options.comparator.clone()),
            paths: first.version.paths.clone(),
            dead_ranges: Arc::new(DeadRanges::new(options.comparator.clone())),
            limits: FamilyLimits::of(&options, &first.version, archives_wals),
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
        self.limits.set(&FamilyLimits::of(
            &options,
            &self.current.load().version,
            self.archives_wals,
        ));
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
        let is_by_bytes = !matches!(self.comparator(), Comparator::Custom(_));
        is_by_bytes && self.options.load().table.filter_policy.is_none() && lately > entries / 64
    }

    /// One more, or one fewer, holds automatic compactions back.
    pub(super) fn hold(&self, _state: &mut State, begins: bool) {
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
    /// `InvalidArgument` for a handle of another database: its number would mean another family
    /// here.
    #[inline]
    pub(crate) fn check_owner(&self, owner: &Arc<ObsoleteFiles>) -> Result<()> {
        if Arc::ptr_eq(&self.owner, owner) {
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

fn direct_blob_min(options: &ColumnFamilyOptions, archives_wals: bool, synced: bool) -> u64 {
    let at_commit = match options.blob_write_mode {
        BlobWriteMode::Auto => !archives_wals,
        BlobWriteMode::Commit => true,
        BlobWriteMode::Flush => false,
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

fn blob_file_size_of(options: &ColumnFamilyOptions, version: &Version) -> u64 {
    blob_file_size(version, options.max_space_amplification, options.blob_file_size)
}

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
}

impl From<&ColumnFamily> for ColumnFamilyId {
    fn from(family: &ColumnFamily) -> Self {
        family.0.id
    }
}

impl fmt::Debug for ColumnFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColumnFamily({} {})", self.0.id, self.0.name)
    }
}

/// A full memtable on its way to a table file.
pub(super) struct Immutable {
    pub(super) mem: Arc<Generation>,
    /// The WAL in which its first write lies.
    pub(super) wal: FileNumber,
    /// Memtables that became immutable together, whatever their family, have the same; later ones
    /// have a larger one.
    pub(super) seal: u64,
    /// Whether a flush has taken it.
    pub(super) flushing: bool,
}

/// What the engine's state knows of one family; guarded by the state's lock.
pub(super) struct FamilyState {
    pub(super) family: Arc<Family>,
    pub(super) mem: Arc<Generation>,
    /// The WAL in which the active memtable's first write lies (or would lie).
    pub(super) mem_wal: FileNumber,
    /// Oldest first.
    pub(super) immutable: VecDeque<Immutable>,
    /// Flushes asked for although less than a batch of memtables is waiting.
    pub(super) flush_requested: bool,
    pub(super) compacting: Compacting,
    /// What range deletions leave nothing of, as far as it is not dropped yet.
    pub(super) deleted: Vec<DeletedRanges>,
    /// The deletions that wait in the memtable.
    pub(super) waiting_deletions: WaitingDeletions,
    /// How much of what is written makes garbage in blob files.
    pub(super) overwriting: Overwriting,
    /// How far it is with the holes in its blob files.
    pub(super) punching: Punching,
    /// What it asked of writers last.
    pub(super) remembered_pressure: Option<Remembered>,
    /// Where it stands in the lists of families.
    pub(super) listed: Listed,
    /// What was done for it, for reports.
    pub(super) activity: Activity,
    super_versions: SuperVersions,
}

/// The compactions of a family, and what they leave for the next ones.
#[derive(Default)]
pub(super) struct Compacting {
    /// Manual compactions, which keep automatic picks away.
    pub(super) manual: usize,
    /// The compactions under way.
    pub(super) running: Vec<RunningCompaction>,
    /// A merging of all runs in pieces that has begun.
    pub(super) merging: Option<Merging>,
    /// Compactions that take turns, and have not ended, or whose inputs are being removed.
    pub(super) in_turn: usize,
    /// Blob files from this number on do not force compactions: they are younger than the last
    /// change that was not itself forced by garbage. Were each such compaction to make new garbage,
    /// as a filter can, there would be no end.
    pub(super) forced_gc_below: FileNumber,
    /// The blob files that are being emptied, all together, to keep within
    /// `max_space_amplification`.
    pub(super) collecting: BTreeSet<FileNumber>,
}

/// The super versions before the newest.
#[derive(Default)]
struct SuperVersions {
    /// Those that were replaced while a reader had them; oldest first.
    replaced: Vec<Replaced>,
    /// How many were installed.
    installed: u64,
}

/// A super version that is no longer the newest.
struct Replaced {
    by_readers: Weak<SuperVersion>,
    /// How many were installed before it.
    number: u64,
    /// When it was replaced, in microseconds of the clock.
    at_us: u64,
}

impl Replaced {
    fn is_read(&self) -> bool {
        self.by_readers.strong_count() > 0
    }
}

impl FamilyState {
    pub(super) fn new(family: Arc<Family>, mem: Arc<Generation>, mem_wal: FileNumber) -> Self {
        Self {
            family,
            mem,
            mem_wal,
            immutable: VecDeque::new(),
            flush_requested: false,
            compacting: Compacting::default(),
            deleted: Vec::new(),
            waiting_deletions: WaitingDeletions::default(),
            overwriting: Overwriting::default(),
            punching: Punching::default(),
            remembered_pressure: None,
            listed: Listed::default(),
            activity: Activity::default(),
            super_versions: SuperVersions::default(),
        }
    }

    /// Shows readers the memtables as they are and `version`, in which they find what they found
    /// before.
    pub(super) fn install(&mut self, version: Arc<Version>, now_us: u64) {
        let past = self.family.current.load().past;
        self.install_in(past, version, now_us);
    }

    /// The same where keys may have gone, or older versions of them come back, though nobody wrote.
    pub(super) fn install_another_past(&mut self, version: Arc<Version>, now_us: u64) {
        let past = self.family.current.load().past.next();
        self.family.dead_ranges.begin(past);
        self.install_in(past, version, now_us);
    }

    fn install_in(&mut self, past: HistoryEpoch, version: Arc<Version>, now_us: u64) {
        let blob_file_size = blob_file_size_of(&self.family.options.load(), &version);
        self.family.limits.blob_file_size.store(blob_file_size, Ordering::Relaxed);
        let before = Arc::downgrade(&self.family.current.load_full());
        self.family.current.store(Arc::new(SuperVersion {
            mem: self.mem.clone(),
            immutable: self.immutable.iter().rev().map(|waiting| waiting.mem.clone()).collect(),
            version,
            past,
        }));
        self.family.parked.clear();
        let SuperVersions { replaced, installed } = &mut self.super_versions;
        replaced.push(Replaced { by_readers: before, number: *installed, at_us: now_us });
        replaced.retain(Replaced::is_read);
        *installed += 1;
    }

    /// How many super versions were installed before the present one.
    pub(super) fn installed(&self) -> u64 {
        self.super_versions.installed
    }

    /// Whether anybody reads one of the first `installed` super versions.
    pub(super) fn has_readers_before(&self, installed: u64) -> bool {
        !Mutant::PunchUnderReaders.is_on()
            && self
                .super_versions
                .replaced
                .iter()
                .any(|replaced| replaced.number < installed && replaced.is_read())
    }

    /// Notes what new tables delete, and forgets what is done in `version`.
    pub(super) fn note_deleted(&mut self, new: &[DeletedRanges], version: &Version) {
        self.deleted.extend_from_slice(new);
        self.deleted.retain(|deleted| deleted.matter_in(version));
    }

    /// The super versions that readers keep although there is a newer one: how many, and when the
    /// first was replaced, in microseconds of the clock.
    pub(super) fn kept_by_readers(&self) -> (usize, Option<u64>) {
        let kept = self.super_versions.replaced.iter().filter(|replaced| replaced.is_read());
        kept.fold((0, None), |(count, first), replaced| (count + 1, first.or(Some(replaced.at_us))))
    }

    /// These super versions, those replaced first in front.
    pub(super) fn replaced(&self) -> Vec<Arc<SuperVersion>> {
        self.super_versions
            .replaced
            .iter()
            .filter_map(|replaced| replaced.by_readers.upgrade())
            .collect()
    }

    /// The memtables, oldest first.
    pub(super) fn generations(&self) -> impl Iterator<Item = &Arc<Generation>> {
        self.immutable.iter().map(|waiting| &waiting.mem).chain([&self.mem])
    }

    /// Bytes of the memtables' values in blob files.
    pub(super) fn unflushed_blob_bytes(&self) -> u64 {
        self.generations().map(|memtable| memtable.blobs.bytes()).sum()
    }

    /// Memtables that no flush has taken yet.
    pub(super) fn waiting(&self) -> usize {
        self.immutable.iter().filter(|waiting| !waiting.flushing).count()
    }

    /// Whether enough memtables wait for a flush, or one was asked for.
    pub(super) fn is_ready_to_flush(&self) -> bool {
        let waiting = self.waiting();
        let least = || self.family.options.load().min_write_buffer_number_to_merge.max(1) as usize;
        waiting > 0 && (self.flush_requested || waiting >= least())
    }

    /// Whether a flush has taken some of the memtables.
    pub(super) fn is_flushing(&self) -> bool {
        self.immutable.iter().any(|waiting| waiting.flushing)
    }

    /// Takes the oldest memtables that wait for a flush, up to those that another flush has: what
    /// lies between would come into the tree too early.
    pub(super) fn take_waiting(&mut self) -> Vec<Arc<Generation>> {
        let all = self.immutable.iter_mut();
        let run =
            all.skip_while(|waiting| waiting.flushing).take_while(|waiting| !waiting.flushing);
        let taken = run.map(|waiting| {
            waiting.flushing = true;
            waiting.mem.clone()
        });
        taken.collect()
    }

    /// Takes the memtables with these seals, oldest first; no flush has any of them.
    pub(super) fn take_sealed(&mut self, seals: Range<u64>) -> Vec<Arc<Generation>> {
        let chosen = self.immutable.iter_mut().filter(|waiting| seals.contains(&waiting.seal));
        let taken = chosen.map(|waiting| {
            debug_assert!(!waiting.flushing, "what is sealed together is flushed together");
            waiting.flushing = true;
            waiting.mem.clone()
        });
        taken.collect()
    }

    /// Lets other flushes have what one of them had taken.
    pub(super) fn give_back(&mut self, memtables: &[Arc<Generation>]) {
        let is_given =
            |waiting: &Immutable| memtables.iter().any(|mem| Arc::ptr_eq(mem, &waiting.mem));
        self.immutable
            .iter_mut()
            .filter(|waiting| is_given(waiting))
            .for_each(|waiting| waiting.flushing = false);
        self.flush_requested = true;
    }

    /// The oldest WAL that holds something of this family that is in no table; the active WAL if
    /// none does.
    pub(super) fn oldest_needed_wal(&self) -> FileNumber {
        self.immutable.front().map_or(self.mem_wal, |oldest| oldest.wal)
    }
}

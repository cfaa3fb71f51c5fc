//! What changes of a family, under the state lock.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Weak};

use crate::base::FileNumber;
use crate::base::sync::Ordering;
use crate::compaction::pick::{DeletedRanges, Merging, Overwriting, RunningCompaction};
use crate::db::family::generation::Generation;
use crate::db::family::{Family, SuperVersion, blob_file_size_of};
use crate::db::tree::activity::Activity;
use crate::db::tree::agenda::Listed;
use crate::db::tree::pressures::Remembered;
use crate::db::tree::promise::Punching;
use crate::db::tree::waiting_deletions::WaitingDeletions;
use crate::iter::HistoryEpoch;
use crate::manifest::{self, Version};
use crate::options::FlushReason;

/// A full memtable on its way to a table file.
pub(in crate::db) struct Immutable {
    pub(in crate::db) mem: Arc<Generation>,
    /// The WAL in which its first write lies.
    pub(in crate::db) wal: FileNumber,
    /// Memtables that became immutable together, whatever their family, have the same; later ones
    /// have a larger one.
    pub(in crate::db) seal: u64,
    /// Whether a flush has taken it.
    pub(in crate::db) flushing: bool,
    /// Why it is flushed.
    pub(in crate::db) reason: FlushReason,
}

/// What the engine's state knows of one family; guarded by the state's lock.
pub(in crate::db) struct FamilyState {
    pub(in crate::db) family: Arc<Family>,
    pub(in crate::db) mem: Arc<Generation>,
    /// The WAL in which the active memtable's first write lies (or would lie).
    pub(in crate::db) mem_wal: FileNumber,
    /// Oldest first.
    pub(in crate::db) immutable: VecDeque<Immutable>,
    /// Flushes asked for although less than a batch of memtables is waiting.
    pub(in crate::db) flush_requested: bool,
    pub(in crate::db) compacting: Compacting,
    /// What range deletions leave nothing of, as far as it is not dropped yet.
    pub(in crate::db) deleted: Vec<DeletedRanges>,
    /// The deletions that wait in the memtable.
    pub(in crate::db) waiting_deletions: WaitingDeletions,
    /// How much of what is written makes garbage in blob files.
    pub(in crate::db) overwriting: Overwriting,
    /// How far it is with the holes in its blob files.
    pub(in crate::db) punching: Punching,
    /// What it asked of writers last.
    pub(in crate::db) remembered_pressure: Option<Remembered>,
    /// Where it stands in the lists of families.
    pub(in crate::db) listed: Listed,
    /// What was done for it, for reports.
    pub(in crate::db) activity: Activity,
    super_versions: SuperVersions,
}

/// The compactions of a family, and what they leave for the next ones.
#[derive(Default)]
pub(in crate::db) struct Compacting {
    /// Manual compactions, which keep automatic picks away.
    pub(in crate::db) manual: usize,
    /// The compactions under way.
    pub(in crate::db) running: Vec<RunningCompaction>,
    /// A merging of all runs in pieces that has begun.
    pub(in crate::db) merging: Option<Merging>,
    /// Compactions that take turns, and have not ended, or whose inputs are being removed.
    pub(in crate::db) in_turn: usize,
    /// Blob files from this number on do not force compactions: they are younger than the last
    /// change that was not itself forced by garbage. Were each such compaction to make new garbage,
    /// as a filter can, there would be no end.
    pub(in crate::db) forced_gc_below: FileNumber,
    /// The blob files that are being emptied, all together, to keep within
    /// `max_space_amplification`.
    pub(in crate::db) collecting: BTreeSet<FileNumber>,
    /// Until when automatic compactions pause, in microseconds of the clock, because the
    /// compaction service has aborted one.
    pub(in crate::db) put_off_until_us: u64,
    /// The limiter has refused a permit for what the picker wants, and nothing has changed since.
    pub(in crate::db) wants_permit: bool,
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
    /// Whether the limiter of the family has no permit now.
    pub(in crate::db) fn is_limiter_full(&self) -> bool {
        let options = self.family.options.load();
        options.compaction_limiter.as_ref().is_some_and(|limiter| limiter.is_full())
    }

    pub(in crate::db) fn new(
        family: Arc<Family>,
        mem: Arc<Generation>,
        mem_wal: FileNumber,
    ) -> Self {
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
    pub(in crate::db) fn install(&mut self, version: Arc<Version>, now_us: u64) {
        let past = self.family.current.load().past;
        self.install_in(past, version, now_us);
    }

    /// The same where keys may have gone, or older versions of them come back, though nobody wrote.
    pub(in crate::db) fn install_another_past(&mut self, version: Arc<Version>, now_us: u64) {
        let past = self.family.current.load().past.next();
        self.family.dead_ranges.begin(past);
        self.install_in(past, version, now_us);
    }

    /// The same for what a MANIFEST lists, timestamps included.
    pub(in crate::db) fn install_listed(&mut self, listed: &manifest::Family, now_us: u64) {
        let past = self.family.current.load().past;
        let low = listed.full_history_ts_low.as_deref().map(Arc::from);
        self.install_with(low, past, listed.current.clone(), now_us);
    }

    /// Holds readers to timestamps that are not older than this one.
    pub(in crate::db) fn install_history_low(&mut self, low: &[u8], now_us: u64) {
        let current = self.family.current.load_full();
        self.install_with(Some(low.into()), current.past, current.version.clone(), now_us);
    }

    fn install_in(&mut self, past: HistoryEpoch, version: Arc<Version>, now_us: u64) {
        let history_low = self.family.current.load().history_low.clone();
        self.install_with(history_low, past, version, now_us);
    }

    fn install_with(
        &mut self,
        history_low: Option<Arc<[u8]>>,
        past: HistoryEpoch,
        version: Arc<Version>,
        now_us: u64,
    ) {
        let blob_file_size = blob_file_size_of(&self.family.options.load(), &version);
        self.family.limits.blob_file_size.store(blob_file_size, Ordering::Relaxed);
        let before = Arc::downgrade(&self.family.current.load_full());
        self.family.current.store(Arc::new(SuperVersion {
            mem: self.mem.clone(),
            immutable: self.immutable.iter().rev().map(|waiting| waiting.mem.clone()).collect(),
            version,
            past,
            history_low,
        }));
        self.family.parked.clear();
        let SuperVersions { replaced, installed } = &mut self.super_versions;
        replaced.push(Replaced { by_readers: before, number: *installed, at_us: now_us });
        replaced.retain(Replaced::is_read);
        *installed += 1;
    }

    /// How many super versions were installed before the present one.
    pub(in crate::db) fn installed(&self) -> u64 {
        self.super_versions.installed
    }

    /// Whether anybody reads one of the first `installed` super versions.
    pub(in crate::db) fn has_readers_before(&self, installed: u64) -> bool {
        self.super_versions
            .replaced
            .iter()
            .any(|replaced| replaced.number < installed && replaced.is_read())
    }

    /// Notes what new tables delete, and forgets what is done in `version`.
    pub(in crate::db) fn note_deleted(&mut self, new: &[DeletedRanges], version: &Version) {
        self.deleted.extend_from_slice(new);
        self.deleted.retain(|deleted| deleted.matter_in(version));
    }

    /// The super versions that readers keep although there is a newer one: how many, and when the
    /// first was replaced, in microseconds of the clock.
    pub(in crate::db) fn kept_by_readers(&self) -> (usize, Option<u64>) {
        let kept = self.super_versions.replaced.iter().filter(|replaced| replaced.is_read());
        kept.fold((0, None), |(count, first), replaced| (count + 1, first.or(Some(replaced.at_us))))
    }

    /// These super versions, those replaced first in front.
    pub(in crate::db) fn replaced(&self) -> Vec<Arc<SuperVersion>> {
        self.super_versions
            .replaced
            .iter()
            .filter_map(|replaced| replaced.by_readers.upgrade())
            .collect()
    }

    /// The memtables, oldest first.
    pub(in crate::db) fn generations(&self) -> impl Iterator<Item = &Arc<Generation>> {
        self.immutable.iter().map(|waiting| &waiting.mem).chain([&self.mem])
    }

    /// Bytes of the memtables' values in blob files.
    pub(in crate::db) fn unflushed_blob_bytes(&self) -> u64 {
        self.generations().map(|memtable| memtable.blobs.bytes()).sum()
    }

    /// Memtables that no flush has taken yet.
    pub(in crate::db) fn waiting(&self) -> usize {
        self.immutable.iter().filter(|waiting| !waiting.flushing).count()
    }

    /// Whether enough memtables wait for a flush, or one was asked for.
    pub(in crate::db) fn is_ready_to_flush(&self) -> bool {
        let waiting = self.waiting();
        let least = || self.family.options.load().min_write_buffer_number_to_merge.max(1) as usize;
        waiting > 0 && (self.flush_requested || waiting >= least())
    }

    /// Whether a flush has taken some of the memtables.
    pub(in crate::db) fn is_flushing(&self) -> bool {
        self.immutable.iter().any(|waiting| waiting.flushing)
    }

    /// Takes the oldest memtables that wait for a flush, up to those that another flush has: what
    /// lies between would come into the tree too early.
    pub(in crate::db) fn take_waiting(&mut self) -> Vec<Arc<Generation>> {
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
    pub(in crate::db) fn take_sealed(&mut self, seals: Range<u64>) -> Vec<Arc<Generation>> {
        let chosen = self.immutable.iter_mut().filter(|waiting| seals.contains(&waiting.seal));
        let taken = chosen.map(|waiting| {
            debug_assert!(!waiting.flushing, "what is sealed together is flushed together");
            waiting.flushing = true;
            waiting.mem.clone()
        });
        taken.collect()
    }

    /// Lets other flushes have what one of them had taken.
    pub(in crate::db) fn give_back(&mut self, memtables: &[Arc<Generation>]) {
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
    pub(in crate::db) fn oldest_needed_wal(&self) -> FileNumber {
        self.immutable.front().map_or(self.mem_wal, |oldest| oldest.wal)
    }
}

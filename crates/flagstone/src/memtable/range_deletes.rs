//! The range tombstones of a memtable.
//!
//! 1. An addition goes to the end of a list, and nothing else happens.
//! 2. A reader who is to see it makes a run of all that is new: fragments with the newest sequence
//!    number of each place.
//! 3. A run at least half as large as the one before it is merged with that. So there are few runs,
//!    each at least twice as large as the next, and a tombstone is merged only so often: where
//!    reads and deletions take turns, none sorts everything.
//! 4. Readers count what it costs them to ask several runs. Once that is as much as merging them
//!    would be, they are merged.
//! 5. A reader who is a little behind asks the runs as they were before. A snapshot that sees only
//!    some of a run asks fragments of these; they are kept for the few snapshots that asked last.
//!
//! **Thread safety.** `runs` is changed by who holds `making`, and read without it. Runs are made
//! without the list's lock, for which a writer may wait: only what is new is taken from the list
//! under it. `unread` is lowered after a deletion is in the list, and raised after it is in a run,
//! both under the list's lock: a reader who sees it above its sequence number finds all it must see
//! in the runs. Whoever takes both locks takes `making` first.

use std::sync::{Arc, OnceLock};

use crate::base::range_tombstone::{Keep, RangeTombstoneRef};
use crate::base::sync::{ArcSwap, AtomicU64, AtomicUsize, Guard, Mutex, Ordering};
use crate::base::{Comparator, FragmentedRangeTombstones, RangeTombstone, SequenceNumber, Within};
use crate::cache::{MemoryAccount, MemoryKind};

/// For so many snapshots the visible part of a run is kept.
const PARTS_MAX: usize = 4;

/// So many former states of the runs are kept.
const OLDER_MAX: usize = 3;

/// How many times as much as asking a run for one key it costs to merge one of its fragments.
const MERGE_COST: usize = 8;

pub(super) struct RangeDeletes {
    all: Mutex<Vec<Arc<RangeTombstone>>>,
    making: Mutex<()>,
    count: AtomicUsize,
    memory: AtomicUsize,
    /// Hears of that memory, too.
    account: Option<Arc<MemoryAccount>>,
    /// The smallest sequence number that is in no run; larger than any if there is none.
    unread: AtomicU64,
    /// None are made as long as nobody has asked: most memtables have no range deletions.
    runs: OnceLock<ArcSwap<Runs>>,
}

/// What readers look at.
#[derive(Default)]
struct Runs {
    now: Generation,
    /// What it was before, newest first.
    older: Vec<Arc<Generation>>,
    /// How many runs were asked but for one each time.
    cost: AtomicUsize,
}

/// The runs between two additions, oldest first.
#[derive(Default, Clone)]
struct Generation {
    runs: Vec<Arc<Run>>,
    /// The smallest sequence number that was added last, and the largest of all.
    added: SequenceNumber,
    last: SequenceNumber,
}

/// Tombstones that follow one another in the list.
struct Run {
    /// Where they begin and end there.
    from: usize,
    to: usize,
    /// The smallest and the largest sequence number.
    first: SequenceNumber,
    last: SequenceNumber,
    newest: Arc<FragmentedRangeTombstones>,
    parts: Mutex<Vec<Part>>,
}

/// What snapshots from `from` up to but not including `until` see of a run.
#[derive(Clone)]
struct Part {
    from: SequenceNumber,
    until: SequenceNumber,
    newest: Arc<FragmentedRangeTombstones>,
}

/// A single run, and what is known of the key there.
pub struct RangeQuestion {
    runs: Guard<Arc<Runs>>,
    within: Within,
}

impl RangeQuestion {
    /// What the snapshot sees, and how far the key was sought there.
    #[inline]
    pub(crate) fn begun(&self) -> (&FragmentedRangeTombstones, Within) {
        (&self.runs.now.runs[0].newest, self.within)
    }
}

/// What a first look says of a key.
pub enum RangeLook {
    /// Nothing covers it.
    Uncovered,
    /// What may cover it lies in a single run.
    Begun(RangeQuestion),
    /// All must be asked.
    Unknown,
}

impl Runs {
    /// The newest state of which `snapshot` sees all, if it sees all that came before the next;
    /// else the present one.
    fn seen_by(&self, snapshot: SequenceNumber) -> &Generation {
        let mut later = &self.now;
        for generation in &self.older {
            if later.last <= snapshot || later.added <= snapshot {
                break;
            }
            later = generation;
        }
        if later.last <= snapshot { later } else { &self.now }
    }

    /// Counts that the present runs were asked for a key; whether to merge them would have cost
    /// less than all that were.
    fn are_dear(&self) -> bool {
        let runs = &self.now.runs;
        if runs.len() < 2 {
            return false;
        }
        let cost = self.cost.fetch_add(runs.len() - 1, Ordering::Relaxed);
        cost > MERGE_COST * runs.iter().map(|run| run.newest.len()).sum::<usize>()
    }
}

impl Run {
    fn new(
        comparator: &Comparator,
        (from, to): (usize, usize),
        (first, last): (SequenceNumber, SequenceNumber),
        tombstones: &mut dyn Iterator<Item = RangeTombstoneRef<'_>>,
    ) -> Arc<Self> {
        let newest =
            Arc::new(FragmentedRangeTombstones::keeping(Keep::Newest, comparator, tombstones));
        Arc::new(Self { from, to, first, last, newest, parts: Mutex::default() })
    }

    fn merged(comparator: &Comparator, older: &Self, newer: &Self) -> Arc<Self> {
        let sequences = (older.first.min(newer.first), older.last.max(newer.last));
        let mut tombstones = older.newest.tombstones().chain(newer.newest.tombstones());
        Self::new(comparator, (older.from, newer.to), sequences, &mut tombstones)
    }

    fn len(&self) -> usize {
        self.to - self.from
    }
}

impl RangeDeletes {
    /// None yet; `account` has their memory among that of memtables.
    pub(super) fn new(account: Option<Arc<MemoryAccount>>) -> Self {
        Self {
            all: Mutex::default(),
            making: Mutex::default(),
            count: AtomicUsize::new(0),
            memory: AtomicUsize::new(0),
            account,
            unread: AtomicU64::new(u64::MAX),
            runs: OnceLock::new(),
        }
    }

    fn runs(&self) -> &ArcSwap<Runs> {
        self.runs.get_or_init(|| ArcSwap::from_pointee(Runs::default()))
    }

    pub(super) fn add(&self, tombstone: RangeTombstone) {
        // Its keys twice, once among the fragments, of which it may make two.
        let size = size_of::<RangeTombstone>()
            + 3 * size_of::<usize>()
            + 2 * (tombstone.start.len() + tombstone.end.len() + 40);
        let sequence = tombstone.sequence;
        let tombstone = Arc::new(tombstone);
        let mut all = self.all.lock();
        let unread = self.unread.load(Ordering::Relaxed).min(sequence);
        all.push(tombstone);
        self.unread.store(unread, Ordering::Release);
        self.memory.fetch_add(size, Ordering::Relaxed);
        self.count.store(all.len(), Ordering::Release);
        drop(all);
        if let Some(account) = &self.account {
            account.add(MemoryKind::Memtables, size);
        }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Approximate heap bytes.
    pub(super) fn memory_usage(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    pub(super) fn covering_sequence(
        &self,
        comparator: &Comparator,
        user_key: &[u8],
        snapshot: SequenceNumber,
    ) -> SequenceNumber {
        let mut covering = 0;
        self.ask(comparator, snapshot, |tombstones, last| {
            if last > covering {
                covering = covering.max(tombstones.covering_sequence(user_key, snapshot));
            }
        });
        covering
    }

    /// Begins to look for what `snapshot` sees over `user_key`: the memory that the rest will wait
    /// for is on its way.
    #[inline]
    pub(super) fn seek(&self, user_key: &[u8], snapshot: SequenceNumber) -> RangeLook {
        if self.unread.load(Ordering::Acquire) <= snapshot {
            return RangeLook::Unknown;
        }
        let Some(runs) = self.runs.get() else { return RangeLook::Uncovered };
        let runs = runs.load();
        if let [run] = &runs.now.runs[..]
            && run.last <= snapshot
        {
            return match run.newest.seek(user_key) {
                Some(within) => RangeLook::Begun(RangeQuestion { runs, within }),
                None => RangeLook::Uncovered,
            };
        }
        // Where no run covers the key, nothing does that the snapshot sees. All are asked: memory
        // is fetched for each.
        match runs.now.runs.iter().filter(|run| run.newest.seek(user_key).is_some()).count() {
            // Who asks them all merges them.
            0 if runs.are_dear() => RangeLook::Unknown,
            0 => RangeLook::Uncovered,
            _ => RangeLook::Unknown,
        }
    }

    /// All that `snapshot` sees, in parts that may overlap.
    pub(super) fn visible(
        &self,
        comparator: &Comparator,
        snapshot: SequenceNumber,
    ) -> Vec<Arc<FragmentedRangeTombstones>> {
        let mut visible = Vec::new();
        if self.count() > 0 {
            self.ask(comparator, snapshot, |tombstones, _| visible.push(tombstones.clone()));
        }
        visible
    }

    /// What the present or one of these snapshots sees first, if anything was added.
    pub(super) fn needed(
        &self,
        comparator: &Comparator,
        snapshots: &[SequenceNumber],
    ) -> Option<Arc<FragmentedRangeTombstones>> {
        let all = self.all.lock();
        let tombstones = all.iter().map(|one| RangeTombstoneRef::stored(one, comparator));
        let needed =
            || FragmentedRangeTombstones::keeping(Keep::Needed(snapshots), comparator, tombstones);
        (!all.is_empty()).then(|| Arc::new(needed()))
    }

    /// Shows `ask` what `snapshot` sees, newest first, with the largest sequence number that there
    /// may be.
    fn ask(
        &self,
        comparator: &Comparator,
        snapshot: SequenceNumber,
        mut ask: impl FnMut(&Arc<FragmentedRangeTombstones>, SequenceNumber),
    ) {
        if self.unread.load(Ordering::Acquire) <= snapshot {
            self.read_new(comparator, snapshot);
        }
        let runs = self.runs().load();
        let seen = if runs.now.last <= snapshot { &runs.now } else { runs.seen_by(snapshot) };
        for run in seen.runs.iter().rev() {
            if run.last <= snapshot {
                ask(&run.newest, run.last);
            } else if run.first <= snapshot {
                ask(&self.part(comparator, run, snapshot), snapshot);
            }
        }
        if seen.runs.len() > 1 && runs.are_dear() {
            self.merge_all(comparator);
        }
    }

    /// Makes a run of what is new up to `snapshot`.
    #[cold]
    fn read_new(&self, comparator: &Comparator, snapshot: SequenceNumber) {
        let _making = self.making.lock();
        let before = self.runs().load();
        let mut runs = before.now.runs.clone();
        let from = runs.last().map_or(0, |run| run.to);
        let new = {
            let all = self.all.lock();
            // What is newer is not read before it must be: then all of the run is seen. Writers
            // side by side may have put something newer in front of what is to be seen. Another
            // reader may have been here first.
            let is_seen = |tombstone: &Arc<RangeTombstone>| tombstone.sequence <= snapshot;
            let to = all[from..].iter().rposition(is_seen).map_or(from, |at| from + at + 1);
            all[from..to].to_vec()
        };
        let to = from + new.len();
        let sequences = || new.iter().map(|tombstone| tombstone.sequence);
        let (Some(first), Some(last)) = (sequences().min(), sequences().max()) else { return };
        let mut tombstones = new.iter().map(|one| RangeTombstoneRef::stored(one, comparator));
        let mut run = Run::new(comparator, (from, to), (first, last), &mut tombstones);
        while let Some(before) = runs.pop_if(|before| before.len() <= 2 * run.len()) {
            run = Run::merged(comparator, &before, &run);
        }
        runs.push(run);
        let mut older = Vec::with_capacity(OLDER_MAX);
        older.push(Arc::new(before.now.clone()));
        older.extend(before.older.iter().take(OLDER_MAX - 1).cloned());
        let now = Generation { runs, added: first, last: before.now.last.max(last) };
        self.runs().store(Arc::new(Runs { now, older, cost: AtomicUsize::new(0) }));
        let all = self.all.lock();
        let unread = all[to..].iter().map(|tombstone| tombstone.sequence).min();
        self.unread.store(unread.unwrap_or(u64::MAX), Ordering::Release);
    }

    #[cold]
    fn merge_all(&self, comparator: &Comparator) {
        let _making = self.making.lock();
        let before = self.runs().load();
        let mut runs = before.now.runs.clone();
        // The smaller ones first.
        while let (Some(newer), Some(older)) = (runs.pop(), runs.pop()) {
            runs.push(Run::merged(comparator, &older, &newer));
            if runs.len() == 1 {
                let now = Generation { runs, added: before.now.added, last: before.now.last };
                let (older, cost) = (before.older.clone(), AtomicUsize::new(0));
                self.runs().store(Arc::new(Runs { now, older, cost }));
                return;
            }
        }
    }

    /// What `snapshot` sees of a run.
    #[cold]
    fn part(
        &self,
        comparator: &Comparator,
        run: &Run,
        snapshot: SequenceNumber,
    ) -> Arc<FragmentedRangeTombstones> {
        let mut parts = run.parts.lock();
        if let Some(at) = parts.iter().position(|part| (part.from..part.until).contains(&snapshot))
        {
            let found = parts.remove(at);
            parts.push(found.clone());
            return found.newest;
        }
        let all = self.all.lock()[run.from..run.to].to_vec();
        let (mut from, mut until) = (0, SequenceNumber::MAX);
        for sequence in all.iter().map(|tombstone| tombstone.sequence) {
            if sequence <= snapshot {
                from = sequence.max(from)
            } else {
                until = sequence.min(until)
            }
        }
        let seen = all.iter().filter(|tombstone| tombstone.sequence <= snapshot);
        let tombstones = seen.map(|one| RangeTombstoneRef::stored(one, comparator));
        let newest =
            Arc::new(FragmentedRangeTombstones::keeping(Keep::Newest, comparator, tombstones));
        if parts.len() == PARTS_MAX {
            parts.remove(0);
        }
        parts.push(Part { from, until, newest: newest.clone() });
        newest
    }
}

impl Drop for RangeDeletes {
    fn drop(&mut self) {
        if let Some(account) = self.account.as_ref().filter(|_| self.count() > 0) {
            account.subtract(MemoryKind::Memtables, self.memory_usage());
        }
    }
}

#[cfg(test)]
#[path = "tests/range_deletes.rs"]
mod tests;

//! How a replay puts operations into memtables.
//!
//! 1. An operation of a batch that history goes on with becomes an [`Entry`]: where its key and
//!    value lie in the piece of the log that they were read with, and its sequence number. What
//!    could be wrong with it is found now, in the order of the log.
//! 2. When the next piece begins, what was noted goes to the threads that insert, as a [`Portion`]
//!    for each. Each thread has families of its own: so the portions of a family are inserted one
//!    after the other, and those of several families at the same time. Of a batch that is much
//!    larger than a piece parts go, as if it were several.
//! 3. A portion is sorted by key: what comes to lie together is inserted together, while that part
//!    of the memtable is in the processor's cache.
//! 4. A memtable that is full then is written to a table (`replayed`), also the largest when all
//!    together are too large.
//!
//! In a world without threads, when the system has none left, or where the logs are no larger than
//! a piece, the caller inserts.
//!
//! **Thread safety.** A [`Target`]'s lock is held by whoever inserts into its memtable or takes it
//! out and hands it on, so tables of a family come into being in the order of history. Who holds
//! one takes no other, but then `tables`, and the state.
//!
//! **Memory.** A portion keeps its piece in memory. Of [`PORTIONS_WAITING`] and the one at work for
//! a thread, most are parts of the same pieces.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::base::sync::{AtomicU64, Condvar, Mutex, Ordering, Rank, ranked};
use crate::base::{
    Code, ColumnFamilyId, Error, FileNumber, Result, SequenceNumber, Sometimes, ValueType,
    file_name, timestamp,
};
use crate::batch::{BatchIter, BatchView, Operation};
use crate::blob::visit_references;
use crate::db::DbInner;
use crate::db::budget::memtable_bytes_max;
use crate::db::family::Family;
use crate::db::opening::prepared::{
    Due, MarkedRecord, Prepared, Refused, stamped_families, stamped_run,
};
use crate::db::opening::replayed::ReplayedTables;
use crate::env::{IoMode, Join};
use crate::iter::lookup::locate_value;
use crate::manifest::VersionEdit;
use crate::wal::{Applied, ReplayRecord, StampedFamily, is_plain};

/// How many portions wait for a thread at most.
const PORTIONS_WAITING: usize = 2;

/// Pieces of logs have at most so many bytes, if no record is larger: what goes from thread to
/// thread stays in the processor's cache, and its memory is used again. With four times as many,
/// threads cost more than they gained.
const PIECE_SIZE_MAX: u64 = 256 << 10;
const PIECE_SIZE_MIN: u64 = 256;

/// A full memtable is noticed after a portion: when it is larger than it should be by about this
/// part at most.
const PORTIONS_OF_MEMTABLE: u64 = 8;

/// The families that a replay may write to.
pub(in crate::db) struct Targets {
    by_id: HashMap<ColumnFamilyId, usize>,
    all: Vec<Target>,
}

pub(in crate::db) struct Target {
    pub(in crate::db) family: Arc<Family>,
    /// Its tables have what lies in older logs.
    log_number: FileNumber,
    merges: bool,
    /// Held while entries are inserted into the family's memtable, and while it is written.
    inserting: Mutex<()>,
}

impl Targets {
    /// Those of a database; they stay the same throughout a replay.
    pub(in crate::db) fn new(inner: &DbInner) -> Self {
        let (mut by_id, mut all) = (HashMap::new(), Vec::new());
        for (family, log_number) in inner.tree.families_to_replay() {
            by_id.insert(family.id, all.len());
            let merges = family.options.load().merge_operator.is_some();
            all.push(Target { family, log_number, merges, inserting: ranked(Rank::Replay, ()) });
        }
        Self { by_id, all }
    }

    /// The family of that number, if it is to have what this log holds for it.
    pub(in crate::db) fn wanting(&self, id: ColumnFamilyId, wal: FileNumber) -> Option<&Target> {
        self.index(id, wal).map(|index| &self.all[index])
    }

    /// The families whose keys end in timestamps.
    pub(in crate::db) fn stamped(&self) -> Vec<StampedFamily> {
        stamped_families(self.all.iter().map(|target| &target.family))
    }

    /// The bytes of a timestamp of the family of that number; 0 if it has none, or is not here.
    fn stamp_size(&self, id: ColumnFamilyId) -> usize {
        self.by_id.get(&id).map_or(0, |&index| self.all[index].family.order.timestamp_size())
    }

    #[inline]
    fn index(&self, id: ColumnFamilyId, wal: FileNumber) -> Option<usize> {
        self.by_id.get(&id).copied().filter(|&index| self.all[index].log_number <= wal)
    }

    /// How large pieces of logs may be.
    pub(in crate::db) fn piece_size(&self, inner: &DbInner) -> usize {
        let memtables = self.all.iter().map(|target| target.family.write_buffer_size() as u64);
        let smallest =
            memtables.chain(memtable_bytes_max(&inner.context.settings.load())).min().unwrap_or(0);
        (smallest / PORTIONS_OF_MEMTABLE).clamp(PIECE_SIZE_MIN, PIECE_SIZE_MAX) as usize
    }

    /// How many bytes of values in blob files a portion may have.
    fn blob_bytes_max(&self) -> u64 {
        let smallest = self.all.iter().map(|target| target.family.blob_file_size()).min();
        smallest.unwrap_or(0) / PORTIONS_OF_MEMTABLE
    }
}

/// Something to insert.
struct Entry {
    /// The beginning of the key as a number: most comparisons need no more.
    prefix: u64,
    sequence: SequenceNumber,
    key_start: usize,
    value_start: usize,
    key_length: u32,
    value_length: u32,
    target: u32,
    kind: ValueType,
}

/// Entries of one piece.
struct Portion {
    piece: Arc<Vec<u8>>,
    entries: Vec<Entry>,
}

impl Portion {
    fn key(&self, entry: &Entry) -> &[u8] {
        &self.piece[entry.key_start..][..entry.key_length as usize]
    }

    fn value(&self, entry: &Entry) -> &[u8] {
        &self.piece[entry.value_start..][..entry.value_length as usize]
    }

    /// By family; range deletions first, which stay in their order, then by key.
    fn sort(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|a, b| {
            let is_point = |entry: &Entry| entry.kind != ValueType::RangeDeletion;
            let places = a.target.cmp(&b.target).then(is_point(a).cmp(&is_point(b)));
            let by_key = || a.prefix.cmp(&b.prefix).then_with(|| self.key(a).cmp(self.key(b)));
            places.then_with(|| if is_point(a) { by_key() } else { a.sequence.cmp(&b.sequence) })
        });
        self.entries = entries;
    }
}

/// Inserts what a replay comes to.
pub(in crate::db) struct Inserts {
    shared: Arc<Shared>,
    /// The entries noted for each thread, or for the caller, as long as they are of this piece.
    pending: Vec<Vec<Entry>>,
    piece: Option<Arc<Vec<u8>>>,
    /// Bytes of the log that what is noted was read from, and how many may be noted before it is
    /// handed on.
    log_bytes: usize,
    log_bytes_max: usize,
    blob_bytes: u64,
    blob_bytes_max: u64,
    threads: Vec<Inserter>,
    prepared: Prepared,
}

struct Shared {
    inner: Arc<DbInner>,
    targets: Arc<Targets>,
    tables: Mutex<ReplayedTables>,
    tables_written: AtomicU64,
    /// Why nothing is inserted any more.
    failure: Mutex<Option<Error>>,
}

/// A thread that inserts.
struct Inserter {
    line: Arc<Line>,
    thread: Box<dyn Join>,
}

#[derive(Default)]
struct Line {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    portions: VecDeque<Portion>,
    is_last: bool,
}

impl Inserts {
    pub(in crate::db) fn new(
        inner: &Arc<DbInner>,
        targets: Arc<Targets>,
        with_threads: bool,
        prepared: Prepared,
    ) -> Self {
        let wanted = if with_threads {
            targets.all.len().min(inner.context.settings.load().max_background_jobs.max(1) as usize)
        } else {
            0
        };
        let (log_bytes_max, blob_bytes_max) =
            (2 * targets.piece_size(inner), targets.blob_bytes_max());
        let shared = Arc::new(Shared {
            inner: inner.clone(),
            targets,
            tables: ranked(Rank::ReplayedTables, ReplayedTables::new(inner)),
            tables_written: AtomicU64::new(0),
            failure: Mutex::new(None),
        });
        let threads: Vec<_> = (0..wanted).map_while(|_| Inserter::start(&shared)).collect();
        let pending = (0..threads.len().max(1)).map(|_| Vec::new()).collect();
        Self {
            shared,
            pending,
            piece: None,
            log_bytes: 0,
            log_bytes_max,
            blob_bytes: 0,
            blob_bytes_max,
            threads,
            prepared,
        }
    }

    /// How many tables there are by now.
    pub(in crate::db) fn tables_written(&self) -> u64 {
        self.shared.tables_written.load(Ordering::Relaxed)
    }

    /// Notes what a batch has for those who are to have it.
    pub(in crate::db) fn apply(&mut self, record: &ReplayRecord<'_>) -> Result<Applied> {
        if !is_plain(record.summary) {
            return self.apply_marked(record);
        }
        let mut operations = record.batch.iter();
        match self.apply_all(&mut operations, record.batch.sequence(), false, record) {
            Ok(next) => Ok(Applied::Until(next)),
            Err(Refused::Elsewhere(error)) => Ok(Applied::Failed(error)),
            Err(Refused::Record(error)) => Err(error),
        }
    }

    /// The same of one that prepares or decides transactions, or whose operations may share
    /// numbers.
    #[cold]
    fn apply_marked(&mut self, record: &ReplayRecord<'_>) -> Result<Applied> {
        let (wal, offset) = (record.wal, record.offset);
        let marked = MarkedRecord { wal, offset, batch: record.batch, summary: record.summary };
        let inner = self.shared.inner.clone();
        let file = || {
            let path = file_name::wal(&inner.context.wal_directory, wal);
            inner.context.env.fs.open_random_access(&path, IoMode::Buffered)
        };
        let mut prepared = std::mem::take(&mut self.prepared);
        let read = prepared.read(marked, file, &mut |due| match due {
            Due::Operation(operation, sequence) => {
                self.use_piece(record.piece)?;
                Ok(u64::from(self.apply_one(&operation, sequence, wal, record.piece)?))
            }
            Due::Run { batch, wal, first, is_shared, timestamp } => {
                let batch =
                    &stamped_run(batch, timestamp, |id| self.shared.targets.stamp_size(id))?;
                let view = BatchView::parse(batch)?;
                let run = ReplayRecord { batch: view, wal, piece: batch, ..*record };
                Ok(self.apply_all(&mut view.iter(), first, is_shared, &run)? - first)
            }
        });
        self.prepared = prepared;
        match read {
            Ok(next) => Ok(Applied::Until(next)),
            Err(Refused::Elsewhere(error)) => Ok(Applied::Failed(error)),
            Err(Refused::Record(error)) => Err(error),
        }
    }

    /// Notes operations whose numbers begin at `first`, or that share it. Returns the number behind
    /// them.
    #[inline]
    fn apply_all(
        &mut self,
        operations: &mut BatchIter<'_>,
        first: SequenceNumber,
        is_shared: bool,
        record: &ReplayRecord<'_>,
    ) -> Result<SequenceNumber, Refused> {
        let mut sequence = first;
        loop {
            self.use_piece(record.piece)?;
            let read = operations.offset();
            let Some(operation) = operations.next().transpose()? else { return Ok(sequence) };
            self.log_bytes += operations.offset() - read;
            let takes_it = self.apply_one(&operation, sequence, record.wal, record.piece)?;
            sequence += u64::from(takes_it && !is_shared);
        }
    }

    /// Goes on with operations that lie in this piece. What is noted of another is handed on.
    ///
    /// # Errors
    /// As [`Inserts::hand_on`].
    #[inline]
    fn use_piece(&mut self, piece: &Arc<Vec<u8>>) -> Result<(), Refused> {
        let is_same = self.piece.as_ref().is_some_and(|noted| Arc::ptr_eq(noted, piece));
        if !is_same || self.log_bytes > self.log_bytes_max || self.blob_bytes > self.blob_bytes_max
        {
            self.hand_on().map_err(Refused::Elsewhere)?;
            self.piece = Some(piece.clone());
        }
        Ok(())
    }

    /// Whether the operation takes a sequence number. It is noted, if its family is to have it.
    #[inline]
    fn apply_one(
        &mut self,
        operation: &Operation<'_>,
        sequence: SequenceNumber,
        wal: FileNumber,
        piece: &[u8],
    ) -> Result<bool> {
        let Some(id) = operation.family() else { return Ok(false) };
        match self.shared.targets.index(id, wal) {
            Some(target) => self.note(target, sequence, operation, piece),
            None => Ok(operation.takes_sequence()),
        }
    }

    /// Whether the operation takes its sequence number.
    #[inline]
    fn note(
        &mut self,
        index: usize,
        sequence: SequenceNumber,
        operation: &Operation<'_>,
        piece: &[u8],
    ) -> Result<bool> {
        let target = &self.shared.targets.all[index];
        let Some((mut kind, key, value)) = operation.entry() else { return Ok(false) };
        let stamp_size = target.family.order.timestamp_size();
        if stamp_size > 0 {
            let is_range = kind == ValueType::RangeDeletion;
            for key in [Some(key), Some(value).filter(|_| is_range)].into_iter().flatten() {
                if key.len() < stamp_size {
                    return Err(timestamp::is_too_short(key, stamp_size));
                }
            }
            if kind == ValueType::Deletion {
                kind = ValueType::DeletionWithTimestamp;
            }
        }
        match kind {
            ValueType::Merge if !target.merges => {
                return Err(crate::db::settings::no_merge_operator(&target.family.name));
            }
            ValueType::RangeDeletion
                if target.family.comparator().compare_keys(key, value).is_ge() =>
            {
                return Ok(false);
            }
            ValueType::BlobIndex | ValueType::WideColumnEntity => {
                // The blob files that one of a later version may name are known to nobody else, and
                // would be removed.
                locate_value(key, kind, value)?;
                visit_references(Some(kind), value, |index| {
                    self.blob_bytes = self.blob_bytes.saturating_add(index.size);
                    Ok(())
                })?;
            }
            _ => {}
        }
        // What is empty may lie elsewhere.
        let place = |bytes: &[u8]| match bytes {
            [] => 0,
            _ => bytes.as_ptr() as usize - piece.as_ptr() as usize,
        };
        let mut prefix = [0; 8];
        let known = key.len().min(8);
        prefix[..known].copy_from_slice(&key[..known]);
        let thread = index % self.pending.len();
        self.pending[thread].push(Entry {
            prefix: u64::from_be_bytes(prefix),
            sequence,
            key_start: place(key),
            value_start: place(value),
            key_length: key.len() as u32,
            value_length: value.len() as u32,
            target: index as u32,
            kind,
        });
        Ok(true)
    }

    /// Has what is noted inserted.
    ///
    /// # Errors
    /// What became of what was handed on before, too.
    fn hand_on(&mut self) -> Result<()> {
        self.shared.check()?;
        (self.log_bytes, self.blob_bytes) = (0, 0);
        let Some(piece) = self.piece.take() else { return Ok(()) };
        for (at, noted) in
            self.pending.iter_mut().enumerate().filter(|(_, noted)| !noted.is_empty())
        {
            let entries = std::mem::replace(noted, Vec::with_capacity(noted.len()));
            let portion = Portion { piece: piece.clone(), entries };
            match self.threads.get(at) {
                Some(inserter) => inserter.line.add(portion),
                None => self.shared.insert(portion)?,
            }
        }
        Ok(())
    }

    /// The edits that add the tables when all is inserted and they are written, how many these are,
    /// and what is prepared.
    ///
    /// # Errors
    /// What went wrong last.
    pub(in crate::db) fn finish(
        mut self,
    ) -> Result<(BTreeMap<ColumnFamilyId, VersionEdit>, u64, Prepared)> {
        self.settle()?;
        let (edits, count) = self.shared.tables.lock().finish()?;
        Ok((edits, count, std::mem::take(&mut self.prepared)))
    }

    /// Has all that is noted inserted before this returns. The caller inserts what follows.
    ///
    /// # Errors
    /// As [`Inserts::finish`].
    pub(in crate::db) fn settle(&mut self) -> Result<()> {
        self.hand_on()?;
        self.join();
        self.shared.check()
    }

    /// Whether a transaction that is not decided yet has sequence numbers already.
    pub(in crate::db) fn shares_numbers(&self) -> bool {
        self.prepared.shares_numbers()
    }

    fn join(&mut self) {
        for inserter in &self.threads {
            inserter.line.end();
        }
        for inserter in self.threads.drain(..) {
            let panicked = inserter.thread.join();
            debug_assert!(!panicked, "a panic is caught, and told as a failure");
        }
    }
}

impl Drop for Inserts {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            let given_up = || Error::new(Code::Aborted, "the replay was abandoned");
            self.shared.failure.lock().get_or_insert_with(given_up);
            self.join();
        }
    }
}

impl Inserter {
    /// `None` if the system has no thread left.
    fn start(shared: &Arc<Shared>) -> Option<Self> {
        let line = Arc::new(Line::default());
        let (own, for_thread) = (line.clone(), shared.clone());
        let work = move || {
            while let Some(portion) = own.next() {
                for_thread.insert_or_fail(portion);
            }
        };
        let started = shared.inner.context.env.spawner.spawn("flagstone-replay", Box::new(work));
        let told = |error: &Error| tracing::warn!(%error, "a replay inserts with fewer threads");
        Some(Self { line, thread: started.inspect_err(told).ok()? })
    }
}

impl Line {
    fn add(&self, portion: Portion) {
        let mut waiting = self.waiting.lock();
        while waiting.portions.len() >= PORTIONS_WAITING {
            self.changed.wait(&mut waiting);
        }
        waiting.portions.push_back(portion);
        self.changed.notify_all();
    }

    fn end(&self) {
        self.waiting.lock().is_last = true;
        self.changed.notify_all();
    }

    fn next(&self) -> Option<Portion> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(portion) = waiting.portions.pop_front() {
                self.changed.notify_all();
                return Some(portion);
            }
            if waiting.is_last {
                return None;
            }
            self.changed.wait(&mut waiting);
        }
    }
}

impl Shared {
    fn check(&self) -> Result<()> {
        self.failure.lock().clone().map_or(Ok(()), Err)
    }

    /// For a thread, whose portions are to be taken from it also after one has failed.
    fn insert_or_fail(&self, portion: Portion) {
        let insert = || self.check().and_then(|()| self.insert(portion));
        let panicked = |_| Err(Error::new(Code::Aborted, "inserting what WALs hold panicked"));
        if let Err(error) = catch_unwind(AssertUnwindSafe(insert)).unwrap_or_else(panicked) {
            self.failure.lock().get_or_insert(error);
        }
    }

    fn insert(&self, mut portion: Portion) -> Result<()> {
        portion.sort();
        for entries in portion.entries.chunk_by(|a, b| a.target == b.target) {
            let target = &self.targets.all[entries[0].target as usize];
            let inserting = target.inserting.lock();
            let id = target.family.id;
            let mem = self.inner.tree.memtable(id).expect("families stay");
            let mut writer = mem.writer();
            for entry in entries {
                let (key, value) = (portion.key(entry), portion.value(entry));
                visit_references(Some(entry.kind), value, |index| {
                    self.inner.pipeline.take_recovered_blob(&target.family, &mem, key, &index)
                })?;
                writer.add(entry.sequence, entry.kind, key, value);
            }
            drop(writer);
            if target.family.is_full(&mem) {
                self.write(target)?;
            }
            drop(inserting);
        }
        self.write_largest()
    }

    /// Writes the family's memtable, for whoever holds its lock.
    fn write(&self, target: &Target) -> Result<()> {
        // Nothing can be written there: it all stays in memory.
        if self.inner.context.read_only {
            return Ok(());
        }
        let (family, mem) = self.inner.take_recovered(target.family.id);
        let mut tables = self.tables.lock();
        tables.write(family, mem)?;
        self.tables_written.store(tables.count, Ordering::Relaxed);
        Ok(())
    }

    /// Writes the largest memtable, if all together have more than they may.
    fn write_largest(&self) -> Result<()> {
        if self.inner.context.read_only {
            return Ok(());
        }
        let largest = || self.inner.tree.largest_beyond_limit();
        let Some(index) = largest().and_then(|id| self.targets.by_id.get(&id).copied()) else {
            return Ok(());
        };
        let target = &self.targets.all[index];
        let _inserting = target.inserting.lock();
        // Another may have done it meanwhile.
        if largest() == Some(target.family.id) {
            Sometimes::RecoveryWroteLargest.reached();
            self.write(target)?;
        }
        Ok(())
    }
}

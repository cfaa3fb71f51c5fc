//! What the commit lock guards: the active WAL, the memtables that take writes, and what the next
//! writer or sync has to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::sync::{ArcSwap, AtomicU64, Guard, Ordering};
use crate::base::{Code, ColumnFamilyId, Error, FileNumber, Result, SequenceNumber};
use crate::cache::WriteBuffers;
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::writing::direct_blob::UnsyncedBlobs;
use crate::db::writing::pipeline::ActiveWal;
use crate::db::writing::pipeline::insertions::TurnNumbers;
use crate::db::writing::pipeline::steps::Numbers;
use crate::db::writing::pipeline::two_phase::PreparedBatches;
use crate::env::WritableFile;
use crate::options::FlushReason;
use crate::wal::{self, PredecessorWal};

/// A family as the commit lock knows it.
pub(in crate::db) struct WriteTarget {
    /// Where its writes go.
    pub(in crate::db) to: Arc<Destination>,
    /// Why the next writer is to switch the memtable, if it is to.
    pub(in crate::db) switch_wanted: Option<FlushReason>,
    /// A drop of the family found the disk full: the MANIFEST may say that it is gone.
    pub(in crate::db) drop_in_doubt: bool,
}

/// Where the writes to a family go, up to the next switch. A writer keeps it while it inserts,
/// without the commit lock.
pub(in crate::db) struct Destination {
    pub(in crate::db) family: Arc<Family>,
    pub(in crate::db) mem: Arc<Generation>,
    /// What the memtable has in the sum of all.
    counted: AtomicU64,
}

/// Where the writes to each family go, at one moment.
#[derive(Default)]
pub(in crate::db) struct Destinations(Vec<(ColumnFamilyId, Arc<Destination>)>);

impl Destinations {
    #[inline]
    pub(in crate::db::writing) fn get(&self, id: ColumnFamilyId) -> Option<&Destination> {
        let at = self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.0[at].1)
    }
}

/// Where the writes to each family go, for writers who do not have the commit lock. To look costs
/// them no line of memory that others change, which a count of references would.
#[derive(Default)]
pub(in crate::db::writing) struct ShownDestinations(ArcSwap<Destinations>);

/// Where the writes to each family go, looked at without the commit lock. It keeps the memtables.
pub(in crate::db::writing) struct Pins {
    now: Guard<Arc<Destinations>>,
    /// Those of before a switch, to be let go of without the commit lock.
    before: Option<Guard<Arc<Destinations>>>,
}

impl ShownDestinations {
    #[inline]
    pub(in crate::db::writing) fn pins(&self) -> Pins {
        Pins { now: self.0.load(), before: None }
    }
}

impl Pins {
    #[inline]
    pub(in crate::db::writing) fn get(&self, id: ColumnFamilyId) -> Option<&Destination> {
        self.now.get(id)
    }
}

/// What the commit lock guards; the lock itself, which those look at who wait for it, lies in a
/// line of memory of its own.
#[derive(Default)]
#[repr(align(128))]
pub(in crate::db) struct Commit {
    pub(in crate::db) log: ActiveLog,
    pub(in crate::db::writing) numbers: Numbers,
    pub(in crate::db::writing) turns: TurnNumbers,
    pub(in crate::db) targets: BTreeMap<ColumnFamilyId, WriteTarget>,
    /// Where the targets' writes go, as [`ShownDestinations`] shows it.
    shown: Arc<Destinations>,
    pub(in crate::db) debt: SyncDebt,
    pub(in crate::db) asked: Asked,
    pub(in crate::db) end: Ending,
    /// Transactions that are prepared and not decided.
    pub(in crate::db::writing) prepared: PreparedBatches,
    /// Whether anything was written without the WAL since the database was opened, flushed by now
    /// or not.
    pub(in crate::db) has_unlogged: bool,
    /// No write may begin.
    pub(in crate::db::writing) are_writes_held_back: bool,
    /// How often the program has locked the WAL: no write may begin before all are taken back.
    pub(in crate::db::writing) wal_locks: usize,
    /// The families whose keys end in timestamps, and the bytes of one.
    stamped_families: Vec<(ColumnFamilyId, u16)>,
}

/// The WAL that takes the writes.
#[derive(Default)]
pub(in crate::db) struct ActiveLog {
    /// None while the database is being opened, when it is read-only, and after it was closed.
    pub(in crate::db) writer: Option<wal::Writer>,
    pub(in crate::db) number: FileNumber,
    /// A WAL that could be neither begun nor removed again.
    pub(in crate::db) unbegun: Option<FileNumber>,
    /// What the WAL says of the one before, or is to say.
    pub(in crate::db) predecessor: Option<PredecessorWal>,
    /// Whether it has said so: to its buffer at least.
    pub(in crate::db) is_predecessor_noted: bool,
    /// Lower bound on the sequence number of the oldest record still buffered in memory.
    pub(in crate::db) waiting_from: SequenceNumber,
}

/// What the next sync has to cover.
#[derive(Default)]
pub(in crate::db) struct SyncDebt {
    /// Earlier WALs with bytes that no sync has covered, oldest first.
    pub(in crate::db) logs: Vec<(FileNumber, Arc<dyn WritableFile>)>,
    pub(in crate::db) blobs: UnsyncedBlobs,
}

/// What the next writer has to do before it writes.
#[derive(Default)]
pub(in crate::db) struct Asked {
    /// Whether any target has `switch_wanted`.
    pub(in crate::db) switch: bool,
    /// Whether any target has `drop_in_doubt`.
    pub(in crate::db) settle_drop: bool,
    /// The oldest WAL for whose sake families were switched because the WALs took too much.
    pub(in crate::db) wal_limit: u64,
    /// The oldest WAL for whose sake all families were switched because the WALs had reached their
    /// cap.
    pub(in crate::db) wal_cap: u64,
}

/// How far closing is.
#[derive(Default)]
pub(in crate::db) struct Ending {
    /// What closing flushes is the last that was written.
    pub(in crate::db) has_begun: bool,
    /// Up to where closing has synced the last WAL, if it could.
    pub(in crate::db) synced: Option<Result<SequenceNumber>>,
}

impl Commit {
    /// # Errors
    /// `ShutdownInProgress`, once closing has begun.
    pub(super) fn check_not_ending(&self) -> Result<()> {
        if self.end.has_begun {
            Err(Error::new(Code::ShutdownInProgress, "the database is being closed"))
        } else {
            Ok(())
        }
    }

    /// The active WAL.
    ///
    /// # Errors
    /// `ShutdownInProgress` after the database was closed.
    pub(in crate::db) fn wal(&mut self) -> Result<&mut wal::Writer> {
        self.log
            .writer
            .as_mut()
            .ok_or_else(|| Error::new(Code::ShutdownInProgress, "the database is closed"))
    }

    /// Has the active WAL say how long all families' timestamps are, unless it does.
    ///
    /// # Errors
    /// As [`wal::Writer::add_record`].
    #[inline]
    pub(in crate::db::writing) fn log_stamped_families(&mut self, gathers: bool) -> Result<()> {
        match &mut self.log.writer {
            Some(wal) if wal.stamped_families() < self.stamped_families.len() => {
                wal.add_timestamp_sizes(&self.stamped_families, gathers)
            }
            _ => Ok(()),
        }
    }

    /// The active WAL, unless none is written.
    pub(in crate::db) fn active_wal(&self) -> Option<ActiveWal> {
        let number = self.log.number;
        self.log.writer.as_ref().map(|wal| ActiveWal { number, written: wal.written() })
    }

    /// Bytes in the active WAL.
    pub(in crate::db) fn wal_size(&self) -> u64 {
        self.log.writer.as_ref().map_or(0, wal::Writer::offset)
    }

    pub(in crate::db) fn target(&self, id: ColumnFamilyId) -> Option<&WriteTarget> {
        self.targets.get(&id)
    }

    pub(in crate::db) fn add_target(
        &mut self,
        family: Arc<Family>,
        mem: Arc<Generation>,
        sum: &MemtableBytes,
    ) {
        let id = family.id;
        let is_known = self.stamped_families.iter().any(|(known, _)| *known == id);
        if family.order.timestamp_size() > 0 && !is_known {
            let size = family.order.timestamp_size() as u16;
            self.stamped_families.push((id, size));
        }
        let to = Arc::new(Destination { family, mem, counted: AtomicU64::new(0) });
        to.count(sum);
        self.targets.insert(id, WriteTarget { to, switch_wanted: None, drop_in_doubt: false });
    }

    /// Shows where writes go from now on. To be called whenever that has changed, before the commit
    /// lock is given back.
    pub(in crate::db::writing) fn show_destinations(&mut self, to: &ShownDestinations) {
        let destinations = self.targets.iter().map(|(id, target)| (*id, target.to.clone()));
        self.shown = Arc::new(Destinations(destinations.collect()));
        to.0.store(self.shown.clone());
    }

    /// Has the pins be of this moment.
    #[inline]
    pub(in crate::db::writing) fn pin(&self, pins: &mut Pins) {
        if !Arc::ptr_eq(&pins.now, &self.shown) {
            let now = Guard::from_inner(self.shown.clone());
            pins.before = Some(std::mem::replace(&mut pins.now, now));
        }
    }

    pub(in crate::db) fn remove_target(&mut self, id: ColumnFamilyId, sum: &MemtableBytes) {
        if let Some(target) = self.targets.remove(&id) {
            target.to.count_no_more(sum);
        }
    }
}

impl WriteTarget {
    /// From now on writes go to that memtable, which is empty. No writer is inserting.
    pub(in crate::db) fn switch(&mut self, mem: Arc<Generation>, sum: &MemtableBytes) {
        self.to.count_no_more(sum);
        let family = self.to.family.clone();
        self.to = Arc::new(Destination { family, mem, counted: AtomicU64::new(0) });
        self.to.count(sum);
    }
}

/// Bytes of the memtables that take writes, but for empty ones.
#[derive(Default)]
pub(in crate::db) struct MemtableBytes {
    sum: AtomicU64,
    /// Counts them, too, if several databases have one limit.
    together: Option<Arc<WriteBuffers>>,
}

impl MemtableBytes {
    pub(in crate::db::writing) fn new(together: Option<Arc<WriteBuffers>>) -> Self {
        Self { sum: AtomicU64::new(0), together }
    }

    /// Whether the memtables of several databases have reached a limit.
    #[inline]
    pub(in crate::db::writing) fn are_full_together(&self) -> bool {
        self.together.as_ref().is_some_and(|buffers| buffers.is_full())
    }

    /// Whether this database is to switch its largest memtable then.
    pub(in crate::db::writing) fn takes_switch(&self) -> bool {
        self.together.as_ref().is_some_and(|buffers| buffers.takes_switch())
    }

    #[inline]
    pub(in crate::db) fn get(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}

impl Destination {
    /// Counts what the memtable has come to.
    #[inline]
    pub(in crate::db) fn count(&self, sum: &MemtableBytes) {
        // It grows by large pieces, so that most writes change nothing here.
        let now = self.mem.bytes_in_use();
        if now > self.counted.load(Ordering::Relaxed) {
            let before = self.counted.fetch_max(now, Ordering::Relaxed);
            let more = now.saturating_sub(before);
            sum.sum.fetch_add(more, Ordering::Relaxed);
            if let Some(buffers) = &sum.together {
                buffers.grow(more);
            }
        }
    }

    /// Makes memory for the memtable, if it is time and it is to grow.
    #[inline]
    pub(in crate::db::writing) fn fetch_ahead(&self) {
        self.mem.fetch_ahead(self.family.write_buffer_size());
    }

    /// Bytes that it has in the sum of all.
    pub(in crate::db) fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    /// Takes it off the sum. What a writer still adds is not counted.
    fn count_no_more(&self, sum: &MemtableBytes) {
        let counted = self.counted.swap(u64::MAX, Ordering::Relaxed);
        sum.sum.fetch_sub(counted, Ordering::Relaxed);
        if let Some(buffers) = &sum.together {
            buffers.shrink(counted);
        }
    }
}

impl Commit {
    /// What kept the oldest WAL is no more, without a flush: whoever is to let go of it now is to
    /// be asked, too.
    pub(in crate::db) fn ask_again_for_wals(&mut self) {
        (self.asked.wal_limit, self.asked.wal_cap) = (0, 0);
    }
}

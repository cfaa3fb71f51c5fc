//! What the commit lock guards: the active WAL, the memtables that take writes, and what the next
//! writer or sync has to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{Code, ColumnFamilyId, Error, FileNumber, Result, SequenceNumber};
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::writing::direct_blob::UnsyncedBlobs;
use crate::db::writing::pipeline::ActiveWal;
use crate::db::writing::pipeline::steps::Numbers;
use crate::env::WritableFile;
use crate::wal::{self, PredecessorWal};

/// A family as the writer sees it.
pub(in crate::db) struct WriteTarget {
    pub(in crate::db) family: Arc<Family>,
    pub(in crate::db) mem: Arc<Generation>,
    /// The memtable is full or a flush was asked for: the next writer switches it.
    pub(in crate::db) switch_wanted: bool,
    /// A drop of the family found the disk full: the MANIFEST may say that it is gone.
    pub(in crate::db) drop_in_doubt: bool,
    /// What the memtable has in [`Commit::memtable_bytes`].
    pub(in crate::db) counted: u64,
}

/// What the commit lock guards; the lock itself, which those look at who wait for it, lies in a
/// line of memory of its own.
#[derive(Default)]
#[repr(align(128))]
pub(in crate::db) struct Commit {
    pub(in crate::db) log: ActiveLog,
    pub(in crate::db::writing) numbers: Numbers,
    pub(in crate::db) targets: BTreeMap<ColumnFamilyId, WriteTarget>,
    /// Bytes of the targets' memtables, but for empty ones.
    pub(in crate::db) memtable_bytes: u64,
    pub(in crate::db) debt: SyncDebt,
    pub(in crate::db) asked: Asked,
    pub(in crate::db) end: Ending,
    /// Whether anything was written without the WAL since the database was opened, flushed by now
    /// or not.
    pub(in crate::db) has_unlogged: bool,
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

    pub(in crate::db) fn add_target(&mut self, family: Arc<Family>, mem: Arc<Generation>) {
        let counted = mem.bytes_in_use();
        self.memtable_bytes += counted;
        let id = family.id;
        let target =
            WriteTarget { family, mem, switch_wanted: false, drop_in_doubt: false, counted };
        self.targets.insert(id, target);
    }

    pub(in crate::db) fn remove_target(&mut self, id: ColumnFamilyId) {
        if let Some(target) = self.targets.remove(&id) {
            self.memtable_bytes -= target.counted;
        }
    }
}

impl WriteTarget {
    /// Counts what the memtable has come to, or what a fresh one has, in all memtables' `sum`.
    #[inline]
    pub(in crate::db) fn count(&mut self, sum: &mut u64) {
        let now = self.mem.bytes_in_use();
        *sum = *sum - self.counted + now;
        self.counted = now;
    }
}

impl Commit {
    /// What kept the oldest WAL is no more, without a flush: whoever is to let go of it now is to
    /// be asked, too.
    pub(in crate::db) fn ask_again_for_wals(&mut self) {
        (self.asked.wal_limit, self.asked.wal_cap) = (0, 0);
    }
}

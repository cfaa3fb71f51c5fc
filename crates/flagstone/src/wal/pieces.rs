//! Logs in pieces: what is in them, read and checked as far as that depends on nothing that came
//! before.
//!
//! 1. [`PieceReader`] goes through the logs in order, and makes pieces of about the same size of
//!    what it finds: records (of which the last may make a piece as large as it is), damage, ends
//!    of logs. Reads that fail are found, too: they count where they are met.
//! 2. Batches are read once from one end to the other, which shows whether they can be.
//! 3. What batches of a piece need from elsewhere is checked for all of them together ([`Checks`]).
//! 4. Whoever judges takes one thing after the other ([`Pieces`]). It may leave a log before its
//!    end: what was found behind is passed over, and no more of it is read.
//! 5. With threads, one makes pieces ahead of the judge, up to [`PIECES_AHEAD`] of them.
//!
//! **Invariants.** What is judged does not depend on how far somebody read ahead: not on the
//! pieces' size, nor on threads.

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::damage::Damage;
use super::reader::{Event, Reader, ReaderOptions};
use super::stamps::{StampedFamily, Stamps};
use crate::base::sync::{Condvar, Mutex};
use crate::base::{Code, ColumnFamilyId, Error, FileNumber, Result, Sometimes};
use crate::batch::{BatchSummary, BatchView};
use crate::env::{Join, RandomAccessFile, Spawn};

/// How many pieces wait for the judge at most; beside them there are the one that it has and the
/// one that is being made.
const PIECES_AHEAD: usize = 2;

/// Looks ahead at what batches need but their log.
pub trait Checks: Send + Sync {
    /// For each of these batches, of the logs named with them: what is wrong. Whoever asks need not
    /// come to all of them.
    fn check(&self, batches: &[(FileNumber, BatchView<'_>)]) -> Vec<Result<(), Fault>>;

    /// Whether the family is to have what this log holds for it.
    fn wants(&self, family: ColumnFamilyId, wal: FileNumber) -> bool;

    /// The families whose keys end in timestamps, where batches are to have those of now; `None` to
    /// refuse logs with timestamps.
    fn stamped(&self) -> Option<&[StampedFamily]> {
        None
    }
}

/// What is wrong with a batch that is intact.
#[derive(Debug)]
pub enum Fault {
    /// History cannot go on with it, as a blob file lacks what it names: judged like a torn record.
    Lost(Error),
    /// It could not be checked: that fails recovery.
    Unknown(Error),
}

impl Fault {
    /// What is lost, if that is known.
    pub(super) fn lost(self) -> Result<Error> {
        match self {
            Self::Unknown(error) => Err(error),
            Self::Lost(error) => {
                Sometimes::ReplayStoppedAtLostBlob.reached();
                Ok(error)
            }
        }
    }
}

/// How logs are read for a replay.
#[derive(Clone)]
pub struct Reading {
    /// How many bytes of records a piece has; a single record may be larger.
    pub piece_size: usize,
    /// See [`ReaderOptions::readahead_size`].
    pub readahead_size: usize,
    /// See [`ReaderOptions::decompressed_size_max`].
    pub decompressed_size_max: usize,
    /// What looks at batches that name blobs.
    pub checks: Option<Arc<dyn Checks>>,
    /// Where the thread comes from that reads ahead; without, or if there is none left, the caller
    /// reads.
    pub spawner: Option<Arc<dyn Spawn>>,
}

impl Default for Reading {
    fn default() -> Self {
        let ReaderOptions { decompressed_size_max, readahead_size, .. } = ReaderOptions::default();
        Self {
            piece_size: 1 << 20,
            readahead_size,
            decompressed_size_max,
            checks: None,
            spawner: None,
        }
    }
}

/// Something found in a log.
pub(super) struct Finding {
    pub what: What,
    /// Where a record begins.
    pub offset: u64,
    /// Where it ends.
    pub good_until: u64,
    /// Whether headers with the file's number had been seen by then.
    pub is_recyclable: bool,
}

pub(super) enum What {
    /// Where it is in the piece; what came of reading the batch (nothing, if it is too short for
    /// one), and of the checks.
    Record {
        range: Range<usize>,
        batch: Option<Result<BatchSummary>>,
        fault: Option<Fault>,
    },
    Damage(Damage),
    End,
}

#[derive(Default)]
struct Piece {
    bytes: Arc<Vec<u8>>,
    /// Each with which of the logs it is in.
    findings: VecDeque<(usize, Result<Finding>)>,
}

struct PieceReader {
    wals: Vec<(FileNumber, Arc<dyn RandomAccessFile>)>,
    at: usize,
    reader: Option<OneLog>,
    reading: Reading,
}

/// The log that is being read.
struct OneLog {
    reader: Reader,
    /// How many of its families with timestamps were looked at, and the first that is to have what
    /// it holds.
    looked_at: usize,
    timestamped: Option<ColumnFamilyId>,
    stamps: Stamps,
    /// The same for records that prepare transactions: a family wants what it has flushed, once it
    /// is committed.
    stamps_of_prepared: Stamps,
}

impl OneLog {
    /// Gives the batch that ends the piece the timestamps that its families have now.
    fn adapt(
        &mut self,
        what: What,
        bytes: &mut Vec<u8>,
        families: &[StampedFamily],
        wal: FileNumber,
        wanted: impl Fn(ColumnFamilyId, FileNumber) -> bool,
    ) -> What {
        let What::Record { range, batch: Some(Ok(summary)), fault: None } = what else {
            return what;
        };
        let record = &bytes[range.clone()];
        let prepares = summary.has_transaction_markers;
        let stamps = if prepares { &mut self.stamps_of_prepared } else { &mut self.stamps };
        let wanted = |id, wal| prepares || wanted(id, wal);
        let (range, fault) = match stamps.adapt(&self.reader, wal, record, families, wanted) {
            Ok(None) => (range, None),
            Ok(Some(changed)) => {
                bytes.truncate(range.start);
                bytes.extend_from_slice(&changed);
                (range.start..bytes.len(), None)
            }
            Err(error) => (range, Some(Fault::Unknown(error))),
        };
        What::Record { range, batch: Some(Ok(summary)), fault }
    }

    /// Behind the word of a log that keys of a family end in timestamps, its batches cannot be read
    /// if that family is to have them.
    fn refuse_timestamps(&mut self, what: What, wanted: impl Fn(ColumnFamilyId) -> bool) -> What {
        let sizes = self.reader.timestamp_sizes();
        let fresh = &sizes[std::mem::replace(&mut self.looked_at, sizes.len())..];
        if self.timestamped.is_none() {
            let timestamped = fresh.iter().find(|(family, size)| *size > 0 && wanted(*family));
            self.timestamped = timestamped.map(|(family, _)| *family);
        }
        match (what, self.timestamped) {
            (What::Record { range, batch, .. }, Some(family)) => {
                let error = Error::not_supported(format!(
                    "the keys of column family {family} end in user timestamps, which are not supported"
                ));
                What::Record { range, batch, fault: Some(Fault::Unknown(error)) }
            }
            (what, _) => what,
        }
    }
}

impl PieceReader {
    /// The next piece; empty behind the last log. Logs before `left` are not wanted any more.
    fn next(&mut self, left: usize) -> Piece {
        let (mut bytes, mut findings) = (Vec::new(), VecDeque::new());
        if self.at < left {
            (self.at, self.reader) = (left, None);
        }
        while bytes.len() + findings.len() * size_of::<Finding>() < self.reading.piece_size
            && let Some((number, file)) = self.wals.get(self.at)
        {
            let Reading { readahead_size, decompressed_size_max, .. } = self.reading;
            let options =
                ReaderOptions { readahead_size, decompressed_size_max, ..ReaderOptions::default() };
            let log = self.reader.get_or_insert_with(|| OneLog {
                reader: Reader::with_options(file.clone(), *number, options),
                looked_at: 0,
                timestamped: None,
                stamps: Stamps::default(),
                stamps_of_prepared: Stamps::default(),
            });
            let what = match log.reader.next_event() {
                Ok(Event::Record(record)) => {
                    let what = add_record(record, &mut bytes, self.reading.piece_size);
                    let checks = self.reading.checks.as_ref();
                    match checks.and_then(|checks| Some((checks, checks.stamped()?))) {
                        Some((checks, families)) => {
                            let wanted = |family, wal| checks.wants(family, wal);
                            Ok(log.adapt(what, &mut bytes, families, *number, wanted))
                        }
                        None => {
                            let wanted =
                                |family| checks.is_none_or(|checks| checks.wants(family, *number));
                            Ok(log.refuse_timestamps(what, wanted))
                        }
                    }
                }
                Ok(Event::Damage(damage)) => Ok(What::Damage(damage)),
                Ok(Event::End) => Ok(What::End),
                Err(error) => Err(error),
            };
            let (offset, good_until) = (log.reader.record_offset(), log.reader.good_until());
            let is_recyclable = log.reader.is_recyclable();
            let wal = self.at;
            if matches!(what, Ok(What::End) | Err(_)) {
                (self.at, self.reader) = (self.at + 1, None);
            }
            let finding = what.map(|what| Finding { what, offset, good_until, is_recyclable });
            findings.push_back((wal, finding));
        }
        let mut piece = Piece { bytes: Arc::new(bytes), findings };
        self.check(&mut piece);
        piece
    }

    /// Has the batches checked that name blobs.
    fn check(&self, piece: &mut Piece) {
        let Some(checks) = &self.reading.checks else { return };
        let (mut batches, mut faults) = (Vec::new(), Vec::new());
        for (wal, finding) in &mut piece.findings {
            if let Ok(Finding {
                what: What::Record { range, batch: Some(Ok(summary)), fault }, ..
            }) = finding
                && summary.names_blobs
                && fault.is_none()
            {
                let batch = BatchView::parse(&piece.bytes[range.clone()]).expect("it was parsed");
                batches.push((self.wals[*wal].0, batch));
                faults.push(fault);
            }
        }
        if batches.is_empty() {
            return;
        }
        for (fault, found) in faults.into_iter().zip(checks.check(&batches)) {
            *fault = found.err();
        }
    }
}

/// Copies a record to the end of a piece, and reads its batch.
fn add_record(record: &[u8], bytes: &mut Vec<u8>, piece_size: usize) -> What {
    let start = bytes.len();
    if start == 0 {
        bytes.reserve_exact(piece_size.max(record.len()));
    }
    bytes.extend_from_slice(record);
    let batch = BatchView::parse(record).ok().map(|batch| batch.validate());
    What::Record { range: start..bytes.len(), batch, fault: None }
}

/// What is found in logs, one thing after the other.
pub(super) struct Pieces {
    source: Source,
    piece: Piece,
    left: usize,
}

enum Source {
    Here(Box<PieceReader>),
    Ahead(Ahead),
}

impl Pieces {
    pub fn new(wals: &[(FileNumber, Arc<dyn RandomAccessFile>)], reading: &Reading) -> Self {
        let new =
            || PieceReader { wals: wals.to_vec(), at: 0, reader: None, reading: reading.clone() };
        let ahead = reading.spawner.as_ref().and_then(|spawner| Ahead::start(&**spawner, new()));
        let source = ahead.map_or_else(|| Source::Here(Box::new(new())), Source::Ahead);
        Self { source, piece: Piece::default(), left: 0 }
    }

    /// What comes next in this log.
    ///
    /// # Errors
    /// `IoError`, if it cannot be read.
    pub fn next(&mut self, wal: usize) -> Result<Finding> {
        loop {
            while let Some((found_in, finding)) = self.piece.findings.pop_front() {
                if found_in == wal {
                    return finding;
                }
                assert!(found_in < wal, "logs are judged in order");
            }
            self.piece = match &mut self.source {
                Source::Here(reader) => reader.next(self.left),
                Source::Ahead(ahead) => ahead.next()?,
            };
            assert!(!self.piece.findings.is_empty(), "each log has an end");
        }
    }

    /// The bytes of the piece in which records lie.
    #[inline]
    pub fn bytes(&self) -> &Arc<Vec<u8>> {
        &self.piece.bytes
    }

    /// No more is wanted of this log.
    pub fn leave(&mut self, wal: usize) {
        self.left = wal + 1;
        if let Source::Ahead(ahead) = &self.source {
            ahead.shared.state.lock().left = self.left;
        }
    }
}

/// A thread that makes pieces ahead.
struct Ahead {
    shared: Arc<Shared>,
    thread: Option<Box<dyn Join>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    pieces: VecDeque<Piece>,
    left: usize,
    /// Nobody wants more.
    is_over: bool,
    /// There are none to come.
    has_ended: bool,
}

impl Ahead {
    /// `None` if the system has no thread left.
    fn start(spawner: &dyn Spawn, mut reader: PieceReader) -> Option<Self> {
        let shared = Arc::new(Shared::default());
        let for_thread = shared.clone();
        let work = move || {
            // Whoever waits would do so for ever.
            if catch_unwind(AssertUnwindSafe(|| for_thread.read(&mut reader))).is_err() {
                for_thread.ended();
            }
        };
        let thread = spawner.spawn("flagstone-wal", Box::new(work));
        let told = |error: &Error| tracing::warn!(%error, "WALs are read by who replays them");
        Some(Self { shared, thread: Some(thread.inspect_err(told).ok()?) })
    }

    /// # Errors
    /// `Aborted`: the thread panicked.
    fn next(&mut self) -> Result<Piece> {
        let mut state = self.shared.state.lock();
        loop {
            if let Some(piece) = state.pieces.pop_front() {
                self.shared.changed.notify_all();
                return Ok(piece);
            }
            if state.has_ended {
                return Err(Error::new(Code::Aborted, "reading the WALs panicked"));
            }
            self.shared.changed.wait(&mut state);
        }
    }
}

impl Shared {
    fn read(&self, reader: &mut PieceReader) {
        loop {
            let mut state = self.state.lock();
            while state.pieces.len() >= PIECES_AHEAD && !state.is_over {
                self.changed.wait(&mut state);
            }
            let left = state.left;
            if state.is_over {
                return;
            }
            drop(state);
            let piece = reader.next(left);
            if piece.findings.is_empty() {
                return self.ended();
            }
            self.state.lock().pieces.push_back(piece);
            self.changed.notify_all();
        }
    }

    fn ended(&self) {
        self.state.lock().has_ended = true;
        self.changed.notify_all();
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.state.lock().is_over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

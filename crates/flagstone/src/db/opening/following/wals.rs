//! The WALs of a database that another process writes, read on from where the last look ended.
//!
//! **Algorithm.** The WALs are read in the order of their numbers.
//! 1. One is read to its last intact record. What stands behind may be half written, or was
//!    reserved: the next look begins there again.
//! 2. The next one begins when it has a record, and the one before has none behind what was read:
//!    that is asked again once the next one's record is seen, as a writer goes on only when the one
//!    before is complete. From then on the one before is not looked at any more.
//! 3. What a WAL says of the one before must have been read of it. Where there is anything but
//!    intact records behind what was read of that, the next one must go on where it ended: its
//!    writer was another process then, which had recovered to there.
//! 4. The blob file that a record names must have what it names. Where any of this is not so, it is
//!    not there yet: what follows waits for a later look.
//! 5. A WAL whose name is gone, or leads to another file, counts no more: the MANIFEST says that
//!    tables have what it held, or is about to.
//!
//! **Memtables.** Each WAL has memtables of its own, so that those go whose families' log numbers
//! pass it. Earlier states share them: what is added has higher sequence numbers than they see. A
//! record that has not (of a write that RocksDB had buffered, or a transaction that wrote before
//! its commit) begins new memtables.

use std::path::Path;
use std::sync::Arc;

use crate::base::file_name::{self, FileKind};
use crate::base::{Error, FileNumber, Result, SequenceNumber, Sometimes};
use crate::batch::{BatchSummary, BatchView};
use crate::blob::visit_references;
use crate::db::DbInner;
use crate::db::opening::prepared::Prepared;
use crate::db::opening::replay_inserts::{Inserts, Targets};
use crate::db::tree::following;
use crate::env::{FollowedFiles, RandomAccessFile};
use crate::wal::{
    Applied, Event, Expected, Noted, Reader, ReaderOptions, ReplayRecord, StampedFamily, Stamps,
    WalEnd, is_plain, reached_until,
};

/// Bytes of records that are inserted together, if no record has more.
const PIECE_SIZE: usize = 256 << 10;

/// With as many bytes to read, threads insert.
const BYTES_FOR_THREADS: u64 = 4 << 20;

/// The WALs, as far as they were read.
#[derive(Default)]
pub(super) struct WalTail {
    /// By number.
    wals: Vec<TailedWal>,
    /// What has the last record that was applied.
    current: FileNumber,
    expected: Option<Expected>,
    last_sequence: SequenceNumber,
    prepared: Prepared,
    /// The WAL at which history waits for what is not there yet, and what that is.
    waits: Option<(FileNumber, Error)>,
}

struct TailedWal {
    number: FileNumber,
    reader: Reader,
    /// The reader's last record is still to be applied.
    is_ready: bool,
    /// The reader stands behind a record.
    is_at_record: bool,
    has_begun: bool,
    /// Something that is no record stands behind the last one.
    is_cut: bool,
    /// The sequence number in its last record.
    last_sequence: SequenceNumber,
    /// What the keys of its records lack or have too much, and those of records that prepare.
    stamps: Stamps,
    stamps_of_prepared: Stamps,
    /// Records that begin here or behind are for a later look.
    until: u64,
}

/// A record that is to be applied: where it lies in its piece, and what it is.
struct Accepted {
    start: usize,
    end: usize,
    offset: u64,
    summary: BatchSummary,
}

impl TailedWal {
    fn new(number: FileNumber, file: Arc<dyn RandomAccessFile>) -> Self {
        let options = ReaderOptions { ends_at_zeros: true, ..ReaderOptions::default() };
        let reader = Reader::with_options(file, number, options);
        Self {
            number,
            reader,
            is_ready: false,
            is_at_record: false,
            has_begun: false,
            is_cut: false,
            last_sequence: 0,
            stamps: Stamps::default(),
            stamps_of_prepared: Stamps::default(),
            until: 0,
        }
    }

    /// Whether it has a record that was not applied yet.
    fn has_record(&mut self) -> Result<bool> {
        if self.is_ready {
            return Ok(true);
        }
        self.is_cut = false;
        // Mostly it was read with the last one. If not, the file is read again from there.
        if std::mem::take(&mut self.is_at_record)
            && self.reader.has_next_at_hand()
            && matches!(self.reader.next_event()?, Event::Record(_))
        {
            (self.is_ready, self.is_at_record) = (true, true);
            return Ok(true);
        }
        self.reader.resume();
        match self.reader.next_event()? {
            Event::Record(_) => (self.is_ready, self.is_at_record) = (true, true),
            Event::Damage(_) => self.is_cut = true,
            Event::End => {}
        }
        Ok(self.is_ready)
    }

    /// Notes how far its writer has come. Returns about how many bytes there are to read.
    fn note_end(&mut self) -> Result<u64> {
        let (file, good_until) = (self.reader.file(), self.reader.good_until());
        self.until = reached_until(&**file, self.number, good_until)?;
        Ok(self.until.saturating_sub(good_until))
    }

    /// Whether the record that is ready was perhaps there when the look began.
    fn is_due(&self) -> bool {
        self.reader.record_offset() < self.until
    }

    /// The record that is ready, with the timestamps that its families have now, if it has others.
    fn adapted(&mut self, stamped: &[StampedFamily], targets: &Targets) -> Result<Option<Vec<u8>>> {
        let record = self.reader.record();
        let prepares = !is_plain(BatchView::parse(record)?.validate()?);
        let stamps = if prepares { &mut self.stamps_of_prepared } else { &mut self.stamps };
        let wanted = |id, wal| prepares || targets.wanting(id, wal).is_some();
        stamps.adapt(&self.reader, self.number, record, stamped, wanted)
    }

    fn end(&self) -> WalEnd {
        WalEnd { good_until: self.reader.good_until(), last_sequence: self.last_sequence }
    }

    fn locate(&self, error: Error) -> Error {
        error.at(self.reader.file().path()).at_offset(self.reader.record_offset())
    }
}

impl WalTail {
    /// The sequence number behind what was applied, less one; 0 before that.
    pub(super) fn last_sequence(&self) -> SequenceNumber {
        self.last_sequence
    }

    /// The WAL with the last record that was applied.
    pub(super) fn current(&self) -> FileNumber {
        self.current
    }

    /// Where history waits for what is not there yet.
    pub(super) fn waits(&self) -> Option<&(FileNumber, Error)> {
        self.waits.as_ref()
    }

    pub(super) fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// The WALs that are read, with their bytes.
    pub(super) fn sizes(&self) -> Result<Vec<(FileNumber, u64)>> {
        self.wals.iter().map(|wal| Ok((wal.number, wal.reader.file().size()?))).collect()
    }

    /// Looks which WALs there are by now, from `kept_from` on.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn look(
        &mut self,
        files: &FollowedFiles,
        directory: &Path,
        names: &[String],
        kept_from: FileNumber,
    ) -> Result<()> {
        // One before those that were read is read by nobody any more, or was left out.
        let from = kept_from.max(self.current);
        let mut kept = Vec::with_capacity(self.wals.len());
        for wal in self.wals.drain(..) {
            if wal.number >= from && files.is_in_place(&**wal.reader.file())? {
                kept.push(wal);
            }
        }
        self.wals = kept;
        let mut numbers: Vec<FileNumber> = names
            .iter()
            .filter_map(|name| match FileKind::parse(name) {
                Some(FileKind::Wal(number)) if number >= from => Some(number),
                _ => None,
            })
            .collect();
        numbers.sort_unstable();
        for number in numbers {
            if number == self.current || self.wals.iter().any(|wal| wal.number == number) {
                continue;
            }
            match files.open_wal(&file_name::wal(directory, number)) {
                Ok(file) => self.wals.push(TailedWal::new(number, file)),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        self.wals.sort_unstable_by_key(|wal| wal.number);
        Ok(())
    }

    /// Whether none of the WALs was written over: each has its name, or was removed.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn are_their_own(&self, files: &FollowedFiles) -> Result<bool> {
        for wal in &self.wals {
            let file = wal.reader.file();
            if !files.is_in_place(&**file)? && file.metadata()?.links > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether any WAL has a record that was not applied yet.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn has_more(&mut self) -> Result<bool> {
        for wal in &mut self.wals {
            if wal.has_record()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads all that is there now into the memtables of `inner`, and little of what comes
    /// meanwhile: a writer that is faster than this must not keep it busy. Earlier states see the
    /// sequence numbers up to `seen`.
    ///
    /// # Errors
    /// `Corruption` for a record that cannot be right, and where sequence numbers go back: the WALs
    /// are then to be read anew. `InvalidArgument` for merges without an operator; `IoError`.
    pub(super) fn read(&mut self, inner: &Arc<DbInner>, seen: SequenceNumber) -> Result<()> {
        self.waits = None;
        let targets = Arc::new(Targets::new(inner));
        let mut left = 0;
        for wal in &mut self.wals {
            left += wal.note_end()?;
        }
        let with_threads = left >= BYTES_FOR_THREADS && inner.tree.has_workers();
        while let Some(at) = self.next_wal()? {
            if !self.wals[at].is_due() || !self.goes_on(at, inner.tree.oldest_log_number())? {
                break;
            }
            let wal = self.wals[at].number;
            if wal != self.current {
                self.current = wal;
                begin_memtables(inner, wal);
            }
            let prepared = std::mem::take(&mut self.prepared);
            let mut inserts = Inserts::new(inner, targets.clone(), with_threads, prepared);
            let read = self.read_one(at, (inner, &targets), &mut inserts, seen);
            let (_, _, prepared) = inserts.finish()?;
            self.prepared = prepared;
            if !read? {
                break;
            }
        }
        Ok(())
    }

    /// The WAL with the next record.
    fn next_wal(&mut self) -> Result<Option<usize>> {
        let current = self.wals.iter().position(|wal| wal.number == self.current);
        loop {
            if let Some(at) = current
                && self.wals[at].has_record()?
            {
                return Ok(Some(at));
            }
            let begin = current.map_or(0, |at| at + 1);
            let Some(first) = self.first_with_record(begin)? else { return Ok(None) };
            // By now what precedes is complete.
            if let Some(at) = current
                && self.wals[at].has_record()?
            {
                continue;
            }
            return Ok(self.first_with_record(begin)?.or(Some(first)));
        }
    }

    fn first_with_record(&mut self, begin: usize) -> Result<Option<usize>> {
        for at in begin..self.wals.len() {
            if self.wals[at].has_record()? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Whether history goes on with the record that is ready in this WAL, if it is the first one.
    /// No family needs a WAL before `oldest`.
    fn goes_on(&mut self, at: usize, oldest: FileNumber) -> Result<bool> {
        let wal = &self.wals[at];
        if wal.has_begun || wal.number == self.current {
            return Ok(true);
        }
        let batch = BatchView::parse(wal.reader.record()).map_err(|error| wal.locate(error))?;
        let before = self.wals[..at].iter().rfind(|before| before.number == self.current);
        let Some(before) = before.filter(|before| before.number >= oldest) else { return Ok(true) };
        let noted = Noted::in_batch(batch, true).filter(|noted| noted.number() == before.number);
        let is_expected = || self.expected.is_none_or(|known| known.holds(batch.sequence()));
        if noted
            .map_or_else(|| !before.is_cut || is_expected(), |noted| noted.is_held(before.end()))
        {
            return Ok(true);
        }
        Sometimes::FollowerWaited.reached();
        let message = format!("WAL {} goes on behind records that are not there", wal.number);
        let path = before.reader.file().path();
        let error = Error::corruption(message).at(path).at_offset(before.reader.good_until());
        self.waits = Some((before.number, error));
        Ok(false)
    }

    /// Applies the records of one WAL. Returns whether history goes on behind them.
    fn read_one(
        &mut self,
        at: usize,
        (inner, targets): (&Arc<DbInner>, &Targets),
        inserts: &mut Inserts,
        seen: SequenceNumber,
    ) -> Result<bool> {
        let (mut piece, mut accepted) = (Vec::new(), Vec::new());
        let stamped = targets.stamped();
        let mut last_begin = self.expected.map_or(0, |expected| expected.lowest);
        let mut is_fresh = false;
        loop {
            let wal = &mut self.wals[at];
            if !wal.has_record()? {
                self.apply(at, inserts, piece, accepted)?;
                return Ok(true);
            }
            if !wal.is_due() {
                self.apply(at, inserts, piece, accepted)?;
                return Ok(false);
            }
            let adapted = wal.adapted(&stamped, targets).map_err(|error| wal.locate(error))?;
            let record = adapted.as_deref().unwrap_or_else(|| wal.reader.record());
            let batch = BatchView::parse(record).map_err(|error| wal.locate(error))?;
            let summary = batch.validate().map_err(|error| wal.locate(error))?;
            if let Some(missing) = missing_blob(inner, targets, wal.number, batch, summary)? {
                self.waits = Some((wal.number, wal.locate(missing)));
                self.apply(at, inserts, piece, accepted)?;
                return Ok(false);
            }
            let is_marked = !is_plain(summary);
            if !is_marked && batch.sequence() < last_begin {
                let message = format!("the sequence number goes back to {}", batch.sequence());
                return Err(wal.locate(Error::corruption(message)));
            }
            let is_late = is_marked || batch.sequence() <= seen && batch.count() > 0;
            if is_late || piece.len() >= PIECE_SIZE {
                // Noted in this borrow, applied in the next.
                let (full, noted) = (std::mem::take(&mut piece), std::mem::take(&mut accepted));
                self.apply(at, inserts, full, noted)?;
                let batch = BatchView::parse(self.wals[at].reader.record())?;
                let is_seen = batch.sequence() <= seen || inserts.shares_numbers();
                if is_late && is_seen && !is_fresh {
                    is_fresh = true;
                    inserts.settle()?;
                    begin_memtables(inner, self.wals[at].number);
                }
            }
            let wal = &mut self.wals[at];
            let (start, offset) = (piece.len(), wal.reader.record_offset());
            piece.extend_from_slice(adapted.as_deref().unwrap_or_else(|| wal.reader.record()));
            let batch = BatchView::parse(&piece[start..])?;
            wal.last_sequence = batch.sequence();
            last_begin = if is_marked { 0 } else { batch.sequence() };
            accepted.push(Accepted { start, end: piece.len(), offset, summary });
            (wal.is_ready, wal.has_begun) = (false, true);
            if is_marked {
                let (full, noted) = (std::mem::take(&mut piece), std::mem::take(&mut accepted));
                self.apply(at, inserts, full, noted)?;
            }
        }
    }

    fn apply(
        &mut self,
        at: usize,
        inserts: &mut Inserts,
        piece: Vec<u8>,
        accepted: Vec<Accepted>,
    ) -> Result<()> {
        let (wal, piece) = (&self.wals[at], Arc::new(piece));
        for Accepted { start, end, offset, summary } in accepted {
            let batch = BatchView::parse(&piece[start..end])?;
            let record = ReplayRecord { wal: wal.number, offset, batch, summary, piece: &piece };
            let locate = |error: Error| error.at(wal.reader.file().path()).at_offset(offset);
            let next = match inserts.apply(&record) {
                Ok(Applied::Until(next)) => next,
                Ok(Applied::Failed(error)) => return Err(error),
                Err(error) => return Err(locate(error)),
            };
            self.expected = Some(Expected::behind(batch, summary, next));
            self.last_sequence = self.last_sequence.max(next.saturating_sub(1));
        }
        Ok(())
    }
}

fn begin_memtables(inner: &DbInner, wal: FileNumber) {
    following::begin_followed_wal(&inner.tree, wal, |family| inner.pipeline.new_memtable(family));
}

/// What is not there of the blobs that a batch names for families that are to have them.
fn missing_blob(
    inner: &DbInner,
    targets: &Targets,
    wal: FileNumber,
    batch: BatchView<'_>,
    summary: BatchSummary,
) -> Result<Option<Error>> {
    if !summary.names_blobs {
        return Ok(None);
    }
    for operation in batch.iter() {
        let operation = operation?;
        let (Some(cf), Some((kind, _, value))) = (operation.family(), operation.entry()) else {
            continue;
        };
        let Some(target) = targets.wanting(cf, wal) else { continue };
        let mut missing = None;
        visit_references(Some(kind), value, |index| {
            if missing.is_none() {
                missing = inner.pipeline.find_blob(&target.family, &index)?;
            }
            Ok(())
        })?;
        if missing.is_some() {
            return Ok(missing);
        }
    }
    Ok(None)
}

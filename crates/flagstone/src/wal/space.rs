//! Where a log's bytes go: into a mapping of space that the file system has reserved, or by system
//! calls.
//!
//! What a sync is to follow is gathered in memory, and written by one call just before it: page by
//! page through a mapping, each first write after a sync is a fault, and each page that a sync
//! cleans an interrupt of the other processors. A log that is flushed by hand gathers all its
//! records so, up to a limit; only those for which space is reserved, so that a full disk refuses a
//! record and takes back none that was accepted.
//!
//! The mapping is a window that moves along with the log, so that neither making nor leaving it
//! takes long. Its pages are fetched some at a time ahead of the records: one call costs less than
//! the faults that it saves. Where the log is new and seldom synced they are written as zeros
//! first, and so become few large ones.

use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use crate::base::{Result, Sometimes, SubCode};
use crate::env::{LogFile, Mapping, PAGE_RUN, PageRuns, RangeSyncedFile, WritableFile};

/// Bytes that are mapped at a time.
const WINDOW_SIZE: u64 = 8 << 20;

/// Bytes whose pages are fetched at a time, at first and where the log is synced often: what is
/// fetched a sync writes, too.
const FETCHED_AT_LEAST: u64 = 128 << 10;

/// The same at most: of a thousand writes of 1 KB not one is to wait for it.
const FETCHED_AT_MOST: u64 = WINDOW_SIZE;

/// The same of a log that is written back while it grows: only when pages are fetched is it seen
/// how far it has come.
const FETCHED_AT_MOST_RANGE_SYNCED: u64 = 1 << 20;

/// As many times as much as a log holds is fetched. Each time is a write that waits, however little
/// it fetches.
const FETCHED_GROWS: u64 = 7;

/// Zeros written ahead of gathered records: a sync that gives reserved space its first bytes has to
/// note that, too.
const ZEROED_AHEAD: u64 = 128 << 10;

/// What is longer goes by a system call, which costs less than the copy.
const COPIED_MAX: usize = 32 << 10;

/// The first bytes of a header, without which there is no record.
const WRITTEN_LAST: usize = 8;

/// The file of a log, as its writer sees it.
pub(super) struct Space {
    file: Arc<dyn WritableFile>,
    /// The same file, if it can be mapped.
    log: Option<Arc<dyn LogFile>>,
    /// The same, if it is to be written back while it grows.
    range_synced: Option<Arc<RangeSyncedFile>>,
    /// Bytes that are reserved at a time; 0 where nothing is mapped.
    step: u64,
    /// Bytes of the file that are reserved, and where something is mapped, within its size.
    reserved: u64,
    /// Nothing is reserved, whatever it costs.
    reserves_nothing: bool,
    window: Option<Window>,
    runs: PageRuns,
    /// What is not in the file yet, and where it goes.
    gathered: Vec<u8>,
    gathered_at: u64,
    /// Bytes that are gathered of records that nobody wants synced.
    kept_max: usize,
}

struct Window {
    mapping: Box<dyn Mapping>,
    start: u64,
    end: u64,
    /// Up to where the pages are fetched.
    fetched: u64,
}

impl Space {
    pub fn new(file: Arc<dyn WritableFile>) -> Self {
        Self {
            file,
            log: None,
            range_synced: None,
            step: 0,
            reserved: 0,
            reserves_nothing: false,
            window: None,
            runs: PageRuns::default(),
            gathered: Vec::new(),
            gathered_at: 0,
            kept_max: 0,
        }
    }

    /// Of a file that hears how far the log has come: with each write by a system call, and as
    /// pages are fetched.
    pub fn range_synced(file: Arc<RangeSyncedFile>) -> Self {
        Self { range_synced: Some(file.clone()), ..Self::new(file) }
    }

    /// Lets [`Space::map`] map the file, which is `log`.
    pub fn set_log(&mut self, log: Arc<dyn LogFile>) {
        self.log = Some(log);
    }

    /// All before `end` is in the file.
    #[inline]
    fn note_written(&self, end: u64) -> Result<()> {
        self.range_synced.as_ref().map_or(Ok(()), |file| file.note_written(end))
    }

    /// Reserves no space for what is gathered.
    pub fn reserve_nothing(&mut self) {
        self.reserves_nothing = true;
    }

    /// Gathers all records from now on, up to so many bytes.
    pub fn keep(&mut self, bytes: usize) {
        self.kept_max = bytes;
    }

    pub fn file(&self) -> &Arc<dyn WritableFile> {
        &self.file
    }

    /// Bytes of the file that are mapped into memory.
    pub fn mapped_bytes(&self) -> u64 {
        self.window.as_ref().map_or(0, |window| window.end - window.start)
    }

    /// Reserves the first `step` bytes, and as many again when they are full. What lies there is
    /// not changed: the writer says where the log ends.
    pub fn map(&mut self, step: u64) -> Result<()> {
        // What an earlier life of the file left has its pages already.
        self.runs = PageRuns::starting_at(self.file.size()?);
        self.file.allocate(step, false)?;
        (self.step, self.reserved) = (step, step);
        Ok(())
    }

    /// Bytes of memory for what waits in it.
    pub fn memory_usage(&self) -> u64 {
        self.gathered.capacity() as u64
    }

    /// Bytes that wait in memory.
    pub fn gathered_bytes(&self) -> u64 {
        self.gathered.len() as u64
    }

    /// Like [`Space::write`], but where space is reserved only [`Space::write_gathered`] brings it
    /// into the file, or the next write.
    pub fn gather(&mut self, offset: u64, record: &[u8]) -> Result<()> {
        if record.len() > COPIED_MAX || self.step == 0 {
            return self.write_now(offset, record);
        }
        // Now, while a full disk refuses this record alone.
        if !self.reserve_or_unmap(offset + record.len() as u64)? {
            return self.write_now(offset, record);
        }
        self.take_in(offset, record);
        Ok(())
    }

    fn take_in(&mut self, offset: u64, record: &[u8]) {
        if self.gathered.is_empty() {
            self.gathered_at = offset;
        }
        self.gathered.extend_from_slice(record);
    }

    /// Gathers a record that nobody wants synced, after writing what was gathered if both are too
    /// much.
    fn gather_kept(&mut self, offset: u64, record: &[u8]) -> Result<()> {
        if self.gathered.len() + record.len() > self.kept_max {
            self.write_gathered()?;
        }
        if record.len() > self.kept_max {
            return self.write_now(offset, record);
        }
        match self.reserve(offset + record.len() as u64) {
            // With or without a reservation, it has to fit or to be refused.
            Err(error) if error.subcode() == SubCode::NoSpace => self.write_now(offset, record),
            reserved => {
                reserved?;
                Sometimes::WalKept.reached();
                self.take_in(offset, record);
                Ok(())
            }
        }
    }

    /// Writes what was gathered, all of it with one call. After an error it is still there.
    pub fn write_gathered(&mut self) -> Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        Sometimes::WalGathered.reached();
        let end = self.gathered_at + self.gathered.len() as u64;
        let is_long = self.kept_max > 0 && self.gathered.len() as u64 >= PAGE_RUN;
        if self.step > 0
            && !is_long
            && let Some(zeros) = self.runs.missing(&(self.gathered_at..end))
        {
            let upto = (end + ZEROED_AHEAD).next_multiple_of(PAGE_RUN).min(self.reserved);
            self.runs.write(&*self.file, zeros.start..upto.max(zeros.end), PAGE_RUN)?;
        }
        self.file.write_at(self.gathered_at, &self.gathered)?;
        self.gathered.clear();
        self.note_written(end)
    }

    /// Writes what begins with a record, or with the padding before one.
    #[inline]
    pub fn write(&mut self, offset: u64, record: &[u8]) -> Result<()> {
        match self.kept_max {
            0 => self.write_now(offset, record),
            _ => self.gather_kept(offset, record),
        }
    }

    #[inline]
    fn write_now(&mut self, offset: u64, record: &[u8]) -> Result<()> {
        if !self.gathered.is_empty() {
            self.write_gathered()?;
        }
        let end = offset + record.len() as u64;
        if record.len() > COPIED_MAX || self.step == 0 {
            self.file.write_at(offset, record)?;
            return self.note_written(end);
        }
        if !self
            .window
            .as_ref()
            .is_some_and(|window| window.start <= offset && end <= window.fetched)
        {
            self.prepare(offset, end)?;
        }
        let Some(window) = &mut self.window else { return self.file.write_at(offset, record) };
        let at = (offset - window.start) as usize;
        let (first, rest) = record.split_at(record.len().min(WRITTEN_LAST));
        window.mapping.write(at + first.len(), rest);
        // A process that is killed between the two leaves no record behind, rather than half of
        // one.
        compiler_fence(Ordering::SeqCst);
        window.mapping.write(at, first);
        Ok(())
    }

    /// Moves the window on to `offset` if need be, and fetches pages. Without mappings there is no
    /// window afterwards.
    #[cold]
    fn prepare(&mut self, offset: u64, end: u64) -> Result<()> {
        self.note_written(offset)?;
        if !self.window.as_ref().is_some_and(|window| window.start <= offset && end <= window.end) {
            self.window = None;
            if !self.reserve_or_unmap(end)? {
                return Ok(());
            }
            let length = WINDOW_SIZE.min(self.reserved - offset);
            let mapping = match &self.log {
                Some(log) => log.map(offset, length as usize)?,
                None => None,
            };
            self.window = mapping.map(|mapping| {
                Sometimes::WalMapped.reached();
                Window { mapping, start: offset, end: offset + length, fetched: offset }
            });
        }
        let fetched = match &mut self.window {
            Some(window) => {
                let at_most =
                    match (self.runs.is_synced_before(offset, PAGE_RUN), &self.range_synced) {
                        (true, _) => FETCHED_AT_LEAST,
                        (false, Some(_)) => FETCHED_AT_MOST_RANGE_SYNCED,
                        (false, None) => FETCHED_AT_MOST,
                    };
                let fetched_at_once = (offset * FETCHED_GROWS).clamp(FETCHED_AT_LEAST, at_most);
                let upto = end
                    .max(window.fetched + fetched_at_once)
                    .next_multiple_of(PAGE_RUN)
                    .min(window.end);
                if let Some(zeros) = self.runs.wanted(&(offset..upto), PAGE_RUN) {
                    Sometimes::WalZerosAhead.reached();
                    self.runs.write(
                        &*self.file,
                        zeros.start..zeros.end.min(self.reserved),
                        PAGE_RUN,
                    )?;
                }
                window.fetch(upto).is_ok()
            }
            None => false,
        };
        if !fetched {
            // Not mapped here, or the device failed; what it has to say, the write will say.
            self.unmap();
        }
        Ok(())
    }

    /// [`Space::reserve`]. Where there is no room for that, gives back what the attempt took and
    /// goes on with system calls: a record needs less than a reserve. Whether space is reserved.
    fn reserve_or_unmap(&mut self, end: u64) -> Result<bool> {
        let reserved = self.reserved;
        match self.reserve(end) {
            Err(error) if error.lacks_room() => {
                Sometimes::WalReserveUsedUp.reached();
                self.file.truncate(reserved)?;
                self.unmap();
                Ok(false)
            }
            outcome => outcome.map(|()| true),
        }
    }

    /// Sees to it that space is reserved up to `end`.
    fn reserve(&mut self, end: u64) -> Result<()> {
        if end > self.reserved {
            if self.step == 0 {
                if self.reserves_nothing {
                    return Ok(());
                }
                // Behind the file's end: a log that is not mapped ends where its records do.
                let wanted = end + self.kept_max as u64;
                self.file.allocate(wanted, true)?;
                self.reserved = wanted;
                return Ok(());
            }
            Sometimes::WalReservedMore.reached();
            let wanted = end + self.step;
            self.file.allocate(wanted, false)?;
            self.reserved = wanted;
        }
        Ok(())
    }

    /// Notes that what is before `offset` is synced now.
    pub fn note_sync(&mut self, offset: u64) {
        self.runs.note_sync(offset);
    }

    /// Goes on with system calls.
    pub fn unmap(&mut self) {
        (self.step, self.reserved, self.window) = (0, 0, None);
    }
}

impl Window {
    /// Fetches the pages up to `upto`.
    fn fetch(&mut self, upto: u64) -> Result<()> {
        self.mapping
            .populate((self.fetched - self.start) as usize..(upto - self.start) as usize)?;
        self.fetched = upto;
        Ok(())
    }
}

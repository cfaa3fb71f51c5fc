//! Where a log's bytes go: into a mapping of space that the file system has reserved, or by system
//! calls.
//!
//! What a sync is to follow is gathered in memory, and written by one call just before it: page by
//! page through a mapping, each first write after a sync is a fault, and each page that a sync
//! cleans an interrupt of the other processors. A log that is flushed by hand gathers all its
//! records so, up to a limit; only those for which space is reserved, so that a full disk refuses a
//! record and takes back none that was accepted.
//!
//! The mapping is a window that moves along with the log. All its pages are fetched ahead of the
//! records: one call costs less than the faults that it saves. Where the log is new and seldom
//! synced, the pages are written as zeros first, and so become few large ones. When a window is
//! half full, the next one is asked for. A writer makes it without holding the log
//! ([`super::ahead`]). A window that is not ready in time is made when it is needed.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use super::ahead::{FetchAhead, Next};
use crate::base::{Result, Sometimes, SubCode};
use crate::env::{LogFile, Mapping, PAGE_RUN, PageRuns, RangeSyncedFile, WritableFile};

/// Bytes that are mapped at a time, at first and where the log is synced often: a sync writes what
/// was fetched, too.
const FETCHED_AT_LEAST: u64 = 128 << 10;

/// The same at most: of a thousand writes of 1 KB not one is to wait for it.
const FETCHED_AT_MOST: u64 = 8 << 20;

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
    /// The window before, which takes as long to give back as to make.
    left: Option<Window>,
    next: Next,
    runs: PageRuns,
    /// What is not in the file yet, and where it goes.
    gathered: Vec<u8>,
    gathered_at: u64,
    /// Bytes that are gathered of records that nobody wants synced.
    kept_max: usize,
}

/// A part of the file that is mapped into memory.
pub(super) struct Window {
    mapping: Box<dyn Mapping>,
    start: u64,
    end: u64,
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
            left: None,
            next: Next::default(),
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
        self.left.iter().chain(&self.window).map(|window| window.end - window.start).sum()
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
        if !self.reserve_or_unmap(offset, offset + record.len() as u64)? {
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
            self.next.dismiss_before(upto.max(zeros.end))?;
            self.runs.write(&*self.file, zeros.start..upto.max(zeros.end), PAGE_RUN)?;
        }
        self.next.dismiss_before(end)?;
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
            self.next.dismiss_before(end)?;
            self.file.write_at(offset, record)?;
            return self.note_written(end);
        }
        if !self.window.as_ref().is_some_and(|window| window.has(offset, end)) {
            self.prepare(offset, end)?;
        }
        let Some(window) = &mut self.window else { return self.file.write_at(offset, record) };
        window.write(offset, record, &[]);
        Ok(())
    }

    /// The window, if a record of that size goes there at once.
    #[inline]
    pub fn window_for(&mut self, offset: u64, size: usize) -> Option<&mut Window> {
        let end = offset + size as u64;
        let is_copied = self.kept_max == 0 && self.gathered.is_empty() && size <= COPIED_MAX;
        self.window.as_mut().filter(|window| is_copied && window.has(offset, end))
    }

    /// What makes the next window, if the log, which ends at `end`, has come so far that it is to
    /// be made.
    #[inline]
    pub fn fetch_ahead(&mut self, end: u64) -> Option<FetchAhead> {
        let window = self.window.as_ref()?;
        let half = window.start + (window.end - window.start) / 2;
        // A record that was written by a system call may go beyond the window.
        let is_due = (half..=window.end).contains(&end);
        if is_due && self.next.is_wanted() { self.ask_ahead() } else { None }
    }

    #[cold]
    fn ask_ahead(&mut self) -> Option<FetchAhead> {
        let window = self.window.as_ref()?;
        // Whatever record no longer fits begins behind this.
        let start = window.end.saturating_sub(COPIED_MAX as u64).max(window.start);
        let end = self.fetched_upto(window.end, window.end);
        let log = self.log.as_ref().filter(|_| end > window.end)?;
        let zeros = self.zeros_within(window.end..end);
        if let Some(zeros) = &zeros {
            self.runs.note_zeros(zeros.end);
        }
        Sometimes::WalFetchedAhead.reached();
        Some(self.next.ask(log.clone(), start..end, window.end, zeros, self.left.take()))
    }

    /// Up to where pages are fetched when the log goes on at `offset` with what ends at `end`.
    fn fetched_upto(&self, offset: u64, end: u64) -> u64 {
        let at_most = match (self.runs.is_synced_before(offset, PAGE_RUN), &self.range_synced) {
            (true, _) => FETCHED_AT_LEAST,
            (false, Some(_)) => FETCHED_AT_MOST_RANGE_SYNCED,
            (false, None) => FETCHED_AT_MOST,
        };
        let bytes = (offset * FETCHED_GROWS).clamp(FETCHED_AT_LEAST, at_most);
        end.max(offset + bytes).next_multiple_of(PAGE_RUN).min(self.reserved)
    }

    /// What is to be zeros before the pages of a part are fetched.
    fn zeros_within(&self, part: Range<u64>) -> Option<Range<u64>> {
        let zeros = self.runs.wanted(&part, PAGE_RUN)?;
        Sometimes::WalZerosAhead.reached();
        Some(zeros.start..zeros.end.min(self.reserved))
    }

    /// Moves the window on to `offset`. Without mappings there is no window afterwards.
    #[cold]
    fn prepare(&mut self, offset: u64, end: u64) -> Result<()> {
        self.note_written(offset)?;
        if let Some(next) = self.next.take(&(offset..end))? {
            self.left = self.window.replace(next);
            return Ok(());
        }
        self.window = None;
        if !self.reserve_or_unmap(offset, end)? {
            return Ok(());
        }
        let part = offset..self.fetched_upto(offset, end);
        if let Some(zeros) = self.zeros_within(part.clone()) {
            self.runs.write(&*self.file, zeros, PAGE_RUN)?;
        }
        let Some(log) = &self.log else { return self.unmap() };
        match Window::map(&**log, part)? {
            Some(window) => self.window = Some(window),
            None => self.unmap()?,
        }
        Ok(())
    }

    /// [`Space::reserve`] for a log that goes on at `offset`. Where there is no room for that, it
    /// gives back what the attempt took and goes on with system calls: a record needs less than a
    /// reserve. Whether space is reserved.
    fn reserve_or_unmap(&mut self, offset: u64, end: u64) -> Result<bool> {
        // A long record, which was written by a system call, may end beyond what was reserved.
        let kept = self.reserved.max(offset);
        match self.reserve(end) {
            Err(error) if error.lacks_room() => {
                Sometimes::WalReserveUsedUp.reached();
                let dismissed = self.unmap();
                self.file.truncate(kept)?;
                dismissed?;
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
    ///
    /// # Errors
    /// Why what was to be mapped next could not be.
    pub fn unmap(&mut self) -> Result<()> {
        (self.step, self.reserved, self.window, self.left) = (0, 0, None, None);
        self.next.dismiss()
    }
}

impl Window {
    /// Copies what begins with a record, or with the padding before one, to `offset`; it lies in
    /// two pieces.
    #[inline]
    pub fn write(&mut self, offset: u64, beginning: &[u8], end: &[u8]) {
        let at = (offset - self.start) as usize;
        let (first, rest) = beginning.split_at(beginning.len().min(WRITTEN_LAST));
        self.mapping.write(at + first.len(), rest);
        self.mapping.write(at + beginning.len(), end);
        // A process that is killed between the two leaves no record behind, rather than half of
        // one.
        compiler_fence(Ordering::SeqCst);
        self.mapping.write(at, first);
    }

    /// Maps a part of a log and fetches its pages. `None` where that cannot be, or where the device
    /// failed to fetch: what it has to say, a write will say.
    pub fn map(log: &dyn LogFile, part: Range<u64>) -> Result<Option<Self>> {
        let length = (part.end - part.start) as usize;
        let Some(mut mapping) = log.map(part.start, length)? else { return Ok(None) };
        if mapping.populate(0..length).is_err() {
            return Ok(None);
        }
        Sometimes::WalMapped.reached();
        Ok(Some(Self { mapping, start: part.start, end: part.end }))
    }

    /// Whether a record from `offset` to `end` lies in it.
    #[inline]
    fn has(&self, offset: u64, end: u64) -> bool {
        self.start <= offset && end <= self.end
    }
}

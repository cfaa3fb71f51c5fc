//! Reading blobs ahead for a scan.
//!
//! Values that were written in the order of their keys, by a flush or a compaction, lie one behind
//! the other, perhaps in several files between which a scan alternates. So the keys to come need
//! not be known:
//!
//! 1. A reference that leads closely behind the last one into the same file is *in order*; closely
//!    before it, too, where a scan goes back.
//! 2. After `PATIENCE` of them in a row, one read fetches the record and those next to it: a
//!    window, which doubles each time.
//! 3. What lies in a window is handed out as a part of it, not copied. Each record is checked when
//!    it is handed out.
//! 4. The system is told to fetch what comes behind the window meanwhile.
//! 5. A reference that is not in order closes its file's window. The next one starts small.
//!
//! A window spares work and decides nothing: where it cannot be read, or a record in it is damaged,
//! the record is read alone, and what that says counts.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::format::{BlobIndex, HEADER_SIZE};
use super::reader::{BlobFileReader, count_read};
use crate::base::{FileNumber, Result, Sometimes};
use crate::env::{Advice, RandomAccessFile};

/// So many references must be in order before a window is opened.
const PATIENCE: u32 = 2;

/// How far apart, in bytes, two records in order may lie, and those of larger records, up to a
/// limit: values that were overwritten stay between them, and to read over one is cheap.
const MAX_GAP: u64 = 4 << 10;
const MAX_GAP_OF_LARGE: u64 = 16 << 10;

/// The first window and the largest, in bytes. A larger one spares little more, and leaves the
/// processor's cache.
const FIRST_WINDOW: usize = 16 << 10;
const LAST_WINDOW: usize = 256 << 10;

/// The most bytes in all windows together.
const WINDOWS_BYTES_MAX: usize = 4 << 20;

/// How many files are watched: so many that each can still have a window of some use.
const RUNS_MAX: usize = 64;

/// Records that are larger, in bytes, are read alone, into memory that is not kept.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// So many windows behind the present one the system fetches meanwhile.
const WINDOWS_HINTED: u64 = 4;

const _: () = assert!(WINDOWS_BYTES_MAX / RUNS_MAX >= FIRST_WINDOW);

/// The blobs that one scan reads.
pub struct BlobReadahead {
    /// Bytes of the first window and of the largest.
    windows: (usize, usize),
    runs: Vec<Run>,
    /// For records that are read alone.
    single: Buffer,
    /// Counts the reads.
    now: u64,
    /// Bytes in all buffers.
    memory: usize,
    /// Whether the last value was read alone, since it was not in order; and how long that took,
    /// once noted.
    was_alone: bool,
    /// Whether the last value lies in one of the buffers.
    holds_last: bool,
    alone_us: Option<u64>,
}

/// What a scan reads of one file.
struct Run {
    file: FileNumber,
    reader: Arc<BlobFileReader>,
    /// Where the last record lies.
    last: Range<u64>,
    in_order: u32,
    backward: bool,
    /// As of all.
    windows: (usize, usize),
    /// How large the next window will be.
    window: usize,
    held: Buffer,
    /// Where in the file the window starts.
    start: u64,
    /// Up to here the system was told to fetch.
    hinted: u64,
    /// When it was last read from.
    used: u64,
}

/// Bytes of a file, in memory that is used again once nobody holds a part of it.
#[derive(Default)]
struct Buffer {
    memory: Bytes,
    filled: usize,
}

impl Default for BlobReadahead {
    fn default() -> Self {
        Self::of_windows(FIRST_WINDOW, LAST_WINDOW)
    }
}

impl BlobReadahead {
    /// Reads so many bytes ahead, from the first window on.
    pub fn of_size(bytes: usize) -> Self {
        Self::of_windows(bytes, bytes)
    }

    fn of_windows(first: usize, last: usize) -> Self {
        Self {
            windows: (first, last),
            runs: Vec::new(),
            single: Buffer::default(),
            now: 0,
            memory: 0,
            was_alone: false,
            holds_last: false,
            alone_us: None,
        }
    }

    /// The most bytes in all windows together, but for a single record that is larger.
    pub fn windows_bytes_max(&self) -> usize {
        WINDOWS_BYTES_MAX.max(self.windows.1)
    }

    /// The value of `user_key` that `index` leads to; `open` opens its file, unless that is known
    /// already. `verify` checks the record.
    ///
    /// The value holds the memory that it was read into: for keeping it long, copy it.
    ///
    /// # Errors
    /// As [`BlobFileReader::get`], and those of `open`.
    pub fn read(
        &mut self,
        user_key: &[u8],
        index: &BlobIndex,
        verify: bool,
        open: impl FnOnce() -> Result<Arc<BlobFileReader>>,
    ) -> Result<Bytes> {
        self.now += 1;
        self.was_alone = false;
        self.holds_last = true;
        let at = match self.runs.iter().position(|run| run.file == index.file) {
            Some(at) => at,
            None => self.add(index.file, open()?),
        };
        self.runs[at].used = self.now;
        let reader = self.runs[at].reader.clone();
        reader.by_either_key(user_key, index, |key| self.value(at, key, index, verify))
    }

    /// The value, from the window of its file or with a read.
    fn value(
        &mut self,
        at: usize,
        user_key: &[u8],
        index: &BlobIndex,
        verify: bool,
    ) -> Result<Bytes> {
        let run = &mut self.runs[at];
        let record = run.reader.record(user_key, index)?;
        run.follow(&record);
        if let Some(value) = run.take(user_key, index, &record, verify) {
            return Ok(value);
        }
        let value = self.fetch(at, user_key, index, &record, verify);
        self.memory = self.single.memory.len()
            + self.runs.iter().map(|run| run.held.memory.len()).sum::<usize>();
        value
    }

    /// The last value took so many microseconds to read.
    pub fn note(&mut self, us: u64) {
        self.alone_us = self.was_alone.then_some(us);
    }

    /// How long that was, if the value was not in order and so was read alone. Says so once.
    pub fn take_alone_us(&mut self) -> Option<u64> {
        self.alone_us.take()
    }

    /// Whether the last value lies in memory that [`Self::memory`] counts, until it is used again.
    pub fn holds_last(&self) -> bool {
        self.holds_last
    }

    /// Bytes of the memory that values are read into.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Reads a record that lies in no window: with a new one, or alone.
    fn fetch(
        &mut self,
        at: usize,
        user_key: &[u8],
        index: &BlobIndex,
        record: &Range<u64>,
        verify: bool,
    ) -> Result<Bytes> {
        let largest = (self.windows_bytes_max() / self.runs.len()).min(self.windows.1);
        self.make_room(at, largest.max((record.end - record.start) as usize));
        let run = &mut self.runs[at];
        if run.in_order >= PATIENCE
            && run.fetch(record, largest)
            && let Some(value) = run.take(user_key, index, record, verify)
        {
            return Ok(value);
        }
        self.was_alone = run.in_order == 0;
        let length = (record.end - record.start) as usize;
        if length > KEPT_BYTES_MAX {
            self.holds_last = false;
            return Ok(run.reader.get(user_key, index, verify)?.into_bytes());
        }
        self.single.fill(&**run.reader.file(), record.start, length)?;
        run.reader.value_in(user_key, index, self.single.part(0..self.single.filled), verify)
    }

    /// Closes windows, those first that were not read from for longest, until one of so many bytes
    /// may be opened.
    fn make_room(&mut self, at: usize, wanted: usize) {
        let mut others: usize = self.runs.iter().map(|run| run.held.memory.len()).sum();
        others -= self.runs[at].held.memory.len();
        while others > 0 && others + wanted > self.windows_bytes_max() {
            let with_window =
                self.runs.iter_mut().enumerate().filter(|(n, run)| *n != at && run.held.filled > 0);
            let Some((_, oldest)) = with_window.min_by_key(|(_, run)| run.used) else { return };
            others -= oldest.held.memory.len();
            oldest.held = Buffer::default();
        }
    }

    /// Lets go of files and windows.
    pub fn forget(&mut self) {
        *self = Self::of_windows(self.windows.0, self.windows.1);
    }

    /// Watches one more file, in the place of the one that was not read from for longest if there
    /// are too many.
    fn add(&mut self, file: FileNumber, reader: Arc<BlobFileReader>) -> usize {
        let run = Run {
            file,
            reader,
            last: 0..0,
            in_order: 0,
            backward: false,
            windows: self.windows,
            window: self.windows.0,
            held: Buffer::default(),
            start: 0,
            hinted: 0,
            used: 0,
        };
        let oldest = (0..self.runs.len()).min_by_key(|&at| self.runs[at].used);
        match oldest.filter(|_| self.runs.len() >= RUNS_MAX) {
            Some(at) => {
                self.runs[at] = run;
                at
            }
            None => {
                self.runs.push(run);
                self.runs.len() - 1
            }
        }
    }
}

impl Run {
    /// Notes whether a record is in order.
    fn follow(&mut self, record: &Range<u64>) {
        let gap = (record.end - record.start).clamp(MAX_GAP, MAX_GAP_OF_LARGE);
        let is_behind = record.start >= self.last.end && record.start - self.last.end <= gap;
        let is_before = record.end <= self.last.start && self.last.start - record.end <= gap;
        let is_again = *record == self.last;
        let goes_on = if self.backward { is_before } else { is_behind };
        self.last = record.clone();
        if goes_on {
            self.in_order += 1;
        } else if !is_again {
            // One step in either direction may be the first of more.
            self.backward = is_before;
            self.in_order = u32::from(is_before || is_behind);
            self.window = self.windows.0;
            if !self.holds(record) {
                self.held = Buffer::default();
            }
        }
    }

    fn holds(&self, record: &Range<u64>) -> bool {
        record.start >= self.start && record.end <= self.start + self.held.filled as u64
    }

    /// The value, if the window has its record whole and in order.
    fn take(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        record: &Range<u64>,
        verify: bool,
    ) -> Option<Bytes> {
        if !self.holds(record) {
            return None;
        }
        let (start, end) =
            ((record.start - self.start) as usize, (record.end - self.start) as usize);
        self.reader.value_in(user_key, index, self.held.part(start..end), verify).ok()
    }

    /// Reads a window of at most `largest` bytes, or the record alone if that is larger; whether
    /// there is one now.
    fn fetch(&mut self, record: &Range<u64>, largest: usize) -> bool {
        let length = record.end - record.start;
        if length > KEPT_BYTES_MAX as u64 {
            self.held = Buffer::default();
            return false;
        }
        // Whole records, as long as they are all of one size: what is cut off at the end is read
        // again.
        let window = self.window.min(largest) as u64;
        let wanted = length * (window / length).max(1);
        let file = self.reader.file().clone();
        let start = if self.backward {
            record.end.saturating_sub(wanted).max(HEADER_SIZE as u64)
        } else {
            record.start
        };
        let end = if self.backward {
            record.end
        } else {
            (start + wanted).min(self.reader.records_end())
        };
        self.start = start;
        self.window = (self.window * 2).min(self.windows.1);
        // Why it failed, if it did, the read of the record alone will tell.
        let is_read = self.held.fill(&*file, start, (end - start) as usize).is_ok();
        if is_read && end - start > length {
            Sometimes::BlobsReadAhead.reached();
        }
        if is_read && !self.backward {
            self.hint(&*file, end, end - start);
        }
        is_read
    }

    /// Has the system fetch what comes behind a window.
    fn hint(&mut self, file: &dyn RandomAccessFile, end: u64, window: u64) {
        let reach = window * WINDOWS_HINTED;
        let from = if (end..=end + reach).contains(&self.hinted) { self.hinted } else { end };
        let to = (end + reach).min(self.reader.records_end());
        // Not each time: a few large pieces are cheaper.
        let is_last = to == self.reader.records_end() && to > from;
        if !file.is_direct() && (is_last || to.saturating_sub(from) > reach / 2) {
            file.advise(Advice::WillNeed { offset: from, length: to - from });
            self.hinted = to;
        }
    }
}

impl Buffer {
    /// Reads `length` bytes; fewer at the file's end. What was handed out before must be dropped if
    /// its memory is to be used again.
    fn fill(&mut self, file: &dyn RandomAccessFile, offset: u64, length: usize) -> Result<()> {
        // Not that of one huge value for a small one.
        let is_fit = (length..=KEPT_BYTES_MAX.max(length)).contains(&self.memory.len());
        let kept = std::mem::take(&mut self.memory).try_into_mut().ok().filter(|_| is_fit);
        let mut memory = kept.unwrap_or_else(|| BytesMut::zeroed(length));
        self.filled = 0;
        let time = count_read(length);
        let read = file.read_at(offset, &mut memory[..length]);
        drop(time);
        self.memory = memory.freeze();
        self.filled = read?;
        Ok(())
    }

    fn part(&self, range: Range<usize>) -> Bytes {
        self.memory.slice(range)
    }
}

//! Progress and cancellation of a requested compaction.

use std::sync::Arc;

use crate::base::sync::{AtomicBool, Mutex, Ordering};

/// Reports the progress of a requested compaction to other threads, and cancels it. It is passed in
/// [`CompactRangeOptions::control`](super::CompactRangeOptions::control) or
/// [`CompactFilesOptions::control`](super::CompactFilesOptions::control), to one call at a time.
///
/// ```
/// use flagstone::db::Db;
/// use flagstone::env::Env;
/// use flagstone::options::{CompactRangeOptions, CompactionControl, Options};
///
/// # fn main() -> flagstone::base::Result<()> {
/// let mut options = Options { env: Env::memory(), ..Options::default() };
/// options.create_if_missing = true;
/// let db = Db::open("/photos", &options)?;
/// db.put("cat", "a picture")?;
/// let control = CompactionControl::new();
/// let options = CompactRangeOptions { control: Some(control.clone()), ..Default::default() };
/// // Another thread may call these at any time.
/// println!("{} of {} bytes", control.progress().bytes_done, control.progress().bytes_total);
/// control.cancel();
/// let outcome = db.compact_range(db.default_column_family(), None, None, &options);
/// assert_eq!(outcome.unwrap_err().code(), flagstone::base::Code::Incomplete);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct CompactionControl {
    is_canceled: AtomicBool,
    work: Mutex<Work>,
}

/// Progress of a compaction, in bytes of the tables that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompactionProgress {
    /// Bytes processed so far.
    pub bytes_done: u64,
    /// Estimate of all bytes to be read. It may count tables that turn out not to need rewriting,
    /// and grows with tables written in the meantime.
    pub bytes_total: u64,
}

#[derive(Debug, Default)]
struct Work {
    /// Bytes in the pieces that have ended.
    done: u64,
    total: u64,
    /// The running piece: bytes of its tables, bytes of the entries in them, and bytes of the
    /// entries read so far.
    piece: u64,
    entries: u64,
    read: u64,
}

impl CompactionControl {
    /// A control that has not been used.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Ends the compaction soon. The call returns `Incomplete` and deletes its unfinished output;
    /// finished parts stay, as with any other compaction. Later calls with this control end at
    /// once.
    pub fn cancel(&self) {
        self.is_canceled.store(true, Ordering::Release);
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_canceled(&self) -> bool {
        self.is_canceled.load(Ordering::Acquire)
    }

    /// How far the compaction has come.
    pub fn progress(&self) -> CompactionProgress {
        let work = self.work.lock();
        let part = work.piece as f64 * (work.read as f64 / work.entries.max(1) as f64).min(1.0);
        let bytes_done = work.done.saturating_add(part as u64);
        CompactionProgress { bytes_done, bytes_total: work.total.max(bytes_done) }
    }

    /// A call begins that will read about `total` bytes.
    pub(crate) fn begin(&self, total: u64) {
        *self.work.lock() = Work { total, ..Work::default() };
    }

    /// A piece of the work begins: `piece` bytes of tables with `entries` bytes of entries.
    pub(crate) fn begin_piece(&self, piece: u64, entries: u64) {
        let mut work = self.work.lock();
        *work = Work { piece, entries, read: 0, ..*work };
    }

    /// Another `bytes` bytes of entries were read.
    pub(crate) fn note_read(&self, bytes: u64) {
        let mut work = self.work.lock();
        work.read = work.read.saturating_add(bytes);
    }

    /// The piece has ended; `is_done` tells whether it succeeded.
    pub(crate) fn end_piece(&self, is_done: bool) {
        let mut work = self.work.lock();
        let gained = if is_done { work.piece } else { 0 };
        *work =
            Work { done: work.done.saturating_add(gained), total: work.total, ..Work::default() };
    }

    /// The call has succeeded.
    pub(crate) fn end(&self) {
        let mut work = self.work.lock();
        *work = Work { done: work.done, total: work.done, ..Work::default() };
    }
}

/// Controls are equal if they are the same one.
impl PartialEq for CompactionControl {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

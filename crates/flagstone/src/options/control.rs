//! Following a compaction that somebody asked for, and ending it.

use std::sync::Arc;

use crate::base::sync::{AtomicBool, Mutex, Ordering};

/// Follows a manual compaction from another thread, and ends it: given along in
/// [`CompactRangeOptions::control`](super::CompactRangeOptions::control) or
/// [`CompactFilesOptions::control`](super::CompactFilesOptions::control), for one call at a time.
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

/// How far a compaction is, in bytes of the tables that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompactionProgress {
    /// What it has dealt with.
    pub bytes_done: u64,
    /// All that it will have read, an estimate: tables that need not be rewritten may turn out to
    /// be among them, and what is written meanwhile comes on top.
    pub bytes_total: u64,
}

#[derive(Debug, Default)]
struct Work {
    /// In the pieces that have ended.
    done: u64,
    total: u64,
    /// Bytes of the tables of the piece that is running, of the entries in them, and of those that
    /// were read.
    piece: u64,
    entries: u64,
    read: u64,
}

impl CompactionControl {
    /// One that has not been used.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Ends the compaction soon: its call returns `Incomplete`, and what it was writing is removed.
    /// What it has finished stays, as compactions that were not canceled leave it. A call that
    /// begins later with this control ends at once.
    pub fn cancel(&self) {
        self.is_canceled.store(true, Ordering::Release);
    }

    /// Whether it was canceled.
    pub fn is_canceled(&self) -> bool {
        self.is_canceled.load(Ordering::Acquire)
    }

    /// How far the compaction is.
    pub fn progress(&self) -> CompactionProgress {
        let work = self.work.lock();
        let part = work.piece as f64 * (work.read as f64 / work.entries.max(1) as f64).min(1.0);
        let bytes_done = work.done.saturating_add(part as u64);
        CompactionProgress { bytes_done, bytes_total: work.total.max(bytes_done) }
    }

    /// A call begins that will read about so many bytes.
    pub(crate) fn begin(&self, total: u64) {
        *self.work.lock() = Work { total, ..Work::default() };
    }

    /// A piece begins: bytes of its tables, and of the entries in them.
    pub(crate) fn begin_piece(&self, piece: u64, entries: u64) {
        let mut work = self.work.lock();
        *work = Work { piece, entries, read: 0, ..*work };
    }

    /// So many more bytes of entries were read.
    pub(crate) fn note_read(&self, bytes: u64) {
        let mut work = self.work.lock();
        work.read = work.read.saturating_add(bytes);
    }

    /// The piece has ended, well or not.
    pub(crate) fn end_piece(&self, is_done: bool) {
        let mut work = self.work.lock();
        let gained = if is_done { work.piece } else { 0 };
        *work =
            Work { done: work.done.saturating_add(gained), total: work.total, ..Work::default() };
    }

    /// The call has ended well.
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

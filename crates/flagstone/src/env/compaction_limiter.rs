//! A limit on the compactions that run at the same time, of several families or databases.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

/// Limits how many automatic compactions of the families that share it run at the same time
/// ([`ColumnFamilyOptions::compaction_limiter`](crate::ColumnFamilyOptions)), in one database or in
/// several. Compactions that a caller asks for count, but do not wait. Compactions that only move
/// or drop tables do neither.
///
/// With a limit of 0 writers stop at `level0_stop_writes_trigger` tables, and
/// `wait_for_compactions` does not return. A compaction filter or listener that writes to another
/// database under the same limit can wait for ever, because the writes may wait for a compaction
/// that its own keeps from running.
///
/// A family that has to wait is looked at again when a compaction of its own database ends, and
/// otherwise within about two seconds.
///
/// ```
/// use std::sync::Arc;
/// use flagstone::{CompactionLimiter, Options};
///
/// let one_at_a_time = Arc::new(CompactionLimiter::new(Some(1)));
/// let mut options = Options::default();
/// options.cf.compaction_limiter = Some(one_at_a_time.clone());
/// // Later, at night:
/// one_at_a_time.set_limit(None);
/// assert_eq!(one_at_a_time.running(), 0);
/// ```
#[doc(alias = "ConcurrentTaskLimiter")]
#[doc(alias = "compaction_thread_limiter")]
pub struct CompactionLimiter(Mutex<Count>);

struct Count {
    limit: Option<usize>,
    running: usize,
}

/// A compaction that counts until this is dropped.
pub(crate) struct CompactionPermit(Arc<CompactionLimiter>);

impl Count {
    fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.running >= limit)
    }
}

impl CompactionLimiter {
    /// At most `limit` at the same time; any number with `None`, and none with 0.
    pub fn new(limit: Option<usize>) -> Self {
        Self(Mutex::new(Count { limit, running: 0 }))
    }

    /// Changes the limit. Compactions that run go on.
    #[doc(alias = "SetMaxOutstandingTask")]
    pub fn set_limit(&self, limit: Option<usize>) {
        self.0.lock().limit = limit;
    }

    /// How many compactions run.
    #[doc(alias = "GetOutstandingTask")]
    pub fn running(&self) -> usize {
        self.0.lock().running
    }

    /// Whether the limit allows no other compaction now.
    pub(crate) fn is_full(&self) -> bool {
        self.0.lock().is_full()
    }

    /// Counts another compaction, if the limit allows it.
    pub(crate) fn try_begin(self: &Arc<Self>) -> Option<CompactionPermit> {
        let mut count = self.0.lock();
        if count.is_full() {
            return None;
        }
        count.running += 1;
        Some(CompactionPermit(self.clone()))
    }

    /// Counts another compaction, whatever the limit.
    pub(crate) fn begin(self: &Arc<Self>) -> CompactionPermit {
        self.0.lock().running += 1;
        CompactionPermit(self.clone())
    }
}

impl Drop for CompactionPermit {
    fn drop(&mut self) {
        self.0.0.lock().running -= 1;
    }
}

impl fmt::Debug for CompactionLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock();
        f.debug_struct("CompactionLimiter")
            .field("limit", &count.limit)
            .field("running", &count.running)
            .finish()
    }
}

//! Compactions pause while flushes run, so that no more jobs work at a time than a database may
//! have.
//!
//! All jobs may be compactions: a database that reserved one for flushes would leave a processor
//! idle most of the time while writers wait for compactions. A flush cannot wait until a compaction
//! has ended. So it begins at once, and a compaction pauses at its next entry while the flush
//! works. A working flush waits for no compaction, so each pause ends. Callbacks about a flush, and
//! a flush's wait for another flush, do not count as work and keep no compaction waiting.

use crate::base::Sometimes;
use crate::base::sync::{AtomicUsize, Condvar, Mutex, Ordering};

/// The jobs of one database beyond those that it may have.
#[derive(Debug, Default)]
pub struct Seats {
    /// How many compactions are to pause that have not. A hint, read without the lock.
    wanted: AtomicUsize,
    state: Mutex<Pauses>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct Pauses {
    /// Compactions that run, paused or not.
    compactions: usize,
    /// Jobs that may work at a time.
    together: usize,
    /// Flushes that work.
    flushing: usize,
    /// Compactions that have ever paused,
    came: u64,
    /// and those of them that may go on, in the order in which they came: whatever is asked for
    /// before they wake.
    released: u64,
}

/// A flush that works.
pub(crate) struct Flushing<'a>(&'a Seats);

impl Seats {
    /// So many compactions run, and so many jobs may work at a time.
    pub(super) fn set_running(&self, compactions: usize, together: usize) {
        self.change(|state| (state.compactions, state.together) = (compactions, together));
    }

    /// A flush works for as long as the caller has this.
    pub(crate) fn flush(&self) -> Flushing<'_> {
        self.change(|state| state.flushing += 1);
        Flushing(self)
    }

    fn change(&self, change: impl FnOnce(&mut Pauses)) {
        let mut state = self.state.lock();
        change(&mut state);
        let go_on = state.paused().saturating_sub(state.owed());
        if go_on > 0 {
            state.released += go_on as u64;
            self.released.notify_all();
        }
        self.tell(&state);
    }

    /// Called by a compaction between two entries: pauses if a flush wants that.
    #[inline]
    pub(crate) fn make_room(&self) {
        if self.wanted.load(Ordering::Relaxed) > 0 {
            self.pause();
        }
    }

    #[cold]
    fn pause(&self) {
        let mut state = self.state.lock();
        if state.paused() >= state.owed() {
            return;
        }
        Sometimes::CompactionPaused.reached();
        let before = state.came;
        state.came += 1;
        self.tell(&state);
        while state.released <= before {
            self.released.wait(&mut state);
        }
    }

    fn tell(&self, state: &Pauses) {
        self.wanted.store(state.owed().saturating_sub(state.paused()), Ordering::Relaxed);
    }

    /// How many compactions are to pause.
    #[cfg(test)]
    pub(super) fn owed(&self) -> usize {
        self.state.lock().owed()
    }

    #[cfg(test)]
    pub(super) fn paused(&self) -> usize {
        self.state.lock().paused()
    }
}

impl Pauses {
    /// How many compactions pause.
    fn paused(&self) -> usize {
        (self.came - self.released) as usize
    }

    /// How many compactions are to pause. Where fewer jobs may run than before, those that run go
    /// on, but for flushes.
    fn owed(&self) -> usize {
        let working = self.compactions.saturating_add(self.flushing);
        working.saturating_sub(self.together).min(self.flushing).min(self.compactions)
    }
}

impl Drop for Flushing<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.flushing -= 1);
    }
}

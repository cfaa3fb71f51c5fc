//! Compactions pause while flushes have their turn, so that no more jobs run at a time than a database may have.
//!
//! All of these may be compactions: a database that kept one for flushes would leave a processor idle most of the time, while
//! writers wait for compactions. A flush cannot wait until a compaction has ended, so it begins at once, and a compaction pauses
//! at its next entry until the flush has ended. A flush waits for no compaction, so each pause ends.

use crate::base::Sometimes;
use crate::base::sync::{AtomicUsize, Condvar, Mutex, Ordering};

/// The jobs of one database beyond those that it may have.
#[derive(Debug, Default)]
pub struct Seats {
    /// How many compactions are to pause that have not. A hint, read without the lock.
    wanted: AtomicUsize,
    state: Mutex<Pauses>,
    fewer: Condvar,
}

#[derive(Debug, Default)]
struct Pauses {
    /// How many are to pause.
    owed: usize,
    /// How many do.
    paused: usize,
}

impl Seats {
    /// So many more jobs run than may.
    pub(super) fn set_owed(&self, owed: usize) {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut state.owed, owed);
        self.tell(&state);
        if owed < before {
            self.fewer.notify_all();
        }
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
        if state.paused >= state.owed {
            return;
        }
        Sometimes::CompactionPaused.reached();
        state.paused += 1;
        self.tell(&state);
        while state.paused <= state.owed {
            self.fewer.wait(&mut state);
        }
        state.paused -= 1;
        self.tell(&state);
    }

    #[cfg(test)]
    pub(super) fn owed(&self) -> usize {
        self.state.lock().owed
    }

    #[cfg(test)]
    pub(super) fn paused(&self) -> usize {
        self.state.lock().paused
    }

    fn tell(&self, state: &Pauses) {
        self.wanted.store(state.owed.saturating_sub(state.paused), Ordering::Relaxed);
    }
}

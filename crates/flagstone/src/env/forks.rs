//! Whether this is still the process that opened a database.
//!
//! A forked child has the parent's memory and file descriptors, but none of its other threads. It
//! must neither write the parent's files nor release its locks, and would wait for threads that
//! there are not. So a database remembers the process that opened it, and refuses any other. Such a
//! child can have no database of its own either: the queues of waiting threads that it has
//! inherited name threads that it has not, and its own would wait for ever.
//!
//! A counter of forks is cheaper than the number of the process, which the system must be asked
//! for: a child finds it one higher (`pthread_atfork`). Of a child that was made by a bare `clone`
//! it knows nothing. Where there is no such handler, the number of the process is compared.

#[cfg(all(target_os = "linux", not(miri)))]
use counted as way;
#[cfg(not(all(target_os = "linux", not(miri))))]
use numbered as way;

use crate::base::{Error, Result};

/// A process, as far as it is this one or another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// This one.
    pub(crate) fn this() -> Self {
        way::prepare();
        Self(way::now())
    }

    /// Whether it is this one still.
    #[inline]
    pub(crate) fn is_this(self) -> bool {
        way::now() == self.0
    }

    /// Refuses what belongs to another process.
    ///
    /// # Errors
    /// `NotSupported`.
    #[inline]
    pub(crate) fn check(self) -> Result<()> {
        if self.is_this() { Ok(()) } else { Err(is_forked()) }
    }
}

#[cold]
fn is_forked() -> Error {
    Error::not_supported(
        "the database was opened by the process that this one was forked from; fork before the first database is opened",
    )
}

#[cfg(all(target_os = "linux", not(miri)))]
mod counted {
    use std::sync::Once;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// How many forks lie between this process and the first that asked.
    static FORKS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn note_fork() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn prepare() {
        static ASKED: Once = Once::new();
        ASKED.call_once(|| {
            // SAFETY: `note_fork` lives as long as the program, takes nothing, and does nothing in
            // the child but add to an atomic number, which is allowed between fork and exec.
            #[expect(unsafe_code, reason = "neither std nor rustix tells of a fork")]
            let outcome = unsafe { libc::pthread_atfork(None, None, Some(note_fork)) };
            if outcome != 0 {
                tracing::warn!(outcome, "children of this process cannot be told from it");
            }
        });
    }

    #[inline]
    pub(super) fn now() -> u32 {
        FORKS.load(Ordering::Relaxed)
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod numbered {
    pub(super) fn prepare() {}

    #[inline]
    pub(super) fn now() -> u32 {
        std::process::id()
    }
}

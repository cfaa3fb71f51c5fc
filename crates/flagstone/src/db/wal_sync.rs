//! Syncing the WAL for many writers at once.
//!
//! **Algorithm.**
//! 1. A writer that wants durability up to sequence S comes here after it has left the commit lock.
//! 2. If a sync is running it waits; whoever finds none running elects itself.
//! 3. The elected one notes, under the commit lock, the last sequence written and the files it may lie in, syncs
//!    them oldest first, publishes that sequence, and wakes everybody; most find their own sequence covered.
//!
//! **Invariant.** A write that asked for a sync, and everything after it, is published only after its sync: no
//! reader sees what a power failure may still take back from somebody who asked for more.

use crate::base::sync::{Condvar, Mutex};
use crate::base::{Result, SequenceNumber, Sometimes};

/// Who is syncing, and what is synced.
#[derive(Default)]
pub(super) struct WalSync {
    running: Mutex<Running>,
    finished: Condvar,
    /// Held while WALs are synced: the system tells of a failure only once, so whoever syncs a file next must know.
    pub(super) one_at_a_time: Mutex<()>,
}

#[derive(Default)]
struct Running {
    elected: bool,
    synced: SequenceNumber,
}

impl WalSync {
    /// Returns once everything up to `sequence` is synced; `sync_all` syncs and returns up to where.
    ///
    /// # Errors
    /// That of `sync_all`, to the elected writer; the others call `sync_all` again, which then reports the poison.
    pub(super) fn wait_for(
        &self,
        sequence: SequenceNumber,
        sync_all: impl Fn() -> Result<SequenceNumber>,
    ) -> Result<()> {
        let mut running = self.running.lock();
        loop {
            if running.synced >= sequence {
                return Ok(());
            }
            if running.elected {
                Sometimes::SyncShared.reached();
                self.finished.wait(&mut running);
                continue;
            }
            running.elected = true;
            drop(running);
            let outcome = sync_all();
            running = self.running.lock();
            running.elected = false;
            if let Ok(upto) = outcome {
                running.synced = running.synced.max(upto);
            }
            self.finished.notify_all();
            outcome?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn one_sync_serves_everybody_before_it() {
        let (sync, syncs) = (WalSync::default(), AtomicU64::new(0));
        let sync_to_ten = || {
            syncs.fetch_add(1, Ordering::Relaxed);
            Ok(10)
        };
        for sequence in [3, 10, 7] {
            sync.wait_for(sequence, sync_to_ten).unwrap();
        }
        assert_eq!(syncs.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_failed_sync_is_nobodys_success() {
        let sync = WalSync::default();
        let failing = || Err(crate::base::Error::corruption("no"));
        assert!(sync.wait_for(1, failing).is_err());
        assert!(sync.wait_for(1, failing).is_err());
    }
}

//! Syncing the WAL for many writers at once.
//!
//! **Algorithm.**
//! 1. A writer that wants durability up to sequence S comes here after it has left the commit lock.
//! 2. If a sync is running it waits for the end of that round; whoever finds none running elects itself.
//! 3. The elected one lets those come whom the round before has set free, unless that was in vain lately ([`Muster`]):
//!    otherwise half of the writers would always miss the sync that the other half has just begun.
//! 4. Under the commit lock it writes the records that wait in memory, and notes the last sequence and the files it may lie
//!    in. It syncs these oldest first, publishes that sequence, and wakes everybody with one call; most find their own
//!    sequence covered.
//!
//! **Invariant.** A write that asked for a sync, and everything after it, is published only after its sync: no
//! reader sees what a power failure may still take back from somebody who asked for more.

use crate::base::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, Rounds, yield_now};
use crate::base::{Result, SequenceNumber, Sometimes};
use crate::env::Clock;

/// Who is syncing, and what is synced.
#[derive(Default)]
pub(in crate::db) struct WalSync {
    synced: AtomicU64,
    elected: AtomicBool,
    rounds: Rounds,
    /// Writers that came since the last sync began.
    arrived: AtomicUsize,
    muster: Mutex<Muster>,
    /// Held while WALs are synced: the system tells of a failure only once, so whoever syncs a file next must know.
    pub(in crate::db) one_at_a_time: Mutex<()>,
}

impl WalSync {
    /// Returns once everything up to `sequence` is synced; `sync_all` syncs and returns up to where.
    ///
    /// # Errors
    /// That of `sync_all`, to the elected writer; the others call `sync_all` again, which then reports the poison.
    pub(in crate::db) fn wait_for(
        &self,
        sequence: SequenceNumber,
        clock: &dyn Clock,
        sync_all: impl Fn() -> Result<SequenceNumber>,
    ) -> Result<()> {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        loop {
            // Before the election: a round that ends after this look is not waited for.
            let round = self.rounds.now();
            if self.synced.load(Ordering::Acquire) >= sequence {
                return Ok(());
            }
            if self.elected.swap(true, Ordering::AcqRel) {
                Sometimes::SyncShared.reached();
                self.rounds.wait_beyond(round);
                continue;
            }
            let _elected = Elected(self);
            // The round before may have ended between the look and the election.
            if self.synced.load(Ordering::Acquire) < sequence {
                self.lead(clock, &sync_all)?;
            }
        }
    }

    /// Syncs for all who are here.
    fn lead(&self, clock: &dyn Clock, sync_all: &impl Fn() -> Result<SequenceNumber>) -> Result<()> {
        let mut muster = self.muster.lock();
        let deadline = clock.now_us() + muster.patience_us();
        let is_complete = || self.arrived.load(Ordering::Acquire) >= muster.expected;
        while !is_complete() && clock.now_us() < deadline {
            yield_now();
        }
        let complete = is_complete();
        let covered = self.arrived.swap(0, Ordering::AcqRel);
        let start = clock.now_us();
        let upto = sync_all()?;
        let took_us = clock.now_us() - start;
        self.synced.fetch_max(upto, Ordering::AcqRel);
        muster.note(complete, covered + self.arrived.load(Ordering::Acquire), took_us);
        Ok(())
    }
}

/// Ends the round, however it went.
struct Elected<'a>(&'a WalSync);

impl Drop for Elected<'_> {
    fn drop(&mut self) {
        self.0.elected.store(false, Ordering::Release);
        self.0.rounds.advance();
    }
}

/// How long it pays to wait for writers before a sync.
#[derive(Debug, Default, PartialEq, Eq)]
struct Muster {
    /// Writers that were here when the last sync ended.
    expected: usize,
    /// How long the last sync took.
    sync_us: u64,
    /// Waits one after the other that were in vain.
    in_vain: u32,
    /// Syncs that begin without a wait, for that reason.
    without: u32,
}

/// Who waits keeps a core busy: after a sync that took a second nobody is waited for as long, least of all writers who are
/// delayed themselves.
const MOST_PATIENCE_US: u64 = 2_000;

/// With each wait in vain the syncs that go without one double, up to a quarter of two to the power of this.
const MOST_IN_VAIN: u32 = 8;

impl Muster {
    /// A wait as long as a sync is worth it, since who misses this one waits for two. A shorter one is not: writers who have to
    /// be woken first would always miss it.
    fn patience_us(&self) -> u64 {
        match self.without {
            0 => self.sync_us.min(MOST_PATIENCE_US),
            _ => 0,
        }
    }

    /// Notes whether all came in time, how many writers there are now, and how long the sync took.
    fn note(&mut self, complete: bool, writers: usize, sync_us: u64) {
        if self.without > 0 {
            self.without -= 1;
        } else if complete {
            self.in_vain = 0;
        } else {
            self.in_vain = (self.in_vain + 1).min(MOST_IN_VAIN);
            // One late writer, or two, are no reason yet.
            self.without = (1 << self.in_vain) / 4;
        }
        (self.expected, self.sync_us) = (writers, sync_us);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::env::Env;

    #[test]
    fn one_sync_serves_everybody_before_it() {
        let (sync, syncs, clock) = (WalSync::default(), AtomicU64::new(0), Env::memory().clock);
        let sync_to_ten = || {
            syncs.fetch_add(1, Ordering::Relaxed);
            Ok(10)
        };
        for sequence in [3, 10, 7] {
            sync.wait_for(sequence, &*clock, sync_to_ten).unwrap();
        }
        assert_eq!(syncs.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_failed_sync_is_nobodys_success() {
        let (sync, clock) = (WalSync::default(), Env::memory().clock);
        let failing = || Err(crate::base::Error::corruption("no"));
        assert!(sync.wait_for(1, &*clock, failing).is_err());
        assert!(sync.wait_for(1, &*clock, failing).is_err());
    }

    #[test]
    fn nobody_is_waited_for_in_vain_for_long() {
        let mut muster = Muster::default();
        assert_eq!(muster.patience_us(), 0);
        muster.note(true, 16, 400);
        assert_eq!((muster.expected, muster.patience_us()), (16, 400));
        let waits = (0..1_000).filter(|_| {
            let waits = muster.patience_us() > 0;
            muster.note(false, 16, 400);
            waits
        });
        assert_eq!(waits.count(), 8 + 14, "each wait in vain doubles the rounds to the next, up to 64");
        muster.note(true, 16, 1_000_000);
        assert!(muster.patience_us() <= 2_000, "a disk that stood still");
    }

    /// Once patience shrank with each wait in vain, and what was left of it was too short for anybody to come: a single late
    /// writer split sixteen into two groups for good, each of which missed the other's sync.
    #[test]
    fn late_writers_are_waited_for_again() {
        let mut muster = Muster::default();
        muster.note(true, 16, 400);
        // Writers need three quarters of a sync to wake up and write; three times something else comes between.
        for _ in 0..3 {
            muster.note(false, 16, 400);
        }
        for _ in 0..2 {
            let complete = muster.patience_us() >= 300;
            muster.note(complete, 16, 400);
        }
        assert_eq!(muster.patience_us(), 400);
        for _ in 0..100 {
            assert_eq!(muster.patience_us(), 400);
            muster.note(true, 16, 400);
        }
    }
}

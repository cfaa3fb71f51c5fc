//! Syncing the WAL for many writers at once.
//!
//! **Algorithm.**
//! 1. A writer that wants durability up to sequence S comes here after it has left the commit lock.
//! 2. If a sync is running it waits for the end of that round; whoever finds none running elects
//!    itself.
//! 3. The elected one lets those come whom the round before has set free, unless that was in vain
//!    lately ([`SyncWait`]): otherwise half of the writers would always miss the sync that the
//!    other half has just begun.
//! 4. Under the commit lock it writes the records that wait in memory, and notes the last sequence
//!    and the files it may lie in. It syncs these oldest first, publishes that sequence, and wakes
//!    everybody with one call; most find their own sequence covered.
//! 5. Closing, and a switch of a memtable while a sync is pending, sync by the same rules with the
//!    commit lock held; a flush syncs the WALs before the active one.
//!
//! What a sync covers may still be inserted into memtables meanwhile: who leads waits for that,
//! too, before it publishes.
//!
//! **Invariant.** A write that asked for a sync, and everything after it, is published only after
//! its sync: no reader sees what a power failure may still take back from somebody who asked for
//! more.

use std::sync::Arc;

use crate::base::perf::{self, PerfMetric};
use crate::base::sync::{
    AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, Rank, Rounds, ranked, yield_now,
};
use crate::base::{Mutant, Result, SequenceNumber, Sometimes};
use crate::db::writing::commit::Commit;
use crate::db::writing::pipeline::Pipeline;
use crate::env::{Clock, WritableFile};
use crate::options::BackgroundErrorReason;

/// Who is syncing, and what is synced.
pub(in crate::db) struct WalSync {
    synced: AtomicU64,
    elected: AtomicBool,
    rounds: Rounds,
    /// Writers that came since the last sync began.
    arrived: AtomicUsize,
    sync_wait: Mutex<SyncWait>,
}

impl Default for WalSync {
    fn default() -> Self {
        Self {
            synced: AtomicU64::new(0),
            elected: AtomicBool::new(false),
            rounds: Rounds::default(),
            arrived: AtomicUsize::new(0),
            sync_wait: ranked(Rank::SyncLead, SyncWait::default()),
        }
    }
}

impl WalSync {
    /// Returns once everything up to `sequence` is synced; `sync_all` syncs and returns up to
    /// where.
    ///
    /// # Errors
    /// That of `sync_all`, to the elected writer; the others call `sync_all` again, which then
    /// reports the poison.
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
                let _time = perf::time(PerfMetric::WriteThreadWaitNanos);
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
    fn lead(
        &self,
        clock: &dyn Clock,
        sync_all: &impl Fn() -> Result<SequenceNumber>,
    ) -> Result<()> {
        let mut sync_wait = self.sync_wait.lock();
        let deadline = clock.now_us() + sync_wait.patience_us();
        let is_complete = || self.arrived.load(Ordering::Acquire) >= sync_wait.expected;
        while !is_complete() && clock.now_us() < deadline {
            yield_now();
        }
        let complete = is_complete();
        let covered = self.arrived.swap(0, Ordering::AcqRel);
        let start = clock.now_us();
        let upto = sync_all()?;
        let took_us = clock.now_us() - start;
        self.synced.fetch_max(upto, Ordering::AcqRel);
        sync_wait.note(complete, covered + self.arrived.load(Ordering::Acquire), took_us);
        Ok(())
    }
}

/// Ends the round, however it went.
struct Elected<'a>(&'a WalSync);

impl Drop for Elected<'_> {
    fn drop(&mut self) {
        // In this order: a writer that saw the next round and lost the election would sleep for a
        // round that no writer leads.
        self.0.elected.store(false, Ordering::Release);
        self.0.rounds.advance();
    }
}

/// How long it pays to wait for writers before a sync.
#[derive(Debug, Default, PartialEq, Eq)]
struct SyncWait {
    /// Writers that were here when the last sync ended.
    expected: usize,
    /// How long the last sync took.
    sync_us: u64,
    /// Waits one after the other that were in vain.
    in_vain: u32,
    /// Syncs that begin without a wait, for that reason.
    without: u32,
}

/// Who waits keeps a core busy: after a sync that took a second nobody is waited for as long, least
/// of all writers who are delayed themselves.
const MOST_PATIENCE_US: u64 = 2_000;

/// With each wait in vain the syncs that go without one double, up to a quarter of two to the power
/// of this.
const MOST_IN_VAIN: u32 = 8;

impl SyncWait {
    /// A wait as long as a sync is worth it, since who misses this one waits for two. A shorter one
    /// is not: writers who have to be woken first would always miss it.
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

impl Pipeline {
    /// Brings what waits in memory into the active WAL's file. The WALs before it have no such
    /// records: they were cut.
    pub(in crate::db) fn flush_log(&self, commit: &mut Commit) -> Result<()> {
        self.context.poison.check_fatal()?;
        commit.wal()?.flush().inspect_err(|error| self.tree.fail_unless_full(error))
    }

    /// The same before a sync. What a full disk refuses waits on, unless somebody waits for the
    /// sync: that write is in the memtables, and were it refused, the next sync would show it all
    /// the same.
    pub(in crate::db) fn write_gathered(&self, commit: &mut Commit) -> Result<()> {
        let is_awaited = self.is_sync_awaited(commit);
        commit.wal()?.write_gathered().inspect_err(|error| {
            if is_awaited {
                self.tree.fail(BackgroundErrorReason::Write, error)
            } else {
                self.tree.fail_unless_full(error)
            }
        })
    }

    /// Syncs every WAL with unsynced bytes, publishes what was written before, and returns up to
    /// where.
    pub(in crate::db) fn sync_and_publish(&self) -> Result<SequenceNumber> {
        let (blobs, files, last, unnumbered, turn) = {
            let mut commit = self.commit.lock();
            if let Some(outcome) = &commit.end.synced {
                return outcome.clone();
            }
            // What waits here is in the log and in the memtables: a disk found full since then must
            // not refuse it.
            self.context.poison.check_fatal()?;
            self.write_gathered(&mut commit)?;
            let active = commit.wal()?.file().clone();
            let older = commit.debt.logs.iter().map(|(_, file)| file.clone());
            let files = older.chain([active]).collect::<Vec<_>>();
            let last = commit.numbers.last;
            let turn = commit.turns.next();
            (commit.debt.blobs.all(last), files, last, commit.numbers.unnumbered, turn)
        };
        let time = perf::time(PerfMetric::WriteWalTime);
        let synced = self.syncs.sync_blobs(&blobs).and_then(|()| self.syncs.sync_wals(&files));
        drop(time);
        if let Err(error) = synced {
            self.tree.fail(BackgroundErrorReason::Write, &error);
            return Err(error);
        }
        self.insertions.wait_for_turns_before(turn)?;
        let mut commit = self.commit.lock();
        let last = if Mutant::AcknowledgeBehindSync.is_on() { commit.numbers.last } else { last };
        commit.debt.blobs.synced(&blobs);
        let older = files.len() - 1;
        let covered = files[..older].to_vec();
        commit
            .debt
            .logs
            .retain(|(_, file)| !covered.iter().any(|synced| Arc::ptr_eq(synced, file)));
        commit.numbers.unnumbered_synced = commit.numbers.unnumbered_synced.max(unnumbered);
        self.insertions.publish(last);
        Ok(last)
    }

    /// The same with the commit lock held, when a memtable is switched while a sync is pending:
    /// afterwards all that the memtable holds is published, which flush relies on, and nobody is
    /// inserting.
    pub(in crate::db) fn sync_pending_writes(&self, commit: &mut Commit) -> Result<()> {
        if !Mutant::SwitchUnderWriters.is_on() {
            self.insertions.wait_for_all(&commit.turns)?;
        }
        if !self.is_sync_awaited(commit) {
            // Writers that waited for the sync of others may not have come round to it.
            self.insertions.publish(commit.numbers.last);
            return Ok(());
        }
        Sometimes::SwitchSynced.reached();
        let wal = commit.wal()?;
        let written = wal.write_gathered();
        let active = wal.file().clone();
        let older = commit.debt.logs.iter().map(|(_, file)| file.clone());
        let files: Vec<_> = older.chain([active]).collect();
        let last = commit.numbers.last;
        let blobs = commit.debt.blobs.all(last);
        let synced = written
            .and_then(|()| self.syncs.sync_blobs(&blobs))
            .and_then(|()| self.syncs.sync_wals(&files));
        if let Err(error) = synced {
            self.tree.fail(BackgroundErrorReason::Write, &error);
            return Err(error);
        }
        commit.debt.logs.clear();
        commit.debt.blobs.synced(&blobs);
        commit.numbers.unnumbered_synced = commit.numbers.unnumbered;
        self.insertions.publish(commit.numbers.last);
        Ok(())
    }

    /// The end of the last WAL, when the database is closed. Writes may be waiting for its sync:
    /// they hear of this one.
    pub(in crate::db) fn end_wal(&self) -> Result<()> {
        let mut commit = self.commit.lock();
        let Some(mut wal) = commit.log.writer.take() else { return Ok(()) };
        let cut = wal.cut();
        let last = commit.numbers.last;
        let blobs = self.syncs.sync_blobs(&commit.debt.blobs.all(last));
        let older = commit.debt.logs.drain(..).map(|(_, file)| file);
        let files: Vec<_> = older.chain([wal.file().clone()]).collect();
        let synced = blobs.and_then(|()| self.syncs.sync_wals(&files)).and(cut);
        let synced = synced.and(self.insertions.wait_for_all(&commit.turns));
        commit.end.synced = Some(synced.clone().map(|()| last));
        synced.inspect(|()| self.insertions.publish(last))
    }

    /// Syncs the WALs before the active one. A flush of one family of several does so before the
    /// MANIFEST says what it wrote: else a power failure could take from the other families what is
    /// older than what this one keeps.
    pub(in crate::db) fn sync_older_wals(&self) -> Result<()> {
        let (blobs, files) = {
            let mut commit = self.commit.lock();
            let files: Vec<_> = commit.debt.logs.iter().map(|(_, file)| file.clone()).collect();
            let (active, last) = (commit.log.number, commit.numbers.last);
            (commit.debt.blobs.before(active, last), files)
        };
        if let Err(error) =
            self.syncs.sync_blobs(&blobs).and_then(|()| self.syncs.sync_wals(&files))
        {
            self.tree.fail(BackgroundErrorReason::Write, &error);
            return Err(error);
        }
        let is_synced =
            |file: &Arc<dyn WritableFile>| files.iter().any(|synced| Arc::ptr_eq(synced, file));
        let mut commit = self.commit.lock();
        commit.debt.logs.retain(|(_, file)| !is_synced(file));
        commit.debt.blobs.synced(&blobs);
        Ok(())
    }
}

impl Pipeline {
    /// Brings what waits in memory into the WAL's file, and syncs it if asked to.
    pub(in crate::db) fn flush_wal(&self, sync: bool) -> Result<()> {
        self.context.process.check()?;
        if sync || self.context.read_only {
            self.context.check_syncable()?;
            return self.sync_wal();
        }
        // Also while a full disk refuses writes: what waits has its space.
        self.flush_log(&mut self.commit.lock())
    }

    /// Makes everything written so far durable.
    pub(in crate::db) fn sync_wal(&self) -> Result<()> {
        let (last, is_all) = {
            let mut commit = self.commit.lock();
            // Here, and not by the sync, which may find that its writes are synced already.
            self.flush_log(&mut commit)?;
            commit.numbers.sync_target = commit.numbers.last;
            (commit.numbers.last, commit.numbers.unnumbered == commit.numbers.unnumbered_synced)
        };
        if is_all {
            self.wal_sync.wait_for(last, &*self.context.env.clock, || self.sync_and_publish())
        } else {
            self.sync_and_publish().map(drop)
        }
    }
}

#[cfg(test)]
mod tests;

//! Switching memtables: a full one becomes immutable, a new one and a new WAL take over.

use std::sync::Arc;

use crate::base::perf::{self, PerfMetric};
use crate::base::sync::Ordering;
use crate::base::{ColumnFamilyId, FileNumber, Result, Sometimes};
use crate::batch::WriteBatch;
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::settings::memtable_settings;
use crate::db::tree::flushes::{OldestWal, WrittenTo};
use crate::db::tree::state::LiveWal;
use crate::db::writing::commit::Commit;
use crate::db::writing::pipeline::Pipeline;
use crate::options::FlushReason;
use crate::wal::PredecessorWal;

impl Pipeline {
    /// A new, empty memtable for a family.
    pub(in crate::db) fn new_memtable(&self, family: &Family) -> Arc<Generation> {
        let settings = memtable_settings(
            &self.context.settings.load(),
            &family.options.load(),
            &self.memtables.arenas,
        );
        Arc::new(Generation::new(family.order.clone(), &settings))
    }

    /// Keeps a WAL that was active earlier until the memtables are flushed that get its operations.
    #[cold]
    pub(super) fn keep_wal(&self, commit: &Commit, batch: &WriteBatch, wal: FileNumber) {
        let families = batch.iter().filter_map(|operation| operation.ok()?.family());
        for target in families.filter_map(|id| commit.target(id)) {
            self.tree.keep_wal(&target.to.mem, wal);
        }
    }

    /// Switches every memtable that wants it.
    pub(in crate::db) fn switch_wanted_memtables(&self, commit: &mut Commit) -> Result<()> {
        let _time = perf::time(PerfMetric::WriteSchedulingFlushesCompactionsTime);
        if self.memtables.is_any_full.swap(false, Ordering::AcqRel) {
            for target in commit.targets.values_mut() {
                if target.to.family.is_full(&target.to.mem) {
                    target.switch_wanted.get_or_insert(FlushReason::WriteBufferFull);
                }
            }
        }
        if self.wal_limit_reached(commit) {
            self.want_switch_of_oldest_wal(commit);
        }
        if self.memtables.bytes.get() >= self.limits.memtable_bytes() {
            commit.want_switch_of_largest(self.limits.memtable_bytes() / 2);
        } else if self.memtables.bytes.are_full_together() && self.memtables.bytes.takes_switch() {
            commit.want_switch_of_largest(0);
        }
        let wanted: Vec<ColumnFamilyId> = commit
            .targets
            .iter()
            .filter(|(_, target)| target.switch_wanted.is_some())
            .map(|(id, _)| *id)
            .collect();
        // Where the disk is full, the next writer tries again.
        commit.asked.switch = true;
        let mut reasons = commit.targets.values().filter_map(|target| target.switch_wanted);
        let reason = reasons.next().unwrap_or(FlushReason::WriteBufferFull);
        self.switch_memtables(commit, &wanted, reason)?;
        commit.asked.switch = false;
        self.tree.call();
        Ok(())
    }

    /// Switches the memtables of these families, with one new WAL for all. With `atomic_flush`,
    /// those of all families. `reason` is why, for those of which nothing else is known.
    pub(in crate::db) fn switch_memtables(
        &self,
        commit: &mut Commit,
        families: &[ColumnFamilyId],
        reason: FlushReason,
    ) -> Result<()> {
        if families.is_empty() {
            return Ok(());
        }
        let together: Vec<ColumnFamilyId>;
        let mut families = families;
        if self.tree.flushes_together() {
            together = commit.targets.keys().copied().collect();
            families = &together;
        }
        self.sync_pending_writes(commit)?;
        let ended = if commit.wal_size() > 0 { Some(self.roll_wal(commit)?) } else { None };
        let mut fresh = Vec::new();
        for id in families {
            let Some(target) = commit.targets.get_mut(id) else { continue };
            let reason = target.switch_wanted.take().unwrap_or(reason);
            if !target.to.mem.is_empty() {
                let mem = self.new_memtable(&target.to.family);
                fresh.push((*id, mem.clone(), reason));
                target.switch(mem, &self.memtables.bytes);
            }
        }
        commit.show_destinations(&self.memtables.shown);
        self.tree.seal(ended, commit.log.number, fresh);
        Ok(())
    }

    /// Ends the active WAL and starts the next; which ended.
    fn roll_wal(&self, commit: &mut Commit) -> Result<LiveWal> {
        // First: were the next one begun and this one's end not to be told from damage, recovery
        // might stop before it.
        commit.wal()?.cut().inspect_err(|error| self.tree.fail_unless_full(error))?;
        let number = self.tree.file_numbers.allocate();
        let writer = self.wals.create(number, &mut commit.log.unbegun)?;
        let ended = std::mem::replace(commit.wal()?, writer);
        let bytes = ended.offset();
        // What flushes have made superfluous needs no sync; kept open, it would keep its space on
        // the disk.
        let live = self.tree.live_wals();
        commit.debt.logs.retain(|(number, _)| live.iter().any(|(live, _)| live == number));
        commit.debt.logs.push((commit.log.number, ended.file().clone()));
        let ended = LiveWal { number: commit.log.number, bytes, created_here: true };
        commit.log.predecessor = Some(PredecessorWal {
            number: commit.log.number.0,
            size: bytes,
            last_sequence: commit.numbers.last,
        });
        commit.log.is_predecessor_noted = false;
        commit.log.number = number;
        self.wal_space.active_bytes.store(0, Ordering::Relaxed);
        Ok(ended)
    }

    /// Whether the memtables that take writes have so many bytes together that some are to be
    /// flushed.
    #[inline]
    pub(super) fn memtables_reach_limit(&self) -> bool {
        self.memtables.bytes.get() >= self.limits.memtable_bytes()
            || self.memtables.bytes.are_full_together()
    }

    /// Whether the WALs together have grown so large that families which keep the oldest must be
    /// flushed, or, beyond the cap, all. Asks once for each oldest WAL.
    pub(in crate::db) fn wal_limit_reached(&self, commit: &Commit) -> bool {
        let all = self.wal_space.older_bytes.load(Ordering::Relaxed) + commit.wal_size();
        if all <= self.wal_space.limit.load(Ordering::Relaxed) {
            return false;
        }
        let cap = self.wal_space.cap.load(Ordering::Relaxed);
        match self.wal_space.oldest.load(Ordering::Relaxed) {
            // There is only the active one, which ends then. Where nobody set a cap, a lone
            // family's write buffer does.
            0 => commit.targets.len() > 1 || cap < u64::MAX,
            oldest if all > cap => oldest != commit.asked.wal_cap,
            oldest => oldest != commit.asked.wal_limit,
        }
    }

    fn want_switch_of_oldest_wal(&self, commit: &mut Commit) {
        Sometimes::WalLimitReached.reached();
        let all = self.wal_space.older_bytes.load(Ordering::Relaxed) + commit.wal_size();
        // Beyond the cap there is no time for one after the other.
        let is_beyond = all > self.wal_space.cap.load(Ordering::Relaxed);
        let targets = commit.targets.iter();
        let memtables = targets.map(|(id, target)| WrittenTo {
            id: *id,
            is_empty: target.to.mem.is_empty(),
            is_wanted: target.switch_wanted.is_some(),
        });
        let OldestWal { oldest, to_switch, is_asked } = self.tree.ask_for_oldest_wal(
            commit.log.number,
            is_beyond,
            &memtables.collect::<Vec<_>>(),
        );
        for id in to_switch {
            if let Some(target) = commit.targets.get_mut(&id) {
                target.switch_wanted.get_or_insert(FlushReason::WalFull);
            }
        }
        // Where nobody has anything, the next write brings somebody.
        if is_asked {
            commit.asked.wal_limit = oldest.0;
            if is_beyond {
                commit.asked.wal_cap = oldest.0;
            }
        }
    }
}

#[cfg(test)]
mod tests;

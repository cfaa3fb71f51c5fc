//! One number for all memory: `memory_budget`, and what follows from it.
//!
//! ```text
//! budget = 1/6 what nobody counts: the allocator's waste, stacks, blocks that were never in the cache, small values and batches
//!        + memtables:   1/4 (or db_write_buffer_size, at most 1/2), whether they use it or not; nothing if read-only
//!        + jobs:        what flushes and compactions have in buffers, at least 1/8 and 8 MiB (or 1/3); nothing if read-only
//!        + tables:      what open tables hold; from 1/8 on, index and filter of those opened later go to the cache
//!        + cursors, and blocks that iterators and values keep and the cache let go of
//!        + WAL buffers, and what is large of writes on their way and of values that somebody holds, but for the first 1/32
//!        + block cache: the rest, at least 1/32 (or block_cache, if that is less); of it, compressed_secondary_cache_size for
//!                       its second tier and blob_cache for values, together at most 3/4
//! ```
//!
//! The shares of memtables and jobs are theirs also while they have less: memory that the cache
//! gave back in blocks is of little use to the allocator for arenas and buffers, so that both
//! together would in time take more than they ever have at once. Where others leave nothing, the
//! memory of former memtables is not kept for the next. What comes and goes with each write and
//! each read has a little in that sixth, so that the cache need not shrink for ordinary ones. And
//! each time a sixteenth of the budget was freed, by the cache as it shrinks, by a job at its end,
//! or by blocks of one thread that went for those of another, the allocator is asked to give back
//! what it keeps of that.
//!
//! A budget of `auto` becomes smaller as other databases of the process are opened, and larger as
//! they are closed (`MemoryBudget::join`): whoever needs a share asks for it anew, and the caches
//! and the writers' limit are told.

use std::sync::{Arc, Weak};

use crate::base::sync::{AtomicU64, Ordering};
use crate::cache::{MemoryAccount, MemoryKind};
use crate::memtable::ArenaPool;
use crate::options::{DbSettings, MemoryBudget};

/// What a flush and a compaction have in buffers together, about.
const JOBS: u64 = 8 << 20;

/// A budget's shares, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    pub(super) total: u64,
    /// What memtables may have together; 0 if nobody writes.
    memtables: u64,
    /// What jobs are expected to have at least.
    jobs: u64,
    /// What open tables may have before they leave index and filter to the cache.
    pub(super) tables: u64,
}

/// How many bytes the options want for caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CachesWanted {
    /// The most for blocks; `None` for what there is.
    pub(super) blocks: Option<usize>,
    pub(super) second_tier: usize,
    pub(super) blobs: usize,
}

/// How many bytes each cache has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheShares {
    pub(super) blocks: usize,
    pub(super) second_tier: usize,
    pub(super) blobs: usize,
}

/// What a database's budget follows from.
#[derive(Debug, Clone)]
pub(super) struct BudgetRule {
    memory_budget: MemoryBudget,
    /// As the options say now; for all who have the rule.
    db_write_buffer_size: Arc<AtomicU64>,
    read_only: bool,
    arenas: Weak<ArenaPool>,
}

impl BudgetRule {
    pub(super) fn new(settings: &DbSettings, read_only: bool) -> Self {
        let &DbSettings { memory_budget, db_write_buffer_size, .. } = settings;
        let db_write_buffer_size = Arc::new(AtomicU64::new(db_write_buffer_size));
        Self { memory_budget, db_write_buffer_size, read_only, arenas: Weak::new() }
    }

    /// The same for who keeps memory of former memtables there.
    pub(super) fn with_arenas(self, arenas: &Arc<ArenaPool>) -> Self {
        Self { arenas: Arc::downgrade(arenas), ..self }
    }

    /// Frees what is kept of former memtables if nothing is left for it; how many bytes.
    pub(super) fn free_if_pressed(&self, budget: &Budget, account: &MemoryAccount) -> usize {
        if account.held(MemoryKind::RecycledArenas) == 0 || budget.left(account) > 0 {
            return 0;
        }
        self.arenas.upgrade().map_or(0, |arenas| arenas.trim(0))
    }

    /// Takes over what may change while the database is open; whether it did.
    pub(super) fn set(&self, settings: &DbSettings) -> bool {
        let wanted = settings.db_write_buffer_size;
        self.db_write_buffer_size.swap(wanted, Ordering::Relaxed) != wanted
    }

    /// The budget as it is now; `None` without `memory_budget`.
    pub(super) fn now(&self) -> Option<Budget> {
        let wanted = self.db_write_buffer_size.load(Ordering::Relaxed);
        Budget::of(self.memory_budget, wanted, self.read_only)
    }
}

impl Budget {
    fn of(memory_budget: MemoryBudget, db_write_buffer_size: u64, read_only: bool) -> Option<Self> {
        let total = memory_budget.bytes();
        let memtables = match db_write_buffer_size {
            0 => total / 4,
            wanted => wanted.min(total / 2),
        };
        let written = |share: u64| if read_only { 0 } else { share };
        (total > 0).then(|| Self {
            total,
            memtables: written(memtables),
            jobs: written((total / 8).max(JOBS.min(total / 3))),
            tables: total / 8,
        })
    }

    /// What each cache has of what is left.
    pub(super) fn caches(&self, account: &MemoryAccount, wanted: &CachesWanted) -> CacheShares {
        let all = self.cache(account);
        let (second, blobs) = (wanted.second_tier, wanted.blobs);
        let (most, both) = (all / 4 * 3, second.saturating_add(blobs));
        let part = |bytes: usize| (most as u128 * bytes as u128 / both.max(1) as u128) as usize;
        let (second_tier, blobs) =
            if both <= most { (second, blobs) } else { (part(second), part(blobs)) };
        let blocks = (all - second_tier - blobs).min(wanted.blocks.unwrap_or(usize::MAX));
        CacheShares { blocks, second_tier, blobs }
    }

    /// What is left to all caches.
    fn cache(&self, account: &MemoryAccount) -> usize {
        self.left(account).max(self.total / 32) as usize
    }

    /// What all others leave.
    fn left(&self, account: &MemoryAccount) -> u64 {
        let held = |holder| account.held(holder) as u64;
        let memtables =
            (held(MemoryKind::Memtables) + held(MemoryKind::RecycledArenas)).max(self.memtables);
        let jobs = held(MemoryKind::Jobs).max(self.jobs);
        let passing =
            held(MemoryKind::WalBuffers) + held(MemoryKind::Writes) + held(MemoryKind::Values);
        let passing = passing.saturating_sub(self.total / 32);
        let read =
            held(MemoryKind::Tables) + held(MemoryKind::Cursors) + held(MemoryKind::KeptBlocks);
        (self.total - self.total / 6).saturating_sub(memtables + jobs + read + passing)
    }

    /// How much others may change until the cache hears of it.
    pub(super) fn step(&self) -> usize {
        (self.total / 128) as usize
    }

    /// How much may be freed until the allocator is to give it back.
    pub(super) fn release_step(&self) -> usize {
        (self.total / 16) as usize
    }
}

/// What the memtables of all families may have together, if there is a limit.
pub(super) fn memtable_bytes_max(settings: &DbSettings) -> Option<u64> {
    let &DbSettings { memory_budget, db_write_buffer_size, .. } = settings;
    let without_budget = Some(db_write_buffer_size).filter(|most| *most > 0);
    let budget = Budget::of(memory_budget, db_write_buffer_size, false);
    budget.map_or(without_budget, |budget| Some(budget.memtables))
}

#[cfg(test)]
mod tests;

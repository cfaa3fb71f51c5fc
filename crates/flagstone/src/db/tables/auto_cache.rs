//! A block cache that sizes itself: looks at what goes on, and has the budget's follower set what
//! [`AutoSize`] says.
//!
//! Readers look, as a miss ends (`Misses`): so it grows while they wait. Background threads look
//! when they find nothing else to do: so it shrinks while nobody reads.
//!
//! **Thread safety.** One thread looks at a time, others pass. The cache, and the follower of the
//! account, are called with no lock held.

use std::sync::{Arc, OnceLock, Weak};

use crate::base::allocator::ReleasedAtEnd;
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::cache::{MemoryAccount, Misses};
use crate::db::budget::BudgetRule;
use crate::db::memory::AutoCacheMemory;
use crate::db::tables::auto_size::{AutoSize, BEGINNING, Rules, Seen, Why};
use crate::env::{Clock, Env, Resources};
use crate::options::DbSettings;
use crate::sst::BlockCache;

/// What sizes the cache.
pub(in crate::db) struct AutoCache {
    clock: Arc<dyn Clock>,
    resources: Arc<dyn Resources>,
    budget: BudgetRule,
    account: Weak<MemoryAccount>,
    cache: OnceLock<Weak<BlockCache>>,
    /// The bits of `block_cache_miss_percent`.
    miss_percent: AtomicU64,
    unused_seconds: AtomicU64,
    /// What the cache is to have.
    bytes: AtomicU64,
    looking: Mutex<Looking>,
}

/// What one thread at a time looks at.
struct Looking {
    size: AutoSize,
    /// When the present period of the cache began.
    period_us: u64,
}

impl AutoCache {
    pub(in crate::db) fn new(
        env: &Env,
        settings: &DbSettings,
        account: &Arc<MemoryAccount>,
        budget: &BudgetRule,
    ) -> Self {
        let now_us = env.clock.now_us();
        let size = AutoSize::new(now_us, env.resources.processor_us());
        let new = Self {
            clock: env.clock.clone(),
            resources: env.resources.clone(),
            budget: budget.clone(),
            account: Arc::downgrade(account),
            cache: OnceLock::new(),
            miss_percent: AtomicU64::new(0),
            unused_seconds: AtomicU64::new(0),
            bytes: AtomicU64::new(size.bytes),
            looking: Mutex::new(Looking { size, period_us: now_us }),
        };
        new.set_rules(settings);
        new
    }

    /// This is the cache that it sizes.
    pub(in crate::db) fn watch(self: &Arc<Self>, cache: &Arc<BlockCache>) {
        let known = self.cache.set(Arc::downgrade(cache));
        assert!(known.is_ok(), "it sizes one cache");
        let auto = Arc::downgrade(self);
        cache.count_misses(Misses::new(self.clock.clone(), move |now_us| {
            if let Some(auto) = auto.upgrade() {
                auto.look(now_us);
            }
        }));
    }

    /// Takes over what may change while the database is open.
    pub(in crate::db) fn set_rules(&self, settings: &DbSettings) {
        self.miss_percent.store(settings.block_cache_miss_percent.to_bits(), Ordering::Relaxed);
        self.unused_seconds.store(settings.unused_memory_seconds, Ordering::Relaxed);
    }

    fn rules(&self) -> Rules {
        Rules {
            miss_percent: f64::from_bits(self.miss_percent.load(Ordering::Relaxed)),
            unused_seconds: self.unused_seconds.load(Ordering::Relaxed),
        }
    }

    /// What the cache is to have, in bytes.
    pub(in crate::db) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) as usize
    }

    /// Looks whether the cache should have another size, and sees to it.
    pub(in crate::db) fn look(&self, now_us: u64) {
        let cache = self.cache.get().and_then(Weak::upgrade);
        let (Some(cache), Some(account)) = (cache, self.account.upgrade()) else { return };
        let Some((before, after)) = self.decide(&cache, now_us) else { return };
        let mut released = ReleasedAtEnd::default();
        released.expect(before.bytes.saturating_sub(after.bytes) as usize);
        if let Why::Unused { .. } = after.why {
            cache.erase_unused();
        }
        cache.begin_period();
        account.tell_again();
    }

    /// The size before and from now on, if it changes. Unless another thread looks.
    fn decide(&self, cache: &BlockCache, now_us: u64) -> Option<(AutoSize, AutoSize)> {
        let mut looking = self.looking.try_lock()?;
        let (before, rules) = (looking.size, self.rules());
        let passed = now_us.saturating_sub(looking.period_us);
        let is_over = passed >= rules.unused_seconds.saturating_mul(1_000_000);
        let may_shrink = is_over && before.bytes > BEGINNING;
        let seen = Seen {
            now_us,
            miss_us: cache.misses().map_or(0, Misses::spent_us),
            processor_us: self.resources.processor_us(),
            cached: cache.usage() as u64,
            used: may_shrink.then(|| cache.used() as u64),
            most: self.most(),
            memory: self.resources.memory(),
        };
        let after = before.next(&rules, &seen);
        looking.size = after;
        self.bytes.store(after.bytes, Ordering::Relaxed);
        let has_changed = after.bytes != before.bytes;
        if has_changed || is_over {
            looking.period_us = now_us;
        }
        drop(looking);
        if may_shrink && !has_changed {
            cache.begin_period();
        }
        has_changed.then_some((before, after))
    }

    /// A quarter of the budget.
    fn most(&self) -> u64 {
        self.budget.now().map_or(0, |budget| budget.total / 4)
    }

    /// What it holds and why, for people.
    pub(in crate::db) fn report(&self) -> AutoCacheMemory {
        let AutoSize { bytes, why, .. } = self.looking.lock().size;
        AutoCacheMemory {
            capacity: bytes,
            capacity_max: self.most().max(BEGINNING),
            is_too_little: why.is_too_little(),
            why: why.to_string(),
        }
    }
}

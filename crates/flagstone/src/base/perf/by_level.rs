//! Counters for each level of the tree.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::{PerfLevel, counts, is_on, now};

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal;)*) => {
        /// A counter that is kept for each level of the tree, if
        /// [`PerfContext::enable_per_level`](super::PerfContext::enable_per_level) was called. All
        /// but the last two are about lookups of keys. Scans count for the level of their table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum PerfLevelMetric {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl PerfLevelMetric {
            /// All of them, in RocksDB's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// RocksDB's name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

metrics! {
    /// Keys that a filter ruled out.
    BloomFilterUseful = "bloom_filter_useful";
    /// Keys that a filter admitted.
    BloomFilterFullPositive = "bloom_filter_full_positive";
    /// Keys that a filter admitted and the table has.
    BloomFilterFullTruePositive = "bloom_filter_full_true_positive";
    /// Keys whose value was found in the level.
    UserKeyReturnCount = "user_key_return_count";
    /// Nanoseconds spent in tables of the level.
    GetFromTableNanos = "get_from_table_nanos";
    /// Blocks found in the block cache.
    BlockCacheHitCount = "block_cache_hit_count";
    /// Blocks not found in the block cache.
    BlockCacheMissCount = "block_cache_miss_count";
}

/// The counters of one level.
pub(super) type OfLevel = [u64; PerfLevelMetric::ALL.len()];

thread_local! {
    static IS_ENABLED: Cell<bool> = const { Cell::new(false) };
    /// The level whose tables the thread reads.
    static LEVEL: Cell<Option<u32>> = const { Cell::new(None) };
    static COUNTERS: RefCell<BTreeMap<u32, OfLevel>> = const { RefCell::new(BTreeMap::new()) };
}

/// Switches the counters of levels on or off for the calling thread.
pub(super) fn enable(is_enabled: bool) {
    IS_ENABLED.set(is_enabled);
}

pub(super) fn is_enabled() -> bool {
    IS_ENABLED.get()
}

/// A copy of the calling thread's counters.
pub(super) fn snapshot() -> BTreeMap<u32, OfLevel> {
    COUNTERS.try_with(|counters| counters.borrow().clone()).unwrap_or_default()
}

pub(super) fn reset() {
    // A thread that is about to end has none.
    let _ = COUNTERS.try_with(|counters| counters.borrow_mut().clear());
}

/// Restores the level that was read before.
#[must_use = "the level counts until this is dropped"]
pub(crate) struct LevelScope(Option<Option<u32>>);

/// Until the end of the scope, the calling thread reads tables of this level.
#[inline]
pub(crate) fn at_level(level: usize) -> LevelScope {
    LevelScope(if counts() { enter(level) } else { None })
}

#[cold]
#[inline(never)]
fn enter(level: usize) -> Option<Option<u32>> {
    is_enabled().then(|| LEVEL.replace(u32::try_from(level).ok()))
}

impl Drop for LevelScope {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            LEVEL.set(before);
        }
    }
}

/// Adds to a counter of the level that the calling thread reads, if it counts by level.
#[inline]
pub(crate) fn count_at_level(metric: PerfLevelMetric, amount: u64) {
    if counts() {
        add(metric, amount);
    }
}

#[cold]
#[inline(never)]
fn add(metric: PerfLevelMetric, amount: u64) {
    if let Some(level) = LEVEL.get().filter(|_| is_enabled()) {
        let _ = COUNTERS.try_with(|counters| {
            let mut counters = counters.borrow_mut();
            let counter = &mut counters.entry(level).or_default()[metric as usize];
            *counter = counter.wrapping_add(amount);
        });
    }
}

/// Adds the time until it is dropped to `get_from_table_nanos`.
#[must_use = "a timer that is dropped at once takes no time"]
pub(crate) struct TableTimer(u64);

/// Takes the time that is spent in a table.
#[inline]
pub(crate) fn time_table() -> TableTimer {
    let level = PerfLevel::EnableTimeExceptForMutex;
    TableTimer(if is_on(level) { now(level) } else { 0 })
}

impl Drop for TableTimer {
    #[inline]
    fn drop(&mut self) {
        if self.0 != 0 {
            let taken = now(PerfLevel::EnableTimeExceptForMutex).saturating_sub(self.0);
            add(PerfLevelMetric::GetFromTableNanos, taken);
        }
    }
}

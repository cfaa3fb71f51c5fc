//! The history of counters: what they have grown by, period by period.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::db::statistics::{Statistics, Ticker};
use crate::env::Clock;
use crate::options::DbSettings;

/// What each counter has grown by.
type Growth = [u64; Ticker::ALL.len()];

/// About what an entry takes in memory.
const ENTRY_BYTES: u64 = (size_of::<Growth>() + 64) as u64;

fn none() -> Box<Growth> {
    Box::new([0; Ticker::ALL.len()])
}

/// What the counters have grown by in one period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsSnapshot {
    /// Seconds since 1970 when the period ended.
    pub unix_seconds: u64,
    growth: Box<Growth>,
}

impl StatsSnapshot {
    /// What a counter has grown by.
    pub fn get(&self, ticker: Ticker) -> u64 {
        self.growth[ticker as usize]
    }

    /// What each counter has grown by, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Ticker::ALL.iter().map(|ticker| (ticker.name(), self.get(*ticker)))
    }
}

/// The latest periods, as many as memory permits.
pub(super) struct StatsHistory {
    /// When the last period ended.
    ended_us: AtomicU64,
    entries: Mutex<Entries>,
}

struct Entries {
    /// The counters when the last period ended.
    counted: Growth,
    /// By the second in which the period ended.
    growth: BTreeMap<u64, Box<Growth>>,
}

impl StatsHistory {
    /// The first period begins now, with counters of zero.
    pub(super) fn new(now_us: u64) -> Self {
        let entries = Entries { counted: [0; Ticker::ALL.len()], growth: BTreeMap::new() };
        Self { ended_us: AtomicU64::new(now_us), entries: Mutex::new(entries) }
    }

    /// Ends a period if it is over.
    pub(super) fn note(&self, settings: &DbSettings, clock: &dyn Clock, statistics: &Statistics) {
        let period_us = u64::from(settings.stats_persist_period_sec).saturating_mul(1_000_000);
        let (ended_us, now_us) = (self.ended_us.load(Ordering::Relaxed), clock.now_us());
        if period_us == 0 || now_us.saturating_sub(ended_us) < period_us {
            return;
        }
        let (relaxed, mine) = (Ordering::Relaxed, Ordering::AcqRel);
        if self.ended_us.compare_exchange(ended_us, now_us, mine, relaxed).is_err() {
            // Another thread does.
            return;
        }
        let entries = &mut *self.entries.lock();
        // Where the clock was set back, two periods may end in one second.
        let growth = entries.growth.entry(clock.unix_seconds()).or_insert_with(none);
        for ticker in Ticker::ALL {
            let now = statistics.get(*ticker);
            let before = std::mem::replace(&mut entries.counted[*ticker as usize], now);
            growth[*ticker as usize] += now.saturating_sub(before);
        }
        let most = settings.stats_history_buffer_size / ENTRY_BYTES;
        while entries.growth.len() as u64 > most {
            entries.growth.pop_first();
        }
    }

    /// The periods that ended within these seconds since 1970, oldest first.
    pub(super) fn within(&self, seconds: Range<u64>) -> Vec<StatsSnapshot> {
        if seconds.is_empty() {
            return Vec::new();
        }
        let entries = self.entries.lock();
        let found = entries.growth.range(seconds);
        found
            .map(|(seconds, growth)| StatsSnapshot {
                unix_seconds: *seconds,
                growth: growth.clone(),
            })
            .collect()
    }
}

//! What databases count and measure, by RocksDB's names:
//! [`Options::enable_statistics`](crate::Options::enable_statistics).

mod distribution;
mod names;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flagstone::Env;
use flagstone::db::Db;

use distribution::Distribution;
pub use distribution::HistogramData;
pub use names::{Histogram, NameParseError, Ticker};

/// How much is counted and measured.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
#[repr(u8)]
pub enum StatsLevel {
    /// Nothing is counted.
    DisableAll = 0,
    /// No distribution is measured.
    ExceptHistogramOrTimers = 2,
    /// Distributions are measured, but not those of times.
    ExceptTimers,
    /// All that there is is measured.
    ExceptDetailedTimers,
    /// All that there is is measured.
    ExceptTimeForMutex,
    /// All that there is is measured.
    All,
}

/// The figures of all databases that were opened with the same options.
pub(crate) struct Statistics {
    env: Env,
    /// The [`StatsLevel`], as a number.
    level: AtomicU8,
    /// By histogram.
    distributions: Vec<Mutex<Distribution>>,
    counted: Mutex<Counted>,
}

/// Where counters are.
#[derive(Default)]
struct Counted {
    next_id: u64,
    open: Vec<(u64, Db)>,
    /// The sums of databases that are closed, and what is counted here.
    closed: BTreeMap<String, u64>,
    /// While nothing is counted, the sums when that began.
    stopped_at: Option<BTreeMap<String, u64>>,
    /// What databases did while nothing was counted.
    skipped: BTreeMap<String, u64>,
}

/// Keeps a database among those that statistics sum up, until it is dropped. It holds the database
/// open.
pub(crate) struct CountedDatabase {
    statistics: Arc<Statistics>,
    id: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic leaves figures half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the counters of a database to `sums`.
fn add_counters(db: &Db, sums: &mut BTreeMap<String, u64>) {
    let name = crate::properties::OPTIONS_STATISTICS.as_str();
    let text = db.property(db.default_column_family(), name).unwrap_or_default();
    for line in text.lines() {
        if let Some((name, count)) = line.split_once(" COUNT : ")
            && let Ok(count) = count.parse::<u64>()
        {
            *sums.entry(name.to_string()).or_default() += count;
        }
    }
}

impl Statistics {
    pub(crate) fn new() -> Self {
        Self {
            env: Env::os(),
            level: AtomicU8::new(StatsLevel::ExceptDetailedTimers as u8),
            distributions: Histogram::iter().map(|_| Mutex::default()).collect(),
            counted: Mutex::default(),
        }
    }

    pub(crate) fn set_level(&self, level: StatsLevel) {
        let now = self.all_counters();
        let mut counted = locked(&self.counted);
        if level == StatsLevel::DisableAll {
            counted.stopped_at.get_or_insert(now);
        } else if let Some(before) = counted.stopped_at.take() {
            for (name, count) in now {
                let done = count - before.get(&name).unwrap_or(&0);
                *counted.skipped.entry(name).or_default() += done;
            }
        }
        self.level.store(level as u8, Ordering::Relaxed);
    }

    #[inline]
    fn is_at_least(&self, level: StatsLevel) -> bool {
        self.level.load(Ordering::Relaxed) >= level as u8
    }

    /// Counts what the database does, too.
    pub(crate) fn count(self: &Arc<Self>, db: &Db) -> CountedDatabase {
        let mut counted = locked(&self.counted);
        let id = counted.next_id;
        counted.next_id += 1;
        counted.open.push((id, db.clone()));
        CountedDatabase { statistics: Arc::clone(self), id }
    }

    /// Adds what was counted outside of an open database, such as by a worker.
    pub(crate) fn add(&self, counted: &[(&'static str, u64)]) {
        if !self.is_at_least(StatsLevel::ExceptHistogramOrTimers) {
            return;
        }
        let mut sums = locked(&self.counted);
        for (name, count) in counted {
            match sums.closed.get_mut(*name) {
                Some(sum) => *sum += count,
                None => drop(sums.closed.insert((*name).to_string(), *count)),
            }
        }
    }

    /// Does `work`, and measures how long it takes in microseconds. A part of a microsecond counts
    /// as a whole one.
    #[inline]
    pub(crate) fn measure<T>(&self, histogram: Histogram, work: impl FnOnce() -> T) -> T {
        if !self.is_at_least(StatsLevel::ExceptDetailedTimers) {
            return work();
        }
        let begin = self.env.clock.now_us();
        let done = work();
        let took = self.env.clock.now_us().saturating_sub(begin).max(1);
        locked(&self.distributions[histogram as usize]).add(took);
        done
    }

    /// Adds a value that takes no time to a distribution, such as a number of bytes.
    #[inline]
    pub(crate) fn record(&self, histogram: Histogram, value: u64) {
        if self.is_at_least(StatsLevel::ExceptTimers) {
            locked(&self.distributions[histogram as usize]).add(value);
        }
    }

    /// Counts a lookup of several keys.
    pub(crate) fn count_multi_get(&self, keys: usize, bytes: u64) {
        self.add(&[
            (Ticker::NumberMultigetCalls.name(), 1),
            (Ticker::NumberMultigetKeysRead.name(), keys as u64),
            (Ticker::NumberMultigetBytesRead.name(), bytes),
        ]);
        self.record(Histogram::BytesPerMultiget, bytes);
    }

    /// The sums, without what was done while nothing was counted.
    fn counters(&self) -> BTreeMap<String, u64> {
        let now = self.all_counters();
        let counted = locked(&self.counted);
        let mut sums = counted.stopped_at.clone().unwrap_or(now);
        for (name, count) in &mut sums {
            *count -= counted.skipped.get(name).unwrap_or(&0);
        }
        sums
    }

    fn all_counters(&self) -> BTreeMap<String, u64> {
        let (mut sums, open) = {
            let counted = locked(&self.counted);
            (counted.closed.clone(), counted.open.clone())
        };
        open.iter().for_each(|(_, db)| add_counters(db, &mut sums));
        sums
    }

    pub(crate) fn ticker(&self, ticker: Ticker) -> u64 {
        self.counters().get(ticker.name()).copied().unwrap_or(0)
    }

    pub(crate) fn histogram(&self, histogram: Histogram) -> HistogramData {
        locked(&self.distributions[histogram as usize]).data()
    }

    /// All figures, in the form of RocksDB's `Statistics::ToString`.
    pub(crate) fn text(&self) -> String {
        let counters = self.counters();
        let mut text = String::new();
        for ticker in Ticker::iter() {
            let count = counters.get(ticker.name()).copied().unwrap_or(0);
            let _ = writeln!(text, "{ticker} COUNT : {count}");
        }
        for histogram in Histogram::iter() {
            let data = self.histogram(*histogram);
            let _ = writeln!(
                text,
                "{histogram} P50 : {:.6} P95 : {:.6} P99 : {:.6} P100 : {:.6} COUNT : {} SUM : {}",
                data.median(),
                data.p95(),
                data.p99(),
                data.max(),
                data.count(),
                data.sum()
            );
        }
        text
    }
}

impl CountedDatabase {
    /// As [`Statistics::measure`].
    #[inline]
    pub(crate) fn measure<T>(&self, histogram: Histogram, work: impl FnOnce() -> T) -> T {
        self.statistics.measure(histogram, work)
    }

    /// What the database adds to.
    #[inline]
    pub(crate) fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}

impl Drop for CountedDatabase {
    fn drop(&mut self) {
        let mut counted = locked(&self.statistics.counted);
        let Some(at) = counted.open.iter().position(|(id, _)| *id == self.id) else { return };
        let (_, db) = counted.open.swap_remove(at);
        add_counters(&db, &mut counted.closed);
        // The last handle closes the database, which takes its time.
        drop(counted);
        drop(db);
    }
}

//! A copy of a thread's counters.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::by_level::{self, OfLevel};
use super::{PerfLevelMetric, PerfMetric};

/// What a thread counted up to one moment (RocksDB's `PerfContext`).
///
/// ```
/// use flagstone::reports::{PerfContext, PerfLevel, PerfMetric, set_perf_level};
///
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// let db = flagstone::Db::open(directory.path())?;
/// db.put("stone", "flag")?;
/// set_perf_level(PerfLevel::EnableCount);
/// PerfContext::reset();
/// db.get("stone")?;
/// assert_eq!(PerfContext::now().get(PerfMetric::GetFromMemtableCount), 1);
/// assert_eq!(PerfContext::now().get(PerfMetric::GetReadBytes), 4);
/// set_perf_level(PerfLevel::Disable);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfContext {
    counters: [u64; PerfMetric::ALL.len()],
    levels: BTreeMap<u32, OfLevel>,
}

impl Default for PerfContext {
    /// All 0.
    fn default() -> Self {
        Self { counters: [0; PerfMetric::ALL.len()], levels: BTreeMap::new() }
    }
}

impl PerfContext {
    /// What the calling thread has counted.
    pub fn now() -> Self {
        Self { counters: PerfMetric::of_thread(), levels: by_level::snapshot() }
    }

    /// Sets all counters of the calling thread to 0, those of levels included.
    pub fn reset() {
        PerfMetric::reset_thread();
        by_level::reset();
    }

    /// From now on the calling thread also counts for each level of the tree.
    pub fn enable_per_level() {
        by_level::enable(true);
    }

    /// The calling thread no longer counts for each level; what it has counted stays.
    pub fn disable_per_level() {
        by_level::enable(false);
    }

    /// The calling thread no longer counts for each level, and forgets what it has counted so.
    pub fn clear_per_level() {
        by_level::enable(false);
        by_level::reset();
    }

    /// The value of a counter.
    pub fn get(&self, metric: PerfMetric) -> u64 {
        self.counters[metric as usize]
    }

    /// The value of the counter that RocksDB calls so; `None` if there is none.
    pub fn get_by_name(&self, name: &str) -> Option<u64> {
        PerfMetric::from_name(name).map(|metric| self.get(metric))
    }

    /// The value of a counter for one level of the tree; 0 if nothing was counted for it.
    pub fn get_of_level(&self, metric: PerfLevelMetric, level: u32) -> u64 {
        self.levels.get(&level).map_or(0, |counters| counters[metric as usize])
    }

    /// The levels of the tree for which anything was counted, ascending.
    pub fn levels(&self) -> impl Iterator<Item = u32> {
        self.levels.keys().copied()
    }

    /// Adds the counters of another context, perhaps of another thread.
    pub fn merge(&mut self, other: &Self) {
        for (counter, added) in self.counters.iter_mut().zip(other.counters) {
            *counter = counter.wrapping_add(added);
        }
        for (level, added) in &other.levels {
            let counters = self.levels.entry(*level).or_default();
            for (counter, added) in counters.iter_mut().zip(added) {
                *counter = counter.wrapping_add(*added);
            }
        }
    }

    /// All counters on one line in RocksDB's form, as in `block_read_count = 3, block_read_byte =
    /// 4096`; those of levels as in `block_cache_hit_count = 2@level0, 1@level3`.
    pub fn to_text(&self, exclude_zeros: bool) -> String {
        let mut text = String::new();
        for metric in PerfMetric::ALL {
            let value = self.get(*metric);
            if value > 0 || !exclude_zeros {
                let _ = write!(text, "{} = {value}, ", metric.name());
            }
        }
        if !self.levels.is_empty() {
            for metric in PerfLevelMetric::ALL {
                let _ = write!(text, "{} = ", metric.name());
                for (level, counters) in &self.levels {
                    let value = counters[*metric as usize];
                    if value > 0 || !exclude_zeros {
                        let _ = write!(text, "{value}@level{level}, ");
                    }
                }
            }
        }
        text.truncate(text.trim_end_matches([',', ' ']).len());
        text
    }
}

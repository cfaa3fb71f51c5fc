//! What a thread's operations ask of files.

use std::cell::Cell;
use std::fmt::Write;

use super::PerfLevel;
use super::PerfLevel::{
    EnableCount as Count, EnableTimeAndCpuTimeExceptForMutex as Cpu,
    EnableTimeExceptForMutex as Time,
};
use super::{is_on, now};

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $level:ident;)*) => {
        /// A counter of reads and writes of the operating system's files. Times are in nanoseconds.
        /// Files in memory and those of an `Env` of the program's own count nothing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum IoMetric {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl IoMetric {
            /// All of them, in RocksDB's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            const LEVELS: [PerfLevel; Self::ALL.len()] = [$($level,)*];

            const HELP: [&str; Self::ALL.len()] = [$(concat!($($doc),+),)*];

            /// Whether nothing raises it, because the engine does not do what it counts.
            pub fn is_always_zero(self) -> bool {
                Self::HELP[self as usize].trim_ascii().starts_with("Always 0")
            }

            /// RocksDB's name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The metric of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|metric| metric.name() == name)
            }

            /// The lowest level that counts it.
            #[inline]
            pub const fn level(self) -> PerfLevel {
                Self::LEVELS[self as usize]
            }
        }
    };
}

metrics! {
    /// Always 0: threads are not numbered by pools.
    ThreadPoolId = "thread_pool_id", Count;
    /// Bytes read.
    BytesRead = "bytes_read", Count;
    /// Bytes written, with those that were put into a mapped WAL.
    BytesWritten = "bytes_written", Count;
    /// Time spent on opening and creating files.
    OpenNanos = "open_nanos", Time;
    /// Time spent on reserving space.
    AllocateNanos = "allocate_nanos", Time;
    /// Time spent on writing.
    WriteNanos = "write_nanos", Time;
    /// Time spent on reading.
    ReadNanos = "read_nanos", Time;
    /// Time spent on asking the system to begin writing back.
    RangeSyncNanos = "range_sync_nanos", Time;
    /// Time spent on syncing files.
    FsyncNanos = "fsync_nanos", Time;
    /// Always 0: space is reserved apart from writes.
    PrepareWriteNanos = "prepare_write_nanos", Time;
    /// Time spent on writing to the info log.
    LoggerNanos = "logger_nanos", Time;
    /// Processor time spent on writing and syncing.
    CpuWriteNanos = "cpu_write_nanos", Cpu;
    /// Processor time spent on reading.
    CpuReadNanos = "cpu_read_nanos", Cpu;
    /// Always 0; so are the other figures by temperature.
    HotFileBytesRead = "file_io_stats_by_temperature.hot_file_bytes_read", Count;
    /// Always 0.
    WarmFileBytesRead = "file_io_stats_by_temperature.warm_file_bytes_read", Count;
    /// Always 0.
    CoolFileBytesRead = "file_io_stats_by_temperature.cool_file_bytes_read", Count;
    /// Always 0.
    ColdFileBytesRead = "file_io_stats_by_temperature.cold_file_bytes_read", Count;
    /// Always 0.
    HotFileReadCount = "file_io_stats_by_temperature.hot_file_read_count", Count;
    /// Always 0.
    WarmFileReadCount = "file_io_stats_by_temperature.warm_file_read_count", Count;
    /// Always 0.
    CoolFileReadCount = "file_io_stats_by_temperature.cool_file_read_count", Count;
    /// Always 0.
    ColdFileReadCount = "file_io_stats_by_temperature.cold_file_read_count", Count;
}

thread_local! {
    static COUNTERS: [Cell<u64>; IoMetric::ALL.len()] =
        const { [const { Cell::new(0) }; IoMetric::ALL.len()] };
}

/// Adds to a counter of the calling thread, if it counts that.
#[inline]
pub(crate) fn count_io(metric: IoMetric, amount: u64) {
    if is_on(metric.level()) {
        add(metric, amount);
    }
}

#[cold]
#[inline(never)]
fn add(metric: IoMetric, amount: u64) {
    COUNTERS.with(|counters| {
        let counter = &counters[metric as usize];
        counter.set(counter.get().wrapping_add(amount));
    });
}

/// Adds the nanoseconds up to its end to a counter.
#[must_use = "a timer that is dropped at once takes no time"]
pub(crate) struct IoTimer {
    metric: IoMetric,
    /// 0 if no time is taken.
    begun: u64,
}

/// Takes the time until it is dropped, if the calling thread takes that metric's.
#[inline]
pub(crate) fn time_io(metric: IoMetric) -> IoTimer {
    let begun = if is_on(metric.level()) { now(metric.level()) } else { 0 };
    IoTimer { metric, begun }
}

impl Drop for IoTimer {
    #[inline]
    fn drop(&mut self) {
        if self.begun != 0 {
            add(self.metric, now(self.metric.level()).saturating_sub(self.begun));
        }
    }
}

/// What a thread asked of files up to one moment (RocksDB's `IOStatsContext`). It follows the level
/// of [`set_perf_level`](super::set_perf_level).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IoStatsContext {
    counters: [u64; IoMetric::ALL.len()],
}

impl IoStatsContext {
    /// What the calling thread has counted.
    pub fn now() -> Self {
        let counters = COUNTERS.with(|counters| std::array::from_fn(|at| counters[at].get()));
        Self { counters }
    }

    /// Sets all counters of the calling thread to 0.
    pub fn reset() {
        COUNTERS.with(|counters| counters.iter().for_each(|counter| counter.set(0)));
    }

    /// The value of a counter.
    pub fn get(&self, metric: IoMetric) -> u64 {
        self.counters[metric as usize]
    }

    /// The value of the counter that RocksDB calls so; `None` if there is none.
    pub fn get_by_name(&self, name: &str) -> Option<u64> {
        IoMetric::from_name(name).map(|metric| self.get(metric))
    }

    /// Adds the counters of another context, perhaps of another thread.
    pub fn merge(&mut self, other: &Self) {
        for (counter, added) in self.counters.iter_mut().zip(other.counters) {
            *counter = counter.wrapping_add(added);
        }
    }

    /// All counters on one line in RocksDB's form, as in `bytes_read = 4096, open_nanos = 0`.
    pub fn to_text(&self, exclude_zeros: bool) -> String {
        let mut text = String::new();
        for metric in IoMetric::ALL {
            let value = self.get(*metric);
            if value > 0 || !exclude_zeros {
                let _ = write!(text, "{} = {value}, ", metric.name());
            }
        }
        text.truncate(text.trim_end_matches([',', ' ']).len());
        text
    }
}

//! What a thread's operations ask of files.

use std::fmt::Write;

use super::PerfLevel;
use super::PerfLevel::{
    EnableCount as Count, EnableTimeAndCpuTimeExceptForMutex as Cpu,
    EnableTimeExceptForMutex as Time,
};
use super::metric::metrics;

metrics! {
    /// A counter of reads and writes of the operating system's files. Times are in nanoseconds.
    /// Files in memory and those of an `Env` of the program's own count nothing.
    IoMetric {
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
        /// Bytes read of hot tables.
        HotFileBytesRead = "file_io_stats_by_temperature.hot_file_bytes_read", Count;
        /// Bytes read of warm tables.
        WarmFileBytesRead = "file_io_stats_by_temperature.warm_file_bytes_read", Count;
        /// Bytes read of cool tables.
        CoolFileBytesRead = "file_io_stats_by_temperature.cool_file_bytes_read", Count;
        /// Bytes read of cold tables.
        ColdFileBytesRead = "file_io_stats_by_temperature.cold_file_bytes_read", Count;
        /// Reads of hot tables.
        HotFileReadCount = "file_io_stats_by_temperature.hot_file_read_count", Count;
        /// Reads of warm tables.
        WarmFileReadCount = "file_io_stats_by_temperature.warm_file_read_count", Count;
        /// Reads of cool tables.
        CoolFileReadCount = "file_io_stats_by_temperature.cool_file_read_count", Count;
        /// Reads of cold tables.
        ColdFileReadCount = "file_io_stats_by_temperature.cold_file_read_count", Count;
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
        Self { counters: IoMetric::of_thread() }
    }

    /// Sets all counters of the calling thread to 0.
    pub fn reset() {
        IoMetric::reset_thread();
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

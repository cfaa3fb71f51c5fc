//! Setters of a database: WAL, MANIFEST, how writers queue, statistics and the info log.

use std::path::Path;
use std::sync::Arc;

use flagstone::wal::WalCompression;

use super::{DBCompressionType, DBRecoveryMode, InfoLogger, LogLevel, Options};
use crate::error::Error;
use crate::statistics::{Histogram, HistogramData, Statistics, StatsLevel, Ticker};

impl Options {
    /// Where WAL files lie. Default: in the database's directory.
    ///
    /// A path that is no UTF-8 fails the opening.
    pub fn set_wal_dir<P: AsRef<Path>>(&mut self, path: P) {
        let path = path.as_ref();
        let why = match path.to_str() {
            Some(text) => {
                self.db.wal_dir = text.to_string();
                None
            }
            None => {
                let path = path.display();
                Some(Error::not_supported(format!("wal_dir: path '{path}' is no UTF-8")))
            }
        };
        self.refuse("wal_dir", why);
    }

    /// How WAL records are compressed: not at all, or by Zstandard. Default: not at all.
    ///
    /// # Panics
    /// For any other compression, as in the rocksdb crate.
    pub fn set_wal_compression_type(&mut self, t: DBCompressionType) {
        self.db.wal_compression = match t {
            DBCompressionType::None => WalCompression::None,
            DBCompressionType::Zstd => WalCompression::Zstd,
            other => panic!("{other:?} is not supported for WAL compression"),
        };
    }

    /// What recovery does with a WAL that is not intact. Default: point in time.
    pub fn set_wal_recovery_mode(&mut self, mode: DBRecoveryMode) {
        self.db.wal_recovery_mode = mode.into();
    }

    /// Bytes that all WALs may have that recovery needs; 0 for four times all write buffers.
    /// Default: 0.
    pub fn set_max_total_wal_size(&mut self, size: u64) {
        self.db.max_total_wal_size = size;
    }

    /// Seconds for which WALs are kept that recovery does not need any more; 0 for no limit.
    /// Default: 0; with `wal_size_limit_mb` 0, too, none are kept.
    pub fn set_wal_ttl_seconds(&mut self, secs: u64) {
        self.db.WAL_ttl_seconds = secs;
    }

    /// MiB of such WALs that are kept; 0 for no limit. Default: 0.
    pub fn set_wal_size_limit_mb(&mut self, size: u64) {
        self.db.WAL_size_limit_MB = size;
    }

    /// Bytes of the WAL after which the system is asked to write it to the disk; 0 for never.
    /// Default: 0.
    pub fn set_wal_bytes_per_sync(&mut self, nbytes: u64) {
        self.db.wal_bytes_per_sync = nbytes;
    }

    /// WAL files that are kept for reuse. Default: 0.
    pub fn set_recycle_log_file_num(&mut self, num: usize) {
        self.db.recycle_log_file_num = num as u64;
    }

    /// Keeps WAL records in memory until they are asked for, e.g. by `flush_wal`: what waits is
    /// lost if the process dies. Default: false.
    pub fn set_manual_wal_flush(&mut self, is_enabled: bool) {
        self.db.manual_wal_flush = is_enabled;
    }

    /// Flushes all families together, and makes their flushes count together. Default: false.
    pub fn set_atomic_flush(&mut self, atomic_flush: bool) {
        self.db.atomic_flush = atomic_flush;
    }

    /// Bytes at which a MANIFEST is replaced. Default: 1 GiB.
    pub fn set_max_manifest_file_size(&mut self, size: usize) {
        self.db.max_manifest_file_size = size as u64;
    }

    /// Bytes that are reserved for a MANIFEST at a time; 0 for none. Default: 4 MiB.
    pub fn set_manifest_preallocation_size(&mut self, size: usize) {
        self.db.manifest_preallocation_size = size as u64;
    }

    /// Has no effect: each WAL says how the one before ends, and recovery checks it.
    pub fn set_track_and_verify_wals_in_manifest(&mut self, val: bool) {
        self.note("track_and_verify_wals_in_manifest", val);
    }

    /// What [`set_track_and_verify_wals_in_manifest`](Self::set_track_and_verify_wals_in_manifest)
    /// has set. Default: false.
    pub fn get_track_and_verify_wals_in_manifest(&self) -> bool {
        self.is_noted("track_and_verify_wals_in_manifest")
    }

    /// Has no effect: the MANIFEST always has the identity of the database.
    pub fn set_write_dbid_to_manifest(&mut self, val: bool) {
        self.note("write_dbid_to_manifest", val);
    }

    /// What [`set_write_dbid_to_manifest`](Self::set_write_dbid_to_manifest) has set. Default:
    /// true.
    pub fn get_write_dbid_to_manifest(&self) -> bool {
        self.is_noted("write_dbid_to_manifest")
    }

    /// Has no effect: threads always write to memtables side by side, where these can.
    pub fn set_allow_concurrent_memtable_write(&mut self, _allow: bool) {}

    /// Has no effect: the WAL and the memtable are always written one after the other.
    pub fn set_enable_pipelined_write(&mut self, value: bool) {
        self.note("enable_pipelined_write", value);
    }

    /// Has no effect: a write is acknowledged after all before it.
    pub fn set_unordered_write(&mut self, unordered: bool) {
        self.note("unordered_write", unordered);
    }

    /// Has no effect: writers queue otherwise than in RocksDB.
    pub fn set_enable_write_thread_adaptive_yield(&mut self, enabled: bool) {
        self.note("enable_write_thread_adaptive_yield", enabled);
    }

    /// Begins to count and measure what databases do that are opened with these options or a clone
    /// of them. See [`statistics`](crate::statistics).
    pub fn enable_statistics(&mut self) {
        self.statistics = Some(Arc::new(Statistics::new()));
    }

    /// Whether [`enable_statistics`](Self::enable_statistics) was called.
    #[doc(hidden)]
    pub fn has_statistics(&self) -> bool {
        self.statistics.is_some()
    }

    /// What adds a worker's counters to these statistics; `None` without
    /// [`enable_statistics`](Self::enable_statistics).
    #[doc(hidden)]
    pub fn statistics_receiver(&self) -> Option<flagstone::options::StatisticsReceiver> {
        let statistics = self.statistics.clone()?;
        Some(Arc::new(move |counted| statistics.add(counted)))
    }

    /// All figures as text; `None` without [`enable_statistics`](Self::enable_statistics).
    pub fn get_statistics(&self) -> Option<String> {
        self.statistics.as_ref().map(|statistics| statistics.text())
    }

    /// How much is measured. Has no effect without [`enable_statistics`](Self::enable_statistics).
    pub fn set_statistics_level(&self, level: StatsLevel) {
        if let Some(statistics) = &self.statistics {
            statistics.set_level(level);
        }
    }

    /// A counter; 0 without [`enable_statistics`](Self::enable_statistics). Each call looks through
    /// all counters of every open database.
    pub fn get_ticker_count(&self, ticker: Ticker) -> u64 {
        self.statistics.as_ref().map_or(0, |statistics| statistics.ticker(ticker))
    }

    /// What was measured; nothing without [`enable_statistics`](Self::enable_statistics).
    pub fn get_histogram_data(&self, histogram: Histogram) -> HistogramData {
        let statistics = self.statistics.as_ref();
        statistics.map_or_else(HistogramData::new, |statistics| statistics.histogram(histogram))
    }

    /// Seconds between two reports of counters in the info log; 0 for none. Default: 600.
    pub fn set_stats_dump_period_sec(&mut self, period: u32) {
        self.db.stats_dump_period_sec = period;
    }

    /// Seconds that one entry of the history of counters covers; 0 for no history. Default: 600.
    pub fn set_stats_persist_period_sec(&mut self, period: u32) {
        self.db.stats_persist_period_sec = period;
    }

    /// Has no effect: the allocator's figures are not written to the log.
    pub fn set_dump_malloc_stats(&mut self, enabled: bool) {
        self.note("dump_malloc_stats", enabled);
    }

    /// Has no effect: jobs always count what they read and write.
    pub fn set_report_bg_io_stats(&mut self, enable: bool) {
        self.note("report_bg_io_stats", enable);
    }

    /// The directory of the info log, whose name then begins with the database's path. Default: the
    /// database's directory.
    pub fn set_db_log_dir<P: AsRef<Path>>(&mut self, path: P) {
        self.db.db_log_dir = path.as_ref().to_string_lossy().into_owned();
    }

    /// From which level on the info log has messages. Default: info.
    pub fn set_log_level(&mut self, level: LogLevel) {
        self.db.info_log_level = level.engine();
    }

    /// Bytes at which a new info log is begun; 0 for no limit. Default: 0.
    pub fn set_max_log_file_size(&mut self, size: usize) {
        self.db.max_log_file_size = size as u64;
    }

    /// Seconds after which a new info log is begun; 0 for never. Default: 0.
    pub fn set_log_file_time_to_roll(&mut self, secs: usize) {
        self.db.log_file_time_to_roll = secs as u64;
    }

    /// Info logs that are kept, the newest among them. Default: 1000.
    pub fn set_keep_log_file_num(&mut self, nfiles: usize) {
        self.db.keep_log_file_num = nfiles as u64;
    }

    /// Sends the messages of the info log elsewhere. Default: to the file `LOG`.
    pub fn set_info_logger(&mut self, logger: InfoLogger) {
        self.logger = logger;
    }

    /// The logger that [`set_info_logger`](Self::set_info_logger) has set; without one, one that
    /// stands for the file.
    pub fn get_info_logger(&self) -> InfoLogger {
        self.logger.clone()
    }
}

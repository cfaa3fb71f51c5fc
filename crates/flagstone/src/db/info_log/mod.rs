//! The info log: what a database tells people of its work, in RocksDB's form.
//!
//! - `file`: the file LOG, renamed when a new one is begun
//! - `head`: what a log begins with; `told`: what is written of events, for people; `json`: for
//!   programs
//!
//! **Invariants**
//! - No log harms a database: what cannot be written is missing, with a warning to `tracing`.
//! - Only who holds the LOCK renames or begins files.

mod file;
mod head;
mod json;
#[cfg(test)]
mod tests;
mod told;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use crate::base::perf::{self, IoMetric};
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::db::info_log::file::LogFiles;
use crate::db::statistics::{Statistics, Ticker};
use crate::env::Clock;
use crate::options::{ColumnFamilyOptions, InfoLog, InfoLogLevel, Logger, Options};

/// The log of one open database.
pub(super) struct InfoLogger {
    level: InfoLogLevel,
    target: Target,
    /// When counters were written last.
    dumped_us: AtomicU64,
    clock: Arc<dyn Clock>,
}

enum Target {
    File(Box<Mutex<LogFiles>>),
    Logger { logger: Arc<dyn Logger>, one_at_a_time: Mutex<()> },
    Off,
}

impl InfoLogger {
    /// The log of the database in `path`. Writes nothing yet.
    pub(super) fn new(path: &Path, options: &Options, read_only: bool) -> Self {
        let target = match &options.info_log {
            InfoLog::File if read_only => Target::Off,
            InfoLog::File => Target::File(Box::new(Mutex::new(LogFiles::new(path, options)))),
            InfoLog::Logger(logger) => {
                Target::Logger { logger: logger.clone(), one_at_a_time: Mutex::new(()) }
            }
            InfoLog::Off => Target::Off,
        };
        let dumped_us = AtomicU64::new(options.env.clock.now_us());
        let clock = options.env.clock.clone();
        Self { level: options.info_log_level, target, dumped_us, clock }
    }

    /// Nothing that is said goes anywhere.
    pub(super) fn is_off(&self) -> bool {
        matches!(self.target, Target::Off)
    }

    /// Writes a message, unless its level is too low. No lock may be held.
    pub(super) fn say(&self, level: InfoLogLevel, message: &str) {
        if level < self.level {
            return;
        }
        let _time = perf::time(IoMetric::LoggerNanos);
        match &self.target {
            Target::File(files) => files.lock().append(message),
            Target::Logger { logger, one_at_a_time } => {
                let _guard = one_at_a_time.lock();
                if catch_unwind(AssertUnwindSafe(|| logger.log(level, message))).is_err() {
                    tracing::error!("a logger panicked");
                }
            }
            Target::Off => {}
        }
    }

    pub(super) fn info(&self, message: impl FnOnce() -> String) {
        if !self.is_off() && self.level <= InfoLogLevel::Info {
            self.say(InfoLogLevel::Info, &message());
        }
    }

    /// Writes an event for programs; `line` is told the time, in microseconds since 1970.
    fn event(&self, line: impl FnOnce(u64) -> Option<String>) {
        if !self.is_off()
            && self.level <= InfoLogLevel::Info
            && let Some(line) = line(self.clock.unix_micros())
        {
            self.say(InfoLogLevel::Info, &line);
        }
    }

    /// The WALs of these numbers are about to be replayed.
    pub(super) fn recovery_started(&self, job: u64, wals: impl Iterator<Item = u64>) {
        self.event(|micros| Some(json::recovery_started(micros, job, wals)));
    }

    /// They were replayed.
    pub(super) fn recovery_finished(&self, job: u64) {
        self.event(|micros| Some(json::recovery_finished(micros, job)));
    }

    /// Begins the log with the version and all options.
    pub(super) fn head(&self, options: &Options, families: &[(String, ColumnFamilyOptions)]) {
        if self.is_off() {
            return;
        }
        let head = head::text(options, families);
        let messages = head::messages(&head);
        if let Target::File(files) = &self.target {
            files.lock().write_head(&head, &messages);
        } else {
            messages.iter().for_each(|message| self.say(InfoLogLevel::Header, message));
        }
    }

    /// Writes the counters if they were not for `period` seconds; 0 for never.
    pub(super) fn dump_counters(&self, period: u32, clock: &dyn Clock, statistics: &Statistics) {
        let (now_us, dumped_us) = (clock.now_us(), self.dumped_us.load(Ordering::Relaxed));
        let period_us = u64::from(period).saturating_mul(1_000_000);
        if period_us == 0 || self.is_off() || now_us.saturating_sub(dumped_us) < period_us {
            return;
        }
        let (mine, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
        if self.dumped_us.compare_exchange(dumped_us, now_us, mine, relaxed).is_err() {
            // Another thread does.
            return;
        }
        self.info(|| {
            let mut text = "STATISTICS:".to_string();
            for ticker in Ticker::ALL {
                text.push_str(&format!("\n {} COUNT : {}", ticker.name(), statistics.get(*ticker)));
            }
            text
        });
    }

    /// The LOCK is about to be released: no file is renamed or begun any longer.
    pub(super) fn end(&self) {
        if let Target::File(files) = &self.target {
            files.lock().end();
        }
    }
}

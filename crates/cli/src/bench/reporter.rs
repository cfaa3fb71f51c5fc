//! `--report_interval_seconds`: how fast a benchmark is from moment to moment, as `db_bench` writes
//! it to `--report_file`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use flagstone::base::Result;
use flagstone::env::{Env, IoMode, WritableFile};

use super::flags::Flags;

/// A file that grows by a line every so many seconds.
pub struct Reporter<'a> {
    env: &'a Env,
    file: Arc<dyn WritableFile>,
    offset: u64,
    interval: Duration,
    start_us: u64,
    /// Operations in the lines that are written.
    told: u64,
}

impl<'a> Reporter<'a> {
    /// One that begins now, with the line of names; `None` if nobody wants it.
    pub fn begin(flags: &Flags, env: &'a Env) -> Result<Option<Self>> {
        let interval = Duration::from_secs(flags.report_interval_seconds);
        if interval.is_zero() {
            return Ok(None);
        }
        let file = env.fs.create_writable(&flags.report_file, IoMode::Buffered)?;
        let start_us = env.clock.now_us();
        let mut reporter = Self { env, file, offset: 0, interval, start_us, told: 0 };
        reporter.append("secs_elapsed,interval_qps\n")?;
        Ok(Some(reporter))
    }

    /// Writes on until the sender is gone.
    pub fn run(mut self, done: &AtomicU64, ended: &Receiver<()>) -> Result<()> {
        while ended.recv_timeout(self.interval) == Err(RecvTimeoutError::Timeout) {
            let (now_us, done) = (self.env.clock.now_us(), done.load(Ordering::Relaxed));
            let line = self.line(now_us, done);
            self.append(&line)?;
        }
        Ok(())
    }

    fn line(&mut self, now_us: u64, done: u64) -> String {
        let seconds = (now_us - self.start_us + 500_000) / 1_000_000;
        let since = done - std::mem::replace(&mut self.told, done);
        format!("{seconds},{since}\n")
    }

    fn append(&mut self, text: &str) -> Result<()> {
        self.file.write_at(self.offset, text.as_bytes())?;
        self.offset += text.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Counts what an engine writes, and looks at its files again and again.

use std::ops::Sub;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::task::{Activity, Phase};
use crate::engine::{Engine, Result};
use crate::measure;
use crate::work::Ending;

/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// Bytes that an engine wrote to tables and blob files, by its own count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// By flushes; values that are written to blob files when they are committed count here.
    pub flushed: u64,
    /// By compactions.
    pub compacted: u64,
    /// Bytes that were given back by compactions, or by moving values or punching holes where
    /// values lie in blob files: whether there were any says that collection has begun.
    pub collected: u64,
}

impl Written {
    /// Write amplification by RocksDB's definition; `None` if nothing was flushed.
    pub fn amplification(&self) -> Option<f64> {
        (self.flushed > 0).then(|| (self.flushed + self.compacted) as f64 / self.flushed as f64)
    }
}

impl Sub for Written {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            flushed: self.flushed - earlier.flushed,
            compacted: self.compacted - earlier.compacted,
            collected: self.collected - earlier.collected,
        }
    }
}

/// Watches a database while something is done to it.
pub struct Meter<'a> {
    /// The database.
    pub engine: &'a dyn Engine,
    /// Its files.
    pub directory: &'a Path,
    /// Bytes of keys and values that live.
    pub live_bytes: AtomicU64,
}

impl Meter<'_> {
    /// Does an activity of so many puts, waits until the background is done, and says what came of
    /// it.
    pub fn measure(
        &self,
        activity: Activity,
        puts: u64,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<Phase> {
        let before = self.engine.written()?;
        let is_over = AtomicBool::new(false);
        let (seconds, space_peak) = std::thread::scope(|scope| -> Result<_> {
            let ending = Ending(&is_over);
            let sampler = scope.spawn(|| self.sample(&is_over));
            let started = Instant::now();
            let done =
                work().and_then(|()| self.engine.flush()).and_then(|()| self.engine.settle());
            let seconds = started.elapsed().as_secs_f64();
            drop(ending);
            let peak = sampler.join().map_err(|_| "the sampler panicked")?;
            done?;
            Ok((seconds, peak?))
        })?;
        let written = self.engine.written()? - before;
        let space_idle = self.space()?;
        let space_peak = space_peak.map(|peak| peak.max(space_idle));
        Ok(Phase { activity, puts, seconds, written, space_peak, space_idle })
    }

    /// The largest ratio until it is over, of those since collection began.
    fn sample(&self, is_over: &AtomicBool) -> Result<Option<f64>> {
        let mut peak: Option<f64> = None;
        while !is_over.load(Ordering::Relaxed) {
            if self.engine.written()?.collected > 0 {
                peak = Some(self.space()?.max(peak.unwrap_or(0.0)));
            }
            std::thread::sleep(INTERVAL);
        }
        Ok(peak)
    }

    /// Bytes on the disk over live bytes, now.
    fn space(&self) -> Result<f64> {
        let live = self.live_bytes.load(Ordering::Relaxed);
        Ok(measure::data_bytes(self.directory)? as f64 / live.max(1) as f64)
    }
}

#[cfg(test)]
mod tests;

//! What a thread counts, and the line that `db_bench` prints of it.

use serde_json::{Value, json};

use super::histogram::Histogram;
use crate::text;

/// Counts of one thread, or of several together.
#[derive(Clone, Default)]
pub struct Report {
    start_us: u64,
    finish_us: u64,
    /// Seconds of all threads together.
    seconds: f64,
    operations: u64,
    bytes: u64,
    message: String,
    /// Latencies, if they are wanted.
    histogram: Option<Box<Histogram>>,
    last_ns: u64,
}

impl Report {
    /// Begins to count; latencies from this nanosecond on, if they are wanted.
    pub fn start(now_us: u64, latencies_from_ns: Option<u64>) -> Self {
        let histogram = latencies_from_ns.map(|_| Box::default());
        let last_ns = latencies_from_ns.unwrap_or(0);
        Self { start_us: now_us, finish_us: now_us, last_ns, histogram, ..Self::default() }
    }

    /// Counts finished operations; `clock`, which tells nanoseconds, is asked only for a histogram.
    #[inline]
    pub fn finished(&mut self, count: u64, clock: impl FnOnce() -> u64) {
        self.operations += count;
        if let Some(histogram) = &mut self.histogram {
            let now_ns = clock();
            histogram.add(now_ns - self.last_ns);
            self.last_ns = now_ns;
        }
    }

    /// Goes on after a rest, which belongs to no operation's latency.
    pub fn resume(&mut self, now_ns: u64) {
        self.last_ns = now_ns;
    }

    /// Counts bytes of keys and values.
    #[inline]
    pub fn add_bytes(&mut self, count: u64) {
        self.bytes += count;
    }

    /// Remarks on the result.
    pub fn remark(&mut self, message: String) {
        self.message = message;
    }

    /// Stops counting.
    pub fn stop(&mut self, now_us: u64) {
        self.finish_us = now_us;
        self.seconds = (now_us - self.start_us) as f64 / 1e6;
    }

    /// Adds what another thread counted.
    pub fn merge(&mut self, other: Self) {
        if self.operations == 0 && self.finish_us == 0 {
            *self = other;
            return;
        }
        self.start_us = self.start_us.min(other.start_us);
        self.finish_us = self.finish_us.max(other.finish_us);
        self.seconds += other.seconds;
        self.operations += other.operations;
        self.bytes += other.bytes;
        if self.message.is_empty() {
            self.message = other.message;
        }
        if let (Some(mine), Some(others)) = (&mut self.histogram, &other.histogram) {
            mine.merge(others);
        }
    }

    fn elapsed(&self) -> f64 {
        ((self.finish_us - self.start_us) as f64 / 1e6).max(1e-9)
    }

    /// `db_bench`'s line, and its histogram.
    pub fn text(&self, name: &str, operation: &str) -> String {
        let operations = self.operations.max(1);
        let mut extra = String::new();
        if self.bytes > 0 {
            extra = format!("{:>6.1} MB/s", self.bytes as f64 / 1_048_576.0 / self.elapsed());
        }
        for part in [&self.message] {
            if !part.is_empty() {
                let space = if extra.is_empty() { "" } else { " " };
                extra = format!("{extra}{space}{part}");
            }
        }
        let space = if extra.is_empty() { "" } else { " " };
        let mut out = format!(
            "{name:<12} : {:>11.3} micros/op {} ops/sec {:.3} seconds {operations} operations;{space}{extra}\n",
            self.seconds * 1e6 / operations as f64,
            (operations as f64 / self.elapsed()) as u64,
            self.elapsed(),
        );
        if let Some(histogram) = &self.histogram {
            out.push_str(&format!("Microseconds per {operation}:\n{histogram}\n"));
        }
        out
    }

    /// The same as JSON.
    pub fn json(&self, name: &str) -> Value {
        let operations = self.operations.max(1);
        let percentile =
            |percent| self.histogram.as_ref().map(|histogram| histogram.percentile(percent));
        json!({
            "benchmark": name,
            "micros_per_op": self.seconds * 1e6 / operations as f64,
            "ops_per_second": operations as f64 / self.elapsed(),
            "seconds": self.elapsed(),
            "operations": operations,
            "bytes": self.bytes,
            "bytes_per_second": self.bytes as f64 / self.elapsed(),
            "message": self.message.trim(),
            "p50_us": percentile(50.0),
            "p99_us": percentile(99.0),
            "p999_us": percentile(99.9),
        })
    }
}

/// The lines that `db_bench` prints before it starts.
pub fn header(flags: &super::Flags) -> String {
    let compressed = (flags.value_size as f64 * flags.compression_ratio + 0.5) as u64;
    let raw = (flags.key_size as u64 + flags.value_size as u64).saturating_mul(flags.num);
    let stored = (flags.key_size as u64).saturating_add(compressed).saturating_mul(flags.num);
    format!(
        "Flagstone:  version {}\n\
         Keys:       {} bytes each\n\
         Values:     {} bytes each ({compressed} bytes after compression)\n\
         Entries:    {}\n\
         RawSize:    {} (estimated)\n\
         FileSize:   {} (estimated)\n\
         Compression: {}\n\
         ------------------------------------------------\n",
        env!("CARGO_PKG_VERSION"),
        flags.key_size,
        flags.value_size,
        flags.num,
        text::bytes(raw),
        text::bytes(stored),
        flags.compression_type,
    )
}

#[cfg(test)]
mod tests;

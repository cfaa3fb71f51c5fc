//! Latencies and throughput of threads, and what the operating system counts of the process.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::engine::Result;

/// The longest latency that is told apart: a hundred seconds, in nanoseconds.
const LATENCY_MAX_NS: u64 = 100_000_000_000;

/// What one thread, or several of them together, did in a phase.
pub struct Recorder {
    started: Instant,
    last: Instant,
    latencies: Histogram<u64>,
    per_second: Vec<u64>,
}

impl Recorder {
    /// Starts the clock.
    pub fn start() -> Self {
        let now = Instant::now();
        let latencies =
            Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("bounds that are valid");
        Self { started: now, last: now, latencies, per_second: Vec::new() }
    }

    /// Counts `operations` that ended now and began when the ones before ended.
    #[inline]
    pub fn finished(&mut self, operations: u64) {
        self.finished_since(self.last, operations);
    }

    /// Counts `operations` that ended now and should have begun at `due`.
    #[inline]
    pub fn finished_since(&mut self, due: Instant, operations: u64) {
        let now = Instant::now();
        let latency = (now - due).as_nanos() as u64;
        self.latencies.saturating_record(latency);
        self.count(now, operations);
    }

    /// Time from the start to the last operation's end.
    pub fn elapsed(&self) -> Duration {
        self.last - self.started
    }

    #[inline]
    fn count(&mut self, now: Instant, operations: u64) {
        self.last = now;
        let second = (now - self.started).as_secs() as usize;
        if second >= self.per_second.len() {
            self.per_second.resize(second + 1, 0);
        }
        self.per_second[second] += operations;
    }

    /// Adds what another thread did in the same phase.
    pub fn merge(&mut self, other: &Self) {
        self.started = self.started.min(other.started);
        self.last = self.last.max(other.last);
        self.latencies.add(&other.latencies).expect("the same bounds");
        if self.per_second.len() < other.per_second.len() {
            self.per_second.resize(other.per_second.len(), 0);
        }
        for (sum, count) in self.per_second.iter_mut().zip(&other.per_second) {
            *sum += count;
        }
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.per_second.iter().sum()
    }

    /// Adds what was done after it, not counting the time between the two.
    pub fn append(&mut self, later: &Self) {
        // To the second, as far as the parts of seconds allow.
        let second = self.elapsed().as_secs() as usize;
        self.last += later.elapsed();
        self.latencies.add(&later.latencies).expect("the same bounds");
        self.per_second.resize(self.per_second.len().max(second + later.per_second.len()), 0);
        for (sum, count) in self.per_second[second..].iter_mut().zip(&later.per_second) {
            *sum += count;
        }
    }

    /// The figures.
    pub fn part(&self, name: &str) -> Part {
        let at = |quantile| self.latencies.value_at_quantile(quantile) as f64 / 1000.0;
        // The last second is not whole.
        let whole = &self.per_second[..self.per_second.len().saturating_sub(1)];
        Part {
            name: name.to_string(),
            operations: self.operations(),
            seconds: self.elapsed().as_secs_f64(),
            latency_us: Latency {
                p50: at(0.5),
                p99: at(0.99),
                p999: at(0.999),
                max: self.latencies.max() as f64 / 1000.0,
            },
            slowest_second: whole.iter().min().copied(),
            per_second: whole.to_vec(),
        }
    }
}

/// Latencies, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half took no longer.
    pub p50: f64,
    /// 99% took no longer.
    pub p99: f64,
    /// 99.9% took no longer.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// The figures of one phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What was done; the first part of a run is the one that it is named after.
    pub name: String,
    /// How often.
    pub operations: u64,
    /// In how long.
    pub seconds: f64,
    /// How long each took; a batch of operations is one call.
    pub latency_us: Latency,
    /// Operations in the slowest whole second, if there was a whole one.
    pub slowest_second: Option<u64>,
    /// Operations by whole second.
    pub per_second: Vec<u64>,
}

impl Part {
    /// Operations a second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.operations as f64 / self.seconds } else { 0.0 }
    }
}

/// What the operating system has counted so far. All but `machine_cpu_seconds` and `device_*` is of
/// this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// CPU time of all threads.
    pub cpu_seconds: f64,
    /// CPU time that anybody spent on the machine, host included.
    pub machine_cpu_seconds: f64,
    /// Bytes made dirty in the page cache or written past it. Some are dropped before they come to
    /// the disk, as those of a log that is soon removed.
    pub write_bytes: u64,
    /// Bytes that came from the disk.
    pub read_bytes: u64,
    /// Bytes passed to write calls.
    pub write_call_bytes: u64,
    /// Write calls.
    pub write_calls: u64,
    /// Bytes that the device under the directory was told to write, by whomever; unknown for some
    /// file systems.
    pub device_write_bytes: Option<u64>,
}

impl Counters {
    /// Reads them.
    pub fn now(directory: &Path) -> Result<Self> {
        let io = fs::read_to_string("/proc/self/io")?;
        let field = |name| number_after(&io, name).unwrap_or(0);
        Ok(Self {
            cpu_seconds: cpu_seconds(),
            machine_cpu_seconds: machine_cpu_seconds(&fs::read_to_string("/proc/stat")?),
            write_bytes: field("\nwrite_bytes:"),
            read_bytes: field("\nread_bytes:"),
            write_call_bytes: field("wchar:"),
            write_calls: field("syscw:"),
            device_write_bytes: device_write_bytes(directory),
        })
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds - earlier.cpu_seconds,
            machine_cpu_seconds: self.machine_cpu_seconds - earlier.machine_cpu_seconds,
            write_bytes: self.write_bytes - earlier.write_bytes,
            read_bytes: self.read_bytes - earlier.read_bytes,
            write_call_bytes: self.write_call_bytes - earlier.write_call_bytes,
            write_calls: self.write_calls - earlier.write_calls,
            device_write_bytes: self
                .device_write_bytes
                .zip(earlier.device_write_bytes)
                .map(|(now, then)| now - then),
        }
    }
}

/// The number that follows `name` in a text of names and numbers.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = &text[text.find(name)? + name.len()..];
    rest.split_whitespace().next()?.parse().ok()
}

/// Seconds not idle, from `/proc/stat`, whose unit is a hundredth of a second.
fn machine_cpu_seconds(stat: &str) -> f64 {
    let fields = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guests are within user.
    let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|index| ticks.get(*index)).sum::<u64>();
    busy as f64 / 100.0
}

fn device_write_bytes(directory: &Path) -> Option<u64> {
    const SECTOR: u64 = 512;
    let device = rustix::fs::stat(directory).ok()?.st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let stat = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
    Some(stat.split_whitespace().nth(6)?.parse::<u64>().ok()? * SECTOR)
}

/// Begins a new peak of resident memory.
pub fn reset_peak_memory() -> Result<()> {
    Ok(fs::write("/proc/self/clear_refs", "5")?)
}

/// The peak of resident memory since then, in bytes.
pub fn peak_memory_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    Ok(number_after(&status, "VmHWM:").ok_or("no VmHWM in /proc/self/status")? * 1024)
}

/// Empties the page cache of the files below a directory. What was written and not synced stays.
pub fn forget_files(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // A file may go away meanwhile.
        let Ok(file) = fs::File::open(&path) else { continue };
        if path.is_dir() {
            forget_files(&path)?;
        } else {
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
    }
    Ok(())
}

/// Bytes that the files below a directory take on the disk, preallocation included.
pub fn disk_bytes(directory: &Path) -> Result<u64> {
    const BLOCK: u64 = 512;
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // A file may go away meanwhile.
        let Ok(stat) = rustix::fs::lstat(&path) else { continue };
        let is_directory = path.is_dir() && !path.is_symlink();
        bytes += if is_directory { disk_bytes(&path)? } else { stat.st_blocks as u64 * BLOCK };
    }
    Ok(bytes)
}

/// Bytes that the tables and blob files in a database's directory take on the disk, without holes
/// and with what is preallocated.
pub fn data_bytes(directory: &Path) -> Result<u64> {
    const BLOCK: u64 = 512;
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if !path.extension().is_some_and(|extension| extension == "sst" || extension == "blob") {
            continue;
        }
        // A file may go away meanwhile.
        bytes += rustix::fs::lstat(&path).map_or(0, |stat| stat.st_blocks as u64 * BLOCK);
    }
    Ok(bytes)
}

/// Waits until this process uses next to no CPU: for engines that do not tell whether they are
/// done.
#[cfg(any(feature = "fjall", feature = "leveldb"))]
pub fn wait_until_idle() {
    const WINDOW: Duration = Duration::from_millis(200);
    loop {
        let before = cpu_seconds();
        std::thread::sleep(WINDOW);
        if cpu_seconds() - before < WINDOW.as_secs_f64() / 100.0 {
            return;
        }
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Touches fresh memory once, so that a virtual machine's host has it at hand and no engine pays
/// for it.
pub fn touch_memory(bytes: u64) {
    const PAGE: usize = 4096;
    let mut memory = vec![0u8; bytes as usize];
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    std::hint::black_box(&memory);
}

#[cfg(test)]
mod tests;

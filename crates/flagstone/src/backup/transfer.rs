//! Copying files and computing checksums, by several threads, at a limited rate.

use std::collections::VecDeque;
use std::path::Path;

use crate::base::checksum::crc32c_append;
use crate::base::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use crate::base::{Code, Error, Result, Temperature};
use crate::env::{Advice, FileSystem, IoMode, IoPriority, RateLimiter, Spawn, Task};

use super::options::{BackupProgress, ProgressCallback};

/// Small enough to stay in a core's cache between the read, the checksum and the write.
const BUFFER_SIZE: u64 = 256 << 10;

/// Reports how much was copied.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) callback: Option<ProgressCallback>,
    /// Bytes between two reports.
    pub(super) interval: u64,
    pub(super) total: u64,
    pub(super) copied: AtomicU64,
}

impl Progress {
    fn add(&self, bytes: u64) {
        let before = self.copied.fetch_add(bytes, Ordering::Relaxed);
        let Some(callback) = &self.callback else { return };
        let after = before + bytes;
        if before / self.interval != after / self.interval {
            callback(BackupProgress { bytes_copied: after, bytes_total: self.total });
        }
    }
}

/// How files are read and written.
pub(super) struct Transfer<'a> {
    pub(super) limiter: Option<&'a RateLimiter>,
    /// Bytes read at a time; 0 for the default.
    pub(super) buffer_size: u64,
    pub(super) sync: bool,
    pub(super) stop: &'a AtomicBool,
    pub(super) progress: &'a Progress,
}

/// Bytes of a file that went by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) size: u64,
    pub(super) crc32c: u32,
    /// What the file system says.
    pub(super) temperature: Temperature,
}

impl Passed {
    /// Of a file that was not read, so its file system was not asked.
    pub(super) fn unread(size: u64, crc32c: u32) -> Self {
        Self { size, crc32c, temperature: Temperature::UNKNOWN }
    }
}

impl Transfer<'_> {
    /// Copies the first `size` bytes of a file, or all, and syncs the copy if asked to.
    ///
    /// # Errors
    /// `Incomplete` if it was stopped; `Corruption` if the file is shorter, unless it `may_shrink`;
    /// `IoError`.
    pub(super) fn copy(
        &self,
        source: (&dyn FileSystem, &Path),
        size: Option<(u64, bool)>,
        target: (&dyn FileSystem, &Path),
    ) -> Result<Passed> {
        let output = target.0.create_writable(target.1, IoMode::Buffered)?;
        let passed = self.read(source, size, |offset, bytes| {
            self.wait(bytes.len(), RateLimiter::limits_writes)?;
            output.write_at(offset, bytes)?;
            self.progress.add(bytes.len() as u64);
            Ok(())
        })?;
        if self.sync {
            output.sync()?;
        }
        Ok(passed)
    }

    /// Writes a file of these bytes, and syncs it if asked to.
    pub(super) fn write(&self, bytes: &[u8], target: (&dyn FileSystem, &Path)) -> Result<Passed> {
        self.wait(bytes.len(), RateLimiter::limits_writes)?;
        let file = target.0.create_writable(target.1, IoMode::Buffered)?;
        file.write_at(0, bytes)?;
        if self.sync {
            file.sync()?;
        }
        self.progress.add(bytes.len() as u64);
        Ok(Passed::unread(bytes.len() as u64, crc32c_append(0, bytes)))
    }

    /// The size and checksum of a file.
    pub(super) fn checksum(&self, source: (&dyn FileSystem, &Path)) -> Result<Passed> {
        self.read(source, None, |_, _| Ok(()))
    }

    fn read(
        &self,
        (fs, path): (&dyn FileSystem, &Path),
        size: Option<(u64, bool)>,
        mut take: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<Passed> {
        let file = fs.open_random_access(path, IoMode::Buffered)?;
        file.advise(Advice::Sequential);
        let (end, may_shrink) = match size {
            Some(size) => size,
            None => (file.size()?, false),
        };
        let mut buffer = vec![0; (self.capacity() as u64).min(end) as usize];
        let mut passed = Passed { size: 0, crc32c: 0, temperature: file.temperature() };
        while passed.size < end {
            let wanted = (buffer.len() as u64).min(end - passed.size) as usize;
            self.wait(wanted, RateLimiter::limits_reads)?;
            let read = file.read_at(passed.size, &mut buffer[..wanted])?;
            if read == 0 && may_shrink {
                break;
            }
            if read == 0 {
                let message = format!("file ends before its {end} bytes");
                return Err(Error::corruption(message).at(path).at_offset(passed.size));
            }
            passed.crc32c = crc32c_append(passed.crc32c, &buffer[..read]);
            take(passed.size, &buffer[..read])?;
            passed.size += read as u64;
        }
        Ok(passed)
    }

    fn capacity(&self) -> usize {
        let size = if self.buffer_size == 0 { BUFFER_SIZE } else { self.buffer_size };
        size.clamp(1 << 12, 1 << 28) as usize
    }

    fn wait(&self, bytes: usize, is_limited: impl Fn(&RateLimiter) -> bool) -> Result<()> {
        if let Some(limiter) = self.limiter.filter(|limiter| is_limited(limiter)) {
            let is_over = || self.stop.load(Ordering::Acquire);
            limiter.request(bytes as u64, IoPriority::Low, is_over);
        }
        self.check_running()
    }

    /// # Errors
    /// `Incomplete` if it was stopped.
    pub(super) fn check_running(&self) -> Result<()> {
        if self.stop.load(Ordering::Acquire) {
            return Err(Error::new(Code::Incomplete, "the backup was stopped"));
        }
        Ok(())
    }
}

/// Does work on all items, by up to `threads` threads, and returns what came of it in their order.
/// Behind a failure no item is begun.
pub(super) fn on_all<T: Send, R: Send>(
    spawner: &dyn Spawn,
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = threads.min(items.len());
    let waiting: Mutex<VecDeque<(usize, T)>> = Mutex::new(items.into_iter().enumerate().collect());
    let done: Mutex<Vec<(usize, R)>> = Mutex::default();
    let failed: Mutex<Option<Error>> = Mutex::default();
    let run = || {
        loop {
            let next = waiting.lock().pop_front();
            let Some((place, item)) = next else { break };
            match work(item) {
                Ok(result) => done.lock().push((place, result)),
                Err(error) => {
                    waiting.lock().clear();
                    failed.lock().get_or_insert(error);
                }
            }
        }
    };
    let tasks = (0..threads).map(|_| Box::new(run) as Task<'_>).collect();
    spawner.run_all("backup", tasks);
    if let Some(error) = failed.lock().take() {
        return Err(error);
    }
    let mut done = std::mem::take(&mut *done.lock());
    done.sort_unstable_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

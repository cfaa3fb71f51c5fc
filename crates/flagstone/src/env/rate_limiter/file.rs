//! A file that asks a [`RateLimiter`] before it is written or read.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::{IoPriority, RateLimiter};
use crate::base::Result;
use crate::env::{Advice, RandomAccessFile, WritableFile};

/// Who reads and writes: how urgent that is now, whether it is still worth waiting for, and whom to
/// tell of the waiting.
pub trait IoWatch: Send + Sync {
    /// How urgent a read or write is now that is usually of this urgency.
    fn priority(&self, usual: IoPriority) -> IoPriority;

    /// Whether everything is to pass.
    fn is_over(&self) -> bool;

    /// So many bytes have passed after so many microseconds.
    fn note(&self, bytes: u64, waited_us: u64);
}

/// Asks before each write, and before each read, if the limiter limits these.
pub struct LimitedFile<F: ?Sized> {
    inner: Arc<F>,
    limiter: Arc<RateLimiter>,
    usual: IoPriority,
    watch: Arc<dyn IoWatch>,
}

impl<F: ?Sized> LimitedFile<F> {
    /// Around `inner`.
    pub fn new(
        inner: Arc<F>,
        limiter: Arc<RateLimiter>,
        usual: IoPriority,
        watch: Arc<dyn IoWatch>,
    ) -> Self {
        Self { inner, limiter, usual, watch }
    }

    fn pass(&self, bytes: usize) {
        let bytes = bytes as u64;
        let priority = self.watch.priority(self.usual);
        let waited = self.limiter.request(bytes, priority, || self.watch.is_over());
        self.watch.note(bytes, waited);
    }

    fn before_write(&self, bytes: usize) {
        if self.limiter.limits_writes() {
            self.pass(bytes);
        }
    }

    fn before_read(&self, bytes: usize) {
        if self.limiter.limits_reads() {
            self.pass(bytes);
        }
    }
}

impl<F: RandomAccessFile + ?Sized> RandomAccessFile for LimitedFile<F> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.before_read(buffer.len());
        self.inner.read_at(offset, buffer)
    }

    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn is_direct(&self) -> bool {
        self.inner.is_direct()
    }

    fn advise(&self, advice: Advice) {
        self.inner.advise(advice);
    }
}

impl<F: WritableFile + ?Sized> WritableFile for LimitedFile<F> {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.before_write(data.len());
        self.inner.write_at(offset, data)
    }

    fn write_vectored_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        self.before_write(parts.iter().map(|part| part.len()).sum());
        self.inner.write_vectored_at(offset, parts)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn range_sync(&self, range: Range<u64>, strict: bool) -> Result<bool> {
        self.inner.range_sync(range, strict)
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        self.inner.allocate(length, keep_size)
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.inner.truncate(length)
    }
}

//! Limits of what one call reads from files: a deadline, a time for each read, and a priority at a
//! rate limiter.
//!
//! **Algorithm.**
//! 1. A call with limits runs within [`ReadLimits::during`], which notes them for its thread.
//! 2. Before each read of a [`BoundedFile`], the read asks the thread's limits: it fails once the
//!    deadline has passed, and otherwise waits until the rate limiter lets it pass.
//! 3. After the read it fails if the read took too long, or the deadline has passed meanwhile. The
//!    system's reads cannot be broken off, so a call may end later than its deadline by one read.
//!
//! A call without limits pays for one look at a variable of its thread with each read of a file.
//!
//! **Thread safety.** Limits hold for the thread that the call runs in. Reads ahead by other
//! threads are not limited; the call that waits for them is.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::{Advice, Clock, IoPriority, Metadata, RandomAccessFile, RateLimiter};
use crate::base::{Code, Error, Result};

thread_local! {
    /// The limits of the call that this thread runs.
    static IN_FORCE: RefCell<Option<Arc<ReadLimits>>> = const { RefCell::new(None) };
}

/// Those of the calling thread. One that ends, and reads as it gives up what it kept, has none.
fn in_force() -> Option<Arc<ReadLimits>> {
    IN_FORCE.try_with(|limits| limits.borrow().clone()).ok().flatten()
}

/// Puts other limits in force; returns those before.
fn replace(limits: Option<Arc<ReadLimits>>) -> Option<Arc<ReadLimits>> {
    IN_FORCE.try_with(|known| known.replace(limits)).ok().flatten()
}

/// What limits the reads of one call.
pub(crate) struct ReadLimits {
    clock: Arc<dyn Clock>,
    deadline_us: u64,
    timeout_us: u64,
    limiter: Option<(Arc<RateLimiter>, IoPriority)>,
}

/// Puts back what was in force before, also if the call panics.
struct Before(Option<Arc<ReadLimits>>);

impl Drop for Before {
    fn drop(&mut self) {
        replace(self.0.take());
    }
}

impl ReadLimits {
    /// Limits that end at `deadline_us` of the clock's microseconds since 1970, and let each read
    /// take `timeout_us`; `u64::MAX` for as long as it takes.
    pub fn new(clock: Arc<dyn Clock>, deadline_us: u64, timeout_us: u64) -> Self {
        Self { clock, deadline_us, timeout_us, limiter: None }
    }

    /// The same; reads also wait for a rate limiter.
    #[must_use]
    pub fn limited_by(self, limiter: Arc<RateLimiter>, priority: IoPriority) -> Self {
        Self { limiter: Some((limiter, priority)), ..self }
    }

    /// Runs a call whose reads are to keep within the limits.
    ///
    /// # Errors
    /// `TimedOut` if the deadline has passed before it begins; those of the call.
    pub fn during<T>(self: &Arc<Self>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.check_deadline()?;
        let _before = Before(replace(Some(self.clone())));
        call()
    }

    /// [`Self::during`], where there are limits.
    ///
    /// # Errors
    /// As [`Self::during`].
    #[inline]
    pub fn within<T>(limits: Option<&Arc<Self>>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        match limits {
            None => call(),
            Some(limits) => limits.during(call),
        }
    }

    /// Runs a part of a call, for which others wait, too: its reads keep to the call's times, and
    /// do not wait for the rate limiter.
    ///
    /// # Errors
    /// As [`Self::during`].
    pub fn without_limiter<T>(part: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(limits) = in_force().filter(|limits| limits.limiter.is_some()) else {
            return part();
        };
        let Self { clock, deadline_us, timeout_us, .. } = &*limits;
        Arc::new(Self::new(clock.clone(), *deadline_us, *timeout_us)).during(part)
    }

    /// Microseconds until the deadline.
    fn left_us(&self) -> u64 {
        if self.deadline_us == u64::MAX {
            return u64::MAX;
        }
        self.deadline_us.saturating_sub(self.clock.unix_micros())
    }

    fn check_deadline(&self) -> Result<()> {
        if self.left_us() > 0 {
            return Ok(());
        }
        Err(Error::new(Code::TimedOut, "the read's deadline has passed"))
    }

    fn read<T>(
        &self,
        file: &dyn RandomAccessFile,
        bytes: usize,
        read: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let named = |error: Error| error.at(file.path());
        self.check_deadline().map_err(named)?;
        if let Some((limiter, priority)) = &self.limiter {
            limiter.request_within(bytes as u64, *priority, || self.left_us());
            self.check_deadline().map_err(named)?;
        }
        let begun = self.clock.now_us();
        let outcome = read()?;
        let took = self.clock.now_us().saturating_sub(begun);
        if took > self.timeout_us {
            let message =
                format!("a read took {took} microseconds; io_timeout permits {}", self.timeout_us);
            return Err(Error::new(Code::TimedOut, message).at(file.path()));
        }
        self.check_deadline().map_err(named)?;
        Ok(outcome)
    }
}

/// Whether the call that this thread runs has limits.
pub(super) fn are_in_force() -> bool {
    in_force().is_some()
}

/// A file whose reads keep within the limits of the calls that cause them.
pub(crate) struct BoundedFile(pub Arc<dyn RandomAccessFile>);

impl BoundedFile {
    fn bounded<T>(&self, bytes: usize, read: impl FnOnce() -> Result<T>) -> Result<T> {
        match in_force() {
            None => read(),
            Some(limits) => limits.read(&*self.0, bytes, read),
        }
    }
}

impl RandomAccessFile for BoundedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.bounded(buffer.len(), || self.0.read_at(offset, buffer))
    }

    fn read_onto(&self, offset: u64, length: usize, buffer: &mut Vec<u8>) -> Result<usize> {
        self.bounded(length, || self.0.read_onto(offset, length, buffer))
    }

    fn is_unwritten(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.0.is_unwritten(offset, bytes)
    }

    fn size(&self) -> Result<u64> {
        self.0.size()
    }

    fn metadata(&self) -> Result<Metadata> {
        self.0.metadata()
    }

    fn share(&self) -> Result<bool> {
        self.0.share()
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.0.descriptor()
    }

    fn note_read(&self, place: (u64, usize), since: Instant) {
        self.0.note_read(place, since);
    }

    fn is_direct(&self) -> bool {
        self.0.is_direct()
    }

    fn read_block(&self) -> usize {
        self.0.read_block()
    }

    fn advise(&self, advice: Advice) {
        self.0.advise(advice);
    }
}

#[cfg(test)]
mod tests;

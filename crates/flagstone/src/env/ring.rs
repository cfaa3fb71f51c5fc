//! Reads through io_uring: one call hands many reads to the kernel, and they return as they
//! complete.
//!
//! Each thread has its own ring, from its first batch until it ends. No other thread waits for it,
//! and the kernel does the ring's work while the thread waits anyway.
//!
//! **Invariants.** The kernel writes only to buffers that the ring owns. A buffer belongs to the
//! kernel from the push of its read until that read's completion was seen; meanwhile nothing else
//! touches it. A ring is dropped only after it has waited for all of its reads. If the kernel
//! refuses to let it wait, the buffers are never freed.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use io_uring::{IoUring, Probe, opcode, types};

use super::direct::AlignedBuffer;
use super::together::{Place, SHARED_MAX, Take};
use crate::base::perf::{self, IoMetric};

/// Reads that are under way at once: more than devices need to be busy.
const DEPTH: usize = 64;

/// Bytes that are under way at once, but for a single read.
const BYTES_MAX: usize = 4 << 20;

/// What the capacity of a buffer is a multiple of, at least: blocks of a file are of about one
/// size, and the next batch's are to fit, too.
const CAPACITY_STEP: usize = 512;

/// Longer buffers are not kept for the next batch.
const KEPT_MAX: usize = 32 << 10;

/// Nor are more bytes than that together: each thread that ever read a batch has them until it
/// ends, and no account does.
const KEPT_TOGETHER_MAX: usize = 512 << 10;

/// So many completions are waited for at once: fewer calls than one for each, and yet something to
/// do while others are under way.
const AWAITED: usize = 8;

/// Set once the kernel has refused: it will again. Seccomp filters of containers often forbid the
/// calls.
static REFUSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The thread's ring, when it is not in use.
    static RING: Cell<Option<Box<Ring>>> = const { Cell::new(None) };
}

/// Reads what can be read through the thread's ring: the positions of the places that are left, and
/// how many went through it.
pub(super) fn read(places: &[Place<'_>], take: &mut impl Take) -> (Vec<usize>, usize) {
    let mut left = Vec::new();
    let mut jobs = Vec::with_capacity(places.len());
    for (at, place) in places.iter().enumerate() {
        match place.file.descriptor().filter(|_| (1..=SHARED_MAX).contains(&place.length)) {
            Some(descriptor) => jobs.push(Job::new(at, place, descriptor)),
            None => left.push(at),
        }
    }
    let ring = if jobs.len() > 1 { Ring::of_thread() } else { None };
    let Some(mut ring) = ring else { return ((0..places.len()).collect(), 0) };
    let mut rest = jobs.as_slice();
    let mut outcome = Ok(());
    while !rest.is_empty() && outcome.is_ok() {
        let (batch, others) = rest.split_at(batch_of(rest));
        outcome = ring.read_batch(batch, take, &mut left);
        rest = others;
    }
    left.extend(rest.iter().map(|job| job.at));
    match outcome {
        // A thread that is about to end keeps none.
        Ok(()) => drop(RING.try_with(|kept| kept.set(Some(ring)))),
        Err(error) => refused(&error),
    }
    (left, jobs.len())
}

/// How many of these reads go together.
fn batch_of(jobs: &[Job<'_>]) -> usize {
    let mut bytes = 0;
    let fits = |job: &&Job<'_>| {
        bytes += job.length;
        bytes <= BYTES_MAX
    };
    jobs.iter().take(DEPTH).take_while(fits).count().max(1)
}

fn refused(error: &io::Error) {
    use rustix::io::Errno;
    let is_for_now = matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE));
    if !is_for_now && !REFUSED.swap(true, Ordering::Relaxed) {
        tracing::info!(%error, "io_uring is not available; reads are made one at a time");
    }
}

/// One read.
struct Job<'a> {
    /// Its position in the list of places.
    at: usize,
    descriptor: BorrowedFd<'a>,
    /// Where the read begins, and how many bytes it is of: whole blocks around those wanted if the
    /// file is direct.
    offset: u64,
    length: usize,
    /// What these are a multiple of, and where it comes to in memory.
    block: usize,
    /// What is wanted of it: so many bytes, behind these.
    skipped: usize,
    wanted: usize,
}

impl<'a> Job<'a> {
    fn new(at: usize, place: &Place<'a>, descriptor: BorrowedFd<'a>) -> Self {
        let block = place.file.read_block();
        let skipped = place.offset as usize % block;
        let length = (skipped + place.length).next_multiple_of(block);
        let offset = place.offset - skipped as u64;
        Self { at, descriptor, offset, length, block, skipped, wanted: place.length }
    }
}

/// A ring, and the buffers that its reads fill.
struct Ring {
    ring: IoUring,
    /// The buffer of each read that is under way, by its number in the batch; others wait for the
    /// next batch.
    buffers: Vec<AlignedBuffer>,
    /// Reads that were pushed and whose completion was not seen.
    under_way: usize,
}

impl Ring {
    /// The thread's ring, made if it has none at hand; `None` if the kernel does not permit it.
    fn of_thread() -> Option<Box<Self>> {
        if REFUSED.load(Ordering::Relaxed) {
            return None;
        }
        if let Ok(Some(ring)) = RING.try_with(Cell::take) {
            return Some(ring);
        }
        Self::new().map(Box::new).map_err(|error| refused(&error)).ok()
    }

    fn new() -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.dontfork();
        // Since Linux 6.1 the kernel can leave everything to the time when the thread waits.
        let ring =
            match builder.clone().setup_single_issuer().setup_defer_taskrun().build(DEPTH as u32) {
                Err(error)
                    if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) =>
                {
                    builder.build(DEPTH as u32)?
                }
                ring => ring?,
            };
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        Ok(Self { ring, buffers: Vec::new(), under_way: 0 })
    }

    /// Reads at most `DEPTH` places; what was not filled is left for others to read.
    fn read_batch(
        &mut self,
        jobs: &[Job<'_>],
        take: &mut impl Take,
        left: &mut Vec<usize>,
    ) -> io::Result<()> {
        for (number, job) in jobs.iter().enumerate() {
            self.push(number, job);
        }
        let mut seen = [false; DEPTH];
        let mut outcome = Ok(());
        while self.under_way > 0 && outcome.is_ok() {
            outcome = self.wait_for(AWAITED);
            while let Some((number, filled)) = self.next_completion() {
                seen[number] = true;
                let Job { at, length, skipped, wanted, .. } = jobs[number];
                if filled == Some(length) {
                    perf::count(IoMetric::BytesRead, length as u64);
                    take(at, Ok(&self.buffers[number].as_slice()[skipped..skipped + wanted]))
                } else {
                    left.push(at)
                }
            }
        }
        let missing = jobs.iter().zip(seen).filter(|(_, seen)| !seen);
        left.extend(missing.map(|(job, _)| job.at));
        if outcome.is_ok() {
            keep_some(&mut self.buffers);
        }
        outcome
    }

    /// Queues a read into the buffer of that number, for the kernel to take at the next wait.
    fn push(&mut self, number: usize, job: &Job<'_>) {
        if self.buffers.len() == number {
            self.buffers.push(AlignedBuffer::default());
        }
        let buffer = &mut self.buffers[number];
        if !buffer.suits(job.block, job.length) {
            *buffer =
                AlignedBuffer::aligned_to(job.block, job.length.next_multiple_of(CAPACITY_STEP));
        }
        buffer.resize(buffer.capacity());
        let bytes = &mut buffer.as_mut_slice()[..job.length];
        let descriptor = types::Fd(job.descriptor.as_raw_fd());
        let entry = opcode::Read::new(descriptor, bytes.as_mut_ptr(), bytes.len() as u32);
        let entry = entry.offset(job.offset).build().user_data(number as u64);
        // SAFETY: the bytes belong to a buffer that nobody touches or frees before the read's
        // completion was seen: a batch pushes each number once, begins with nothing under way, and
        // reads a buffer only after its completion; on the way out `drop` waits for what is under
        // way, or lets the buffers live for ever. The descriptor is open for as long as `job`
        // lives, which is longer than this ring is in use.
        #[expect(unsafe_code, reason = "the one place that hands memory to the kernel")]
        let pushed = unsafe { self.ring.submission().push(&entry) };
        self.under_way += usize::from(pushed.is_ok());
    }

    /// Hands over what was pushed, and waits until some of it is done.
    fn wait_for(&self, some: usize) -> io::Result<()> {
        match self.ring.submit_and_wait(some.min(self.under_way)) {
            Ok(_) => Ok(()),
            // What is done comes first, then it is tried again.
            Err(error) => match rustix::io::Errno::from_io_error(&error) {
                Some(
                    rustix::io::Errno::INTR | rustix::io::Errno::AGAIN | rustix::io::Errno::BUSY,
                ) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// The number of a read that is done, and the bytes that it got; `None` of these if it failed.
    fn next_completion(&mut self) -> Option<(usize, Option<usize>)> {
        let entry = self.ring.completion().next()?;
        self.under_way -= 1;
        Some((entry.user_data() as usize, usize::try_from(entry.result()).ok()))
    }
}

/// Frees what is not worth keeping for the next batch.
fn keep_some(buffers: &mut [AlignedBuffer]) {
    let mut kept = 0;
    for buffer in buffers {
        let capacity = buffer.capacity();
        if capacity <= KEPT_MAX && kept + capacity <= KEPT_TOGETHER_MAX {
            kept += capacity
        } else {
            *buffer = AlignedBuffer::default()
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.under_way > 0 {
            if self.wait_for(self.under_way).is_err() {
                std::mem::forget(std::mem::take(&mut self.buffers));
                return;
            }
            while self.next_completion().is_some() {}
        }
    }
}

#[cfg(test)]
mod tests;

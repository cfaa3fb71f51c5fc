//! Who holds memory beside the cache, and what that leaves to the cache.
//!
//! Holders tell of whole pieces (a chunk of an arena, an open table, the buffers of a job), of
//! range deletions in memtables, and of each block that a cache lets go of while somebody uses it.
//! No put, and no lookup that finds its block in the cache, meets these counts.
//!
//! **Thread safety.** The counts are relaxed sums. Who follows their total hears of it from one
//! thread at a time, and last of a total that was right when nobody changed it any more.

use std::sync::{Arc, OnceLock};

use crate::base::allocator::release_free_memory;
use crate::base::sync::{AtomicUsize, Mutex, Ordering};

/// What memory is held for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum MemoryKind {
    /// Memtables: those written to, those that wait for a flush, and flushed ones that a reader
    /// keeps.
    Memtables,
    /// Memory of dropped memtables, kept for the next.
    RecycledArenas,
    /// Index, filter and properties of open tables.
    Tables,
    /// Cursors: those in use, and those kept for the next iterator.
    Cursors,
    /// Buffers of flushes and compactions.
    Jobs,
    /// Batches while they are written, what is made of them on their way, and values that are
    /// written piece by piece.
    Writes,
    /// Log records that are being framed, or wait for their way into the WAL's file.
    WalBuffers,
    /// Large values that were read from blob files, and that somebody holds outside the cache and
    /// the buffers of a cursor.
    Values,
    /// Blocks, indexes, and small values of blob files, that somebody uses and the cache let go of.
    KeptBlocks,
}

const HOLDERS: usize = 9;

/// What is smaller, in bytes, is not told of by itself if it lives for one call, or one value: to
/// write or read so much takes a thousand times as long as to count it, and a thousand threads with
/// less have some dozen megabytes.
pub const COUNTED_FROM: usize = 64 << 10;

/// The bytes that each holder has.
#[derive(Default)]
pub struct MemoryAccount {
    held: [AtomicUsize; HOLDERS],
    pieces: [AtomicUsize; HOLDERS],
    /// The most that all had together.
    most: AtomicUsize,
    follower: OnceLock<Follower>,
    /// Bytes freed since the allocator was last asked for them.
    freed: AtomicUsize,
    /// How many of these are worth that; 0 if none are.
    release_step: AtomicUsize,
}

struct Follower {
    step: AtomicUsize,
    told: AtomicUsize,
    one_at_a_time: Mutex<()>,
    follow: Box<dyn Fn(usize) + Send + Sync>,
}

impl MemoryAccount {
    /// Bytes that a holder has now.
    pub fn held(&self, holder: MemoryKind) -> usize {
        // Taken by one thread before the other has told that it gave them, they make less than
        // nothing for a moment.
        (self.held[holder as usize].load(Ordering::Relaxed) as isize).max(0) as usize
    }

    /// How many pieces these are, if they were taken with [`MemoryAccount::hold`].
    pub fn pieces(&self, holder: MemoryKind) -> usize {
        self.pieces[holder as usize].load(Ordering::Relaxed)
    }

    /// Bytes of all holders.
    pub fn total(&self) -> usize {
        // While a piece changes hands its bytes may be missing in one before they stand in the
        // other.
        self.held.iter().map(|held| held.load(Ordering::Relaxed)).fold(0, usize::wrapping_add)
    }

    /// The most bytes that all holders had together so far.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// A holder has so many bytes more.
    pub fn add(&self, holder: MemoryKind, bytes: usize) {
        self.held[holder as usize].fetch_add(bytes, Ordering::Relaxed);
        // Less than nothing for a moment is not the most.
        let total = (self.total() as isize).max(0) as usize;
        if total > self.most.load(Ordering::Relaxed) {
            self.most.fetch_max(total, Ordering::Relaxed);
        }
        self.tell();
    }

    /// A holder has so many bytes less.
    pub fn subtract(&self, holder: MemoryKind, bytes: usize) {
        self.held[holder as usize].fetch_sub(bytes, Ordering::Relaxed);
        self.tell();
    }

    /// A piece of so many bytes, until it is dropped.
    pub fn hold(self: &Arc<Self>, holder: MemoryKind, bytes: usize) -> Held {
        self.pieces[holder as usize].fetch_add(1, Ordering::Relaxed);
        self.add(holder, bytes);
        Held { account: self.clone(), holder, bytes }
    }

    /// [`MemoryAccount::hold`] of what is counted only if it is large: from [`COUNTED_FROM`] on.
    #[inline]
    pub fn hold_large(self: &Arc<Self>, holder: MemoryKind, bytes: usize) -> Option<Held> {
        (bytes >= COUNTED_FROM).then(|| self.hold(holder, bytes))
    }

    /// From now on `follow` hears the total when it has changed by `step` or more since it last
    /// did. Once for each account. It may change the step ([`MemoryAccount::follow_every`]), and
    /// takes no lock that a holder has.
    ///
    /// # Panics
    /// If somebody follows already.
    pub fn follow(&self, step: usize, follow: impl Fn(usize) + Send + Sync + 'static) {
        let follow = Box::new(follow);
        let follower = Follower {
            step: AtomicUsize::new(step),
            told: AtomicUsize::new(0),
            one_at_a_time: Mutex::new(()),
            follow,
        };
        assert!(self.follower.set(follower).is_ok(), "one follows the account");
        self.tell();
    }

    /// Whoever follows hears of changes of so many bytes from now on.
    pub fn follow_every(&self, step: usize) {
        if let Some(follower) = self.follower.get() {
            follower.step.store(step, Ordering::Relaxed);
        }
    }

    /// Whoever follows hears the total again: something else that it goes by has changed.
    pub fn tell_again(&self) {
        if let Some(follower) = self.follower.get() {
            let _one_at_a_time = follower.one_at_a_time.lock();
            let total = self.total();
            follower.told.store(total, Ordering::Relaxed);
            (follower.follow)(total);
        }
        self.tell();
    }

    /// From now on, each time so many bytes were freed the allocator is to give them back to the
    /// system.
    pub fn release_every(&self, step: usize) {
        self.release_step.store(step, Ordering::Relaxed);
    }

    /// Memory was freed that is not likely to be allocated again by the same thread; whether the
    /// allocator was asked for it.
    pub fn freed(&self, bytes: usize) -> bool {
        let step = self.release_step.load(Ordering::Relaxed);
        let is_worth_it =
            step > 0 && self.freed.fetch_add(bytes, Ordering::Relaxed) + bytes >= step;
        if is_worth_it {
            self.freed.store(0, Ordering::Relaxed);
            release_free_memory();
        }
        is_worth_it
    }

    /// What changes its size, until it is dropped; no piece, and no bytes yet.
    pub fn measured(self: &Arc<Self>, holder: MemoryKind) -> Measured {
        Measured { account: self.clone(), holder, bytes: 0 }
    }

    fn tell(&self) {
        let Some(follower) = self.follower.get() else { return };
        loop {
            let total = self.total();
            if total.abs_diff(follower.told.load(Ordering::Relaxed))
                < follower.step.load(Ordering::Relaxed)
            {
                return;
            }
            // Who has the lock looks again after it.
            let Some(_one_at_a_time) = follower.one_at_a_time.try_lock() else { return };
            follower.told.store(total, Ordering::Relaxed);
            (follower.follow)(total);
        }
    }
}

/// Memory in an account that grows and shrinks; dropped with what it stands for.
pub struct Measured {
    account: Arc<MemoryAccount>,
    holder: MemoryKind,
    bytes: usize,
}

impl Measured {
    /// It has so many bytes now. Where these are as many as before, nobody is told.
    #[inline]
    pub fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.change(bytes);
        }
    }

    /// [`Measured::set`] of what counts only if it is large: from [`COUNTED_FROM`] on.
    #[inline]
    pub fn set_large(&mut self, bytes: usize) {
        self.set(if bytes < COUNTED_FROM { 0 } else { bytes });
    }

    #[cold]
    fn change(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.account.add(self.holder, bytes - self.bytes);
        } else if bytes < self.bytes {
            self.account.subtract(self.holder, self.bytes - bytes);
        }
        self.bytes = bytes;
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Memory in an account; dropped with what it stands for.
pub struct Held {
    account: Arc<MemoryAccount>,
    holder: MemoryKind,
    bytes: usize,
}

impl Held {
    /// Where it is.
    pub fn account(&self) -> &Arc<MemoryAccount> {
        &self.account
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.pieces[self.holder as usize].fetch_sub(1, Ordering::Relaxed);
        self.account.subtract(self.holder, self.bytes);
        if self.holder == MemoryKind::Jobs {
            self.account.freed(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests;

//! An arena that several threads allocate from side by side.
//!
//! 1. A small arena hands out every piece under its lock.
//! 2. One that has grown has lanes. A writer takes a lane that is free, preferably the one that its
//!    thread had before, and gives it back when it is dropped. A lane has a stock of memory, which
//!    only its holder cuts up, and refills it under the arena's lock. A writer that finds no free
//!    lane takes every piece under the lock.
//! 3. A refill is at most 1/64 of what the arena has handed out, and at most 1/64 of a chunk: all
//!    lanes together have at most a quarter of the memory in stock. A refill that lies right behind
//!    what is left of the stock extends it, so that one writer alone wastes nothing.
//!
//! 4. When half a chunk is left, the next writer that has nothing else to do makes the one that
//!    comes next ([`SharedArena::fetch_ahead`]), without the lock. Meanwhile others go on with
//!    what is left.
//!
//! A stock counts as used. So the counts of bytes change with a refill only, and writers do not
//! meet there.
//!
//! **Thread safety.** What a lane has belongs to the thread that set `is_taken`, until that thread
//! resets it. No thread waits for a lane.
#![expect(unsafe_code, reason = "lanes in an arena, each with one holder at a time")]

use std::cell::UnsafeCell;
use std::ptr::{self, NonNull};

use super::arena::{Allocate, Arena, Rest, rounded};
use super::counts::{Addition, Counts};
use crate::base::own_stripe;
use crate::base::sync::{AtomicBool, AtomicPtr, AtomicUsize, Mutex, Ordering};

const LANES: usize = 16;

/// How many lanes a writer looks at.
const LOOKS: usize = 4;

/// The part of an arena, and of one of its blocks, that a refill is at most.
const PARTS: usize = if cfg!(any(miri, feature = "shuttle")) { 8 } else { 64 };

/// The smallest refill in bytes: with fewer, a lane spares nothing.
const REFILL_MIN: usize = if cfg!(any(miri, feature = "shuttle")) { 256 } else { 1 << 10 };

/// An arena for several writers. Each lane also keeps a `K` from one of its holders to the next.
pub(super) struct SharedArena<K> {
    arena: Mutex<Arena>,
    /// Null while the arena is small.
    lanes: AtomicPtr<[Lane<K>; LANES]>,
    used: AtomicUsize,
    reserved: AtomicUsize,
    /// Somebody should make the chunk that comes next, and nobody does yet.
    asks_ahead: AtomicBool,
    /// Additions by writers without a lane.
    counts: Counts,
}

/// What one writer has for itself; see "Thread safety".
#[repr(align(128))]
struct Lane<K> {
    is_taken: AtomicBool,
    stock: UnsafeCell<Rest>,
    /// Additions by the lane's holders.
    counts: Counts,
    kept: UnsafeCell<K>,
}

// SAFETY: `stock` and `kept` are reached only by the lane's holder; see "Thread safety".
unsafe impl<K: Send> Sync for Lane<K> {}

// SAFETY: `lanes` points into the arena, to what may be shared.
unsafe impl<K: Send> Sync for SharedArena<K> {}
// SAFETY: the same; the arena moves with it.
unsafe impl<K: Send> Send for SharedArena<K> {}

impl<K: Copy + Default> SharedArena<K> {
    pub(super) fn new(arena: Arena) -> Self {
        let (used, reserved) = (AtomicUsize::new(arena.used()), AtomicUsize::new(arena.reserved()));
        Self {
            arena: Mutex::new(arena),
            lanes: AtomicPtr::new(ptr::null_mut()),
            used,
            reserved,
            asks_ahead: AtomicBool::new(false),
            counts: Counts::default(),
        }
    }

    /// Makes the chunk that comes next, if it is time and the arena is to have `up_to` bytes. To be
    /// called where nobody waits for the caller: the system clears the memory.
    #[inline]
    pub(super) fn fetch_ahead(&self, up_to: usize) {
        if self.asks_ahead.load(Ordering::Relaxed) && self.reserved() < up_to {
            self.fetch();
        }
    }

    #[cold]
    fn fetch(&self) {
        if !self.asks_ahead.swap(false, Ordering::Relaxed) {
            return;
        }
        let ahead = self.arena.lock().ahead();
        let chunk = ahead.make();
        let mut arena = self.arena.lock();
        arena.keep_ahead(chunk);
        self.reserved.store(arena.reserved(), Ordering::Relaxed);
    }

    /// Bytes handed out, the lanes' stocks included.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes asked of the allocator.
    pub(super) fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// The counts of all additions, in parts. First comes that to which the first additions went.
    #[inline]
    pub(super) fn counts(&self) -> impl Iterator<Item = &Counts> {
        let lanes = self.lanes().into_iter().flatten();
        std::iter::once(&self.counts).chain(lanes.map(|lane| &lane.counts))
    }

    #[inline]
    pub(super) fn writer(&self) -> ArenaWriter<'_, K> {
        ArenaWriter { arena: self, lane: self.free_lane() }
    }

    #[inline]
    fn lanes(&self) -> Option<&[Lane<K>; LANES]> {
        // SAFETY: they lie in the arena, which lives as long as `self`, and were stored complete.
        unsafe { self.lanes.load(Ordering::Acquire).as_ref() }
    }

    /// Takes a lane.
    #[inline]
    fn free_lane(&self) -> Option<&Lane<K>> {
        let lanes = self.lanes()?;
        // The scheduler runs all its threads in one.
        let own = if cfg!(feature = "shuttle") { 0 } else { own_stripe() };
        (0..LOOKS).map(|look| &lanes[(own + look) % LANES]).find(|lane| lane.take())
    }

    /// The size of the next refill; 0 if a lane would not be worth it.
    fn refill_size(arena: &Arena) -> usize {
        // Large pieces lie in chunks of their own, and do not make the next chunk larger.
        let size = arena.used().min(arena.next_chunk_size()) / PARTS;
        if size < REFILL_MIN { 0 } else { rounded(size) }
    }

    /// Hands out `size` bytes for a writer whose stock does not have them.
    #[cold]
    fn allocate(&self, stock: Option<&mut Rest>, size: usize) -> NonNull<u8> {
        let mut arena = self.arena.lock();
        let refill = Self::refill_size(&arena);
        let piece = match stock.filter(|_| size <= refill / 4) {
            Some(stock) => {
                arena.extend(stock, size, refill);
                stock.cut(size).expect("it was just refilled")
            }
            None => arena.allocate(size),
        };
        if refill > 0 && self.lanes.load(Ordering::Relaxed).is_null() {
            self.make_lanes(&mut arena);
        }
        if arena.asks_ahead() {
            self.asks_ahead.store(true, Ordering::Relaxed);
        }
        self.used.store(arena.used(), Ordering::Relaxed);
        self.reserved.store(arena.reserved(), Ordering::Relaxed);
        piece
    }

    fn make_lanes(&self, arena: &mut Arena) {
        let at = arena
            .allocate_aligned(size_of::<[Lane<K>; LANES]>(), align_of::<Lane<K>>())
            .cast::<[Lane<K>; LANES]>();
        // SAFETY: the piece is that large and aligned, and no other thread knows it yet.
        unsafe { at.write(std::array::from_fn(|_| Lane::default())) };
        self.lanes.store(at.as_ptr(), Ordering::Release);
    }
}

impl<K: Default> Default for Lane<K> {
    fn default() -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            stock: UnsafeCell::new(Rest::NONE),
            counts: Counts::default(),
            kept: UnsafeCell::default(),
        }
    }
}

impl<K> Lane<K> {
    /// Takes it, unless another thread has it.
    #[inline]
    fn take(&self) -> bool {
        !self.is_taken.load(Ordering::Relaxed) && !self.is_taken.swap(true, Ordering::Acquire)
    }
}

/// The right to allocate from a [`SharedArena`], side by side with others.
pub(super) struct ArenaWriter<'a, K> {
    arena: &'a SharedArena<K>,
    /// Taken by this writer.
    lane: Option<&'a Lane<K>>,
}

impl<K: Copy + Default> ArenaWriter<'_, K> {
    /// Counts an addition.
    #[inline]
    pub(super) fn count(&mut self, addition: &Addition) {
        match self.lane {
            Some(lane) => lane.counts.add_alone(addition),
            None => self.arena.counts.add(addition),
        }
    }

    /// What the lane keeps from one holder to the next, if the writer has one: at first the
    /// default.
    #[inline]
    pub(super) fn kept(&mut self) -> Option<&mut K> {
        // SAFETY: the writer holds the lane, and is borrowed for as long as this.
        self.lane.map(|lane| unsafe { &mut *lane.kept.get() })
    }
}

impl<K: Copy + Default> Allocate for ArenaWriter<'_, K> {
    #[inline]
    fn allocate(&mut self, size: usize) -> NonNull<u8> {
        let size = rounded(size);
        // The arena may have got lanes.
        self.lane = self.lane.or_else(|| self.arena.free_lane());
        // SAFETY: the writer holds the lane, and is borrowed for as long as this.
        let mut stock = self.lane.map(|lane| unsafe { &mut *lane.stock.get() });
        match stock.as_mut().and_then(|stock| stock.cut(size)) {
            Some(piece) => piece,
            None => self.arena.allocate(stock, size),
        }
    }
}

impl<K> Drop for ArenaWriter<'_, K> {
    #[inline]
    fn drop(&mut self) {
        if let Some(lane) = self.lane {
            lane.is_taken.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests;

//! Memory that is handed out piece by piece and given back all at once.
//!
//! **Invariants**
//! 1. A piece is never moved, reused or freed before the arena is dropped.
//! 2. Pieces do not overlap, are aligned to eight bytes, and hold whatever was there before.
//!
//! The first use of memory costs more than an insertion (the kernel clears it page by page), so
//! chunks of the full block size go back to an [`ArenaPool`] and serve the next memtable. Where
//! there are none, whoever has time makes the chunk that comes next, and touches it ([`Ahead`]).
//! Blocks of 2 MiB or a multiple are aligned to huge pages, and the kernel is asked for such:
//! random access then misses fewer address translations.
#![expect(unsafe_code, reason = "raw memory whose pieces live as long as the whole")]

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::base::chunk::{self, Chunk, HUGE_PAGE_SIZE};
use crate::base::prefetch;
use crate::base::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::cache::{MemoryAccount, MemoryKind};

/// The alignment of every piece.
pub(super) const ALIGNMENT: usize = chunk::ALIGNMENT;

/// The size of the first chunk; each following one is twice as large, up to the block size.
pub(super) const FIRST_CHUNK_SIZE: usize = 4 << 10;

/// How many bytes after the piece handed out the memory is fetched, so that later pieces are
/// written without waiting.
const AHEAD: usize = 512;

/// Keeps the memory of dropped memtables for the next ones.
pub struct ArenaPool {
    chunks: Mutex<Vec<Chunk>>,
    capacity: AtomicUsize,
    account: Arc<MemoryAccount>,
    /// Memory came or went since somebody looked.
    was_used: AtomicBool,
    /// When that was so last.
    used_us: AtomicU64,
}

impl ArenaPool {
    /// A pool that keeps at most `capacity` bytes; the size of one memtable is a good choice.
    pub fn new(capacity: usize) -> Self {
        Self::accounted(capacity, Arc::default())
    }

    /// The same, which notes in `account` what its arenas have and what it keeps.
    pub fn accounted(capacity: usize, account: Arc<MemoryAccount>) -> Self {
        Self {
            chunks: Mutex::new(Vec::new()),
            capacity: AtomicUsize::new(capacity),
            account,
            was_used: AtomicBool::new(false),
            used_us: AtomicU64::new(0),
        }
    }

    /// From now on, keeps at most `capacity` bytes.
    pub fn set_capacity(&self, capacity: usize) {
        self.capacity.store(capacity, Ordering::Relaxed);
        self.trim(capacity);
    }

    /// Frees what it keeps beyond so many bytes; how many it freed.
    pub fn trim(&self, bytes: usize) -> usize {
        let mut kept = 0;
        let does_not_stay = |chunk: &mut Chunk| {
            let stays = kept + chunk.size() <= bytes;
            kept += if stays { chunk.size() } else { 0 };
            !stays
        };
        let freed: Vec<Chunk> = self.chunks.lock().extract_if(.., does_not_stay).collect();
        let freed_bytes = freed.iter().map(Chunk::size).sum();
        self.account.subtract(MemoryKind::RecycledArenas, freed_bytes);
        // Given back to the system without the lock, for which a writer may wait.
        freed_bytes
    }

    /// Frees all that it keeps if none of it came or went for so many microseconds, as far as calls
    /// of this have seen; how many bytes it freed.
    pub fn trim_unused(&self, now_us: u64, after_us: u64) -> usize {
        if self.was_used.swap(false, Ordering::Relaxed) {
            self.used_us.store(now_us, Ordering::Relaxed);
        }
        let unused_us = now_us.saturating_sub(self.used_us.load(Ordering::Relaxed));
        if unused_us >= after_us { self.trim(0) } else { 0 }
    }

    /// Bytes kept for later use.
    pub fn kept(&self) -> usize {
        self.chunks.lock().iter().map(Chunk::size).sum()
    }

    /// Where its arenas are counted.
    pub(super) fn account(&self) -> &Arc<MemoryAccount> {
        &self.account
    }

    fn take(&self, size: usize) -> Option<Chunk> {
        let mut chunks = self.chunks.lock();
        let at = chunks.iter().rposition(|chunk| chunk.size() == size)?;
        let chunk = chunks.swap_remove(at);
        drop(chunks);
        self.was_used.store(true, Ordering::Relaxed);
        self.account.subtract(MemoryKind::RecycledArenas, size);
        Some(chunk)
    }

    fn give(&self, mut given: impl Iterator<Item = Chunk>) {
        let mut chunks = self.chunks.lock();
        let capacity = self.capacity.load(Ordering::Relaxed);
        let before: usize = chunks.iter().map(Chunk::size).sum();
        let mut kept = before;
        // What finds no room is freed at the end, without the lock.
        let _too_much = given.find_map(|chunk| {
            if kept + chunk.size() > capacity {
                return Some(chunk);
            }
            kept += chunk.size();
            chunks.push(chunk);
            None
        });
        drop(chunks);
        self.was_used.store(true, Ordering::Relaxed);
        self.account.add(MemoryKind::RecycledArenas, kept - before);
    }
}

impl fmt::Debug for ArenaPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let capacity = self.capacity.load(Ordering::Relaxed);
        f.debug_struct("ArenaPool")
            .field("kept", &self.kept())
            .field("capacity", &capacity)
            .finish()
    }
}

/// What memory is asked of that lives as long as an arena.
pub(super) trait Allocate {
    /// `size` bytes, aligned to [`ALIGNMENT`], uninitialised, valid until the arena is dropped.
    fn allocate(&mut self, size: usize) -> NonNull<u8>;

    /// Like [`Allocate::allocate`], with a larger alignment, a power of two.
    fn allocate_aligned(&mut self, size: usize, alignment: usize) -> NonNull<u8> {
        let piece = self.allocate(size + alignment - ALIGNMENT);
        let padding = piece.align_offset(alignment);
        assert!(padding <= alignment - ALIGNMENT, "pieces are aligned to {ALIGNMENT} bytes");
        // SAFETY: the piece is larger than `size` by at least the padding.
        unsafe { piece.add(padding) }
    }
}

/// The size that is taken for `size` bytes.
#[inline]
pub(super) fn rounded(size: usize) -> usize {
    size.max(1).next_multiple_of(ALIGNMENT)
}

/// Unused memory of one chunk, of which allocations are cut from the front.
pub(super) struct Rest {
    start: NonNull<u8>,
    size: usize,
    /// The number of the shared chunk in which it lies; 0 if in none.
    chunk: usize,
}

// SAFETY: it points to memory that nothing else refers to, in an arena that outlives its use.
unsafe impl Send for Rest {}

impl Rest {
    /// No memory.
    pub(super) const NONE: Self = Self { start: NonNull::dangling(), size: 0, chunk: 0 };

    /// Cuts off `size` bytes, a multiple of [`ALIGNMENT`], if there are so many.
    #[inline]
    pub(super) fn cut(&mut self, size: usize) -> Option<NonNull<u8>> {
        if size > self.size {
            return None;
        }
        let piece = self.start;
        // SAFETY: `self.size` bytes follow `start` in its chunk, and `size` is not more.
        self.start = unsafe { piece.add(size) };
        self.size -= size;
        prefetch(self.start.as_ptr().wrapping_add(AHEAD), size.min(AHEAD).div_ceil(64));
        Some(piece)
    }

    /// Whether `other` lies right behind it in the same chunk.
    fn is_followed_by(&self, other: &Self) -> bool {
        self.chunk == other.chunk
            && self.start.as_ptr().wrapping_add(self.size) == other.start.as_ptr()
    }
}

/// The chunk that comes next, to be made without the arena.
#[must_use]
pub(super) struct Ahead {
    size: usize,
    pool: Option<Arc<ArenaPool>>,
}

impl Ahead {
    /// Makes it. Its first use costs nothing any more.
    pub(super) fn make(self) -> Chunk {
        self.pool.and_then(|pool| pool.take(self.size)).unwrap_or_else(|| {
            let mut chunk = Chunk::new(self.size);
            chunk.populate();
            chunk
        })
    }
}

/// How far the chunk that comes next is.
enum Next {
    /// It is not time yet.
    Early,
    Asked,
    Made(Chunk),
}

/// A growing set of chunks of raw memory.
pub(super) struct Arena {
    chunks: Vec<Chunk>,
    pool: Option<Arc<ArenaPool>>,
    /// The unused rest of the newest shared chunk.
    rest: Rest,
    next: Next,
    next_chunk_size: usize,
    block_size: usize,
    used: usize,
    reserved: usize,
}

impl Arena {
    /// An arena that asks for `block_size` bytes at a time once it has grown; it asks for nothing
    /// yet.
    pub(super) fn new(block_size: usize, pool: Option<Arc<ArenaPool>>) -> Self {
        let block_size = block_size.clamp(FIRST_CHUNK_SIZE, 1 << 30).next_multiple_of(ALIGNMENT);
        Self {
            chunks: Vec::new(),
            pool,
            rest: Rest::NONE,
            next: Next::Early,
            next_chunk_size: FIRST_CHUNK_SIZE,
            block_size,
            used: 0,
            reserved: 0,
        }
    }

    /// Bytes handed out.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Where it is counted, if anywhere, as is to be what comes with it.
    pub(super) fn account(&self) -> Option<Arc<MemoryAccount>> {
        self.pool.as_ref().map(|pool| pool.account.clone())
    }

    /// Bytes asked of the allocator.
    pub(super) fn reserved(&self) -> usize {
        self.reserved
    }

    /// Bytes that it asks for next, for small pieces.
    pub(super) fn next_chunk_size(&self) -> usize {
        self.next_chunk_size
    }

    /// Hands out some `wanted` bytes at once, to be cut up later: makes `rest` at least `size`
    /// bytes large, which are at most a quarter of `wanted`, and that at most a chunk. What is left
    /// of `rest` is lost, unless the new bytes follow it.
    pub(super) fn extend(&mut self, rest: &mut Rest, size: usize, wanted: usize) {
        debug_assert!(size <= wanted / 4 && wanted.is_multiple_of(ALIGNMENT));
        debug_assert!(wanted <= self.next_chunk_size);
        let mut follows = rest.is_followed_by(&self.rest);
        if self.rest.size < if follows { size.saturating_sub(rest.size) } else { size } {
            self.begin_chunk();
            follows = false;
        }
        let bytes = wanted.min(self.rest.size);
        self.used += bytes;
        let chunk = self.rest.chunk;
        let start = self.rest.cut(bytes).expect("no more than there are");
        *rest = if follows {
            Rest { start: rest.start, size: rest.size + bytes, chunk }
        } else {
            Rest { start, size: bytes, chunk }
        };
        debug_assert!(rest.size >= size);
    }

    /// Whether somebody should make the next chunk now: half a chunk is left at most. Says so once
    /// for each; [`Self::ahead`] is what to make.
    pub(super) fn asks_ahead(&mut self) -> bool {
        let is_large = self.next_chunk_size == self.block_size && self.block_size >= HUGE_PAGE_SIZE;
        let is_time =
            is_large && matches!(self.next, Next::Early) && self.rest.size <= self.block_size / 2;
        if is_time {
            self.next = Next::Asked;
        }
        is_time
    }

    /// What makes the next chunk.
    pub(super) fn ahead(&self) -> Ahead {
        Ahead { size: self.block_size, pool: self.pool.clone() }
    }

    /// Keeps a chunk that [`Ahead::make`] has made until it is needed.
    pub(super) fn keep_ahead(&mut self, chunk: Chunk) {
        debug_assert!(matches!(self.next, Next::Asked) && chunk.size() == self.block_size);
        self.count(chunk.size());
        self.next = Next::Made(chunk);
    }

    #[cold]
    fn allocate_slow(&mut self, size: usize) -> NonNull<u8> {
        // A large piece gets its own chunk, so that the rest of the shared one is not wasted.
        if size > self.next_chunk_size / 4 {
            return self.add_chunk(Chunk::new(size));
        }
        self.begin_chunk();
        self.rest.cut(size).expect("a chunk has at least four times the size")
    }

    /// Goes on in a new shared chunk.
    fn begin_chunk(&mut self) {
        let size = self.next_chunk_size;
        self.next_chunk_size = (size * 2).min(self.block_size);
        let start = match std::mem::replace(&mut self.next, Next::Early) {
            Next::Made(chunk) => self.push_chunk(chunk),
            // Whoever makes one comes too late for this, and in time for the next.
            next => {
                self.next = next;
                let pool = self.pool.as_ref().filter(|_| size == self.block_size);
                let kept = pool.and_then(|pool| pool.take(size));
                self.add_chunk(kept.unwrap_or_else(|| Chunk::new(size)))
            }
        };
        self.rest = Rest { start, size, chunk: self.chunks.len() };
    }

    fn add_chunk(&mut self, chunk: Chunk) -> NonNull<u8> {
        self.count(chunk.size());
        self.push_chunk(chunk)
    }

    fn push_chunk(&mut self, chunk: Chunk) -> NonNull<u8> {
        let start = chunk.start();
        self.chunks.push(chunk);
        start
    }

    fn count(&mut self, bytes: usize) {
        self.reserved += bytes;
        if let Some(pool) = &self.pool {
            pool.account.add(MemoryKind::Memtables, bytes);
        }
    }
}

impl Allocate for Arena {
    #[inline]
    fn allocate(&mut self, size: usize) -> NonNull<u8> {
        let size = rounded(size);
        self.used += size;
        match self.rest.cut(size) {
            Some(piece) => piece,
            None => self.allocate_slow(size),
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.account.subtract(MemoryKind::Memtables, self.reserved);
            let next = match std::mem::replace(&mut self.next, Next::Early) {
                Next::Made(chunk) => Some(chunk),
                Next::Early | Next::Asked => None,
            };
            let chunks = self.chunks.drain(..).filter(|chunk| chunk.size() == self.block_size);
            pool.give(chunks.chain(next));
        }
    }
}

#[cfg(test)]
mod tests;

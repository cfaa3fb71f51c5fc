//! Memory that is handed out piece by piece and given back all at once.
//!
//! **Invariants**
//! 1. A piece is never moved, reused or freed before the arena is dropped.
//! 2. Pieces do not overlap, are aligned to eight bytes, and are zeroed or not as the allocator left them.
#![expect(unsafe_code, reason = "raw memory whose pieces live as long as the whole")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// The alignment of every piece.
pub(super) const ALIGNMENT: usize = 8;

/// The size of the first chunk; each following one is twice as large, up to the block size.
const FIRST_CHUNK_SIZE: usize = 4 << 10;

/// A growing set of chunks of raw memory.
pub(super) struct Arena {
    chunks: Vec<(NonNull<u8>, Layout)>,
    /// The unused rest of the newest shared chunk.
    rest: NonNull<u8>,
    rest_size: usize,
    next_chunk_size: usize,
    block_size: usize,
    used: usize,
    reserved: usize,
}

// SAFETY: the arena owns its chunks; what others do with the pieces is their own proof.
unsafe impl Send for Arena {}

impl Arena {
    /// An arena that asks for `block_size` bytes at a time once it has grown; it asks for nothing yet.
    pub(super) fn new(block_size: usize) -> Self {
        let block_size = block_size.clamp(FIRST_CHUNK_SIZE, 1 << 30);
        Self {
            chunks: Vec::new(),
            rest: NonNull::dangling(),
            rest_size: 0,
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

    /// Bytes asked of the allocator.
    pub(super) fn reserved(&self) -> usize {
        self.reserved
    }

    /// `size` bytes, aligned to [`ALIGNMENT`], uninitialised, valid until the arena is dropped.
    #[inline]
    pub(super) fn allocate(&mut self, size: usize) -> NonNull<u8> {
        let size = size.max(1).next_multiple_of(ALIGNMENT);
        self.used += size;
        if size > self.rest_size {
            return self.allocate_slow(size);
        }
        let piece = self.rest;
        // SAFETY: `rest_size` bytes follow `rest` in its chunk, and `size` is not more.
        self.rest = unsafe { piece.add(size) };
        self.rest_size -= size;
        piece
    }

    /// Like [`Arena::allocate`], with a larger alignment, a power of two.
    pub(super) fn allocate_aligned(&mut self, size: usize, alignment: usize) -> NonNull<u8> {
        let piece = self.allocate(size + alignment - ALIGNMENT);
        let padding = piece.align_offset(alignment);
        assert!(padding <= alignment - ALIGNMENT, "pieces are aligned to {ALIGNMENT} bytes");
        // SAFETY: the piece is larger than `size` by at least the padding.
        unsafe { piece.add(padding) }
    }

    #[cold]
    fn allocate_slow(&mut self, size: usize) -> NonNull<u8> {
        // A large piece gets its own chunk, so that the rest of the shared one is not wasted.
        if size > self.next_chunk_size / 4 {
            return self.new_chunk(size);
        }
        let chunk_size = self.next_chunk_size;
        self.next_chunk_size = (chunk_size * 2).min(self.block_size);
        let chunk = self.new_chunk(chunk_size);
        // SAFETY: the chunk has `chunk_size` bytes, at least four times `size`.
        self.rest = unsafe { chunk.add(size) };
        self.rest_size = chunk_size - size;
        chunk
    }

    fn new_chunk(&mut self, size: usize) -> NonNull<u8> {
        let layout =
            Layout::from_size_align(size, ALIGNMENT).expect("a chunk is smaller than the address space");
        // SAFETY: the layout's size is not zero.
        let chunk = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        self.reserved += size;
        self.chunks.push((chunk, layout));
        chunk
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for &(chunk, layout) in &self.chunks {
            // SAFETY: the chunk came from `alloc` with this layout and is freed nowhere else.
            unsafe { dealloc(chunk.as_ptr(), layout) };
        }
    }
}

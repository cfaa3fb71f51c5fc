//! Room for blocks in memory.
//!
//! A block that comes into a full cache drives another one out, of about its size, whose memory it can have. Where there is none
//! yet it is a piece of the slab's; what belongs to a block besides is the allocator's. And glibc lets the heap of any thread
//! but the first grow by no more than each request needs: one system call for every few blocks that are loaded to
//! stay. A larger piece, taken and given back at once, makes room for many with one call. Other allocators lose next to
//! nothing by it.

use std::cell::{Cell, RefCell};

use crate::base::slab::Piece;

/// How far the heap grows; below 128 KiB, from where on glibc gives memory back at once.
const GROWTH: usize = 120 * 1024;

/// What a block takes of the heap, more or less, beside its bytes.
const BLOCK_OVERHEAD: usize = 320;

/// What is stored of larger blocks is not worth a buffer that stays.
const SCRATCH_MAX: usize = 64 << 10;

thread_local! {
    /// How many bytes this thread may still load before its heap should grow.
    static ROOM: Cell<usize> = const { Cell::new(0) };
    /// The memory of a block that nobody needs any more.
    static SPARE: RefCell<Option<Piece>> = const { RefCell::new(None) };
    /// What is stored of a block, until it is unpacked.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Memory for a block of so many bytes, of any content.
pub(super) fn room_for(size: usize) -> Piece {
    make_room(BLOCK_OVERHEAD);
    if let Some(mut spare) = SPARE.take()
        && spare.resize(size)
    {
        return spare;
    }
    Piece::new(size)
}

/// Takes the memory of a block that is gone, for the next one.
pub(super) fn reuse(memory: Piece) {
    SPARE.set(Some(memory));
}

/// Calls `read` with as many bytes, of any content, to be used at once.
pub(super) fn with_scratch<T>(length: usize, read: impl FnOnce(&mut [u8]) -> T) -> T {
    if length > SCRATCH_MAX {
        return read(&mut vec![0; length]);
    }
    // Taken, not borrowed: what reads may be another database's file, and come here again.
    let mut scratch = SCRATCH.take();
    if scratch.len() < length {
        scratch.resize(length.next_power_of_two(), 0);
    }
    let outcome = read(&mut scratch[..length]);
    SCRATCH.set(scratch);
    outcome
}

/// Notes that a block of about so many bytes is going to be loaded.
fn make_room(size: usize) {
    let rest = ROOM.get().checked_sub(size).unwrap_or_else(|| {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(GROWTH)));
        GROWTH
    });
    ROOM.set(rest);
}

//! Room for blocks in the heap.
//!
//! A block that comes into a full cache drives another one out, of about its size, whose memory it can have: for the
//! allocator, pieces of this size are work. Where there is none yet: glibc lets the heap of any thread but the first grow
//! by no more than each request needs, one system call for every block that is loaded to stay, which takes longer than
//! reading and checking the block. A larger piece, taken and given back at once, makes room for many blocks with one call.
//! Other allocators lose next to nothing by it.

use std::cell::{Cell, RefCell};

/// How far the heap grows; below 128 KiB, from where on glibc gives memory back at once.
const GROWTH: usize = 120 * 1024;

/// What is to hold a block has a capacity that is a multiple of this, so that it can hold the next one, too.
const STEP: usize = 128;

/// Larger blocks are not worth the pains.
const SPARE_MAX: usize = 64 << 10;

thread_local! {
    /// How many bytes this thread may still load before its heap should grow.
    static ROOM: Cell<usize> = const { Cell::new(0) };
    /// The memory of a block that nobody needs any more.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// What is stored of a block, until it is unpacked.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An empty vector for a block of so many bytes.
pub(super) fn room_for(size: usize) -> Vec<u8> {
    let mut room = SPARE.take();
    let capacity = if size > SPARE_MAX { size } else { size.next_multiple_of(STEP) };
    if room.capacity() == capacity {
        room.clear();
        return room;
    }
    drop(room);
    make_room(capacity);
    Vec::with_capacity(capacity)
}

/// Takes the memory of a block that is gone, for the next one.
pub(super) fn reuse(memory: Vec<u8>) {
    if memory.capacity() <= SPARE_MAX {
        SPARE.set(memory);
    }
}

/// Calls `read` with as many bytes, of any content, to be used at once.
pub(super) fn with_scratch<T>(length: usize, read: impl FnOnce(&mut [u8]) -> T) -> T {
    if length > SPARE_MAX {
        return read(&mut vec![0; length]);
    }
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.len() < length {
            scratch.resize(length.next_power_of_two(), 0);
        }
        read(&mut scratch[..length])
    })
}

/// Notes that a block of about so many bytes is going to be loaded.
fn make_room(size: usize) {
    let rest = ROOM.get().checked_sub(size).unwrap_or_else(|| {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(GROWTH)));
        GROWTH
    });
    ROOM.set(rest);
}

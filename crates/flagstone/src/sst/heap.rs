//! Room for blocks in the heap.
//!
//! glibc lets the heap of any thread but the first grow by no more than each request needs: one system call for every
//! block that is loaded to stay in the cache, which takes longer than reading and checking the block. A larger piece,
//! taken and given back at once, makes room for many blocks with one call. Other allocators lose next to nothing by it.

use std::cell::Cell;

/// How far the heap grows; below 128 KiB, from where on glibc gives memory back at once.
const GROWTH: usize = 120 * 1024;

thread_local! {
    /// How many bytes this thread may still load before its heap should grow.
    static ROOM: Cell<usize> = const { Cell::new(0) };
}

/// Notes that a block of about so many bytes is going to be loaded.
#[inline]
pub(super) fn make_room(size: usize) {
    let rest = ROOM.get().checked_sub(size).unwrap_or_else(|| {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(GROWTH)));
        GROWTH
    });
    ROOM.set(rest);
}

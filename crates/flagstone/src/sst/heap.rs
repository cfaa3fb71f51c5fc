//! Room for blocks in memory.
//!
//! A block that comes into a full cache drives another one out, of about its size, whose memory it can have. Where there is none
//! yet it is a piece of the slab's.

use std::cell::RefCell;

use super::block::BlockRoom;

/// What is stored of larger blocks is not worth a buffer that stays.
const SCRATCH_MAX: usize = 64 << 10;

thread_local! {
    /// The memory of a block that nobody needs any more.
    static SPARE: RefCell<Option<BlockRoom>> = const { RefCell::new(None) };
    /// What is stored of a block, until it is unpacked.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Memory for a block of so many bytes, of any content.
pub(super) fn room_for(size: usize) -> BlockRoom {
    if let Some(mut spare) = SPARE.take()
        && spare.resize(size)
    {
        return spare;
    }
    BlockRoom::new(size)
}

/// Takes the memory of a block that is gone, for the next one, if that can have it.
pub(super) fn reuse(memory: BlockRoom) {
    if memory.is_of_slab() {
        SPARE.set(Some(memory));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each thread kept a large block that nothing could make use of.
    #[test]
    fn only_what_another_block_can_have_is_kept() {
        SPARE.set(None);
        reuse(BlockRoom::new(64 << 10));
        assert!(SPARE.take().is_none());
        reuse(BlockRoom::new(4096));
        assert!(SPARE.with_borrow(Option::is_some));
        assert_eq!(room_for(4000).len(), 4000);
        assert!(SPARE.take().is_none());
    }
}

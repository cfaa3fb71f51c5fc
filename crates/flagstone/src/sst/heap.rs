//! Room for blocks in memory.
//!
//! A block that comes into a full cache drives another one out, of about its size, whose memory it
//! can have. Where there is none yet it is a piece of the slab's. A thread that is about to end may
//! have none left of what it kept: its last reads may come from what goes after that.

use std::cell::RefCell;

use super::block::{BlockRoom, GuideRoom};

/// What is stored of larger blocks is not worth a buffer that stays.
pub(super) const SCRATCH_MAX: usize = 64 << 10;

thread_local! {
    /// The memory of a block that nobody needs any more.
    static SPARE: RefCell<Option<BlockRoom>> = const { RefCell::new(None) };
    /// What is stored of a block, until it is unpacked.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Memory for a block of so many bytes, of any content, and its guide.
pub(super) fn room_for(size: usize, guide: GuideRoom) -> BlockRoom {
    if let Ok(Some(mut spare)) = SPARE.try_with(RefCell::take)
        && spare.resize(size, guide.size())
    {
        return spare;
    }
    BlockRoom::with_margin(size, guide.size())
}

/// The same for a block that is dropped when it was looked at, without a guide.
pub(super) fn passing_room_for(size: usize) -> BlockRoom {
    if size <= SCRATCH_MAX { room_for(size, GuideRoom::None) } else { BlockRoom::passing(size) }
}

/// Takes the memory of a block that is gone, for the next one, if that can have it.
pub(super) fn reuse(memory: BlockRoom) {
    if memory.is_of_slab() {
        let _ = SPARE.try_with(|spare| spare.replace(Some(memory)));
    }
}

/// Calls `read` with as many bytes, of any content, to be used at once.
pub(super) fn with_scratch<T>(length: usize, read: impl FnOnce(&mut [u8]) -> T) -> T {
    if length > SCRATCH_MAX {
        return read(&mut vec![0; length]);
    }
    // Taken, not borrowed: what reads may be another database's file, and come here again.
    let mut scratch = SCRATCH.try_with(RefCell::take).unwrap_or_default();
    if scratch.len() < length {
        scratch.resize(length.next_power_of_two(), 0);
    }
    let outcome = read(&mut scratch[..length]);
    let _ = SCRATCH.try_with(|kept| kept.replace(scratch));
    outcome
}

#[cfg(test)]
mod tests;

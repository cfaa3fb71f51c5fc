//! Reserves space even while signals arrive.
//!
//! Some file systems (tmpfs of older kernels, FUSE) abort a reservation as soon as any signal is
//! pending, and undo it. The call is then repeated in pieces short enough to finish before a
//! timer's next signal.

use rustix::io::{Errno, Result, retry_on_intr};

/// Bytes that are reserved at once where a signal interrupted the call for all.
const RESERVED_AT_ONCE: u64 = 4 << 20;

/// Calls `allocate`, with a start and a length, for all of `0..length`.
pub(super) fn reserve(length: u64, mut allocate: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
    match allocate(0, length) {
        Err(Errno::INTR) => {}
        outcome => return outcome,
    }
    for start in (0..length).step_by(RESERVED_AT_ONCE as usize) {
        retry_on_intr(|| allocate(start, RESERVED_AT_ONCE.min(length - start)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

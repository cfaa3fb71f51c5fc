//! Memory that changes by itself, for tests.

use std::cell::Cell;

thread_local! {
    static NEXT: Cell<bool> = const { Cell::new(false) };
}

/// A bit of the next block has changed that this thread takes from memory.
pub(crate) fn flip_next() {
    NEXT.set(true);
}

pub(super) fn seen(sum: u64) -> u64 {
    if NEXT.replace(false) { sum ^ 1 } else { sum }
}

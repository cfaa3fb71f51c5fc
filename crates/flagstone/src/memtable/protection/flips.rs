//! Memory that changes by itself, for tests.

use std::cell::Cell;

thread_local! {
    static NEXT: Cell<bool> = const { Cell::new(false) };
}

/// Turns around one bit of the next protected value that this thread stores.
pub(crate) fn flip_next() {
    NEXT.set(true);
}

pub(super) fn flip(stored: &mut [u8]) {
    if NEXT.replace(false) {
        stored[0] ^= 1;
    }
}

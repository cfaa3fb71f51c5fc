//! Memory that changes by itself, for tests.

use std::cell::Cell;

use crate::base::Result;

thread_local! {
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// This thread's verification after that many others finds a change.
pub(crate) fn find_after(verifications: usize) {
    LEFT.set(Some(verifications));
}

pub(super) fn verification() -> Result<()> {
    let left = LEFT.get();
    LEFT.set(left.and_then(|left| left.checked_sub(1)));
    if left == Some(0) { Err(super::changed(0)) } else { Ok(()) }
}

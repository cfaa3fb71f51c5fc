//! Whose entries they are, in a cache that several databases share.
//!
//! ```text
//! CacheKey::file = keeps its number: 1 bit, owner: 30 bits, number: 33 bits
//! ```
//!
//! **Invariant.** No two owners of a cache have a key in common, whatever files they open: not even
//! those of two copies of one directory, whose tables have the same names and unique ids. A table
//! that is opened twice has two numbers.

use super::CacheKey;
use crate::base::sync::{AtomicU64, Ordering};

const FILE_BITS: u32 = 33;
const OWNER_BITS: u32 = 30;

/// Where a number says that the file keeps it.
const KEPT: u64 = 1 << (FILE_BITS + OWNER_BITS);

const _: () = assert!(FILE_BITS + OWNER_BITS == 63);

/// Gives the files of one database numbers that no other has.
#[derive(Debug)]
pub struct CacheOwner {
    number: u64,
    next_file: AtomicU64,
}

impl CacheOwner {
    pub(super) fn new(number: u64) -> Self {
        assert!(number < 1 << OWNER_BITS, "a process does not open a thousand million databases");
        Self { number, next_file: AtomicU64::new(0) }
    }

    /// A number for [`CacheKey::file`] that this cache has not given before: for a file that is
    /// opened once.
    pub fn next_file(&self) -> u64 {
        let file = self.next_file.fetch_add(1, Ordering::Relaxed);
        assert!(file < 1 << FILE_BITS, "a database does not open eight thousand million tables");
        self.number << FILE_BITS | file
    }

    /// The number for a file that always has the same; `None` if it is too large for one.
    pub fn named_file(&self, number: u64) -> Option<u64> {
        (number < 1 << FILE_BITS).then_some(KEPT | self.number << FILE_BITS | number)
    }

    /// Whether an entry is of this owner.
    pub fn has(&self, key: CacheKey) -> bool {
        (key.file & !KEPT) >> FILE_BITS == self.number
    }
}

#[cfg(test)]
mod tests;

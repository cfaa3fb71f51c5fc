//! A checksum with each entry of a memtable (`memtable_protection_bytes_per_key`), for memory that
//! changes by itself.
//!
//! ```text
//! stored value = value, checksum: as many bytes as the setting says
//! checksum     = the low bytes of XXH3 over the value, seeded by that over user key and packed number;
//!                the key is left out if keys of other bytes may be equal to it
//! ```
//!
//! It is added when an entry is inserted, and compared whenever the entry is read: by lookups,
//! cursors, and flushes. Range deletions have none.

use std::fmt;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::record::Entry;
use crate::base::{
    Comparator, Error, InternalIterator, InternalKey, PinnedValue, Result, key_in_words,
    pack_sequence_and_type,
};

/// The form of the checksum that each entry has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Protection {
    bytes: usize,
    /// A lookup knows the key that it looks for, not the stored one, which may have other bytes in
    /// an order that takes both for equal.
    covers_keys: bool,
}

impl Protection {
    /// `None` for 0 bytes.
    ///
    /// # Panics
    /// For more than 8.
    pub(super) fn new(bytes: usize, comparator: &Comparator) -> Option<Self> {
        assert!(bytes <= size_of::<u64>(), "a checksum has no more bytes");
        (bytes > 0).then_some(Self { bytes, covers_keys: comparator.tells_bytes_apart() })
    }

    /// The value of an entry with its checksum.
    pub(super) fn protect(self, entry: &Entry<'_>) -> Vec<u8> {
        let mut stored = Vec::with_capacity(entry.value.len() + self.bytes);
        stored.extend_from_slice(entry.value);
        let sum = self.checksum(entry.user_key, entry.packed, entry.value).to_le_bytes();
        stored.extend_from_slice(&sum[..self.bytes]);
        #[cfg(test)]
        flips::flip(&mut stored);
        stored
    }

    /// The value of an entry without its checksum.
    ///
    /// # Errors
    /// `Corruption` if the checksum is another.
    pub(super) fn check<'a>(
        self,
        user_key: &[u8],
        packed: u64,
        stored: &'a [u8],
    ) -> Result<&'a [u8]> {
        let damaged = || {
            Error::corruption(format!(
                "the entry of {} in a memtable does not match its checksum (memtable_protection_bytes_per_key): \
                 memory has changed",
                key_in_words(user_key)
            ))
        };
        let length = stored.len().checked_sub(self.bytes).ok_or_else(damaged)?;
        let (value, sum) = stored.split_at(length);
        let expected = self.checksum(user_key, packed, value).to_le_bytes();
        if sum == &expected[..self.bytes] { Ok(value) } else { Err(damaged()) }
    }

    fn checksum(self, user_key: &[u8], packed: u64, value: &[u8]) -> u64 {
        let covered = if self.covers_keys { user_key } else { &[] };
        xxh3_64_with_seed(value, xxh3_64(covered) ^ packed)
    }
}

/// A cursor over protected entries. It ends at one that does not match its checksum.
pub struct ProtectedCursor<C> {
    entries: C,
    protection: Protection,
    failed: Option<Error>,
}

impl<C: InternalIterator> ProtectedCursor<C> {
    pub(super) fn new(entries: C, protection: Protection) -> Self {
        Self { entries, protection, failed: None }
    }

    fn moved(&mut self, step: impl FnOnce(&mut C)) {
        step(&mut self.entries);
        self.failed = None;
        if self.entries.valid() {
            let key = self.entries.key();
            let packed = packed_of(key);
            let checked = self.protection.check(key.user_key(), packed, self.entries.value());
            self.failed = checked.err();
        }
    }
}

fn packed_of(key: InternalKey<'_>) -> u64 {
    key.value_type().map_or(u64::MAX, |kind| pack_sequence_and_type(key.sequence(), kind))
}

impl<C> fmt::Debug for ProtectedCursor<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtectedCursor").field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl<C: InternalIterator> InternalIterator for ProtectedCursor<C> {
    fn valid(&self) -> bool {
        self.failed.is_none() && self.entries.valid()
    }

    fn seek_to_first(&mut self) {
        self.moved(C::seek_to_first);
    }

    fn seek_to_last(&mut self) {
        self.moved(C::seek_to_last);
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        self.moved(|entries| entries.seek(target));
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        self.moved(|entries| entries.seek_for_prev(target));
    }

    fn confine(&mut self, to_prefix: bool) {
        self.entries.confine(to_prefix);
    }

    fn next(&mut self) {
        self.moved(C::next);
    }

    fn prev(&mut self) {
        self.moved(C::prev);
    }

    fn key(&self) -> InternalKey<'_> {
        self.entries.key()
    }

    fn value(&self) -> &[u8] {
        let stored = self.entries.value();
        &stored[..stored.len() - self.protection.bytes]
    }

    fn pin_value(&self) -> Option<PinnedValue> {
        None
    }

    fn status(&self) -> Result<()> {
        self.failed.clone().map_or_else(|| self.entries.status(), Err)
    }
}

#[cfg(test)]
pub(crate) mod flips;
#[cfg(test)]
mod tests;

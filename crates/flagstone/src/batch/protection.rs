//! A checksum with each operation of a batch (`protection_bytes_per_key` of a write), for memory
//! that changes by itself on the way to the WAL and the memtables.
//!
//! It covers an operation as it is encoded: its kind, family, key and value. The header of the
//! batch, which gets its sequence number on that way, has none.

use xxhash_rust::xxh3::xxh3_64;

use super::view::BatchIter;
use crate::base::{Error, Result};

/// The checksums of the operations of a batch, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct BatchProtection {
    /// Where each operation ends in the body, and its checksum.
    sums: Vec<(usize, u64)>,
}

impl BatchProtection {
    /// Up to where in the body operations have checksums.
    fn end(&self) -> usize {
        self.sums.last().map_or(0, |(end, _)| *end)
    }

    /// Adds the operations that the body has beyond those that are known.
    pub(super) fn extend(&mut self, body: &[u8]) {
        let begin = self.end();
        let mut operations = BatchIter::new(&body[begin..]);
        let mut from = begin;
        while let Some(Ok(_)) = operations.next() {
            let end = begin + operations.offset();
            self.sums.push((end, xxh3_64(&body[from..end])));
            from = end;
        }
    }

    /// Forgets what lies behind that place in the body.
    pub(super) fn truncate(&mut self, size: usize) {
        let kept = self.sums.partition_point(|(end, _)| *end <= size);
        self.sums.truncate(kept);
    }

    /// # Errors
    /// `Corruption` if an operation is not what it was when it was added.
    pub(super) fn verify(&self, body: &[u8]) -> Result<()> {
        #[cfg(test)]
        flips::verification()?;
        let mut from = 0;
        for (at, (end, sum)) in self.sums.iter().enumerate() {
            let operation = body.get(from..*end);
            if operation.is_none_or(|bytes| xxh3_64(bytes) != *sum) {
                return Err(changed(at));
            }
            from = *end;
        }
        if from == body.len() { Ok(()) } else { Err(changed(self.sums.len())) }
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.sums.capacity() * size_of::<(usize, u64)>()
    }
}

fn changed(at: usize) -> Error {
    Error::corruption(format!(
        "operation {at} of the write batch does not match its checksum (protection_bytes_per_key): memory has changed"
    ))
}

#[cfg(test)]
pub(crate) mod flips;
#[cfg(test)]
mod tests;

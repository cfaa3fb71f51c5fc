//! Values that count as written at another time (RocksDB's `TimedPut`).

use super::WriteBatch;
use crate::base::{ColumnFamilyId, Result};
use crate::batch::format::TIMED_PUT;

/// The value of an [`Operation::TimedPut`](crate::batch::Operation::TimedPut), and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedValue<'a>(&'a [u8]);

impl<'a> TimedValue<'a> {
    /// A value followed by its time, as they are stored; `None` if that is too short.
    pub fn new(stored: &'a [u8]) -> Option<Self> {
        (stored.len() >= size_of::<u64>()).then_some(Self(stored))
    }

    /// The value.
    pub fn value(&self) -> &'a [u8] {
        &self.0[..self.0.len() - size_of::<u64>()]
    }

    /// When it counts as written, in seconds since 1970.
    pub fn write_time(&self) -> u64 {
        self.0.last_chunk().map_or(0, |time| u64::from_le_bytes(*time))
    }

    /// Both, as they are stored.
    pub(crate) fn stored(&self) -> &'a [u8] {
        self.0
    }
}

impl WriteBatch {
    /// Sets `key` in a column family as if that was done at `write_time` (seconds since 1970),
    /// which places it in the tree: with `preclude_last_level_data_seconds` an old value goes down
    /// to the last level at once. With neither that option nor `preserve_internal_time_seconds`
    /// it is a plain value, as it is for a time that is not earlier than now.
    ///
    /// A snapshot that was taken before may see the value once it was compacted, as in RocksDB.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]. Writing the batch fails with `NotSupported` if the family has user
    /// timestamps, and for a [`TtlDb`](crate::db::TtlDb) or a transaction.
    #[doc(alias = "TimedPut")]
    pub fn timed_put_cf(
        &mut self,
        cf: impl Into<ColumnFamilyId>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        write_time: u64,
    ) -> Result<()> {
        let stored = [value.as_ref(), &write_time.to_le_bytes()].concat();
        self.add_pair(TIMED_PUT, cf.into(), key.as_ref(), &stored)
    }
}

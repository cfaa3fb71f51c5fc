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
    /// Sets `key` in a column family, as of `write_time` (seconds since 1970). Only its place in
    /// the tree depends on the time: with `preclude_last_level_data_seconds` an old value goes down
    /// to the last level at once. A time before all that are known counts as old; those of a
    /// database without tables begin when it is opened. With neither that option nor
    /// `preserve_internal_time_seconds` the time has no effect, nor if it is not earlier than now.
    ///
    /// After a compaction a snapshot may see the value although it is older, as in RocksDB.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]. A family with user timestamps, a [`TtlDb`](crate::db::TtlDb) and
    /// `Transaction::rebuild_from` do not take such a batch.
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

//! Keys with timestamps: writes as of one, reads as of one, and how much of the past is kept.

use std::ops::Range;

use crate::base::Result;
use crate::db::Value;
use crate::front::family::Family;
use crate::front::view::View;
use crate::options::{ReadOptions, WriteOptions};

/// Families whose comparator has timestamps.
impl Family {
    /// Sets `key` to `value` as of a timestamp, in a family whose comparator has timestamps
    /// ([`Comparator::BytewiseU64Ts`](crate::Comparator)). Of one key, a later write must not have
    /// an older timestamp.
    ///
    /// ```
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path();
    /// use flagstone::base::timestamp::from_u64;
    /// let db = flagstone::Db::builder(path)
    ///     .column_family("prices", |family| {
    ///         family.comparator = flagstone::Comparator::BytewiseU64Ts;
    ///     })
    ///     .open()?;
    /// let prices = db.column_family("prices")?;
    /// prices.put_with_timestamp("bread", from_u64(10), "3")?;
    /// prices.put_with_timestamp("bread", from_u64(20), "4")?;
    /// assert_eq!(prices.as_of(from_u64(15)).get("bread")?.unwrap(), "3");
    /// assert_eq!(prices.as_of(from_u64(20)).get("bread")?.unwrap(), "4");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Family::put`]; `InvalidArgument` if the family has no timestamps, or some of another
    /// size.
    #[doc(alias = "put_cf_with_ts")]
    pub fn put_with_timestamp(
        &self,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.write_one(&WriteOptions::new(), |batch, family| {
            batch.put_with_timestamp(family, key, timestamp, value)
        })
    }

    /// Deletes `key` as of a timestamp.
    ///
    /// # Errors
    /// As [`Family::put_with_timestamp`].
    #[doc(alias = "delete_cf_with_ts")]
    pub fn delete_with_timestamp(
        &self,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.write_one(&WriteOptions::new(), |batch, family| {
            batch.delete_with_timestamp(family, key, timestamp)
        })
    }

    /// Deletes `key`, which was set at most once before, as of a timestamp.
    ///
    /// # Errors
    /// As [`Family::put_with_timestamp`].
    pub fn single_delete_with_timestamp(
        &self,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.write_one(&WriteOptions::new(), |batch, family| {
            batch.single_delete_with_timestamp(family, key, timestamp)
        })
    }

    /// Adds a merge operand to `key` as of a timestamp.
    ///
    /// # Errors
    /// As [`Family::put_with_timestamp`], and as [`Family::merge`].
    pub fn merge_with_timestamp(
        &self,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.write_one(&WriteOptions::new(), |batch, family| {
            batch.merge_with_timestamp(family, key, timestamp, operand)
        })
    }

    /// Deletes the keys of a range as of a timestamp, which must not be older than those of what
    /// was written to them before. See
    /// [`WriteBatch::delete_range_with_timestamp`](crate::WriteBatch::delete_range_with_timestamp).
    ///
    /// # Errors
    /// As [`Family::put_with_timestamp`], and as [`Family::delete_range`].
    pub fn delete_range_with_timestamp<K: AsRef<[u8]>>(
        &self,
        range: Range<K>,
        timestamp: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.refuse_ranges_while_locking()?;
        self.write_one(&WriteOptions::new(), |batch, family| {
            batch.delete_range_with_timestamp(family, range.start, range.end, timestamp)
        })
    }

    /// Lets compactions forget versions with timestamps before `low`: of each key only the newest
    /// of them stays. From then on the family is read as of `low` or later.
    ///
    /// # Errors
    /// `InvalidArgument` if the low mark is higher already, or the family has no timestamps or some
    /// of another size; those of the MANIFEST.
    #[doc(alias = "IncreaseFullHistoryTsLow")]
    pub fn increase_full_history_ts_low(&self, low: impl AsRef<[u8]>) -> Result<()> {
        self.engine().increase_full_history_ts_low(self.engine_family(), low)
    }

    /// The oldest timestamp as of which the family can be read; `None` for any.
    ///
    /// # Errors
    /// `InvalidArgument` if the family has no timestamps.
    #[doc(alias = "get_full_history_ts_low")]
    pub fn full_history_ts_low(&self) -> Result<Option<Vec<u8>>> {
        self.engine().full_history_ts_low(self.engine_family())
    }

    /// The newest timestamp that was written to the family, as far as its memtables and tables know
    /// of it; `None` if they know of none. Reads all memtables, and no table.
    ///
    /// # Errors
    /// `InvalidArgument` if the family has no timestamps.
    #[doc(alias = "GetNewestUserDefinedTimestamp")]
    pub fn newest_timestamp(&self) -> Result<Option<Vec<u8>>> {
        self.engine().newest_timestamp(self.engine_family())
    }
}

/// Families whose comparator has timestamps.
impl View {
    /// The same keys as of a timestamp, where no other is given with a read.
    #[must_use]
    pub fn as_of(&self, timestamp: impl AsRef<[u8]>) -> Self {
        Self { timestamp: Some(timestamp.as_ref().to_vec()), ..self.clone() }
    }

    /// The value of `key` as of `options.timestamp`, and the timestamp of its newest version.
    ///
    /// # Errors
    /// As [`View::get_with`]; `InvalidArgument` if the timestamp is missing, of another size, or
    /// before [`Family::full_history_ts_low`].
    pub fn get_with_timestamp(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<(Value, Vec<u8>)>> {
        self.check_no_expiry()?;
        self.db().get_with_timestamp(&self.settled(options)?, &self.family, key)
    }
}

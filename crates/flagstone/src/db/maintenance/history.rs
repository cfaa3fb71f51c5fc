//! What is kept of the timestamps of a family, and the newest of them.

use crate::base::{Error, Result, timestamp};
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::iter::newest_timestamp;

impl Db {
    /// Lets compactions forget versions with timestamps before `low`: of each key only the newest
    /// of them stays, and a deletion goes with what it deletes. From then on the family is read as
    /// of `low` or later.
    ///
    /// # Errors
    /// `InvalidArgument` if the low mark is higher already, or the family has no timestamps or some
    /// of another size; those of the MANIFEST.
    #[doc(alias = "IncreaseFullHistoryTsLow")]
    pub fn increase_full_history_ts_low(
        &self,
        family: &ColumnFamily,
        low: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (inner, low) = (self.inner(), low.as_ref());
        inner.disk.check_changeable()?;
        inner.disk.check_owner(&family.0)?;
        check_has_timestamps(&family.0)?;
        timestamp::check_size(&family.0.name, family.0.order.timestamp_size(), low)?;
        inner.tree.raise_history_low(&family.0, low)
    }

    /// The oldest timestamp as of which the family can be read; `None` for any.
    ///
    /// # Errors
    /// `InvalidArgument` if the family has no timestamps.
    #[doc(alias = "GetFullHistoryTsLow")]
    pub fn full_history_ts_low(&self, family: &ColumnFamily) -> Result<Option<Vec<u8>>> {
        self.inner().disk.check_owner(&family.0)?;
        check_has_timestamps(&family.0)?;
        Ok(family.0.current.load().history_low.as_deref().map(<[u8]>::to_vec))
    }

    /// The newest timestamp that was written to the family, as far as its memtables and tables know
    /// of it; `None` if they know of none. Reads all memtables, and no table.
    ///
    /// # Errors
    /// `InvalidArgument` if the family has no timestamps.
    #[doc(alias = "GetNewestUserDefinedTimestamp")]
    pub fn newest_timestamp(&self, family: &ColumnFamily) -> Result<Option<Vec<u8>>> {
        self.inner().disk.check_owner(&family.0)?;
        check_has_timestamps(&family.0)?;
        let current = family.0.current.load_full();
        let order = &family.0.order;
        let mut newest: Option<Vec<u8>> = None;
        let mut take = |stamp: Vec<u8>| {
            if newest
                .as_ref()
                .is_none_or(|known| order.user.compare_timestamps(&stamp, known).is_gt())
            {
                newest = Some(stamp);
            }
        };
        for mem in current.generations() {
            newest_timestamp(mem, order).into_iter().for_each(&mut take);
        }
        let tables = current.version.files().map(|(_, file)| &file.meta.max_timestamp);
        tables.filter(|stamp| !stamp.is_empty()).cloned().for_each(&mut take);
        Ok(newest)
    }
}

fn check_has_timestamps(family: &Family) -> Result<()> {
    if family.order.timestamp_size() > 0 {
        return Ok(());
    }
    let message = format!("column family '{}' has no timestamps", family.name);
    Err(Error::invalid_argument(message))
}

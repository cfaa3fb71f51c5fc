//! A family's timestamps: those of single keys, what is kept of them, and the newest of all.

use crate::base::{Error, Result, timestamp};
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::db::reading::as_of::is_newer_than;
use crate::db::reading::value::Value;
use crate::db::tree::history::raise_history_low;
use crate::iter::newest_timestamp;
use crate::manifest::FileMetadata;
use crate::options::{
    BottommostLevelCompaction, CompactRangeOptions, CompactionStyle, ReadOptions,
};

impl Db {
    /// [`Db::get_with`] in a family with timestamps, and the timestamp of what was found.
    ///
    /// # Errors
    /// As [`Db::get_with`].
    pub fn get_with_timestamp(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Value, Vec<u8>)>> {
        self.inner()
            .reader
            .get_with_timestamp(options, &family.0, key.as_ref())
            .inspect_err(|error| self.note_damage(family, error))
    }

    /// Whether `key` has a version, or a deletion, with a newer timestamp than that as of which it
    /// is read.
    ///
    /// # Errors
    /// As [`Db::get_with`].
    pub(crate) fn is_newer_than(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        read: &[u8],
    ) -> Result<bool> {
        is_newer_than(&self.inner().reader, &family.0, key, read)
            .inspect_err(|error| self.note_damage(family, error))
    }

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
        timestamp::check_size(&family.0.name, family.0.order.timestamp_size(), low.len())?;
        raise_history_low(&inner.tree, &family.0, low)
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

    /// Drops all that was written with timestamps after `trim`: rewrites all tables of a family.
    ///
    /// # Errors
    /// `NotSupported` if the family's compactions do not rewrite all tables, or its tables have no
    /// timestamps; `InvalidArgument` if there is no history so old, or as
    /// [`Db::increase_full_history_ts_low`]; those of a compaction.
    pub fn trim_history(&self, family: &ColumnFamily, trim: impl AsRef<[u8]>) -> Result<()> {
        let (name, trim) = (&family.0.name, trim.as_ref());
        check_has_timestamps(&family.0)?;
        timestamp::check_size(name, family.0.order.timestamp_size(), trim.len())?;
        let order = family.0.comparator();
        if let Some(low) = self.full_history_ts_low(family)?
            && order.compare_timestamps(trim, &low).is_lt()
        {
            return Err(Error::invalid_argument(format!(
                "the history of column family '{name}' cannot be trimmed to before its full_history_ts_low: \
                 what was there then may be gone"
            )));
        }
        let options = family.options();
        if !options.persist_user_defined_timestamps
            || options.compaction_style == CompactionStyle::Fifo
        {
            return Err(Error::not_supported(format!(
                "the history of column family '{name}' cannot be trimmed, with FIFO compaction or without timestamps in tables"
            )));
        }
        let all = CompactRangeOptions {
            exclusive_manual_compaction: true,
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            allow_write_stall: true,
            trim: Some(trim.to_vec()),
            ..CompactRangeOptions::default()
        };
        self.compact_range(family, None, None, &all)?;
        let version = family.0.current.load().version.clone();
        let is_newer = |meta: &FileMetadata| {
            let newest = &meta.max_timestamp;
            !newest.is_empty() && order.compare_timestamps(newest, trim).is_gt()
        };
        match version.files().find(|(_, file)| is_newer(&file.meta)) {
            None => Ok(()),
            Some((_, file)) => Err(Error::not_supported(format!(
                "the compaction of column family '{name}' left a table that was not rewritten"
            ))
            .at(file.path())),
        }
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

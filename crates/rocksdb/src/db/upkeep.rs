//! Flushes, compactions, ingestion of tables, and options that change while the database is open.

use std::path::Path;
use std::sync::PoisonError;

use flagstone::CompactRangeOptions;
use flagstone::db::ColumnFamily as EngineFamily;

use super::{DBCommon, DBInner, DBWithThreadMode, ThreadMode};
use crate::column_family::AsColumnFamilyRef;
use crate::error::Error;
use crate::options::{
    CompactOptions, FlushOptions, IngestExternalFileOptions, WaitForCompactOptions, has_no_effect,
};

impl<T: ThreadMode, D: DBInner> DBCommon<T, D> {
    /// Brings log records that wait in the process's memory to the WAL (`set_manual_wal_flush`),
    /// and with `sync` makes them survive a power loss.
    ///
    /// # Errors
    /// `IOError`.
    pub fn flush_wal(&self, sync: bool) -> Result<(), Error> {
        Ok(self.engine().flush_wal(sync)?)
    }

    /// Writes what the default family has in memory to a table, with options.
    ///
    /// # Errors
    /// `IOError`.
    pub fn flush_opt(&self, flushopts: &FlushOptions) -> Result<(), Error> {
        let family = self.inner.inner().default_family();
        Ok(self.engine().flush(family, flushopts.engine())?)
    }

    /// Writes what the default family has in memory to a table.
    ///
    /// # Errors
    /// `IOError`.
    pub fn flush(&self) -> Result<(), Error> {
        self.flush_opt(&FlushOptions::default())
    }

    /// Writes what a family has in memory to a table, with options.
    ///
    /// # Errors
    /// `IOError`.
    pub fn flush_cf_opt(
        &self,
        cf: &impl AsColumnFamilyRef,
        flushopts: &FlushOptions,
    ) -> Result<(), Error> {
        Ok(self.engine().flush(cf.inner(), flushopts.engine())?)
    }

    /// Writes what several families have in memory to tables; together with `set_atomic_flush`,
    /// otherwise one after the other.
    ///
    /// # Errors
    /// `IOError`.
    pub fn flush_cfs_opt(
        &self,
        cfs: &[&impl AsColumnFamilyRef],
        opts: &FlushOptions,
    ) -> Result<(), Error> {
        cfs.iter().try_for_each(|family| self.flush_cf_opt(*family, opts))
    }

    /// Writes what a family has in memory to a table.
    ///
    /// # Errors
    /// `IOError`.
    pub fn flush_cf(&self, cf: &impl AsColumnFamilyRef) -> Result<(), Error> {
        self.flush_cf_opt(cf, &FlushOptions::default())
    }

    /// Compacts the keys of the default family from `start` to `end`, both inclusive; `None` is
    /// unbounded. The rocksdb crate has no place for an error here; it goes to `tracing`.
    pub fn compact_range<S: AsRef<[u8]>, E: AsRef<[u8]>>(&self, start: Option<S>, end: Option<E>) {
        self.compact_range_opt(start, end, &CompactOptions::default());
    }

    /// As [`compact_range`](Self::compact_range), with options.
    pub fn compact_range_opt<S: AsRef<[u8]>, E: AsRef<[u8]>>(
        &self,
        start: Option<S>,
        end: Option<E>,
        opts: &CompactOptions,
    ) {
        let family = self.inner.inner().default_family();
        self.compact(family, bytes(&start), bytes(&end), opts.engine());
    }

    /// As [`compact_range`](Self::compact_range), in a family.
    pub fn compact_range_cf<S: AsRef<[u8]>, E: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        start: Option<S>,
        end: Option<E>,
    ) {
        self.compact_range_cf_opt(cf, start, end, &CompactOptions::default());
    }

    /// As [`compact_range`](Self::compact_range), in a family, with options.
    pub fn compact_range_cf_opt<S: AsRef<[u8]>, E: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        start: Option<S>,
        end: Option<E>,
        opts: &CompactOptions,
    ) {
        self.compact(cf.inner(), bytes(&start), bytes(&end), opts.engine());
    }

    fn compact(
        &self,
        family: &EngineFamily,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) {
        if let Err(error) = self.engine().compact_range(family, start, end, options) {
            tracing::warn!(%error, "a compaction that the program asked for");
        }
    }

    /// Waits until neither flush nor compaction has anything left to do.
    ///
    /// # Errors
    /// What made background work fail; `TimedOut`.
    pub fn wait_for_compact(&self, opts: &WaitForCompactOptions) -> Result<(), Error> {
        Ok(self.engine().wait_for_compact(opts.engine())?)
    }

    /// Changes options of the default family, by RocksDB's names and texts. All or nothing.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown name, a bad value, an option that needs a reopen, or an
    /// empty list.
    pub fn set_options(&self, opts: &[(&str, &str)]) -> Result<(), Error> {
        self.change_options(self.inner.inner().default_family(), opts)
    }

    /// As [`set_options`](Self::set_options), of a family.
    ///
    /// # Errors
    /// As [`set_options`](Self::set_options).
    pub fn set_options_cf(
        &self,
        cf: &impl AsColumnFamilyRef,
        opts: &[(&str, &str)],
    ) -> Result<(), Error> {
        self.change_options(cf.inner(), opts)
    }

    fn change_options(&self, family: &EngineFamily, opts: &[(&str, &str)]) -> Result<(), Error> {
        if opts.is_empty() {
            return Err(Error::invalid_argument("no options are given"));
        }
        let effective: Vec<_> =
            opts.iter().copied().filter(|(name, _)| !has_no_effect(name)).collect();
        Ok(self.engine().set_options(family, &effective)?)
    }

    /// Removes the tables of the default family that hold only keys from `from` to `to`, both
    /// inclusive. Level 0 is left alone.
    ///
    /// # Errors
    /// `IOError`.
    pub fn delete_file_in_range<K: AsRef<[u8]>>(&self, from: K, to: K) -> Result<(), Error> {
        self.delete_files(self.inner.inner().default_family(), from.as_ref(), to.as_ref())
    }

    /// As [`delete_file_in_range`](Self::delete_file_in_range), in a family.
    ///
    /// # Errors
    /// `IOError`.
    pub fn delete_file_in_range_cf<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        from: K,
        to: K,
    ) -> Result<(), Error> {
        self.delete_files(cf.inner(), from.as_ref(), to.as_ref())
    }

    fn delete_files(&self, family: &EngineFamily, from: &[u8], to: &[u8]) -> Result<(), Error> {
        Ok(self.engine().delete_files_in_ranges(family, &[(Some(from), Some(to))], true)?)
    }

    /// Ends background work; with `wait` the call returns when flushes and compactions have ended.
    /// What the database holds can be read afterwards, and nothing written. An error goes to
    /// `tracing`.
    pub fn cancel_all_background_work(&self, wait: bool) {
        if let Err(error) = self.engine().cancel_all_background_work(wait) {
            tracing::warn!(%error, "ending background work");
        }
    }
}

impl<T: ThreadMode, D: DBInner> DBCommon<T, D> {
    /// Shows reads what the process that writes the database has written by now. Costs time for
    /// what is new alone.
    ///
    /// # Errors
    /// `NotSupported` unless the database was opened as a secondary one; `TryAgain` if the other
    /// process changed its files again and again meanwhile; `Corruption`, `IOError`.
    pub fn try_catch_up_with_primary(&self) -> Result<(), Error> {
        Ok(self.inner.inner().catch_up()?)
    }
}

impl<T: ThreadMode> DBWithThreadMode<T> {
    /// Keeps files that the database no longer needs until
    /// [`enable_file_deletions`](Self::enable_file_deletions) is called as often.
    ///
    /// # Errors
    /// None.
    pub fn disable_file_deletions(&self) -> Result<(), Error> {
        let mut held = self.inner.held_files.lock().unwrap_or_else(PoisonError::into_inner);
        held.push(self.engine().hold_files());
        Ok(())
    }

    /// Removes files that are no longer needed again.
    ///
    /// # Errors
    /// None.
    pub fn enable_file_deletions(&self) -> Result<(), Error> {
        let held = self.inner.held_files.lock().unwrap_or_else(PoisonError::into_inner).pop();
        drop(held);
        Ok(())
    }
}

fn bytes<K: AsRef<[u8]>>(key: &Option<K>) -> Option<&[u8]> {
    key.as_ref().map(AsRef::as_ref)
}

/// Tables that were written outside of the database.
impl<T: ThreadMode, D: DBInner> DBCommon<T, D> {
    /// Makes tables part of the default family, all or none. Their entries are newer than what was
    /// written before; of several tables the later one wins.
    ///
    /// # Errors
    /// `InvalidArgument` for a table that does not fit; `Corruption` for a damaged one; `IOError`.
    /// Nothing is ingested then.
    pub fn ingest_external_file<P: AsRef<Path>>(&self, paths: Vec<P>) -> Result<(), Error> {
        self.ingest_external_file_opts(&IngestExternalFileOptions::default(), paths)
    }

    /// As [`ingest_external_file`](Self::ingest_external_file), with options.
    ///
    /// # Errors
    /// As [`ingest_external_file`](Self::ingest_external_file).
    pub fn ingest_external_file_opts<P: AsRef<Path>>(
        &self,
        opts: &IngestExternalFileOptions,
        paths: Vec<P>,
    ) -> Result<(), Error> {
        self.ingest(self.inner.inner().default_family(), opts, &paths)
    }

    /// As [`ingest_external_file`](Self::ingest_external_file), into a family.
    ///
    /// # Errors
    /// As [`ingest_external_file`](Self::ingest_external_file).
    pub fn ingest_external_file_cf<P: AsRef<Path>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        paths: Vec<P>,
    ) -> Result<(), Error> {
        self.ingest_external_file_cf_opts(cf, &IngestExternalFileOptions::default(), paths)
    }

    /// As [`ingest_external_file`](Self::ingest_external_file), into a family, with options.
    ///
    /// # Errors
    /// As [`ingest_external_file`](Self::ingest_external_file).
    pub fn ingest_external_file_cf_opts<P: AsRef<Path>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        opts: &IngestExternalFileOptions,
        paths: Vec<P>,
    ) -> Result<(), Error> {
        self.ingest(cf.inner(), opts, &paths)
    }

    fn ingest<P: AsRef<Path>>(
        &self,
        family: &EngineFamily,
        options: &IngestExternalFileOptions,
        paths: &[P],
    ) -> Result<(), Error> {
        Ok(self.engine().ingest_external_files(family, paths, options.engine())?)
    }
}

/// Keys with timestamps.
impl<T: ThreadMode, D: DBInner> DBCommon<T, D> {
    /// Lets compactions forget versions of a family's keys with timestamps before `ts`: of each key
    /// only the newest of them stays. From then on the family is read as of `ts` or later.
    ///
    /// # Errors
    /// `InvalidArgument` if the low mark is higher already, or the comparator has no timestamps.
    pub fn increase_full_history_ts_low<S: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        ts: S,
    ) -> Result<(), Error> {
        Ok(self.engine().increase_full_history_ts_low(cf.inner(), ts)?)
    }

    /// The oldest timestamp as of which a family can be read; empty for any.
    ///
    /// # Errors
    /// `InvalidArgument` if the comparator has no timestamps.
    pub fn get_full_history_ts_low(&self, cf: &impl AsColumnFamilyRef) -> Result<Vec<u8>, Error> {
        Ok(self.engine().full_history_ts_low(cf.inner())?.unwrap_or_default())
    }
}

//! What keeps a database in order while it is open, and what it tells of itself.

use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;

use crate::base::{Result, SequenceNumber};
use crate::db::{HeldCompactions, HeldFiles, Statistics, UpdatePosition, Updates, diagnose};
use crate::front::database::Db;
use crate::front::family::Family;
use crate::front::reports::{
    CheckReport, DamagedFile, Finding, KeyFault, KeyVersion, LiveFile, MemoryUsage, Pins,
    SpaceUsage, StatsSnapshot, StoredFile, VerifyReport, WalFile,
};
use crate::options::{
    CheckpointOptions, CompactRangeOptions, CompactionControl, FlushOptions, Options,
    SizeApproximationOptions,
};

/// Durability, options and background work.
impl Db {
    /// Makes all writes so far survive a loss of power.
    ///
    /// # Errors
    /// `IoError`; then writes are refused until the database is opened again, or, where the disk
    /// was full, until there is room ([`Db::resume`]).
    #[doc(alias = "SyncWAL")]
    pub fn sync_wal(&self) -> Result<()> {
        self.engine().sync_wal()
    }

    /// With the option `manual_wal_flush`, brings the records that wait in the process's memory
    /// into the write-ahead log: all writes so far survive the death of the process. Without it
    /// none waits.
    ///
    /// # Errors
    /// As [`Db::sync_wal`].
    #[doc(alias = "FlushWAL")]
    pub fn flush_wal(&self) -> Result<()> {
        self.engine().flush_wal(false)
    }

    /// Stops all writes, so that the contents stay as they are, until [`Db::unlock_wal`] was called
    /// as often, by any thread. Waits for the writes that have begun; all are in the WAL's file
    /// then. Writers wait, with `no_slowdown` they fail with `Incomplete`; tables that are ingested
    /// wait, too. Flushes, compactions and checkpoints go on. Closing the database ends the wait,
    /// and those writers fail.
    ///
    /// # Errors
    /// As [`Db::sync_wal`]; `NotSupported` if the database is open for reading. Nothing is locked
    /// then.
    #[doc(alias = "LockWAL")]
    pub fn lock_wal(&self) -> Result<()> {
        self.engine().lock_wal()
    }

    /// Takes back one call of [`Db::lock_wal`].
    ///
    /// # Errors
    /// `Aborted` if the WAL is not locked; `ShutdownInProgress`.
    #[doc(alias = "UnlockWAL")]
    pub fn unlock_wal(&self) -> Result<()> {
        self.engine().unlock_wal()
    }

    /// Writes the memtables of all families to tables, and waits for that. A single family has
    /// [`Family::flush`].
    ///
    /// # Errors
    /// `IoError`.
    #[doc(alias = "Flush")]
    pub fn flush(&self) -> Result<()> {
        self.engine().flush_all()
    }

    /// Tries at once whether a full disk that suspended writes has room again. The database does so
    /// twice a second. While a flush is running, this is not known yet, and the error is the
    /// earlier one.
    ///
    /// # Errors
    /// Why writes are still refused: a full disk, or with subcode `Poisoned` what only reopening
    /// helps against.
    #[doc(alias = "Resume")]
    pub fn resume(&self) -> Result<()> {
        self.engine().resume()
    }

    /// Waits until neither flushes nor compactions have anything left to do.
    ///
    /// # Errors
    /// Why the database takes no more writes.
    #[doc(alias = "WaitForCompact")]
    pub fn wait_for_compactions(&self) -> Result<()> {
        self.engine().wait_for_compactions()
    }

    /// The options of the database, as they are now.
    #[doc(alias = "GetDBOptions")]
    pub fn db_options(&self) -> Arc<Options> {
        self.engine().options()
    }

    /// Changes options of the database while it is open, by their names and the texts of their
    /// values: all of them, or none. [`DbSettings`](crate::DbSettings) says which may change.
    ///
    /// # Errors
    /// As [`Family::set_options`].
    #[doc(alias = "SetDBOptions")]
    pub fn set_db_options(&self, changes: &[(&str, &str)]) -> Result<()> {
        self.engine().set_db_options(changes)
    }
}

/// Copies and changes.
impl Db {
    /// Makes a copy of the database as it is now in the directory `target`, which must not exist.
    /// Files are linked where they can be, so it takes little time and space.
    ///
    /// # Errors
    /// `InvalidArgument` if `target` exists; `IoError`.
    #[doc(alias = "CreateCheckpoint")]
    pub fn checkpoint(&self, target: impl AsRef<Path>) -> Result<()> {
        self.engine().checkpoint(target)
    }

    /// As [`Db::checkpoint`], with options: without a flush, or without links.
    ///
    /// # Errors
    /// As [`Db::checkpoint`]; `TryAgain` if large values are streamed so fast that each flush finds
    /// new ones.
    pub fn checkpoint_with(
        &self,
        target: impl AsRef<Path>,
        options: &CheckpointOptions,
    ) -> Result<()> {
        self.engine().checkpoint_with(target, options)
    }

    /// All files that a copy of the database needs, for a program that makes one file by file.
    /// Disable deletions first. CURRENT comes last: without it a directory is no database.
    ///
    /// Memtables are flushed first if the WALs have `wal_size_for_flush` bytes of records or more,
    /// so always with 0; `u64::MAX` is never. Those whose large values lie in blob files already
    /// are flushed in any case.
    ///
    /// ```
    /// # use std::fs;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let (path, copy) = (directory.path().join("db"), directory.path().join("copy"));
    /// let db = flagstone::Db::open(path)?;
    /// db.put("stone", "flag")?;
    /// let held = db.hold_files();
    /// fs::create_dir(&copy)?;
    /// for file in db.live_files_storage(0)? {
    ///     let bytes = match file.replacement_contents {
    ///         Some(bytes) => bytes,
    ///         None => fs::read(file.directory.join(&file.name))?[..file.size as usize].to_vec(),
    ///     };
    ///     fs::write(copy.join(&file.name), bytes)?;
    /// }
    /// drop(held);
    /// assert_eq!(flagstone::Db::open(copy)?.get("stone")?.unwrap(), "flag");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotSupported` for a database that is open for reading whose WALs name blob files that its
    /// MANIFEST lacks; `TryAgain` as [`Db::checkpoint_with`]; `Corruption` if a file is missing;
    /// `IoError`.
    #[doc(alias = "GetLiveFilesStorageInfo")]
    pub fn live_files_storage(&self, wal_size_for_flush: u64) -> Result<Vec<StoredFile>> {
        self.engine().live_files_storage(wal_size_for_flush)
    }

    /// The names of the files that make up the database, without WALs, and how many bytes of the
    /// MANIFEST count. [`Db::live_files_storage`] says more.
    ///
    /// # Errors
    /// As [`Db::live_files_storage`].
    #[doc(alias = "GetLiveFiles")]
    pub fn live_file_names(&self, flush: bool) -> Result<(Vec<String>, u64)> {
        self.engine().live_file_names(flush)
    }

    /// Keeps all files of the database until the guard is dropped, as
    /// [`Db::disable_file_deletions`] does.
    pub fn hold_files(&self) -> HeldFiles {
        self.engine().hold_files()
    }

    /// Keeps all files of the database, for a program that copies them, until
    /// [`Db::enable_file_deletions`] is called as often. A database that is closed meanwhile
    /// removes them at its next opening.
    ///
    /// # Errors
    /// `NotSupported` if the database is open for reading; `ShutdownInProgress`.
    #[doc(alias = "DisableFileDeletions")]
    pub fn disable_file_deletions(&self) -> Result<()> {
        self.engine().disable_file_deletions()
    }

    /// Takes back one call of [`Db::disable_file_deletions`], or all with `force`, and returns how
    /// many are left.
    ///
    /// # Errors
    /// As [`Db::disable_file_deletions`].
    #[doc(alias = "EnableFileDeletions")]
    pub fn enable_file_deletions(&self, force: bool) -> Result<usize> {
        self.engine().enable_file_deletions(force)
    }

    /// The sequence number of the last write that readers see.
    #[doc(alias = "GetLatestSequenceNumber")]
    pub fn latest_sequence_number(&self) -> SequenceNumber {
        self.engine().latest_sequence_number()
    }

    /// The writes from the one with this sequence number on, in their order, read from the
    /// write-ahead logs: for a replica, which writes each batch as it gets it. How long logs are
    /// kept, the options `WAL_ttl_seconds` and `WAL_size_limit_MB` say.
    ///
    /// A loss of power may take writes that were not synced, and others then get their numbers. So
    /// call [`Db::sync_wal`] before a write is applied, and go on from an [`Update::position`] with
    /// [`Db::updates_after`].
    ///
    /// [`Update::position`]: crate::Update::position
    ///
    /// ```
    /// # use flagstone::Db;
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = |name| directory.path().join(name);
    /// let keeps_logs = |options: &mut flagstone::Options| options.WAL_ttl_seconds = 3600;
    /// let primary = Db::builder(path("primary")).options(keeps_logs).open()?;
    /// let replica = Db::open(path("replica"))?;
    /// primary.put("key", "value")?;
    /// let mut updates = primary.updates_since(replica.latest_sequence_number() + 1)?;
    /// while let Some(update) = updates.next_update()? {
    ///     primary.sync_wal()?;
    ///     replica.write(update.batch)?;
    /// }
    /// assert_eq!(replica.get("key")?.unwrap(), "value");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` if that write is in the logs no longer; `InvalidArgument` if it is not even the
    /// next one; `NotSupported` if the database is open read-only; `IoError`.
    #[doc(alias = "GetUpdatesSince")]
    pub fn updates_since(&self, sequence: SequenceNumber) -> Result<Updates> {
        self.engine().get_updates_since(sequence)
    }

    /// The writes after the one at `position`.
    ///
    /// # Errors
    /// As [`Db::updates_since`]; `InvalidArgument` also if other writes than the replica's have led
    /// to that position: make a new copy.
    pub fn updates_after(&self, position: UpdatePosition) -> Result<Updates> {
        self.engine().get_updates_after(position)
    }

    /// The sequence number of the oldest write that the logs have; `None` if they have none.
    ///
    /// # Errors
    /// `IoError`.
    pub fn oldest_update(&self) -> Result<Option<SequenceNumber>> {
        self.engine().oldest_update()
    }
}

/// What the database tells of itself.
impl Db {
    /// A name that the database has from its creation on, and its copies, too.
    #[doc(alias = "GetDbIdentity")]
    pub fn identity(&self) -> &str {
        self.engine().identity()
    }

    /// A name that this opening of the database has, and the tables that it writes.
    #[doc(alias = "GetDbSessionId")]
    pub fn session_id(&self) -> &str {
        self.engine().session_id()
    }

    /// What was counted since the database was opened.
    pub fn statistics(&self) -> &Statistics {
        self.engine().statistics()
    }

    /// The sum of a property over all families; `None` if it is no number.
    #[doc(alias = "GetAggregatedIntProperty")]
    pub fn aggregated_int_property(&self, name: &str) -> Option<u64> {
        self.engine().aggregated_int_property(name)
    }

    /// What each counter of [`Db::statistics`] has grown by, in the periods of
    /// `stats_persist_period_sec` that ended within these seconds since 1970, oldest first. The
    /// history lives in memory, up to `stats_history_buffer_size` bytes of it, and ends with the
    /// database; one that is open for reading has none.
    #[doc(alias = "GetStatsHistory")]
    pub fn stats_history(&self, unix_seconds: std::ops::Range<u64>) -> Vec<StatsSnapshot> {
        self.engine().stats_history(unix_seconds)
    }

    /// All counters of [`Db::statistics`], and properties of the database and of its families, in
    /// Prometheus' text format. Names are RocksDB's with `_` for other characters; a counter's ends
    /// in `_total`. Opens no file.
    ///
    /// ```
    /// # fn main() -> flagstone::Result<()> {
    /// # let name = format!("flagstone-doc-{}", std::process::id());
    /// # let directory = std::env::temp_dir().join(name);
    /// let db = flagstone::Db::builder(&directory).open()?;
    /// db.put("key", "value")?;
    /// let text = db.prometheus_text();
    /// assert!(text.contains("\nrocksdb_number_keys_written_total 1\n"));
    /// assert!(text.contains("\nrocksdb_estimate_num_keys{cf=\"default\"} 1\n"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn prometheus_text(&self) -> String {
        self.engine().prometheus_text()
    }

    /// Begins to count anew what the properties `rocksdb.cfstats`, `rocksdb.dbstats` and their
    /// parts tell of all families, and `rocksdb.background-errors`. [`Db::statistics`] counts on.
    #[doc(alias = "ResetStats")]
    pub fn reset_stats(&self) {
        self.engine().reset_stats();
    }

    /// What memory is used for. Looks at every cached block and every open table.
    #[doc(alias = "GetApproximateMemoryUsageByType")]
    pub fn memory_usage(&self) -> MemoryUsage {
        self.engine().memory_usage()
    }

    /// The tables and blob files of all families, by family, level and key.
    #[doc(alias = "GetLiveFilesMetaData")]
    #[doc(alias = "GetLiveFilesChecksumInfo")]
    pub fn live_files(&self) -> Vec<LiveFile> {
        self.engine().live_files()
    }

    /// The write-ahead logs, oldest first.
    #[doc(alias = "GetSortedWalFiles")]
    pub fn wal_files(&self) -> Vec<WalFile> {
        self.engine().wal_files()
    }

    /// The `most` oldest snapshots and iterators, with where they were made and what they keep on
    /// the disk and in memory.
    pub fn pins(&self, most: usize) -> Pins {
        self.engine().pins(most)
    }

    /// The damaged files that were met since the database was opened.
    /// [`Builder::salvage_to`](crate::Builder::salvage_to) saves what the others hold.
    pub fn damaged_files(&self) -> Vec<DamagedFile> {
        self.engine().damaged_files()
    }

    /// What is wrong with single keys that flushes and compactions have met.
    pub fn key_faults(&self) -> Vec<KeyFault> {
        self.engine().key_faults()
    }

    /// Reads all tables and blob files, and checks every checksum, the order of keys and the
    /// references between files. `progress` is called after each file.
    #[doc(alias = "VerifyChecksum")]
    pub fn verify(&self, progress: impl FnMut(&VerifyReport)) -> VerifyReport {
        self.engine().verify(progress)
    }

    /// Reads all tables and blob files that have a checksum in the MANIFEST
    /// ([`LiveFile::checksum`](crate::reports::LiveFile::checksum)), and compares it.
    ///
    /// # Errors
    /// `Corruption` naming the first file that has another checksum; `InvalidArgument` if its
    /// function is not known; `IoError`.
    #[doc(alias = "VerifyFileChecksums")]
    pub fn verify_file_checksums(&self) -> Result<()> {
        self.engine().verify_file_checksums()
    }

    /// Compares the files that there should be with those that there are. Reads no contents.
    ///
    /// # Errors
    /// `IoError` if the directory cannot be listed.
    pub fn check(&self) -> Result<CheckReport> {
        self.engine().check()
    }

    /// Explains what is wrong with the database, why its writes are slow, and what to change. The
    /// most serious finding comes first; the list is empty if all is well. In a
    /// [`TransactionDb`](crate::TransactionDb) a lock that is waited for long is a finding.
    ///
    /// Looks at the directory, the shape of the trees, the properties of tables, what was counted
    /// since the opening, and all locks.
    ///
    /// # Errors
    /// `IoError` if the directory cannot be listed.
    pub fn doctor(&self) -> Result<Vec<Finding>> {
        let mut facts = self.engine().facts()?;
        self.stamping().add_lock_waits(&mut facts.database);
        Ok(diagnose(&facts))
    }
}

/// Options and background work of one family.
impl Family {
    /// Changes options of the family while the database is open, by their names and the texts of
    /// their values: all of them, or none. [`CfSettings`](crate::CfSettings) and
    /// [`TableSettings`](crate::TableSettings) say which may change.
    ///
    /// # Errors
    /// - `InvalidArgument`: a name that is not known, a bad value, or an option that takes effect
    ///   at the next opening only. `NotSupported`.
    /// - `ColumnFamilyDropped`; `ShutdownInProgress`.
    /// - `IoError`: the change is in force, but the OPTIONS file was not written yet.
    #[doc(alias = "SetOptions")]
    pub fn set_options(&self, changes: &[(&str, &str)]) -> Result<()> {
        self.engine().set_options(self.engine_family(), changes)
    }

    /// Writes the family's memtable to a table, and waits for that. With the option `atomic_flush`,
    /// those of all families.
    ///
    /// # Errors
    /// `IoError`; `ColumnFamilyDropped`.
    #[doc(alias = "Flush")]
    pub fn flush(&self) -> Result<()> {
        self.flush_with(&FlushOptions::default())
    }

    /// The same, as `options` say.
    ///
    /// # Errors
    /// As [`Family::flush`].
    pub fn flush_with(&self, options: &FlushOptions) -> Result<()> {
        self.engine().flush(self.engine_family(), options)
    }

    /// Compacts all of the family, and waits for that. `db.compact()` is that of family `default`
    /// alone.
    ///
    /// # Errors
    /// `Corruption`, `IoError`; `ColumnFamilyDropped`.
    #[doc(alias = "CompactRange")]
    pub fn compact(&self) -> Result<()> {
        self.compact_range::<&[u8]>(.., &CompactRangeOptions::default())
    }

    /// Compacts the tables with keys in a range, as `options` say, and waits for that. A bound that
    /// is excluded counts as included. A [`CompactionControl`] in the options reports progress, and
    /// cancels.
    ///
    /// # Errors
    /// As [`Family::compact`]; `InvalidArgument` if the start is after the end, or for a level that
    /// there is not; `Incomplete` if it was canceled.
    pub fn compact_range<K: AsRef<[u8]>>(
        &self,
        bounds: impl RangeBounds<K>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        self.check_order(&bounds)?;
        let (begin, end) = (key(bounds.start_bound()), key(bounds.end_bound()));
        self.engine().compact_range(self.engine_family(), begin, end, options)
    }

    /// Keeps automatic compactions of the family from beginning until the guard is dropped.
    ///
    /// # Errors
    /// `ColumnFamilyDropped`.
    pub fn hold_compactions(&self) -> Result<HeldCompactions<'_>> {
        self.engine().hold_automatic_compactions(self.engine_family())
    }

    /// Brings the family's blob files down to `max_space_amplification`, and waits for that.
    ///
    /// # Errors
    /// As [`Family::compact_range`].
    pub fn collect_blob_garbage(&self, control: Option<Arc<CompactionControl>>) -> Result<()> {
        self.engine().collect_blob_garbage(self.engine_family(), control)
    }

    /// Removes the tables below level 0 all of whose keys lie in a range, without reading them: the
    /// quickest way to free space, for data that is no longer read. It is no deletion: other tables
    /// keep what they have of the range, and older values of some keys may come to light, so
    /// [`Family::delete_range`] goes with it. Snapshots lose the tables, too.
    ///
    /// # Errors
    /// `InvalidArgument` if the start is after the end; `Corruption`, `IoError`;
    /// `ColumnFamilyDropped`.
    #[doc(alias = "DeleteFilesInRange")]
    pub fn delete_files_in_range<K: AsRef<[u8]>>(&self, bounds: impl RangeBounds<K>) -> Result<()> {
        self.check_order(&bounds)?;
        let range = (key(bounds.start_bound()), key(bounds.end_bound()));
        let includes_end = !matches!(bounds.end_bound(), Bound::Excluded(_));
        self.engine().delete_files_in_ranges(self.engine_family(), &[range], includes_end)
    }

    /// About how many bytes the keys of each range take in tables, and, if the options say so, in
    /// memtables; values in blob files do not count.
    ///
    /// # Errors
    /// `InvalidArgument` if a start is after its end; `Corruption`, `IoError`.
    #[doc(alias = "GetApproximateSizes")]
    pub fn approximate_sizes<K: AsRef<[u8]>>(
        &self,
        ranges: &[std::ops::Range<K>],
        options: &SizeApproximationOptions,
    ) -> Result<Vec<u64>> {
        ranges.iter().try_for_each(|range| self.check_order(range))?;
        let ranges: Vec<(&[u8], &[u8])> =
            ranges.iter().map(|range| (range.start.as_ref(), range.end.as_ref())).collect();
        self.engine().approximate_sizes(self.engine_family(), &ranges, options)
    }

    /// The stored versions of the keys in a range, up to `at_most` of them, in the order of the
    /// keys, of each the newest first: older versions that snapshots keep or no compaction has
    /// dropped yet, deletions and merge operands. For debugging. Range deletions are not listed,
    /// nor do they hide what they delete; stamps of values that expire are part of the values.
    ///
    /// ```
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = flagstone::Db::open(directory.path())?;
    /// use flagstone::reports::ValueType;
    /// db.put("ada", "1815")?;
    /// db.delete("ada")?;
    /// let versions = db.key_versions("a".."b", 100)?;
    /// assert_eq!(versions[0].kind, ValueType::Deletion);
    /// assert_eq!(versions[1].value, b"1815");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the start is after the end; `Corruption`, `IoError`.
    #[doc(alias = "GetAllKeyVersions")]
    pub fn key_versions<K: AsRef<[u8]>>(
        &self,
        bounds: impl RangeBounds<K>,
        at_most: usize,
    ) -> Result<Vec<KeyVersion>> {
        self.check_order(&bounds)?;
        let (start, end) = (bounds.start_bound(), bounds.end_bound());
        let range = (start.map(AsRef::as_ref), end.map(AsRef::as_ref));
        self.engine().key_versions(self.engine_family(), range, at_most)
    }

    /// Measures what the family takes on the disk, and how much of it is garbage. Reads all of its
    /// tables, but no values in blob files.
    ///
    /// # Errors
    /// `Corruption`, `IoError`.
    pub fn space(&self) -> Result<SpaceUsage> {
        self.engine().space(self.engine_family())
    }
}

fn key<K: AsRef<[u8]>>(bound: Bound<&K>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key.as_ref()),
        Bound::Unbounded => None,
    }
}

//! From RocksDB's names, and those of the engine's handle `flagstone::db::Db`, to the names at the
//! root.
//!
//! | RocksDB | crate `rocksdb` | `flagstone::db::Db` | here |
//! |---|---|---|---|
//! | `DB::Open` | `DB::open_default` | `Db::open(path, &options)` | [`Db::open`], [`Db::builder`] |
//! | `DB::OpenForReadOnly` | `DB::open_for_read_only` | `Db::open_read_only` | [`Builder::open_read_only`] |
//! | `LoadLatestOptions` | `Options::load_latest` | `load_latest` | [`Db::open_with_stored_options`] |
//! | `DBWithTTL::Open` | `DB::open_with_ttl` | `TtlDb::open` | [`Builder::expiring_family`] |
//! | `ColumnFamilyHandle` | `ColumnFamily` | `ColumnFamily` | [`Family`] |
//! | `Put(family, k, v)` | `put_cf` | `put_cf` | [`Family::put`], [`Family::put_with`] |
//! | `Get`, `PinnableSlice` | `get_cf`, `get_pinned` | `get_cf`, `get_with` | [`View::get`], [`View::get_with`] |
//! | `MultiGet` | `multi_get_cf` | `multi_get_with` | [`View::get_many`] |
//! | `NewIterator`, `Iterator` | `raw_iterator` | `iter_cf`, `Iter` | [`View::cursor`], [`Cursor`] |
//! | a loop of `Seek` and `Next` | `iterator`, `prefix_iterator` | `next_entry` | [`View::range`], [`View::prefix`] |
//! | `ReadOptions::snapshot` | `snapshot.get` | `ReadOptions::snapshot` | [`Snapshot`], [`Snapshot::family`] |
//! | `WriteOptions::sync` | `set_sync(true)` | `WriteOptions::sync` | [`WriteOptions::synced`] |
//! | `MergeOperator` | `set_merge_operator` | `merge_operator` | [`ColumnFamilyOptions::merge_with`] |
//! | `CompactionFilter` | `set_compaction_filter` | `compaction_filter` | [`ColumnFamilyOptions::filter_with`] |
//! | `OptimisticTransactionDB` | `OptimisticTransactionDB` | `write_if_unchanged` | [`Db::transact`], [`Db::begin`] |
//! | `TransactionDB` | `TransactionDB` | none | [`TransactionDb`], [`Transaction`](crate::Transaction) |
//! | `SetName`, `Prepare` | `set_name`, `prepare` | `TwoPhase` | [`Transaction::prepare`](crate::Transaction::prepare) |
//! | `GetAllPreparedTransactions` | `prepared_transactions` | `TwoPhase` | [`TransactionDb::prepared_transactions`] |
//! | `Get`, then `Put` | the same | the same | [`Family::update`] |
//! | `Write` | `write` | `write` | [`Db::write`] |
//! | `Delete`, `Merge` | `delete_cf`, `merge_cf` | the same | [`Family::delete`], [`Family::merge`] |
//! | `DeleteRange` | `delete_range_cf` | the same | [`Family::delete_range`] |
//! | `Flush` | `flush_cf` | `flush` | [`Family::flush`], [`Db::flush`] |
//! | `CompactRange` | `compact_range_cf` | `compact_range` | [`Family::compact`] |
//! | `SstFileWriter` | `SstFileWriter` | the same | [`SstFileWriter`] |
//! | `IngestExternalFile` | `ingest_external_file_cf` | `ingest_external_files` | [`Family::ingest_external_files`] |
//! | `Checkpoint` | `Checkpoint` | `checkpoint` | [`Db::checkpoint`], [`Db::checkpoint_with`] |
//! | `BackupEngine` | `BackupEngine` | the same | [`BackupEngine`](crate::backup::BackupEngine) |
//! | `GetLiveFilesStorageInfo` | none | the same as here | [`Db::live_files_storage`] |
//! | `DisableFileDeletions` | the same | the same as here | [`Db::disable_file_deletions`] |
//! | `ExportColumnFamily` | none | `export_column_family` | [`Family::export`] |
//! | `CreateColumnFamilyWithImport` | none | the same as here | [`Db::create_column_family_with_import`] |
//! | `ClipColumnFamily` | none | `clip_column_family` | [`Family::clip`] |
//! | `RepairDB` | `DB::repair` | `salvage` | [`Builder::salvage_to`] |
//!
//! Options have RocksDB's names and texts; [`Options::set`] takes any by its name.
//!
//! What was written with the engine's handle:
//!
//! ```
//! use flagstone::db::Db;
//! use flagstone::options::{Options, ReadOptions};
//!
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("db");
//! let mut options = Options::default();
//! options.create_if_missing = true;
//! let db = Db::open(&path, &options)?;
//! let users = db.create_column_family("users", &options.cf)?;
//! db.put_cf(&users, "ada", "1815")?;
//! let read = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
//! assert_eq!(db.get_with(&read, &users, "ada")?.unwrap(), "1815");
//! let mut iter = db.iter_cf(&users, &read)?;
//! iter.seek_to_first();
//! while let Some((user, year)) = iter.next_entry()? {
//!     println!("{}: {}", user.escape_ascii(), year.escape_ascii());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! And the same with the names at the root:
//!
//! ```
//! use flagstone::Db;
//!
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("db");
//! let db = Db::builder(&path).column_family("users", |_| {}).open()?;
//! let users = db.column_family("users")?;
//! users.put("ada", "1815")?;
//! let before = db.snapshot().family(&users)?;
//! assert_eq!(before.get("ada")?.unwrap(), "1815");
//! for entry in before.iter() {
//!     let (user, year) = entry?;
//!     println!("{}: {}", user.escape_ascii(), year.escape_ascii());
//! }
//! # Ok(())
//! # }
//! ```

#[expect(unused_imports, reason = "the table's links lead there")]
use crate::{
    Builder, ColumnFamilyOptions, Cursor, Db, Family, Options, Snapshot, SstFileWriter,
    TransactionDb, View, WriteOptions,
};

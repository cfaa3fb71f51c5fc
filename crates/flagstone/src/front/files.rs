//! Tables that come from outside of the database, and families that leave it.

use std::path::{Path, PathBuf};

use crate::base::{Error, Result};
use crate::db::{ColumnFamily, ExportedFamily, ExternalFiles};
use crate::front::database::Db;
use crate::front::family::Family;
use crate::options::IngestExternalFileOptions;

impl Family {
    /// Adds to the family tables that were written by an [`SstFileWriter`](crate::SstFileWriter) or
    /// RocksDB's, all or none, without rewriting them. Their entries are newer than all that was
    /// written before; of several tables the later one wins. Snapshots do not see them.
    ///
    /// The tables are durable when the call returns. It flushes memtables that have keys in the
    /// range of a table, and writers wait for that and for a sync.
    ///
    /// ```
    /// use flagstone::{Db, IngestExternalFileOptions, SstFileWriter, SstFileWriterOptions};
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let (table, path) = (directory.path().join("days.sst"), directory.path().join("db"));
    /// let db = Db::open(path)?;
    /// let mut writer = SstFileWriter::create(&table, &SstFileWriterOptions::new(&db.options()))?;
    /// for day in 0..1000 {
    ///     writer.put(format!("day {day:03}"), "sunny")?;
    /// }
    /// writer.finish()?;
    /// let moved = IngestExternalFileOptions { move_files: true, ..Default::default() };
    /// db.ingest_external_files(&[table], &moved)?;
    /// assert_eq!(db.get("day 042")?.unwrap(), "sunny");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Each names the file, and nothing is ingested:
    /// - `InvalidArgument`: no files; a table without entries, of another comparator or family,
    ///   that a database wrote (unless `allow_db_generated_files`), with merge operands though the
    ///   family has no merge operator, or that does not fit as the options ask; a family whose
    ///   values expire.
    /// - `Corruption`: a damaged file. `NotSupported`: one that this engine does not read.
    /// - `TryAgain`: a table does not fit into the last level, as
    ///   `fail_if_not_bottommost_level` asks.
    /// - `IoError`; `ColumnFamilyDropped`; `ShutdownInProgress`.
    #[doc(alias = "IngestExternalFile")]
    pub fn ingest_external_files(
        &self,
        files: &[impl AsRef<Path>],
        options: &IngestExternalFileOptions,
    ) -> Result<()> {
        let family = self.engine_family();
        refuse_expiring(self.view().expires, family)?;
        self.engine().ingest_external_files(family, files, options)
    }

    /// Flushes the family and copies it to the new directory `target`, mostly by hard links. The
    /// copy is a database with this family and an empty `default`, of which
    /// [`create_column_family_with_import`](crate::Db::create_column_family_with_import) makes a
    /// family again.
    ///
    /// # Errors
    /// `InvalidArgument` if `target` exists, or if the family's values expire; `NotSupported` if
    /// the database is open for reading and the family has entries in WALs; `Corruption` if a file
    /// is missing; `ColumnFamilyDropped`; `IoError`. What was made so far is then removed.
    #[doc(alias = "ExportColumnFamily")]
    pub fn export(&self, target: impl Into<PathBuf>) -> Result<ExportedFamily> {
        if self.view().expires {
            let name = self.engine_family().name();
            let message = format!("the values of column family '{name}' expire: make a checkpoint");
            return Err(Error::invalid_argument(message));
        }
        self.engine().export_column_family(self.engine_family(), target)
    }

    /// Removes all keys outside of a range. One durable write deletes them; then the tables that
    /// have some of them are compacted, so that only what snapshots see is left on the disk. FIFO
    /// compaction removes nothing from the disk, and `cf_allow_ingest_behind` keeps what lies in
    /// the last level. A call that fails has deleted all of the keys or none. Keys that are written
    /// outside of the range meanwhile may stay.
    ///
    /// # Errors
    /// `InvalidArgument` if the range is empty; `NotSupported` in a
    /// [`TransactionDb`](crate::TransactionDb), which cannot lock a range; `ColumnFamilyDropped`;
    /// `Corruption`, `IoError`.
    #[doc(alias = "ClipColumnFamily")]
    pub fn clip<K: AsRef<[u8]>>(&self, range: std::ops::Range<K>) -> Result<()> {
        self.view().engine.refuse_ranges()?;
        let (begin, end) = (range.start.as_ref(), range.end.as_ref());
        self.engine().clip_column_family(self.engine_family(), begin, end)
    }
}

impl Db {
    /// As [`Family::ingest_external_files`], into several families by one atomic change.
    ///
    /// ```
    /// use flagstone::{Db, ExternalFiles, SstFileWriter, SstFileWriterOptions};
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let (table, path) = (directory.path().join("users.sst"), directory.path().join("db"));
    /// # let db = Db::builder(path).column_family("users", |_| {}).open()?;
    /// # let users = db.column_family("users")?;
    /// # let mut writer = SstFileWriter::create(&table, &SstFileWriterOptions::default())?;
    /// # writer.put("ada", "1815")?;
    /// # writer.finish()?;
    /// users.put("alan", "1912")?;
    /// let mut of_users = ExternalFiles::new(&users, [&table]);
    /// of_users.atomic_replace_range = Some((b"a".to_vec(), b"b".to_vec()));
    /// db.ingest_together(&[of_users])?;
    /// assert!(users.get("alan")?.is_none());
    /// assert_eq!(users.get("ada")?.unwrap(), "1815");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there; `InvalidArgument` also for a family that is named twice, and for keys outside of
    /// the range that is replaced.
    #[doc(alias = "IngestExternalFiles")]
    pub fn ingest_together(&self, groups: &[ExternalFiles]) -> Result<()> {
        let engine = &self.view().engine;
        for ExternalFiles { family, .. } in groups {
            refuse_expiring(engine.expires(family.id()), family)?;
        }
        engine.base().ingest_together(groups)
    }
}

impl From<&Family> for ColumnFamily {
    fn from(family: &Family) -> Self {
        family.engine_family().clone()
    }
}

/// The tables' values have no stamps.
fn refuse_expiring(expires: bool, family: &ColumnFamily) -> Result<()> {
    if !expires {
        return Ok(());
    }
    let message = format!(
        "the values of column family '{}' expire, and those of tables do not",
        family.name()
    );
    Err(Error::invalid_argument(message))
}

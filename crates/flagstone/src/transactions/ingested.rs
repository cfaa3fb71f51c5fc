//! Batches that become tables, without a WAL record and without memtables.
//!
//! 1. Of each key, the operations count from the newest that is no merge on. A key has more than
//!    one of these only if operands were merged into it.
//! 2. They go to tables, a key's oldest into the first, the next into the second, and so on: a
//!    table has each key once, and the later of two tables that are ingested together wins.
//! 3. The tables of all families are ingested by one change of the MANIFEST.
//!
//! The tables are written under temporary names, which an opening removes after a crash.

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::{Error, Result, ValueType};
use crate::db::{ColumnFamily, Db, ExternalFiles, begin_temporary_table};
use crate::env::{FileSystem, remove_if_there};
use crate::ingest::{SstFileWriter, SstFileWriterOptions};
use crate::options::IngestExternalFileOptions;
use crate::transactions::indexed_batch::WriteBatchWithIndex;

/// Operands that may be merged into one key: each takes a table.
const TABLES_MAX: usize = 64;

/// Tables of one family that are being written, and those that are complete.
struct Tables<'a> {
    db: &'a Db,
    family: &'a ColumnFamily,
    options: SstFileWriterOptions,
    writers: Vec<SstFileWriter>,
}

/// Files that are removed, unless they were moved away.
struct Temporary {
    fs: Arc<dyn FileSystem>,
    paths: Vec<PathBuf>,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        for path in &self.paths {
            // The error that led here matters more; what stays is removed at the next opening.
            let _ = remove_if_there(&*self.fs, path);
        }
    }
}

/// An operation, as a table stores it.
type Operation = (ValueType, Vec<u8>);

impl WriteBatchWithIndex {
    /// Writes the batch as tables of the database: for large batches, whose operations would
    /// otherwise be logged, inserted into memtables and flushed (RocksDB's
    /// `IngestWriteBatchWithIndex`). Readers see all of it at once, and it is durable when this
    /// returns. The batch stays as it is.
    ///
    /// Values stay in the tables, also large ones, until a compaction moves them to blob files. Log
    /// data is dropped. Writers wait while memtables with keys in the range of the batch are
    /// flushed, and while the tables are installed ([`Db::ingest_together`]).
    ///
    /// # Errors
    /// `InvalidArgument` if a family has other keys than the batch, or is not there, or if more
    /// than 64 operands are merged into a key; `NotSupported` for values that were written in
    /// pieces, and for families with timestamps; those of [`Db::ingest_together`]. Nothing is
    /// written then.
    #[doc(alias = "IngestWriteBatchWithIndex")]
    pub fn ingest(&self, db: &Db) -> Result<()> {
        let mut temporary = Temporary { fs: db.env().fs.clone(), paths: Vec::new() };
        let families = db.column_families();
        self.check_families(&families)?;
        let mut groups = Vec::new();
        for family in &families {
            let mut tables = Tables {
                db,
                family,
                options: SstFileWriterOptions {
                    env: db.env().clone(),
                    named_family: Some((family.id(), family.name().to_string())),
                    ..SstFileWriterOptions::new(&family.options())
                },
                writers: Vec::new(),
            };
            self.visit_operations(family, |key, operations| {
                tables.add(key, operations, &mut temporary.paths)
            })?;
            let files = tables.finish()?;
            if !files.is_empty() {
                let options = IngestExternalFileOptions { move_files: true, ..Default::default() };
                groups.push(ExternalFiles {
                    options,
                    file_temperature: family.options().default_write_temperature,
                    ..ExternalFiles::new(family, files)
                });
            }
        }
        if groups.is_empty() { Ok(()) } else { db.ingest_together(&groups) }
    }

    fn check_families(&self, families: &[ColumnFamily]) -> Result<()> {
        for id in self.family_ids() {
            let Some(family) = families.iter().find(|family| family.id() == id) else {
                let message = format!("column family {} does not exist", id.0);
                return Err(Error::invalid_argument(message));
            };
            if family.comparator().timestamp_size() > 0 {
                let message = format!(
                    "column family '{}' has timestamps, and the batch has none to ingest",
                    family.name()
                );
                return Err(Error::not_supported(message));
            }
        }
        Ok(())
    }
}

impl Tables<'_> {
    /// Adds what counts of a key, oldest first.
    fn add(
        &mut self,
        key: &[u8],
        operations: &[Operation],
        paths: &mut Vec<PathBuf>,
    ) -> Result<()> {
        if operations.len() > TABLES_MAX {
            let message = format!(
                "{} operations of the batch merge into one key; at most {TABLES_MAX} are ingested",
                operations.len()
            );
            return Err(Error::invalid_argument(message));
        }
        for (place, (kind, value)) in operations.iter().enumerate() {
            if place == self.writers.len() {
                let path = begin_temporary_table(self.db, self.family)?;
                self.db.env().fs.advise(&path, self.family.options().default_write_temperature);
                paths.push(path.clone());
                self.writers.push(SstFileWriter::create(path, &self.options)?);
            }
            let writer = &mut self.writers[place];
            match kind {
                ValueType::Value => writer.put(key, value)?,
                ValueType::WideColumnEntity => writer.put_encoded_entity(key, value)?,
                ValueType::Merge => writer.merge(key, value)?,
                ValueType::Deletion => writer.delete(key)?,
                ValueType::SingleDeletion => writer.single_delete(key)?,
                _ => {
                    let message = "values that were written in pieces are not ingested";
                    return Err(Error::not_supported(message));
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<PathBuf>> {
        self.writers.into_iter().map(|writer| writer.finish().map(|table| table.path)).collect()
    }
}

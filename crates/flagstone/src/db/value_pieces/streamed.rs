//! A value that was written piece by piece, and that a batch will name: for transactions, which
//! write it later or not at all.

use std::fmt;
use std::sync::Arc;

use crate::base::sync::{AtomicBool, Ordering};
use crate::base::{ColumnFamilyId, Result, SequenceNumber, Snapshot};
use crate::batch::WriteBatch;
use crate::db::DbInner;
use crate::db::family::direct_blobs::DirectFile;
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::db::reading::read::read_settings;
use crate::db::reading::value::Value;
use crate::db::reading::value_reader::ValueReader;
use crate::db::value_pieces::{Pieces, ValueWriter, failed_earlier};
use crate::db::writing::condition::Condition;
use crate::options::{ReadOptions, WriteOptions};

/// A value in a blob file that nothing names yet. Dropped before it is written, it takes the file
/// along.
pub struct StreamedValue {
    inner: Arc<DbInner>,
    family: Arc<Family>,
    key: Vec<u8>,
    /// Where the value lies, encoded.
    index: Vec<u8>,
    size: u64,
    /// None once it is given up.
    file: Option<Arc<DirectFile>>,
    /// A WAL or a memtable may name the file.
    is_written: AtomicBool,
}

/// A value that is complete.
pub enum Streamed {
    /// It is short.
    InMemory(Vec<u8>),
    /// It has a file.
    InFile(StreamedValue),
}

impl ValueWriter {
    /// Completes the value, and writes it nowhere yet.
    ///
    /// # Errors
    /// As [`ValueWriter::commit`].
    pub(crate) fn complete(mut self) -> Result<Streamed> {
        self.inner.context.process.check()?;
        let (inner, family) = (self.inner.clone(), self.family.clone());
        match std::mem::replace(&mut self.pieces, Pieces::Failed) {
            Pieces::InMemory(value) => Ok(Streamed::InMemory(value)),
            Pieces::Failed => Err(failed_earlier()),
            Pieces::InFile(own) => {
                let size = own.stream.as_ref().map_or(0, |stream| stream.value_size());
                let completed = inner.pipeline.complete_own_file(own, &family);
                let (index, file) = completed.inspect_err(|error| {
                    inner.jobs.purge_obsolete_files();
                    inner.tree.refused(error);
                })?;
                let (key, is_written) = (std::mem::take(&mut self.key), AtomicBool::new(false));
                let file = Some(file);
                Ok(Streamed::InFile(StreamedValue {
                    inner,
                    family,
                    key,
                    index,
                    size,
                    file,
                    is_written,
                }))
            }
        }
    }
}

impl StreamedValue {
    /// The key that is to be set to it.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The key's family.
    pub fn family(&self) -> ColumnFamilyId {
        self.family.id
    }

    /// Bytes of the value.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Where it lies, as a batch names it.
    pub(crate) fn index(&self) -> &[u8] {
        &self.index
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// `Corruption`, `IoError`.
    pub fn read(&self) -> Result<Value> {
        let (tables, current) = (&self.inner.tables, self.family.current.load_full());
        let place = tables.place_of_blob(&self.family, &self.key, &self.index)?;
        let settings = read_settings(&ReadOptions::default());
        tables
            .read_blob(&self.family, &current.version, &self.key, &place, &settings, None)
            .map(Value::from)
    }

    /// A reader of it, if it is large enough for one.
    ///
    /// # Errors
    /// As [`StreamedValue::read`].
    pub fn in_pieces(&self) -> Result<Option<ValueReader>> {
        let (tables, current) = (&self.inner.tables, self.family.current.load_full());
        let options = ReadOptions::default();
        ValueReader::open(tables, &self.family, &current, &self.key, &self.index, &options)
    }
}

/// Writes of batches that name such values.
impl StreamedValue {
    /// [`Db::write_ref`] of a batch that names these values.
    ///
    /// # Errors
    /// As [`Db::write_ref`].
    pub(crate) fn write(
        db: &Db,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        values: &[Arc<Self>],
    ) -> Result<()> {
        match values {
            [] => db.write_ref(options, batch),
            values => Self::write_all(db, options, batch, values, Condition::Nothing),
        }
    }

    /// The same, if none of `keys` was written behind its sequence number. None of these lies
    /// before `kept`.
    ///
    /// # Errors
    /// As [`Db::write_if_unchanged`].
    pub(crate) fn write_if_unwritten<'a>(
        db: &Db,
        options: &WriteOptions,
        (batch, values): (&mut WriteBatch, &[Arc<Self>]),
        kept: &Snapshot,
        keys: impl Iterator<Item = (&'a ColumnFamily, &'a [u8], SequenceNumber)>,
    ) -> Result<()> {
        let unchanged = db.unchanged(kept, keys)?;
        match values {
            [] => db.inner().pipeline.write_if(options, batch, Condition::Unchanged(&unchanged)),
            values => Self::write_all(db, options, batch, values, Condition::Unchanged(&unchanged)),
        }
    }

    fn write_all(
        db: &Db,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        values: &[Arc<Self>],
        condition: Condition<'_>,
    ) -> Result<()> {
        let inner = db.inner();
        let file_of = |value: &Arc<Self>| Some((value.family.id, value.file.clone()?));
        let files: Vec<_> = values.iter().filter_map(file_of).collect();
        let written = inner.pipeline.write_streamed(options, batch, &files, condition);
        for (value, (_, file)) in values.iter().zip(&files) {
            // After an error that came late, a memtable or a sync may have it.
            if written.is_ok() || Arc::strong_count(file) > 2 {
                value.is_written.store(true, Ordering::Release);
            }
        }
        if values.iter().any(|value| value.family.is_dropped()) {
            inner.jobs.purge_all_obsolete_files();
        }
        written
    }
}

impl Drop for StreamedValue {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        if !self.inner.context.process.is_this() {
            return std::mem::forget(file);
        }
        if !self.is_written.load(Ordering::Acquire) {
            self.inner.pipeline.give_up_uncommitted(file);
            self.inner.jobs.purge_obsolete_files();
        }
    }
}

impl fmt::Debug for StreamedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamedValue({}, {} bytes)", self.key.escape_ascii(), self.size)
    }
}

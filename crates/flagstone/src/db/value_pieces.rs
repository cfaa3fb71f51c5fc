//! Writing a value that need not fit into memory.
//!
//! The first pieces are gathered in memory; a value that ends there is an ordinary one. Of a longer
//! one the pieces go to a blob file of its own, which nothing names before [`ValueWriter::commit`]
//! has completed it and put its address into the WAL. A writer that is dropped before removes the
//! file, and so does the next opening if the process dies.

mod streamed;

use std::any::Any;
use std::sync::Arc;
use std::{fmt, io};

use crate::base::{Code, Error, Result};
use crate::batch::{MAX_ENTRY_SIZE, WriteBatch};
use crate::blob::BlobStream;
use crate::cache::{Measured, MemoryKind};
use crate::db::DbInner;
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::db::reading::value_reader::ValueReader;
use crate::db::writing::direct_blob::own_file::OwnFile;
use crate::options::{ReadOptions, WriteOptions};

pub use streamed::{Streamed, StreamedValue};

/// Bytes up to which a value is gathered in memory, unless the caller says otherwise.
const MEMORY_MAX: usize = 1 << 20;

impl Db {
    /// Sets `key` to a value written piece by piece through [`ValueWriter`], which need not fit
    /// into memory. Readers see it once [`ValueWriter::commit`] has returned.
    ///
    /// # Errors
    /// As [`Family::put`](crate::Family::put); `NotSupported` with
    /// `readable_by_rocksdb_secondaries`.
    pub fn put_stream(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<ValueWriter> {
        let key = key.as_ref().to_vec();
        WriteBatch::check_put(&key, &[])?;
        self.inner().disk.check_owner(&family.0)?;
        family.0.check_alive()?;
        self.inner().context.check_writable()?;
        if self.inner().context.settings.load().readable_by_rocksdb_secondaries {
            let message = "a value in pieces goes to a blob file that secondaries of RocksDB cannot read \
                           (readable_by_rocksdb_secondaries)";
            return Err(Error::not_supported(message));
        }
        Ok(ValueWriter {
            inner: self.inner().clone(),
            family: family.0.clone(),
            key,
            options: *options,
            memory_max: MEMORY_MAX,
            pieces: Pieces::InMemory(Vec::new()),
            memory: self.inner().tables.account().measured(MemoryKind::Writes),
            _held: None,
        })
    }

    /// A reader of the value of `key`; `None` if there is none. The value need not fit into memory
    /// if it has more than 1 MiB and lies uncompressed in a blob file, as one does that was written
    /// by [`Db::put_stream`]. Any other value is read here as a whole.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::io::{Read, Write};
    /// # let directory = tempfile::tempdir()?;
    /// # let mut options = flagstone::options::Options::default();
    /// # options.create_if_missing = true;
    /// # let db = flagstone::db::Db::open(directory.path(), &options)?;
    /// let family = db.default_column_family();
    /// let mut writer = db.put_stream(family, "film", &Default::default())?;
    /// (0..3).try_for_each(|_| writer.write_all(&[7; 1 << 20]))?;
    /// writer.commit()?;
    /// let found = db.get_in_pieces(&Default::default(), family, "film")?;
    /// let mut film = found.expect("it was put");
    /// assert_eq!(film.size(), 3 << 20);
    /// let mut sum = 0;
    /// while let Some(piece) = film.next_piece()? {
    ///     sum += piece.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    /// }
    /// assert_eq!(sum, 7 * film.size());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Db::get_with`].
    pub fn get_in_pieces(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<ValueReader>> {
        self.inner()
            .reader
            .get_in_pieces(options, &family.0, key.as_ref())
            .inspect_err(|error| self.note_damage(family, error))
    }
}

/// Writes a value piece by piece, through [`std::io::Write`] or [`ValueWriter::append`];
/// [`ValueWriter::commit`] completes it.
///
/// A writer dropped before the commit leaves nothing. A value of more than 1 MiB (see
/// [`ValueWriter::with_buffer`]) goes to its own blob file, uncompressed, regardless of the
/// family's options for blob files. Its place in the order of writes is that of the commit.
pub struct ValueWriter {
    inner: Arc<DbInner>,
    family: Arc<Family>,
    key: Vec<u8>,
    options: WriteOptions,
    memory_max: usize,
    pieces: Pieces,
    /// What the pieces take of it.
    memory: Measured,
    /// What the writer's caller holds until the value is written or given up.
    _held: Option<Box<dyn Any + Send + Sync>>,
}

enum Pieces {
    InMemory(Vec<u8>),
    InFile(OwnFile),
    /// A piece could not be written.
    Failed,
}

impl Drop for ValueWriter {
    fn drop(&mut self) {
        if !self.inner.context.process.is_this() {
            std::mem::forget(std::mem::replace(&mut self.pieces, Pieces::Failed));
            return;
        }
        if let Pieces::InFile(own) = std::mem::replace(&mut self.pieces, Pieces::Failed) {
            drop(own);
            self.inner.jobs.purge_obsolete_files();
        }
    }
}

impl ValueWriter {
    /// Drops `held` when the value is written, or the writer is dropped.
    pub(crate) fn holding(mut self, held: impl Any + Send + Sync) -> Self {
        self._held = Some(Box::new(held));
        self
    }

    /// Bytes to collect in memory before the value gets a file, instead of 1 MiB.
    #[must_use]
    pub fn with_buffer(mut self, bytes: usize) -> Self {
        self.memory_max = bytes;
        self
    }

    /// Appends a piece of the value.
    ///
    /// # Errors
    /// `InvalidArgument` if key and value together exceed 4 GiB less 1 MiB. If the piece goes to
    /// the file, also the errors of a put: a full disk, or a delay with `no_slowdown`. The value
    /// cannot be committed then.
    pub fn append(&mut self, piece: &[u8]) -> Result<()> {
        let outcome = self.try_append(piece);
        if let Err(error) = &outcome
            && self.inner.context.process.is_this()
        {
            self.pieces = Pieces::Failed;
            self.inner.jobs.purge_obsolete_files();
            self.inner.tree.refused(error);
        }
        self.memory.set_large(match &self.pieces {
            Pieces::InMemory(pieces) => pieces.capacity(),
            Pieces::InFile(_) => BlobStream::MEMORY,
            Pieces::Failed => 0,
        });
        outcome
    }

    fn try_append(&mut self, piece: &[u8]) -> Result<()> {
        self.inner.context.process.check()?;
        let value_max = (MAX_ENTRY_SIZE - self.key.len()) as u64;
        if self.size() + piece.len() as u64 > value_max {
            return Err(Error::invalid_argument(format!(
                "a value of more than {value_max} bytes is too long; split it"
            )));
        }
        match &mut self.pieces {
            Pieces::Failed => {
                Err(Error::new(Code::Aborted, "an earlier piece of the value could not be written"))
            }
            Pieces::InMemory(pieces) if pieces.len() + piece.len() <= self.memory_max => {
                pieces.extend_from_slice(piece);
                Ok(())
            }
            Pieces::InMemory(pieces) => {
                self.inner.pipeline.admit(&self.options, (pieces.len() + piece.len()) as u64)?;
                let mut own = self.inner.pipeline.create_own_file(&self.family, &self.key)?;
                let stream = own.stream.as_mut().expect("just made");
                stream.write(pieces)?;
                stream.write(piece)?;
                self.pieces = Pieces::InFile(own);
                Ok(())
            }
            Pieces::InFile(own) => {
                self.inner.pipeline.admit(&self.options, piece.len() as u64)?;
                own.stream.as_mut().expect("until it is committed").write(piece)
            }
        }
    }

    /// Bytes of the value so far.
    pub fn size(&self) -> u64 {
        match &self.pieces {
            Pieces::InMemory(pieces) => pieces.len() as u64,
            Pieces::InFile(own) => own.stream.as_ref().map_or(0, BlobStream::value_size),
            Pieces::Failed => 0,
        }
    }

    /// Sets the key to the value written, durably if the options ask for a sync.
    ///
    /// # Errors
    /// As [`Family::put`](crate::Family::put). The key then keeps its previous value, unless only
    /// the sync failed.
    pub fn commit(mut self) -> Result<()> {
        self.inner.context.process.check()?;
        match std::mem::replace(&mut self.pieces, Pieces::Failed) {
            Pieces::InMemory(value) => {
                self.inner.pipeline.put_large(&self.options, &self.family, &self.key, &value)
            }
            Pieces::InFile(own) => {
                let (inner, family) = (&self.inner, &self.family);
                let committed =
                    inner.pipeline.commit_own_file(own, &self.options, family, &self.key);
                if committed.is_err() || family.is_dropped() {
                    inner.jobs.purge_all_obsolete_files();
                }
                committed.inspect_err(|error| inner.tree.refused(error))
            }
            Pieces::Failed => Err(failed_earlier()),
        }
    }
}

impl fmt::Debug for ValueWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueWriter({}, {} bytes)", self.key.escape_ascii(), self.size())
    }
}

impl io::Write for ValueWriter {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.append(piece)?;
        Ok(piece.len())
    }

    /// Does nothing: only [`ValueWriter::commit`] makes anything of the value visible.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn failed_earlier() -> Error {
    Error::new(Code::Aborted, "a piece of the value could not be written")
}

#[cfg(test)]
mod tests;

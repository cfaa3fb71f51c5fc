//! Values that are written piece by piece.

use std::io;

use super::{Rule, TtlDb};
use crate::base::Result;
use crate::db::{BlobWriter, ColumnFamily};
use crate::expiry::stamped;
use crate::options::WriteOptions;

impl TtlDb {
    /// Begins to set `key` to a value that is written piece by piece and need not fit into memory,
    /// as [`Db::put_stream`](crate::db::Db::put_stream). It lives from its commit on, as long as
    /// the family's values do.
    ///
    /// # Errors
    /// As [`TtlDb::put_cf`].
    pub fn put_stream(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<TtlBlobWriter> {
        let rule = self.rule(family.id())?;
        Ok(TtlBlobWriter { inner: self.base.put_stream(family, key, options)?, rule })
    }
}

/// A value being written piece by piece, as [`BlobWriter`].
#[derive(Debug)]
pub struct TtlBlobWriter {
    inner: BlobWriter,
    rule: Rule,
}

impl TtlBlobWriter {
    /// As [`BlobWriter::with_buffer`].
    #[must_use]
    pub fn with_buffer(self, bytes: usize) -> Self {
        Self { inner: self.inner.with_buffer(bytes), ..self }
    }

    /// As [`BlobWriter::append`].
    ///
    /// # Errors
    /// As [`BlobWriter::append`].
    pub fn append(&mut self, piece: &[u8]) -> Result<()> {
        self.inner.append(piece)
    }

    /// Bytes of the value so far.
    pub fn size(&self) -> u64 {
        self.inner.size()
    }

    /// Sets the key to what was written, durably if the options ask for a sync.
    ///
    /// # Errors
    /// As [`BlobWriter::commit`]; `InvalidArgument` if there is no room for the stamp.
    pub fn commit(mut self) -> Result<()> {
        self.inner.append(&stamped(&[], self.rule.stamp_of_value()))?;
        self.inner.commit()
    }
}

impl io::Write for TtlBlobWriter {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.inner.write(piece)
    }

    /// Does nothing: only [`TtlBlobWriter::commit`] makes anything of the value visible.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

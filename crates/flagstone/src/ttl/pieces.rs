//! Large values with stamps, written or read piece by piece.

use std::io;

use super::{Rule, TtlDb, TtlIter};
use crate::base::Result;
use crate::db::{ColumnFamily, ValueReader, ValueWriter};
use crate::expiry::{STAMP_SIZE, no_stamp, split, stamped};
use crate::options::{ReadOptions, WriteOptions};

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

    /// A reader of the value of `key`, without its stamp, as
    /// [`Db::get_in_pieces`](crate::db::Db::get_in_pieces).
    ///
    /// # Errors
    /// As [`TtlDb::get_with`].
    pub fn get_in_pieces(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<ValueReader>> {
        let (rule, key) = (self.rule(family.id())?, key.as_ref());
        let now = rule.lifetime.now();
        let Some(mut reader) = self.base.get_in_pieces(options, family, key)? else {
            return Ok(None);
        };
        let stamp = rule.take_stamp(key, &mut reader, now)?;
        // What is hidden, `get` does not find either.
        Ok((!rule.hides(stamp, now)).then_some(reader))
    }
}

impl Rule {
    /// Takes the stamp off a value. Where the value is hidden for it, all of it is read first: the
    /// stamp may be damaged.
    pub(super) fn take_stamp(&self, key: &[u8], reader: &mut ValueReader, now: u64) -> Result<u32> {
        let stored_size = reader.size();
        let tail = reader.take_tail(STAMP_SIZE)?;
        let (_, stamp) = split(&tail).ok_or_else(|| no_stamp(key, stored_size))?;
        if self.hides(stamp, now) {
            reader.check_rest()?;
        }
        Ok(stamp)
    }
}

impl TtlIter {
    /// A reader of the value's blob file, without the stamp, as
    /// [`Iter::value_in_pieces`](crate::db::Iter::value_in_pieces).
    ///
    /// # Errors
    /// As [`TtlIter::value`].
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn value_in_pieces(&self) -> Result<Option<ValueReader>> {
        let Some(mut reader) = self.inner.value_in_pieces()? else { return Ok(None) };
        self.rule.take_stamp(self.inner.key(), &mut reader, self.now)?;
        Ok(Some(reader))
    }
}

/// A value being written piece by piece, as [`ValueWriter`].
#[derive(Debug)]
pub struct TtlBlobWriter {
    inner: ValueWriter,
    rule: Rule,
}

impl TtlBlobWriter {
    /// As [`ValueWriter::with_buffer`].
    #[must_use]
    pub fn with_buffer(self, bytes: usize) -> Self {
        Self { inner: self.inner.with_buffer(bytes), ..self }
    }

    /// As [`ValueWriter::append`].
    ///
    /// # Errors
    /// As [`ValueWriter::append`].
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
    /// As [`ValueWriter::commit`]; `InvalidArgument` if there is no room for the stamp.
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

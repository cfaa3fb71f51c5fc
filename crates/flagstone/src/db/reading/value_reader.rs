//! Reading a value from front to back, piece by piece.

use std::sync::Arc;
use std::{fmt, io};

use bytes::Bytes;

use crate::base::Result;
use crate::blob::{BlobIndex, BlobPieces, is_read_in_pieces};
use crate::cache::{Measured, MemoryKind};
use crate::db::family::{Family, SuperVersion};
use crate::db::reading::cursor_blobs::CursorBlobs;
use crate::db::reading::iterate::Iter;
use crate::db::reading::value::Value;
use crate::db::tables::Tables;
use crate::env::ReadLimits;
use crate::iter::lookup::in_key;
use crate::options::ReadOptions;

/// Reads a value from front to back, through [`ValueReader::next_piece`] or [`std::io::Read`].
///
/// A value of more than 1 MiB that lies uncompressed in a blob file is read as the pieces are asked
/// for: the reader needs memory for one piece, whatever the size of the value, and keeps the file
/// in place. The value has one checksum, verified before the last piece is returned. So a caller
/// that passes pieces on may learn only at the end that the value is damaged.
///
/// The reader of any other value has all of it in memory.
pub struct ValueReader {
    source: Source,
    size: u64,
    /// What is left of the last piece, for [`std::io::Read`].
    rest: Bytes,
}

enum Source {
    InFile(Box<InFile>),
    /// What is still to be handed out of a value that is in memory.
    InMemory(Bytes),
}

/// A value that is read from its blob file.
struct InFile {
    pieces: BlobPieces,
    /// Bytes that are still to be handed out.
    left: u64,
    tables: Arc<Tables>,
    family: Arc<Family>,
    /// What limits the reads of all pieces.
    limits: Option<Arc<ReadLimits>>,
    /// Holes wait for those who hold it.
    _current: Arc<SuperVersion>,
    _counted: Measured,
}

impl fmt::Debug for ValueReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = match &self.source {
            Source::InFile(value) => value.left,
            Source::InMemory(left) => left.len() as u64,
        };
        write!(f, "ValueReader({left} of {} bytes left)", self.size)
    }
}

impl ValueReader {
    /// The value that an index leads to, if it is one that is read in pieces.
    pub(in crate::db) fn open(
        tables: &Arc<Tables>,
        family: &Arc<Family>,
        current: &Arc<SuperVersion>,
        key: &[u8],
        blob_index: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<Self>> {
        let index = BlobIndex::decode(blob_index).map_err(|error| in_key(error, key))?;
        if options.cache_only || !is_read_in_pieces(&index) {
            return Ok(None);
        }
        let mut counted = tables.account().measured(MemoryKind::Values);
        counted.set_large(BlobPieces::PIECE_MAX as usize);
        let limits = tables.read_limits(options);
        let open = || {
            let reader = tables.named_blob_file(family, &current.version, index.file)?;
            reader.pieces(key, &index)
        };
        let pieces = ReadLimits::within(limits.as_ref(), open)
            .inspect_err(|error| tables.suspects().add(family, error))?;
        let size = pieces.size();
        let source = Source::InFile(Box::new(InFile {
            pieces,
            left: size,
            tables: tables.clone(),
            family: family.clone(),
            limits,
            _current: current.clone(),
            _counted: counted,
        }));
        Ok(Some(Self { source, size, rest: Bytes::new() }))
    }

    /// Bytes of the whole value.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The next piece, of up to 1 MiB; `None` at the end, when all was found to be what was
    /// written.
    ///
    /// # Errors
    /// `Corruption`, instead of the last piece, if the value is damaged; `IoError`; `TimedOut` by
    /// the limits that the value was asked for with. There are no more pieces then.
    pub fn next_piece(&mut self) -> Result<Option<Value>> {
        Ok(self.next_bytes()?.map(Value::from))
    }

    fn next_bytes(&mut self) -> Result<Option<Bytes>> {
        match &mut self.source {
            Source::InFile(value) => value.next_bytes(),
            Source::InMemory(left) => {
                let piece = left.split_to(left.len().min(BlobPieces::PIECE_MAX as usize));
                Ok(Some(piece).filter(|piece| !piece.is_empty()))
            }
        }
    }

    /// Takes the last bytes off the value, of which nothing was read; those of a file are not
    /// checked yet.
    pub(crate) fn take_tail(&mut self, size: usize) -> Result<Vec<u8>> {
        let tail = match &mut self.source {
            Source::InFile(value) => {
                let InFile { pieces, limits, .. } = &mut **value;
                let tail = ReadLimits::within(limits.as_ref(), || pieces.tail(size as u64))?;
                value.left -= tail.len() as u64;
                tail
            }
            Source::InMemory(left) => left.split_off(left.len().saturating_sub(size)).into(),
        };
        self.size -= tail.len() as u64;
        Ok(tail)
    }

    /// Reads the rest, for its checksum.
    pub(crate) fn check_rest(&mut self) -> Result<()> {
        while self.next_bytes()?.is_some() {}
        Ok(())
    }
}

/// A reader of a value that is in memory.
impl From<Value> for ValueReader {
    fn from(value: Value) -> Self {
        let size = value.len() as u64;
        Self { source: Source::InMemory(value.into()), size, rest: Bytes::new() }
    }
}

impl InFile {
    fn next_bytes(&mut self) -> Result<Option<Bytes>> {
        loop {
            let piece = ReadLimits::within(self.limits.as_ref(), || self.pieces.next_piece());
            let Some(mut piece) =
                piece.inspect_err(|error| self.tables.suspects().add(&self.family, error))?
            else {
                return Ok(None);
            };
            piece.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= piece.len() as u64;
            // What is cut off may be all of the last piece, which is read for the checksum.
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
    }
}

impl io::Read for ValueReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() && !buffer.is_empty() {
            self.rest = self.next_bytes()?.unwrap_or_default();
        }
        let length = self.rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.rest.split_to(length));
        Ok(length)
    }
}

impl Iter {
    /// A reader of the value's blob file, if the value has more than 1 MiB and lies there
    /// uncompressed; `None` for any other value, which [`Iter::value`] returns. The cursor stays
    /// valid after an error.
    ///
    /// # Errors
    /// As [`Iter::value`].
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn value_in_pieces(&self) -> Result<Option<ValueReader>> {
        let Some(blob_index) = self.entries().blob_index() else { return Ok(None) };
        let CursorBlobs { tables, family, current, options, .. } = self.entries().resolver();
        ValueReader::open(tables, family, current, self.key(), blob_index, options)
    }
}

#[cfg(test)]
mod tests;

//! Edits as records of a log: the framing is the WAL's, with headers that do not carry the file's
//! number.
//!
//! A MANIFEST is read strictly: only its last record may be incomplete, as a power loss leaves it,
//! and is then ignored. Each write is synced before the next begins, so that a damaged record with
//! an intact one behind it was whole once; and a write of which only parts reached the disk
//! ([`is_torn_end`]) has zeros in the place of the others, for a MANIFEST only grows.
//!
//! One write may be several records: those of an atomic group that lie within one block, but for
//! the last. What is left of them does not make the group whole, and is ignored, too.

use std::path::Path;
use std::sync::Arc;

use super::edit::VersionEdit;
use crate::base::{FileNumber, Result};
use crate::env::{FileSystem, IoMode, RandomAccessFile, WritableFile};
use crate::wal::{self, Damage, DamageKind, Event, ReaderOptions, WriterOptions};

/// The number by which a log's headers would know their file; a MANIFEST's do not.
const NO_NUMBER: FileNumber = FileNumber(0);

/// The least that any storage writes as a whole: persistent memory does, in aligned pieces. Disks
/// write 512 bytes and more.
const PIECE: usize = 8;

/// How a MANIFEST is read. Nobody is known to compress one, though a log may be: a few bytes must
/// not become gigabytes.
pub fn reader_options() -> ReaderOptions {
    ReaderOptions { decompressed_size_max: 64 << 20, ..ReaderOptions::default() }
}

/// Appends records to a new MANIFEST.
pub(super) struct Writer {
    records: wal::Writer,
    /// Bytes that are reserved at a time; 0 for none.
    step: u64,
    /// Up to where the file has its blocks.
    reserved: u64,
}

impl Writer {
    /// Starts at the front of `file`.
    pub fn new(file: Arc<dyn WritableFile>) -> Result<Self> {
        let records = wal::Writer::new(file, NO_NUMBER, WriterOptions::default())?;
        Ok(Self { records, step: 0, reserved: 0 })
    }

    /// From now on reserves space, so many bytes at a time, without changing the file's size; what
    /// is left over is given back when the writer is dropped.
    pub fn reserving(mut self, step: u64) -> Self {
        self.step = step;
        self
    }

    /// Appends a record; durable after [`Writer::sync`].
    ///
    /// After an error the file must not be used again.
    pub fn add(&mut self, record: &[u8]) -> Result<()> {
        let end = self.size() + record.len() as u64;
        if self.step > 0 && end > self.reserved {
            self.reserve(end);
        }
        let added = self.records.add_record(record);
        if added.is_err() {
            // Nobody touches the file any more.
            (self.step, self.reserved) = (0, 0);
        }
        added
    }

    /// A file system that cannot, or has too little space, is no reason to fail: that shows where
    /// space is used.
    fn reserve(&mut self, end: u64) {
        let length = end.next_multiple_of(self.step);
        match self.records.file().allocate(length, true) {
            Ok(()) => self.reserved = length,
            Err(_) => {
                self.step = 0;
                // What the attempt took is for others.
                let _ = self.records.file().truncate(self.size());
            }
        }
    }

    /// Makes what was added durable.
    ///
    /// After an error the file must not be used again.
    pub fn sync(&mut self) -> Result<()> {
        let synced = self.records.file().sync();
        if synced.is_err() {
            (self.step, self.reserved) = (0, 0);
        }
        synced
    }

    /// Whether a record would begin and end in the present block.
    pub fn has_room_in_block(&self, record: &[u8]) -> bool {
        self.size() as usize % wal::BLOCK_SIZE + wal::LEGACY_HEADER_SIZE + record.len()
            <= wal::BLOCK_SIZE
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.records.offset()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.reserved > self.size() {
            // What is not given back now is when the file is removed.
            let _ = self.records.file().truncate(self.size());
        }
    }
}

/// Reads the records of a MANIFEST from front to back.
pub(super) struct Reader(wal::Reader);

impl Reader {
    /// Opens the MANIFEST at `path`.
    pub fn open(fs: &dyn FileSystem, path: &Path) -> Result<Self> {
        Self::open_reading(fs, path, 0)
    }

    /// The same, to read so many bytes at a time; with 0 as many as seem good.
    pub fn open_reading(fs: &dyn FileSystem, path: &Path, readahead_size: usize) -> Result<Self> {
        let options = ReaderOptions { readahead_size, ..reader_options() };
        Ok(Self(wal::Reader::with_options(
            fs.open_random_access(path, IoMode::Buffered)?,
            NO_NUMBER,
            options,
        )))
    }

    /// Opens the MANIFEST at `path` to be read while another process writes it.
    pub fn open_following(fs: &dyn FileSystem, path: &Path) -> Result<Self> {
        let options = ReaderOptions { ends_at_zeros: true, ..reader_options() };
        let file = fs.open_random_access(path, IoMode::Buffered)?;
        Ok(Self(wal::Reader::with_options(file, NO_NUMBER, options)))
    }

    /// The next record of a MANIFEST that another process writes; `None` where it ends for now. The
    /// next call looks there again.
    ///
    /// A record that is half written has no other behind it. One that is found damaged with others
    /// behind it is read once more: it was perhaps half written before.
    pub fn next_following(&mut self) -> Result<Option<(u64, &[u8])>> {
        self.0.resume();
        for is_last_look in [false, true] {
            let damage = match self.0.next_event()? {
                Event::Record(_) => return Ok(Some((self.0.record_offset(), self.0.record()))),
                Event::End => return Ok(None),
                Event::Damage(damage) => damage,
            };
            if !self.has_more()? {
                return Ok(None);
            }
            if is_last_look {
                return Err(damage.to_error(&**self.0.file()));
            }
            self.0.resume();
        }
        Ok(None)
    }

    /// The next record and the offset at which it starts; `None` at the end, also if the last
    /// record is incomplete.
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>> {
        let damage = match self.0.next_event()? {
            Event::Record(_) => return Ok(Some((self.0.record_offset(), self.0.record()))),
            Event::End => return self.check_end().map(|()| None),
            Event::Damage(damage) => damage,
        };
        // Not the WAL's judgement, which ends at a record of an older life: a MANIFEST has none.
        if is_torn_end(&**self.0.file(), &damage)? && !self.has_more()? {
            Ok(None)
        } else {
            Err(damage.to_error(&**self.0.file()))
        }
    }

    /// # Errors
    /// `Corruption` if the file ends in zeros, and behind the first of them there are records.
    fn check_end(&self) -> Result<()> {
        let Some(zeros) = self.0.zeros_at_end() else { return Ok(()) };
        let file = &**self.0.file();
        let end = file.size()?;
        let mut offset = zeros;
        while offset < end {
            let rest = rest_of_block(file, offset)?;
            if holds_records(&rest) {
                let kind = DamageKind::Zeros { in_fragment: false };
                return Err(Damage { kind, offset: zeros, dropped: end - zeros }.to_error(file));
            }
            offset = (offset + 1).next_multiple_of(wal::BLOCK_SIZE as u64);
        }
        Ok(())
    }

    /// Whether there is any intact record in the blocks behind.
    fn has_more(&mut self) -> Result<bool> {
        loop {
            match self.0.next_event()? {
                Event::Record(_) => return Ok(true),
                Event::End => return Ok(false),
                Event::Damage(_) => {}
            }
        }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.0.file().path()
    }
}

/// Whether this may be what a power loss leaves of the last record, if no intact one follows in the
/// blocks behind: it is cut off, or parts of it are missing.
///
/// # Errors
/// `IoError`.
pub fn is_torn_end(file: &dyn RandomAccessFile, damage: &Damage) -> Result<bool> {
    use DamageKind::{TruncatedBody, TruncatedHeader, TruncatedRecord};
    let rest = rest_of_block(file, damage.offset)?;
    let is_cut = matches!(damage.kind, TruncatedHeader | TruncatedBody | TruncatedRecord);
    if is_cut && wal::records_within(&rest).next().is_some_and(|(start, _)| start == 0) {
        // Its writer has gone on meanwhile.
        return Ok(true);
    }
    if holds_records(&rest) {
        return Ok(false);
    }
    let rest = without_unwritten(file, damage.offset, rest)?;
    Ok((is_cut || has_hole(damage.offset, &rest))
        && !wal::has_unknown_type(&rest)
        && !is_whole_but_for_a_bit(damage.offset, &rest))
}

/// Whether the record at the front of these bytes lacks no piece: one bit is wrong, and not where
/// zeros stand in place of others.
fn is_whole_but_for_a_bit(offset: u64, bytes: &[u8]) -> bool {
    wal::byte_with_wrong_bit(bytes).is_some_and(|at| {
        let before = (offset as usize + at) % PIECE;
        let piece = &bytes[at.saturating_sub(before)..(at + PIECE - before).min(bytes.len())];
        piece.iter().any(|byte| *byte != 0)
    })
}

/// Whether a record says that its atomic group goes on behind it.
pub fn awaits_others(record: &[u8]) -> bool {
    let remaining = VersionEdit::decode(record).ok().and_then(|edit| edit.atomic_group_remaining);
    remaining.is_some_and(|remaining| remaining > 0)
}

/// What stands from `offset` on in its block.
fn rest_of_block(file: &dyn RandomAccessFile, offset: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; wal::BLOCK_SIZE - offset as usize % wal::BLOCK_SIZE];
    let filled = file.read_at(offset, &mut bytes)?;
    bytes.truncate(filled);
    Ok(bytes)
}

/// These bytes, which begin at `offset`, with zeros in the pieces that were never written: an
/// encrypted file decrypts what is missing beside bytes that were written.
fn without_unwritten(
    file: &dyn RandomAccessFile,
    offset: u64,
    mut bytes: Vec<u8>,
) -> Result<Vec<u8>> {
    let mut at = 0;
    while at < bytes.len() {
        let end = bytes.len().min(at + piece_left(offset + at as u64));
        if file.is_unwritten(offset + at as u64, &bytes[at..end])? {
            bytes[at..end].fill(0);
        }
        at = end;
    }
    Ok(bytes)
}

/// How many bytes the piece of the file that holds `offset` has from there on.
fn piece_left(offset: u64) -> usize {
    PIECE - offset as usize % PIECE
}

/// Whether pieces of a write are missing from these bytes, which begin at `offset`.
fn has_hole(offset: u64, bytes: &[u8]) -> bool {
    // The first piece ends where one does in the file.
    let (first, others) = bytes.split_at(piece_left(offset).min(bytes.len()));
    let is_missing = |piece: &[u8]| piece.iter().all(|byte| *byte == 0);
    is_missing(first) || others.chunks(PIECE).any(is_missing)
}

/// Whether there is an intact record within these bytes of a block, other than those of an atomic
/// group whose end is not there.
fn holds_records(bytes: &[u8]) -> bool {
    !wal::records_within(bytes).all(|(_, record)| record.is_some_and(awaits_others))
}

#[cfg(test)]
mod tests;

//! Going through all records of a blob file, sealed or not: for checking, for people, and after a
//! crash.
//!
//! 1. A record whose value is damaged is reported and stepped over: its sizes have a checksum of
//!    their own.
//! 2. A record whose header is damaged ends the scan: where the next one starts is unknown.
//! 3. Unless there is a hole: zeros in a whole piece of the file that the header touches. What it
//!    has left of dead records is passed over, up to the next 32 bytes that are a correct header;
//!    so is a record with a hole in its value. What lay there is not known: whether anything was
//!    lost is for those to say who refer to it.
//! 4. The last 32 bytes are taken for the footer if they are one; its count must be that of the
//!    records, if there are no holes.

use std::sync::Arc;

use super::format::{
    BlobFileFooter, BlobFileHeader, BlobIndex, FOOTER_SIZE, HEADER_SIZE, RECORD_HEADER_SIZE,
    RecordHeader,
};
use super::reader::{MAX_VALUE_SIZE, compression_type, read_exactly};
use crate::base::checksum::{crc32c, crc32c_append};
use crate::base::compression::{CompressionType, decompress};
use crate::base::{Error, FileNumber, Result, counted};
use crate::env::{Advice, RandomAccessFile};

/// Bytes that are read at once.
const READ_SIZE: u64 = 256 << 10;

/// Records of up to this many bytes are read as a whole.
const WHOLE_MAX: u64 = 4 << 20;

/// Bytes of a piece of a hole: the blocks of all file systems are multiples of it.
const PIECE: u64 = 64;

/// One record of a blob file, its checksums correct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobRecord {
    /// Where the record starts.
    pub offset: u64,
    /// Its user key.
    pub key: Vec<u8>,
    /// Bytes of its value as stored.
    pub stored_size: u64,
    /// How the value is compressed: the stored byte.
    pub compression: u8,
}

impl BlobRecord {
    /// What refers to it, in a file with that number.
    pub fn index(&self, file: FileNumber) -> BlobIndex {
        let offset = self.offset + (RECORD_HEADER_SIZE + self.key.len()) as u64;
        BlobIndex { file, offset, size: self.stored_size, compression: self.compression }
    }

    /// Bytes that the record takes in the file.
    pub fn size(&self) -> u64 {
        (RECORD_HEADER_SIZE + self.key.len()) as u64 + self.stored_size
    }
}

/// Goes through the records of a blob file from front to back.
///
/// An error names the file and the offset of the record; the next item is the next record, if that
/// can be found.
pub struct BlobFileScan {
    file: Arc<dyn RandomAccessFile>,
    size: u64,
    header: BlobFileHeader,
    offset: u64,
    /// Records passed, damaged ones included.
    passed: u64,
    footer: Option<BlobFileFooter>,
    finished: bool,
    has_holes: bool,
    /// Where the last record began.
    begun: u64,
    window: Vec<u8>,
    window_offset: u64,
}

impl BlobFileScan {
    /// Starts at the first record.
    ///
    /// # Errors
    /// `Corruption` if there is no correct header; `IoError`.
    pub fn new(file: Arc<dyn RandomAccessFile>) -> Result<Self> {
        let size = file.size()?;
        file.advise(Advice::Sequential);
        let header_size = (HEADER_SIZE as u64).min(size) as usize;
        let header = read_exactly(&*file, 0, header_size)
            .and_then(|bytes| BlobFileHeader::decode(&bytes))
            .map_err(|error| error.at(file.path()).at_offset(0))?;
        Ok(Self {
            file,
            size,
            header,
            offset: HEADER_SIZE as u64,
            passed: 0,
            footer: None,
            finished: false,
            has_holes: false,
            begun: 0,
            window: Vec::new(),
            window_offset: 0,
        })
    }

    /// What the file says about itself.
    pub fn header(&self) -> &BlobFileHeader {
        &self.header
    }

    /// The footer, once the scan has come to it; `None` at the end of the scan: the file is not
    /// sealed.
    pub fn footer(&self) -> Option<&BlobFileFooter> {
        self.footer.as_ref()
    }

    /// Where the next record starts; after the scan, where the records that could be found end.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether holes were passed over so far. What lay there is not known.
    pub fn has_holes(&self) -> bool {
        self.has_holes
    }

    /// The value of a record that the scan has come to, unfolded.
    ///
    /// # Errors
    /// `Corruption` if the stored form is malformed; `NotSupported` for an unknown compression;
    /// `IoError`.
    pub fn value(&self, record: &BlobRecord) -> Result<Vec<u8>> {
        let offset = record.index(FileNumber(0)).offset;
        let size = record.stored_size as usize;
        let compression =
            compression_type(record.compression).map_err(|error| error.at_offset(record.offset))?;
        let unfold = |stored: &[u8]| {
            decompress(compression, stored, None, MAX_VALUE_SIZE)
                .map_err(|error| error.at_offset(record.offset))
        };
        let at = offset.checked_sub(self.window_offset).and_then(|at| usize::try_from(at).ok());
        match at.and_then(|at| self.window.get(at..at + size)) {
            Some(stored) => unfold(stored),
            None => unfold(&read_exactly(&*self.file, offset, size)?),
        }
    }

    /// Whether a record's value is as it was written: its checksums are right, and what is
    /// compressed unfolds. One that is stored as it is need not be read again for that.
    ///
    /// # Errors
    /// As [`BlobFileScan::value`].
    pub fn check_value(&self, record: &BlobRecord) -> Result<()> {
        if record.compression == CompressionType::None.to_byte() {
            Ok(())
        } else {
            self.value(record).map(drop)
        }
    }

    fn step(&mut self) -> Result<Option<BlobRecord>> {
        loop {
            let (offset, rest) = (self.offset, self.size - self.offset);
            self.begun = offset;
            if rest == 0 {
                self.finished = true;
                return Ok(None);
            }
            match self.record(rest) {
                Err(error)
                    if error.is_corruption()
                        && self.footer.is_none()
                        && self.pass_hole(offset)? =>
                {
                    (self.has_holes, self.finished) = (true, false);
                }
                outcome => return outcome,
            }
        }
    }

    /// Goes on behind a hole, if that is why the record at `offset` is not whole; the scan may have
    /// gone on behind the record.
    fn pass_hole(&mut self, offset: u64) -> Result<bool> {
        let behind = self.offset;
        let end = behind.max(offset + RECORD_HEADER_SIZE as u64);
        let Some(hole) = self.first_hole(offset - offset % PIECE, end)? else {
            self.offset = behind;
            return Ok(false);
        };
        if behind > offset {
            // Its sizes are known.
            self.offset = behind;
            return Ok(true);
        }
        let mut at = hole;
        while at + PIECE <= self.size && self.is_hole(at)? {
            at += PIECE;
        }
        // A header may begin with zeros.
        self.offset = at.saturating_sub(RECORD_HEADER_SIZE as u64).max(offset);
        self.seek_header()?;
        Ok(self.offset > offset)
    }

    /// The first piece of a hole that begins from `begin` on and before `end`.
    fn first_hole(&mut self, begin: u64, end: u64) -> Result<Option<u64>> {
        let end = end.min((self.size + 1).saturating_sub(PIECE));
        for piece in (begin..end).step_by(PIECE as usize) {
            if self.is_hole(piece)? {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// Whether a piece within the file holds nothing but zeros; the scan goes there.
    fn is_hole(&mut self, piece: u64) -> Result<bool> {
        self.offset = piece;
        Ok(self.bytes(PIECE as usize)?.iter().all(|byte| *byte == 0))
    }

    /// Goes on to the next correct header of a record that the file has room for, or the footer's
    /// place.
    fn seek_header(&mut self) -> Result<()> {
        let last = self.size.saturating_sub(FOOTER_SIZE as u64);
        while self.offset < last {
            let bytes = self.bytes(RECORD_HEADER_SIZE)?;
            // Most places fail this at once.
            if bytes[16..24] == [0; 8]
                && let Ok(header) = RecordHeader::decode(bytes)
                && header.key_size.saturating_add(header.value_size) <= last - self.offset
            {
                return Ok(());
            }
            self.offset += 1;
        }
        Ok(())
    }

    fn record(&mut self, rest: u64) -> Result<Option<BlobRecord>> {
        if rest == FOOTER_SIZE as u64
            && let Ok(footer) = BlobFileFooter::decode(self.bytes(FOOTER_SIZE)?)
        {
            self.finished = true;
            self.footer = Some(footer);
            if footer.count != self.passed && !self.has_holes {
                return Err(Error::corruption(format!(
                    "the footer counts {}, the file has {}",
                    counted(footer.count, "record"),
                    self.passed
                )));
            }
            return Ok(None);
        }
        // Until the header has proved correct, what follows cannot be found.
        self.finished = true;
        let available = rest.min(RECORD_HEADER_SIZE as u64) as usize;
        let header = RecordHeader::decode(self.bytes(available)?)?;
        let body = header.key_size.checked_add(header.value_size);
        let total = body.and_then(|body| body.checked_add(RECORD_HEADER_SIZE as u64));
        let total = total.filter(|&total| total <= rest).ok_or_else(|| {
            Error::corruption(format!(
                "a blob record of {} + {} bytes extends beyond the file",
                header.key_size, header.value_size
            ))
        })?;
        self.finished = false;
        let (offset, compression) = (self.offset, self.header.compression);
        let checked = self.check_body(&header, total);
        self.offset = offset + total;
        self.passed += 1;
        let key = checked?;
        Ok(Some(BlobRecord { offset, key, stored_size: header.value_size, compression }))
    }

    /// Checks what follows the header at the scan's offset, in a record of `total` bytes; its key.
    fn check_body(&mut self, header: &RecordHeader, total: u64) -> Result<Vec<u8>> {
        let key_size = header.key_size as usize;
        let in_key = |key: &[u8], error: Error| {
            error.context(format!("key '{}'", key[..key.len().min(64)].escape_ascii()))
        };
        if total <= WHOLE_MAX {
            let body = &self.bytes(total as usize)?[RECORD_HEADER_SIZE..];
            let key = &body[..key_size];
            header.check_blob(body).map_err(|error| in_key(key, error))?;
            return Ok(key.to_vec());
        }
        // The value need not fit into memory.
        self.offset += RECORD_HEADER_SIZE as u64;
        let key = self.bytes(key_size)?.to_vec();
        self.offset += header.key_size;
        let (mut crc, mut left) = (crc32c(&key), header.value_size);
        while left > 0 {
            let length = left.min(READ_SIZE);
            crc = crc32c_append(crc, self.bytes(length as usize)?);
            self.offset += length;
            left -= length;
        }
        header.check_blob_crc(crc).map_err(|error| in_key(&key, error))?;
        Ok(key)
    }

    /// `length` bytes from the scan's offset on; the caller knows that the file has them.
    fn bytes(&mut self, length: usize) -> Result<&[u8]> {
        let window_end = self.window_offset + self.window.len() as u64;
        if self.offset < self.window_offset || self.offset + length as u64 > window_end {
            let wanted = READ_SIZE.max(length as u64).min(self.size - self.offset);
            self.window.resize(wanted as usize, 0);
            self.window_offset = self.offset;
            let filled = self.file.read_at(self.offset, &mut self.window)?;
            self.window.truncate(filled);
            if filled < length {
                self.finished = true;
                return Err(Error::corruption("the blob file shrank while it was read"));
            }
        }
        let start = (self.offset - self.window_offset) as usize;
        Ok(&self.window[start..start + length])
    }
}

impl Iterator for BlobFileScan {
    type Item = Result<BlobRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let step = self.step();
        // Of a record that was passed over since it is damaged, or of the one that ended the scan.
        let offset = self.begun;
        if step.as_ref().is_err_and(|error| !error.is_corruption()) {
            self.finished = true;
        }
        step.map_err(|error| error.at(self.file.path()).at_offset(offset)).transpose()
    }
}

//! Reading single values out of a blob file.
//!
//! A value is read with one positioned read: its record from the header to the end if checksums are
//! verified, only the stored value otherwise. Sizes and offsets in an index are checked against the
//! file's size before memory is taken for them.

use std::ops::{Deref, Range};
use std::sync::Arc;

use bytes::Bytes;

use super::builder::BlobFileSummary;
use super::format::{
    BlobFileFooter, BlobFileHeader, BlobIndex, FOOTER_SIZE, HEADER_SIZE, PART_SIZE_MAX,
    RECORD_HEADER_SIZE, RecordHeader,
};
use super::walk::RecordWalk;
use crate::base::compression::{CompressionType, decompress};
use crate::base::perf::{self, PerfMetric};
use crate::base::sync::{AtomicU64, Ordering};
use crate::base::{ColumnFamilyId, Comparator, Error, Mutant, Result};
use crate::env::{Place, RandomAccessFile, read_together, read_until_end};

/// The longest value, in bytes: what a stored form may unfold to.
pub(super) const MAX_VALUE_SIZE: usize = u32::MAX as usize;

/// Bytes that a check reads at once.
pub(super) const CHECK_SIZE: u64 = 1 << 20;

/// Before so many bytes the header of a record is looked for first, and last, where the key has not
/// the length expected.
const KEY_SEARCH_FIRST: usize = 4 << 10;
const KEY_SEARCH_MAX: u64 = 64 << 20;

/// An open blob file.
///
/// **Thread safety.** Any number of threads may read at the same time.
pub struct BlobFileReader {
    file: Arc<dyn RandomAccessFile>,
    column_family: ColumnFamilyId,
    compression: CompressionType,
    compression_byte: u8,
    /// `None` while the file has no footer.
    count: Option<u64>,
    /// Where the records end. Grows while the file is written.
    records_end: AtomicU64,
    /// Which keys are the same.
    order: Comparator,
}

/// A value read from a blob file, still in the buffer it was read into.
#[derive(Debug, Clone)]
pub struct BlobValue {
    buffer: Vec<u8>,
    start: usize,
}

impl BlobValue {
    /// The value on its own, to be shared; nothing is copied.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from(self.buffer).split_off(self.start)
    }
}

impl Deref for BlobValue {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.buffer[self.start..]
    }
}

impl AsRef<[u8]> for BlobValue {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// One of several values to be read together.
#[derive(Clone, Copy)]
pub struct BlobRequest<'a> {
    /// The file that has it.
    pub reader: &'a BlobFileReader,
    /// The key whose value it is.
    pub user_key: &'a [u8],
    /// Where it lies.
    pub index: BlobIndex,
}

/// Values of any files, read in one batch; each fails by itself, as [`BlobFileReader::get`] would.
/// Also how many of the reads the kernel had in hand together.
pub fn get_together(requests: &[BlobRequest<'_>], verify: bool) -> (Vec<Result<BlobValue>>, usize) {
    let mut values = Vec::with_capacity(requests.len());
    let (mut places, mut whose) =
        (Vec::with_capacity(requests.len()), Vec::with_capacity(requests.len()));
    for (at, BlobRequest { reader, user_key, index }) in requests.iter().enumerate() {
        let span = reader.span(user_key, index, verify);
        if let Ok(span) = span {
            places.push(Place { file: &*reader.file, offset: span.offset, length: span.length });
            whose.push((at, span));
        }
        // Until it is read.
        values.push(span.map(|_| BlobValue { buffer: Vec::new(), start: 0 }));
    }
    let mut timer = perf::time(PerfMetric::BlobReadTime);
    let together = read_together(&places, &mut |place: usize, bytes: Result<&[u8]>| {
        let (at, span) = whose[place];
        let BlobRequest { reader, user_key, index } = &requests[at];
        count_bytes(span.length);
        // What follows a read has times of its own.
        timer.pause();
        let unfold = |bytes: &[u8]| reader.unfold(user_key, index, span, bytes.to_vec());
        values[at] = bytes.and_then(unfold);
        timer.resume();
    });
    drop(timer);
    (values, together)
}

impl BlobFileReader {
    /// Opens a sealed file and checks header and footer.
    ///
    /// # Errors
    /// `Corruption` if the file is too short, header or footer is malformed, or it belongs to
    /// another family than `column_family`; `NotSupported` for an unknown compression; `IoError`.
    pub fn open(file: Arc<dyn RandomAccessFile>, column_family: ColumnFamilyId) -> Result<Self> {
        let size = file.size()?;
        let footer_offset =
            size.checked_sub(FOOTER_SIZE as u64).filter(|&end| end >= HEADER_SIZE as u64);
        let footer_offset = footer_offset.ok_or_else(|| {
            Error::corruption(format!("a blob file cannot have only {size} bytes")).at(file.path())
        })?;
        let reader = Self::open_unsealed(file, column_family)?;
        let footer = read_exactly(&*reader.file, footer_offset, FOOTER_SIZE)
            .and_then(|bytes| BlobFileFooter::decode(&bytes))
            .map_err(|error| error.at(reader.file.path()).at_offset(footer_offset))?;
        Ok(Self { count: Some(footer.count), records_end: AtomicU64::new(footer_offset), ..reader })
    }

    /// Opens a file that may not be sealed, because it is still written or its writer died:
    /// references from a WAL or memtable lead to such files. Nothing is known of its end; each read
    /// is checked against its size of that time.
    ///
    /// # Errors
    /// As [`BlobFileReader::open`], of the header.
    pub fn open_unsealed(
        file: Arc<dyn RandomAccessFile>,
        column_family: ColumnFamilyId,
    ) -> Result<Self> {
        let in_header = |error: Error| error.at(file.path()).at_offset(0);
        let size = file.size()?;
        if size < HEADER_SIZE as u64 {
            return Err(in_header(Error::corruption(format!(
                "a blob file cannot have only {size} bytes"
            ))));
        }
        let header = read_exactly(&*file, 0, HEADER_SIZE)
            .and_then(|bytes| BlobFileHeader::decode(&bytes))
            .map_err(in_header)?;
        if header.column_family != column_family {
            return Err(in_header(Error::corruption(format!(
                "the blob file belongs to column family {}, not {column_family}",
                header.column_family
            ))));
        }
        let compression = compression_type(header.compression).map_err(in_header)?;
        let (compression_byte, count) = (header.compression, None);
        let records_end = AtomicU64::new(size);
        let order = Comparator::Bytewise;
        Ok(Self { file, column_family, compression, compression_byte, count, records_end, order })
    }

    /// A reader of a file that this process writes; `sealed` is what it holds once it is sealed.
    pub fn of_own(
        file: Arc<dyn RandomAccessFile>,
        column_family: ColumnFamilyId,
        compression: CompressionType,
        sealed: Option<&BlobFileSummary>,
    ) -> Self {
        let (count, records) =
            (sealed.map(|total| total.count), sealed.map_or(0, |total| total.total_bytes));
        let records_end = AtomicU64::new(HEADER_SIZE as u64 + records);
        let (compression_byte, order) = (compression.to_byte(), Comparator::Bytewise);
        Self { file, column_family, compression, compression_byte, count, records_end, order }
    }

    /// A value is also found by a key that has other bytes than that in its record, if the two are
    /// the same in this order.
    pub fn with_order(self, order: &Comparator) -> Self {
        Self { order: order.clone(), ..self }
    }

    /// The value of `user_key` that `index` leads to. `verify` checks the record's checksums, sizes
    /// and key.
    ///
    /// # Errors
    /// `Corruption` naming file and record if the index cannot be right, the record is another, a
    /// checksum is wrong, or the stored value does not unfold; `IoError`.
    pub fn get(&self, user_key: &[u8], index: &BlobIndex, verify: bool) -> Result<BlobValue> {
        self.by_either_key(user_key, index, |key| self.get_by(key, index, verify))
    }

    fn get_by(&self, user_key: &[u8], index: &BlobIndex, verify: bool) -> Result<BlobValue> {
        let span = self.span(user_key, index, verify)?;
        let mut buffer = Vec::with_capacity(span.length);
        let time = count_read(span.length);
        self.file.read_onto(span.offset, span.length, &mut buffer)?;
        drop(time);
        self.unfold(user_key, index, span, buffer)
    }

    /// Some bytes of a value that is stored as it is, without reading the others; no checksum
    /// covers a part. A range that leaves the value is cut off at its end.
    ///
    /// # Errors
    /// `NotSupported` if the file is compressed; as [`BlobFileReader::get`] otherwise.
    pub fn get_range(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        range: Range<u64>,
    ) -> Result<Vec<u8>> {
        if self.compression != CompressionType::None {
            return Err(Error::not_supported("a part of a compressed value").at(self.file.path()));
        }
        let span = self.span(user_key, index, false)?;
        let (start, end) = (range.start.min(index.size), range.end.min(index.size));
        let length = end.saturating_sub(start) as usize;
        let _time = count_read(length);
        read_exactly(&*self.file, span.offset + start, length)
    }

    /// Checks the record of `user_key` that `index` leads to, in pieces: the value need not fit
    /// into memory. What is stored is not unfolded.
    ///
    /// # Errors
    /// As [`BlobFileReader::get`].
    pub fn check(&self, user_key: &[u8], index: &BlobIndex) -> Result<()> {
        self.read_through(user_key, index, |_, _| {})
    }

    /// [`BlobFileReader::check`], which shows `visit` all that is stored of the value, `CHECK_SIZE`
    /// bytes at a time, and where in it they begin. That it is sound is known only at the end.
    pub(super) fn read_through(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        mut visit: impl FnMut(u64, &[u8]),
    ) -> Result<()> {
        let mut walk = RecordWalk::begin(self, user_key, index)?;
        let mut at = 0;
        while let Some(bytes) = walk.next(self)? {
            visit(at, &bytes);
            at += bytes.len() as u64;
        }
        Ok(())
    }

    /// What `read` finds by `user_key`; or by the record's own key, where that has another length,
    /// but is the same in the order.
    pub(super) fn by_either_key<T>(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        mut read: impl FnMut(&[u8]) -> Result<T>,
    ) -> Result<T> {
        match read(user_key) {
            Err(error) if !self.order.tells_bytes_apart() && error.is_corruption() => {
                let own = own_key(&*self.file, index)?.filter(|key| key.len() != user_key.len());
                let Some(own) = own else { return Err(error) };
                let found = read(&own)?;
                // It is sound: now the order may be asked about it.
                if self.order.compare(&own, user_key).is_eq() { Ok(found) } else { Err(error) }
            }
            result => result,
        }
    }

    /// Where the record of `user_key` lies that `index` leads to, after all checks that need no
    /// reading.
    pub(super) fn record(&self, user_key: &[u8], index: &BlobIndex) -> Result<Range<u64>> {
        let span = self.span(user_key, index, true)?;
        Ok(span.offset..span.offset + span.length as u64)
    }

    /// The value in a record that was read already; a part of it, unless it is compressed. Fewer
    /// bytes than the record has are an error.
    pub(super) fn value_in(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        record: Bytes,
        verify: bool,
    ) -> Result<Bytes> {
        let span = Span { verify, ..self.span(user_key, index, true)? };
        self.check_span(user_key, index, span, &record)?;
        Ok(match self.compression {
            CompressionType::None => record.slice(span.value_start..),
            _ => self.decompress(span, &record)?.into(),
        })
    }

    /// Where the records end, as far as is known: no less than any record that was asked for.
    pub(super) fn records_end(&self) -> u64 {
        self.records_end.load(Ordering::Relaxed)
    }

    /// How the file's values are compressed.
    pub fn compression(&self) -> CompressionType {
        self.compression
    }

    /// The family whose values it holds.
    pub fn column_family(&self) -> ColumnFamilyId {
        self.column_family
    }

    /// How many records it has; `None` while it is not sealed.
    pub fn count(&self) -> Option<u64> {
        self.count
    }

    /// The file underneath.
    pub fn file(&self) -> &Arc<dyn RandomAccessFile> {
        &self.file
    }

    /// What to read for a value, after all checks that need no reading.
    fn span(&self, user_key: &[u8], index: &BlobIndex, verify: bool) -> Result<Span> {
        let wrong = |message: String| {
            Err(Error::corruption(message).at(self.file.path()).at_offset(index.offset))
        };
        if index.compression != self.compression_byte {
            return wrong(format!(
                "blob index says compression {}, the file says {}",
                index.compression, self.compression_byte
            ));
        }
        // Unless the record is read, another key's may be meant.
        let key_size = if verify || self.order.tells_bytes_apart() { user_key.len() } else { 0 };
        let prefix = (RECORD_HEADER_SIZE + key_size) as u64;
        let end = index.offset.checked_add(index.size);
        let is_within = match end {
            // A sparse file has as many bytes as it likes.
            Some(_) if index.size > PART_SIZE_MAX => false,
            Some(end) if index.offset >= HEADER_SIZE as u64 + prefix => self.reaches(end)?,
            _ => false,
        };
        if !is_within {
            return wrong(format!(
                "invalid blob offset: {} bytes are outside the records",
                index.size
            ));
        }
        let skipped = if verify { prefix } else { 0 };
        // Fits: the file has that many bytes, so does the address space of any machine that could
        // hold them.
        let length = usize::try_from(skipped + index.size)
            .map_err(|_| Error::corruption("blob too large"))?;
        Ok(Span { offset: index.offset - skipped, length, value_start: skipped as usize, verify })
    }

    /// Whether the records reach up to `end`; looks at the file again if it is not sealed.
    fn reaches(&self, end: u64) -> Result<bool> {
        if end <= self.records_end.load(Ordering::Relaxed) {
            return Ok(true);
        }
        if self.count.is_some() {
            return Ok(false);
        }
        let size = self.file.size()?;
        self.records_end.fetch_max(size, Ordering::Relaxed);
        Ok(end <= size)
    }

    /// Checks what was read, and takes the value out of it.
    fn unfold(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        span: Span,
        read: Vec<u8>,
    ) -> Result<BlobValue> {
        self.check_span(user_key, index, span, &read)?;
        Ok(match self.compression {
            CompressionType::None => BlobValue { buffer: read, start: span.value_start },
            _ => BlobValue { buffer: self.decompress(span, &read)?, start: 0 },
        })
    }

    /// Checks what was read for a value.
    fn check_span(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        span: Span,
        read: &[u8],
    ) -> Result<()> {
        let place = |error: Error| error.at(self.file.path()).at_offset(span.offset);
        if read.len() != span.length {
            let message = format!("read {} bytes of a blob, not {}", read.len(), span.length);
            return Err(place(Error::corruption(message)));
        }
        if span.verify { self.check_record(read, user_key, index).map_err(place) } else { Ok(()) }
    }

    fn check_record(&self, record: &[u8], user_key: &[u8], index: &BlobIndex) -> Result<()> {
        let _time = perf::time(PerfMetric::BlobChecksumTime);
        let header = check_header(record, user_key.len(), index)?;
        let key = &record[RECORD_HEADER_SIZE..][..user_key.len()];
        self.check_bytes(key, user_key)?;
        if !Mutant::IgnoreBlobChecksum.is_on() {
            header.check_blob(&record[RECORD_HEADER_SIZE..])?;
        }
        self.check_key(key, user_key)
    }

    /// Whether a record's key may be `user_key`, before it is known to be sound: an order of the
    /// application's is not to be asked about bytes that nobody wrote.
    pub(super) fn check_bytes(&self, key: &[u8], user_key: &[u8]) -> Result<()> {
        if !self.order.tells_bytes_apart() || key == user_key { Ok(()) } else { Err(other_key()) }
    }

    /// Whether a record's key is `user_key`.
    pub(super) fn check_key(&self, key: &[u8], user_key: &[u8]) -> Result<()> {
        let is_same = key == user_key || self.order.compare(key, user_key).is_eq();
        if is_same { Ok(()) } else { Err(other_key()) }
    }

    fn decompress(&self, span: Span, read: &[u8]) -> Result<Vec<u8>> {
        let _time = perf::time(PerfMetric::BlobDecompressTime);
        decompress(self.compression, &read[span.value_start..], None, MAX_VALUE_SIZE)
            .map_err(|error| error.at(self.file.path()).at_offset(span.offset))
    }
}

/// Counts a read of so many bytes for values, and takes its time.
pub(super) fn count_read(length: usize) -> perf::Timer {
    count_bytes(length);
    perf::time(PerfMetric::BlobReadTime)
}

fn count_bytes(length: usize) {
    perf::count(PerfMetric::BlobReadCount, 1);
    perf::count(PerfMetric::BlobReadByte, length as u64);
}

/// The key of the record whose value `index` leads to: its header stands before as many bytes as it
/// says that the key has. `None` if there is none before `KEY_SEARCH_MAX` bytes.
///
/// # Errors
/// Those of reading the file.
fn own_key(file: &dyn RandomAccessFile, index: &BlobIndex) -> Result<Option<Vec<u8>>> {
    let most = index.offset.saturating_sub(HEADER_SIZE as u64).min(KEY_SEARCH_MAX) as usize;
    let (mut length, mut looked_at) = (0, RECORD_HEADER_SIZE);
    while length < most {
        length = (length * 8).max(KEY_SEARCH_FIRST).min(most);
        let bytes = read_exactly(file, index.offset - length as u64, length)?;
        for before in looked_at..=length {
            let record = &bytes[length - before..];
            let key = &record[RECORD_HEADER_SIZE..];
            if record[..8] == (key.len() as u64).to_le_bytes()
                && RecordHeader::decode(record).is_ok_and(|header| header.value_size == index.size)
            {
                return Ok(Some(key.to_vec()));
            }
        }
        looked_at = length + 1;
    }
    Ok(None)
}

/// What is read for one value.
#[derive(Clone, Copy)]
struct Span {
    offset: u64,
    length: usize,
    /// Where in it the stored value starts.
    value_start: usize,
    verify: bool,
}

fn other_key() -> Error {
    Error::corruption("blob record belongs to another key")
}

/// Checks what stands before a record's key.
pub(super) fn check_header(
    record: &[u8],
    key_size: usize,
    index: &BlobIndex,
) -> Result<RecordHeader> {
    let header = RecordHeader::decode(record)?;
    if header.key_size != key_size as u64 || header.value_size != index.size {
        return Err(Error::corruption(format!(
            "blob record has sizes {} and {}, expected {key_size} and {}",
            header.key_size, header.value_size, index.size
        )));
    }
    Ok(header)
}

pub(super) fn compression_type(byte: u8) -> Result<CompressionType> {
    CompressionType::from_byte(byte)
        .ok_or_else(|| Error::not_supported(format!("blob compression type {byte:#04x}")))
}

/// Reads `length` bytes that the file's size says are there. A read that stops short of them is no
/// sign of damage: recovery would take it for the end of history.
pub(super) fn read_exactly(
    file: &dyn RandomAccessFile,
    offset: u64,
    length: usize,
) -> Result<Vec<u8>> {
    let mut buffer = Vec::with_capacity(length);
    let mut filled = file.read_onto(offset, length, &mut buffer)?;
    if filled < length {
        buffer.resize(length, 0);
        filled += read_until_end(file, offset + filled as u64, &mut buffer[filled..])?;
    }
    if filled != length {
        return Err(Error::corruption(format!("read {filled} bytes, not {length}"))
            .at(file.path())
            .at_offset(offset));
    }
    Ok(buffer)
}

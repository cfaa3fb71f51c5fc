//! Appending values to one blob file from many threads, as they are committed.
//!
//! 1. A writer compresses its values and computes their checksums; no lock is held.
//! 2. Under the lock it reserves the bytes that its records take.
//! 3. It writes them with one call, while others write theirs beside it.
//! 4. Who seals the file waits for those who are still writing; whoever comes later is turned away.
//!
//! **Invariants**
//! - Between the file's header and `end` lie records, one behind the other, but for those being
//!   written and for holes.
//! - A hole is where a write failed. At the end of the file its bytes are given back. Elsewhere
//!   sealing fills it with one record of no key, which nothing refers to: what reads the file from
//!   the front finds its way over it.
//! - Behind `end` there may be zeros, which make for large pages in the system's cache
//!   (`env::PageRuns`). They are written under the lock, before anybody writes there; sealing cuts
//!   them off.
//! - A record whose writer gives up afterwards stays: it is garbage, and counted as such by whoever
//!   knows the references.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::builder::{BlobBuilderSettings, BlobFileSummary};
use super::format::{
    BlobFileFooter, BlobFileHeader, BlobIndex, HEADER_SIZE, RECORD_HEADER_SIZE, RecordHeader,
};
use crate::base::checksum::{crc32c, crc32c_append};
use crate::base::compression::{CompressionType, Compressor};
use crate::base::sync::{AtomicU64, Condvar, Mutex, Ordering};
use crate::base::{FileNumber, Result, Sometimes};
use crate::env::{PageRuns, WritableFile, page_run};

/// Bytes of a record before its value for which nothing is allocated.
const FRONT_USUAL: usize = 128;

/// Bytes of zeros that are written at once into a hole.
const FILL_SIZE: u64 = 1 << 20;

/// A value on its way to a blob file.
#[derive(Debug, Clone, Copy)]
pub struct NewBlob<'a> {
    /// Its user key.
    pub user_key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// Where values lie; mostly it is one, for which nothing is allocated.
pub type BlobIndexes = SmallVec<[BlobIndex; 1]>;

/// Appends to one blob file.
///
/// **Thread safety.** Any number of threads may append at the same time.
pub struct BlobAppender {
    file: Arc<dyn WritableFile>,
    number: FileNumber,
    settings: BlobBuilderSettings,
    /// Those that nobody uses now: setting one up is dear.
    compressors: Mutex<Vec<Compressor>>,
    state: Mutex<State>,
    idle: Condvar,
    /// What `state` says, for those who need not know exactly.
    end: AtomicU64,
}

struct State {
    /// Where the next record goes.
    end: u64,
    /// Records up to there, a hole being one.
    count: u64,
    holes: Vec<Range<u64>>,
    /// Behind the end the file may hold bytes of a write that failed, or zeros.
    ragged: bool,
    /// Reservations that are being written.
    writing: usize,
    sealed: bool,
    runs: PageRuns,
}

impl BlobAppender {
    /// Begins the empty file `file` with its header.
    ///
    /// # Errors
    /// `IoError`.
    pub fn new(
        file: Arc<dyn WritableFile>,
        number: FileNumber,
        settings: BlobBuilderSettings,
    ) -> Result<Self> {
        let compression = settings.compression.to_byte();
        let header = BlobFileHeader { column_family: settings.column_family, compression }.encode();
        file.write_at(0, &header)?;
        let end = HEADER_SIZE as u64;
        Ok(Self {
            file,
            number,
            settings,
            compressors: Mutex::default(),
            state: Mutex::new(State {
                end,
                count: 0,
                holes: Vec::new(),
                ragged: false,
                writing: 0,
                sealed: false,
                runs: PageRuns::default(),
            }),
            idle: Condvar::new(),
            end: AtomicU64::new(end),
        })
    }

    /// Appends values, with one write; where they lie. `None` if the file is sealed.
    ///
    /// # Errors
    /// `IoError`; `InvalidArgument` if a value is too long for the codec. Nothing refers to what
    /// may have been written.
    pub fn append(&self, blobs: &[NewBlob<'_>]) -> Result<Option<BlobIndexes>> {
        match self.settings.compression {
            CompressionType::None => self.append_stored(blobs),
            kind => {
                let idle = self.compressors.lock().pop();
                let mut compressor = match idle {
                    Some(compressor) => compressor,
                    None => Compressor::new(kind, &self.settings.compression_options, None)?,
                };
                let mut stored = vec![Vec::new(); blobs.len()];
                for (blob, out) in blobs.iter().zip(&mut stored) {
                    compressor.compress(blob.value, out)?;
                }
                self.compressors.lock().push(compressor);
                let blobs: Vec<_> = (blobs.iter().zip(&stored))
                    .map(|(blob, value)| NewBlob { user_key: blob.user_key, value })
                    .collect();
                self.append_stored(&blobs)
            }
        }
    }

    fn append_stored(&self, blobs: &[NewBlob<'_>]) -> Result<Option<BlobIndexes>> {
        // Head and key behind each other: the fewer pieces a write has, the less the system has to
        // do for it.
        let mut fronts: SmallVec<[u8; FRONT_USUAL]> = SmallVec::new();
        for blob in blobs {
            fronts.extend_from_slice(&RecordHeader::new(blob.user_key, blob.value).encode());
            fronts.extend_from_slice(blob.user_key);
        }
        let bytes =
            (fronts.len() + blobs.iter().map(|blob| blob.value.len()).sum::<usize>()) as u64;
        let mut parts: SmallVec<[&[u8]; 4]> = SmallVec::with_capacity(2 * blobs.len());
        let mut rest = fronts.as_slice();
        for blob in blobs {
            let (front, behind) = rest.split_at(RECORD_HEADER_SIZE + blob.user_key.len());
            parts.extend([front, blob.value]);
            rest = behind;
        }
        let Some(reservation) = self.reserve(bytes, blobs.len() as u64)? else { return Ok(None) };
        let mut offset = reservation.range.start;
        self.file.write_vectored_at(offset, &parts)?;
        reservation.written();

        let compression = self.settings.compression.to_byte();
        let indexes = blobs.iter().map(|blob| {
            offset += (RECORD_HEADER_SIZE + blob.user_key.len()) as u64;
            let size = blob.value.len() as u64;
            let index = BlobIndex { file: self.number, offset, size, compression };
            offset += size;
            index
        });
        Ok(Some(indexes.collect()))
    }

    pub(super) fn reserve(&self, bytes: u64, count: u64) -> Result<Option<Reservation<'_>>> {
        let mut state = self.state.lock();
        if state.sealed {
            return Ok(None);
        }
        let range = state.end..state.end + bytes;
        if let Some(run) = page_run(&range)
            && let Some(zeros) = state.runs.wanted(&range, run)
        {
            Sometimes::BlobZerosAhead.reached();
            state.ragged = true;
            state.runs.write(&*self.file, zeros, run)?;
        }
        state.end = range.end;
        state.count += count;
        state.writing += 1;
        self.end.store(state.end, Ordering::Release);
        Ok(Some(Reservation { appender: self, range, count, is_written: false }))
    }

    /// Notes that the file is being synced.
    pub fn note_sync(&self) {
        let mut state = self.state.lock();
        let end = state.end;
        state.runs.note_sync(end);
    }

    /// Where the next record would go.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// How its values are compressed.
    pub fn compression(&self) -> CompressionType {
        self.settings.compression
    }

    /// The file's number.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// The file underneath.
    pub fn file(&self) -> &Arc<dyn WritableFile> {
        &self.file
    }

    /// Waits for those who are writing, fills the holes and appends the footer. The caller syncs
    /// the file, before anything durable says that it is sealed. May be called again, also after it
    /// failed.
    ///
    /// # Errors
    /// `IoError`.
    pub fn seal(&self) -> Result<BlobFileSummary> {
        let mut state = self.state.lock();
        state.sealed = true;
        while state.writing > 0 {
            Sometimes::BlobSealWaited.reached();
            self.idle.wait(&mut state);
        }
        for hole in &state.holes {
            Sometimes::BlobHoleFilled.reached();
            self.fill(hole)?;
        }
        state.holes.clear();
        if state.ragged {
            self.file.truncate(state.end)?;
            state.ragged = false;
        }
        let footer = BlobFileFooter { count: state.count }.encode();
        self.file.write_at(state.end, &footer)?;
        let total_bytes = state.end - HEADER_SIZE as u64;
        Ok(BlobFileSummary { number: self.number, count: state.count, total_bytes })
    }

    /// Makes a hole one record without a key.
    fn fill(&self, hole: &Range<u64>) -> Result<()> {
        let size = hole.end - hole.start - RECORD_HEADER_SIZE as u64;
        let zeros = vec![0; FILL_SIZE.min(size) as usize];
        let pieces: Vec<_> = (0..size.div_ceil(FILL_SIZE))
            .map(|index| &zeros[..FILL_SIZE.min(size - index * FILL_SIZE) as usize])
            .collect();
        let crc = pieces.iter().fold(crc32c(&[]), |crc, piece| crc32c_append(crc, piece));
        let header = RecordHeader::with_crc(0, size, crc).encode();
        let mut offset = hole.start + RECORD_HEADER_SIZE as u64;
        for piece in pieces {
            self.file.write_at(offset, piece)?;
            offset += piece.len() as u64;
        }
        self.file.write_at(hole.start, &header)
    }
}

/// Bytes of the file that somebody writes.
pub(super) struct Reservation<'a> {
    appender: &'a BlobAppender,
    range: Range<u64>,
    count: u64,
    is_written: bool,
}

impl Reservation<'_> {
    fn written(mut self) {
        self.is_written = true;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut state = self.appender.state.lock();
        if !self.is_written {
            state.count -= self.count;
            if state.end == self.range.end {
                state.end = self.range.start;
                state.ragged = true;
                self.appender.end.store(state.end, Ordering::Release);
            } else {
                state.holes.push(self.range.clone());
                state.count += 1;
            }
        }
        state.writing -= 1;
        if state.writing == 0 {
            self.appender.idle.notify_all();
        }
    }
}

//! Appending records to a log file, each with one write.

use std::sync::Arc;

use super::ahead::FetchAhead;
use super::compression::Compressor;
use super::format::*;
use super::reader::COMPRESSED_RECORD_MAX;
use super::space::Space;
use crate::base::checksum::Suffix;
use crate::base::{ColumnFamilyId, FileNumber, Result};
use crate::cache::Measured;
use crate::env::{LogFile, RangeSyncedFile, RangeSyncs, WritableFile};

/// A buffer that one enormous record has grown beyond this is not kept.
const BUFFER_KEPT_MAX: usize = 16 << 20;

/// How records are written to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WalWriteMode {
    /// Through a mapping of the file's reserved space. Where the file system has no such space, as
    /// `Plain`.
    #[default]
    Mapped,
    /// With one system call per record.
    Plain,
}

/// Compression of the records of a WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WalCompression {
    /// None.
    #[default]
    None,
    /// Each is a zstd frame.
    Zstd,
}

/// How a [`Writer`] writes.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriterOptions {
    /// Puts the file's number into every header, so that the file may hold bytes of an older life,
    /// or zeros, behind its records. Needed for recycled and preallocated files; never for a
    /// MANIFEST.
    pub recyclable: bool,
    /// Compresses each record.
    pub compression: WalCompression,
    /// Reserves no space for records that wait in memory: a full disk may find them written nowhere
    /// yet.
    pub reserves_nothing: bool,
    /// How the file is written back while it grows, if it is.
    pub range_syncs: Option<RangeSyncs>,
}

/// Writes records to a file from its beginning.
///
/// The writer does not sync: that is for whoever knows when it is needed, through [`Writer::file`].
pub struct Writer {
    space: Space,
    /// The low half of the file's number, if the headers carry it.
    recycled_as: Option<u32>,
    compressor: Option<Compressor>,
    offset: u64,
    /// The framed record, kept for its allocation.
    buffer: Vec<u8>,
    /// All that memory, in somebody's account.
    memory: Option<Measured>,
    /// Of how many families the log says how long the timestamps are that their keys end in.
    stamped_families: usize,
}

impl Writer {
    /// Starts at offset 0 of `file`; writes nothing yet.
    ///
    /// # Errors
    /// `NotSupported` if the compression cannot be set up.
    pub fn new(
        file: Arc<dyn WritableFile>,
        number: FileNumber,
        options: WriterOptions,
    ) -> Result<Self> {
        let mut space = match options.range_syncs {
            None => Space::new(file),
            Some(syncs) => Space::range_synced(Arc::new(RangeSyncedFile::told(file, syncs))),
        };
        if options.reserves_nothing {
            space.reserve_nothing();
        }
        Ok(Self {
            space,
            recycled_as: options.recyclable.then_some(number.0 as u32),
            compressor: match options.compression {
                WalCompression::None => None,
                WalCompression::Zstd => Some(Compressor::new()?),
            },
            offset: 0,
            buffer: Vec::new(),
            memory: None,
            stamped_families: 0,
        })
    }

    /// Of how many families the log says how long the timestamps of their keys are.
    #[inline]
    pub fn stamped_families(&self) -> usize {
        self.stamped_families
    }

    /// Says how many bytes of timestamp the keys of these families end in: those behind the first
    /// [`Writer::stamped_families`] of them, whose batches follow. As [`Writer::gather_record`] if
    /// it `gathers`.
    ///
    /// # Errors
    /// As [`Writer::add_record`].
    #[cold]
    pub fn add_timestamp_sizes(
        &mut self,
        families: &[(ColumnFamilyId, u16)],
        gathers: bool,
    ) -> Result<()> {
        while let Some(new) = families.get(self.stamped_families..).filter(|new| !new.is_empty()) {
            let new = &new[..new.len().min(STAMPED_FAMILIES_OF_RECORD)];
            self.buffer.clear();
            if self.compressor.is_some() && self.offset == 0 {
                self.frame_compression_type();
            }
            frame_timestamp_sizes(&mut self.buffer, self.offset, self.recycled_as, new);
            self.count();
            let added = if gathers {
                self.space.gather(self.offset, &self.buffer)
            } else {
                self.space.write(self.offset, &self.buffer)
            };
            self.framed_is_gone(added)?;
            self.stamped_families += new.len();
        }
        Ok(())
    }

    fn frame_compression_type(&mut self) {
        put_header(&mut self.buffer, SET_COMPRESSION_TYPE, None);
        self.buffer.extend_from_slice(&ZSTD.to_le_bytes());
        finish_record(&mut self.buffer, 0, LEGACY_HEADER_SIZE);
    }

    /// As [`Writer::new`], of a file that [`Writer::map`] can map.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn of_log(
        file: Arc<dyn LogFile>,
        number: FileNumber,
        options: WriterOptions,
    ) -> Result<Self> {
        let mut writer = Self::new(file.clone(), number, options)?;
        writer.space.set_log(file);
        Ok(writer)
    }

    /// What [`Writer::memory_usage`] says is to be told there, while the writer lives.
    pub fn count_in(&mut self, memory: Measured) {
        self.memory = Some(memory);
        self.count();
    }

    /// The buffers grow by doubling, so that there is seldom anything to tell.
    #[inline]
    fn count(&mut self) {
        let bytes = self.memory_usage() as usize;
        if let Some(memory) = &mut self.memory {
            memory.set(bytes);
        }
    }

    /// Reserves `step` bytes, and as many again when they are full, and copies records into a
    /// mapping of them. For recyclable records in [mappable](LogFile::is_mappable) logs, i.e.
    /// writers made by [`Writer::of_log`].
    ///
    /// # Errors
    /// `IoError`, with subcode `NoSpace` if there is too little.
    pub fn map(&mut self, step: u64) -> Result<()> {
        debug_assert!(
            self.recycled_as.is_some(),
            "zeros behind the last record would pass for damage"
        );
        self.space.map(step)
    }

    /// From now on records of up to so many bytes, together, wait in memory until
    /// [`Writer::flush`], [`Writer::cut`] or [`Writer::write_gathered`]; what is longer, or no
    /// space can be reserved for, is written at once, behind what waits.
    pub fn keep(&mut self, bytes: usize) {
        self.space.keep(bytes);
    }

    /// Brings the records that wait in memory into the file; [`Writer::write_gathered`] also notes
    /// that a sync follows.
    ///
    /// # Errors
    /// As [`Writer::write_gathered`].
    pub fn flush(&mut self) -> Result<()> {
        self.space.write_gathered()
    }

    /// Ends the file at the last record: gives back what was reserved, cuts off what a failed
    /// record or an earlier life of the file left behind. What is added later goes by system calls.
    ///
    /// # Errors
    /// `IoError`.
    pub fn cut(&mut self) -> Result<()> {
        self.space.write_gathered()?;
        let dismissed = self.space.unmap();
        self.space.file().truncate(self.offset)?;
        dismissed
    }

    /// The longest record that can be read again.
    #[inline]
    pub fn record_size_max(&self) -> usize {
        if self.compressor.is_some() { COMPRESSED_RECORD_MAX } else { usize::MAX }
    }

    /// Appends one record with one write, or lets it wait in memory after [`Writer::keep`].
    ///
    /// # Errors
    /// `IoError`. Part of the record may then be in the file; the offset stays, so that a next
    /// record overwrites it. [`Writer::cut`] removes it.
    #[inline]
    pub fn add_record(&mut self, payload: &[u8]) -> Result<()> {
        self.add_record_parts(&[payload])
    }

    /// As [`Writer::add_record`], of a payload whose end has the checksum `tail`
    /// ([`tail_of`](super::tail_of)), if that is known. Where the record is copied into a mapping,
    /// it comes from the payload itself.
    ///
    /// # Errors
    /// As [`Writer::add_record`].
    #[inline]
    pub fn add_summed_record(&mut self, payload: &[u8], tail: Option<Suffix>) -> Result<()> {
        let header_size = header_size(self.recycled_as);
        let size = header_size + payload.len();
        if self.compressor.is_none() && left_in_block(self.offset, 0) >= size {
            let mut header = [0; RECYCLABLE_HEADER_SIZE];
            let header = &mut header[..header_size];
            if let Some(window) = self.space.window_for(self.offset, size) {
                fill_header(header, FULL, self.recycled_as, payload, tail);
                window.write(self.offset, header, payload);
                self.offset += size as u64;
                return Ok(());
            }
        }
        self.add_record(payload)
    }

    /// Appends one record that consists of `parts`, one behind the other, with one write.
    ///
    /// # Errors
    /// As [`Writer::add_record`].
    pub fn add_record_parts(&mut self, parts: &[&[u8]]) -> Result<()> {
        self.frame(parts)?;
        let added = self.space.write(self.offset, &self.buffer);
        self.framed_is_gone(added)
    }

    /// Appends one record that need not be in the file before [`Writer::write_gathered`]: where
    /// space is reserved, all such records are written by one call.
    ///
    /// # Errors
    /// As [`Writer::add_record`].
    pub fn gather_record(&mut self, payload: &[u8]) -> Result<()> {
        self.frame(&[payload])?;
        let added = self.space.gather(self.offset, &self.buffer);
        self.framed_is_gone(added)
    }

    /// Brings gathered records into the file, and notes that all records are being synced.
    ///
    /// # Errors
    /// `IoError`. The records may then be in the file in part, and are written again by whoever
    /// writes next.
    pub fn write_gathered(&mut self) -> Result<()> {
        self.space.note_sync(self.offset);
        self.space.write_gathered()
    }

    /// Frames one record into the buffer.
    #[inline]
    fn frame(&mut self, parts: &[&[u8]]) -> Result<()> {
        self.buffer.clear();
        if self.compressor.is_some() && self.offset == 0 {
            self.frame_compression_type();
        }
        if let Some(compressor) = &mut self.compressor {
            let frame = compressor.compress(parts)?;
            frame_record(&mut self.buffer, self.offset, self.recycled_as, Cut::Halves, &[frame]);
        } else {
            frame_record(&mut self.buffer, self.offset, self.recycled_as, Cut::Blocks, parts);
        }
        self.count();
        Ok(())
    }

    #[inline]
    fn framed_is_gone(&mut self, added: Result<()>) -> Result<()> {
        if added.is_ok() {
            self.offset += self.buffer.len() as u64;
        }
        if self.buffer.capacity() > BUFFER_KEPT_MAX {
            self.buffer = Vec::new();
        }
        if let Some(compressor) = &mut self.compressor {
            compressor.shrink(BUFFER_KEPT_MAX);
        }
        self.count();
        added
    }

    /// What makes the part of the file that is mapped next, if it is time for that. It is to be run
    /// without a lock that other writers want.
    #[inline]
    pub fn fetch_ahead(&mut self) -> Option<FetchAhead> {
        self.space.fetch_ahead(self.offset)
    }

    /// Where the next record goes: the file's size, but for what was preallocated or recycled.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the file's last record ends; the gathered ones come behind it.
    pub fn written(&self) -> u64 {
        self.offset - self.space.gathered_bytes()
    }

    /// Bytes of memory for records that wait to be written, and for one that is being framed.
    pub fn memory_usage(&self) -> u64 {
        let compressor = self.compressor.as_ref().map_or(0, Compressor::memory_usage);
        self.space.memory_usage() + (self.buffer.capacity() + compressor) as u64
    }

    /// Bytes of the file that are mapped into memory.
    pub fn mapped_bytes(&self) -> u64 {
        self.space.mapped_bytes()
    }

    /// The file written to.
    #[inline]
    pub fn file(&self) -> &Arc<dyn WritableFile> {
        self.space.file()
    }
}

/// How large the fragments of a record may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// As large as a block.
    Blocks,
    /// As large as half a block, where they begin one. For compressed records: RocksDB before 8.0
    /// takes a fragment that stands where the previous one stood in its block for the same input,
    /// and garbles the record.
    Halves,
}

/// Appends the physical records of one logical record to `out`, whose first byte goes to `offset`
/// of the file.
fn frame_record(
    out: &mut Vec<u8>,
    offset: u64,
    recycled_as: Option<u32>,
    cut: Cut,
    parts: &[&[u8]],
) {
    let header_size = header_size(recycled_as);
    let payload: usize = parts.iter().map(|part| part.len()).sum();
    let left = left_in_block(offset, out.len());
    if left >= header_size + payload {
        // Nearly every record: it fits the block.
        let start = out.len();
        out.reserve(header_size + payload);
        put_header(out, FULL, recycled_as);
        for part in parts {
            out.extend_from_slice(part);
        }
        finish_record(out, start, header_size);
        return;
    }
    let blocks = payload / (BLOCK_SIZE - header_size) + 2;
    out.reserve(payload + 2 * blocks * header_size);
    frame_fragments(out, offset, recycled_as, cut, Gather::new(parts, payload));
}

/// Of more families than that a log speaks in several records: one is not cut in two.
const STAMPED_FAMILIES_OF_RECORD: usize = 1000;

fn frame_timestamp_sizes(
    out: &mut Vec<u8>,
    offset: u64,
    recycled_as: Option<u32>,
    families: &[(ColumnFamilyId, u16)],
) {
    let header_size = header_size(recycled_as);
    let size = header_size + families.len() * (size_of::<u32>() + size_of::<u16>());
    let left = left_in_block(offset, out.len());
    if left < size {
        out.resize(out.len() + left, 0);
    }
    let start = out.len();
    put_header_of(out, TIMESTAMP_SIZES, RECYCLABLE_TIMESTAMP_SIZES, recycled_as);
    for (family, size) in families {
        out.extend_from_slice(&family.0.to_le_bytes());
        out.extend_from_slice(&size.to_le_bytes());
    }
    finish_record(out, start, header_size);
}

/// The same for a record that does not fit what is left of the block.
#[cold]
fn frame_fragments(
    out: &mut Vec<u8>,
    offset: u64,
    recycled_as: Option<u32>,
    cut: Cut,
    mut payload: Gather<'_>,
) {
    let header_size = header_size(recycled_as);
    let mut is_first = true;
    loop {
        let mut left = left_in_block(offset, out.len());
        if left < header_size {
            out.resize(out.len() + left, 0);
            left = BLOCK_SIZE;
        }
        let room = match cut {
            Cut::Halves if left == BLOCK_SIZE => BLOCK_SIZE / 2,
            _ => left - header_size,
        };
        let length = payload.remaining.min(room);
        let is_last = length == payload.remaining;
        let record_type = match (is_first, is_last) {
            (true, true) => FULL,
            (true, false) => FIRST,
            (false, false) => MIDDLE,
            (false, true) => LAST,
        };
        let start = out.len();
        put_header(out, record_type, recycled_as);
        payload.take(length, out);
        finish_record(out, start, header_size);
        if is_last {
            return;
        }
        is_first = false;
    }
}

#[inline]
fn header_size(recycled_as: Option<u32>) -> usize {
    match recycled_as {
        None => LEGACY_HEADER_SIZE,
        Some(_) => RECYCLABLE_HEADER_SIZE,
    }
}

#[inline]
fn left_in_block(offset: u64, buffered: usize) -> usize {
    BLOCK_SIZE - (offset as usize + buffered) % BLOCK_SIZE
}

/// Reads several slices as if they were one.
struct Gather<'a> {
    parts: &'a [&'a [u8]],
    /// How much of the first part is gone.
    taken: usize,
    remaining: usize,
}

impl<'a> Gather<'a> {
    fn new(parts: &'a [&'a [u8]], total: usize) -> Self {
        Self { parts, taken: 0, remaining: total }
    }

    fn take(&mut self, mut count: usize, out: &mut Vec<u8>) {
        self.remaining -= count;
        while count > 0 {
            let rest = &self.parts[0][self.taken..];
            let now = rest.len().min(count);
            out.extend_from_slice(&rest[..now]);
            count -= now;
            self.taken += now;
            if self.taken == self.parts[0].len() {
                (self.parts, self.taken) = (&self.parts[1..], 0);
            }
        }
    }
}

//! Fetches blocks: from the cache, else from the file, checked and decompressed.

use std::path::Path;
use std::sync::Arc;

use crate::base::checksum::ChecksumType;
use crate::base::compression::{CompressionType, DecompressionDictionary, decompress_into};
use crate::base::perf::{self, BlockKind, PerfLevelMetric, PerfMetric};
use crate::base::slab::Piece;
use crate::base::{Error, Mutant, Result};
use crate::cache::{CacheKey, Miss, Priority};
use crate::env::{Place, RandomAccessFile};

use super::block::{Block, BlockRoom, GuideRoom};
use super::cached::{BlockCache, CachedBlock, Slim, Whereabouts};
use super::filter::Filter;
use super::format::{BlockHandle, Footer, TRAILER_SIZE};
use super::heap;
use super::protection::BlockSums;
use super::read_cache_hits::{ReadCacheHits, Tier};
use super::readahead::Readahead;
use super::second_tier::{CompressedCache, Form, StoredBlock};
use super::settings::ReadSettings;

/// What a cached filter takes beside its bytes.
pub(super) const FILTER_OVERHEAD: usize = size_of::<Filter>();

/// What for somebody comes to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To look for a key.
    Search,
    /// To go through it from its first entry on.
    Scan,
    /// Or from its last one back.
    ScanBack,
}

/// Where the blocks of one table come from.
pub(super) struct BlockSource {
    pub file: Arc<dyn RandomAccessFile>,
    pub file_size: u64,
    pub footer: Footer,
    pub cache: Option<Arc<BlockCache>>,
    pub second_tier: Option<Arc<CompressedCache>>,
    pub cache_id: u64,
    /// Of index and filter blocks in the cache.
    pub priority: Priority,
    pub dictionary: Option<DecompressionDictionary>,
    /// What data blocks have for their guides.
    pub guide: GuideRoom,
    /// The checksums of data blocks in memory, if they have some.
    pub sums: Option<Box<BlockSums>>,
    /// Where values end that lie beside the blocks, if the table has some.
    pub records_end: Option<u64>,
    /// The last bytes of the file while it is being opened; empty afterwards.
    pub tail: Vec<u8>,
}

impl BlockSource {
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Names the file and place of an error.
    pub fn locate(&self, error: Error, handle: BlockHandle) -> Error {
        error.at(self.path()).at_offset(handle.offset)
    }

    /// Reads a block's stored bytes and its compression type.
    ///
    /// # Errors
    /// `Corruption` or `IoError`, naming file and offset.
    pub fn read_stored(&self, handle: BlockHandle, verify: bool) -> Result<(Vec<u8>, u8)> {
        let mut bytes = self.room_for(handle)?;
        let filled = self.fill(handle.offset, &mut bytes)?;
        self.accept(bytes, filled, handle, verify)
    }

    /// The size of a block with its trailer.
    fn length_of(&self, handle: BlockHandle) -> Result<usize> {
        if handle.end() > self.file_size {
            return Err(
                self.locate(Error::corruption("block is beyond the end of the file"), handle)
            );
        }
        if handle.size > u64::from(u32::MAX) {
            return Err(self.locate(Error::corruption("block is larger than 4 GiB"), handle));
        }
        Ok(handle.size as usize + TRAILER_SIZE)
    }

    /// A buffer for a block with its trailer.
    fn room_for(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        Ok(vec![0; self.length_of(handle)?])
    }

    /// Takes what was read of a block and its trailer, `filled` bytes.
    fn accept(
        &self,
        mut bytes: Vec<u8>,
        filled: usize,
        handle: BlockHandle,
        verify: bool,
    ) -> Result<(Vec<u8>, u8)> {
        let compression = self.examine(&bytes[..filled], handle, verify)?;
        bytes.truncate(handle.size as usize);
        Ok((bytes, compression))
    }

    /// The compression type of a block, given it and its trailer, which may have been cut off.
    pub(super) fn examine(&self, bytes: &[u8], handle: BlockHandle, verify: bool) -> Result<u8> {
        let size = handle.size as usize;
        if bytes.len() < size + TRAILER_SIZE {
            return Err(self.locate(Error::corruption("file ends within a block"), handle));
        }
        if verify {
            self.check(bytes, handle)?;
        }
        Ok(bytes[size])
    }

    /// Fills `buffer` if all of it lies in the tail.
    fn copy_from_tail(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let start = self.file_size - self.tail.len() as u64;
        let at = offset.checked_sub(start).map(|at| at as usize);
        let Some(bytes) = at.and_then(|at| self.tail.get(at..at + buffer.len())) else {
            return false;
        };
        buffer.copy_from_slice(bytes);
        true
    }

    /// Checks a block with its trailer.
    fn check(&self, bytes: &[u8], handle: BlockHandle) -> Result<()> {
        let _time = perf::time(PerfMetric::BlockChecksumTime);
        let (block, trailer) = bytes.split_at(handle.size as usize);
        let stored = u32::from_le_bytes([trailer[1], trailer[2], trailer[3], trailer[4]]);
        let computed = self.footer.checksum_of(block, trailer[0], handle.offset);
        let unchecked =
            self.footer.checksum == ChecksumType::None || Mutant::IgnoreBlockChecksum.is_on();
        if computed == stored || unchecked {
            return Ok(());
        }
        let message =
            format!("block checksum mismatch: stored {stored:#010x}, computed {computed:#010x}");
        Err(self.locate(Error::corruption(message), handle))
    }

    /// Reads a block and decompresses it; `dictionary` for data blocks.
    ///
    /// # Errors
    /// `Corruption` or `IoError`, naming file and offset.
    pub fn read(&self, handle: BlockHandle, verify: bool, dictionary: bool) -> Result<BlockRoom> {
        let guide = if dictionary { self.guide } else { GuideRoom::None };
        self.read_through(handle, verify, None, |stored, compression| {
            self.unpack(stored, compression, handle, dictionary, |size| heap::room_for(size, guide))
        })
    }

    /// The same of a block that is none of data: it is dropped when it was looked at, and where it
    /// is large an allocator would keep its memory. One of which little is stored may still be
    /// large.
    fn read_passing(&self, handle: BlockHandle, verify: bool) -> Result<BlockRoom> {
        let length = self.length_of(handle)?;
        if !(heap::SCRATCH_MAX..=Block::SIZE_MAX).contains(&length) {
            return self.read_through(handle, verify, None, |stored, compression| {
                self.unpack(stored, compression, handle, false, heap::passing_room_for)
            });
        }
        let mut stored = Piece::passing(length);
        let filled = self.fill(handle.offset, &mut stored)?;
        let compression = self.examine(&stored[..filled], handle, verify)?;
        self.unpack(
            &stored[..handle.size as usize],
            compression,
            handle,
            false,
            heap::passing_room_for,
        )
    }

    /// Reads a block; `take` gets its stored bytes and its compression type.
    fn read_through<T>(
        &self,
        handle: BlockHandle,
        verify: bool,
        readahead: Option<&mut Readahead>,
        take: impl FnOnce(&[u8], u8) -> Result<T>,
    ) -> Result<T> {
        let length = self.length_of(handle)?;
        if let Some(readahead) = readahead
            && let Some(bytes) =
                readahead.bytes(&*self.file, self.file_size, handle.offset, length)?
        {
            // Straight from the window: one allocation and one pass less than through a buffer of
            // its own.
            let compression = self.examine(bytes, handle, verify)?;
            return take(&bytes[..handle.size as usize], compression);
        }
        if length > heap::SCRATCH_MAX && self.tail.is_empty() {
            let mut stored = Vec::with_capacity(length);
            let measured = perf::read_block(length);
            self.file.read_onto(handle.offset, length, &mut stored)?;
            drop(measured);
            let compression = self.examine(&stored, handle, verify)?;
            return take(&stored[..handle.size as usize], compression);
        }
        heap::with_scratch(length, |scratch| {
            let filled = self.fill(handle.offset, scratch)?;
            let compression = self.examine(&scratch[..filled], handle, verify)?;
            take(&scratch[..handle.size as usize], compression)
        })
    }

    /// Reads from `offset` on; how many bytes there were.
    pub(super) fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if self.copy_from_tail(offset, buffer) {
            Ok(buffer.len())
        } else {
            let _measured = perf::read_block(buffer.len());
            self.file.read_at(offset, buffer)
        }
    }

    /// A block's content, given what is stored, in what `room` makes for so many bytes.
    fn unpack(
        &self,
        stored: &[u8],
        compression: u8,
        handle: BlockHandle,
        dictionary: bool,
        room: impl FnOnce(usize) -> BlockRoom,
    ) -> Result<BlockRoom> {
        match compression {
            0 if stored.len() > Block::SIZE_MAX => {
                Err(self.locate(Error::corruption("block of entries is as large as 4 GiB"), handle))
            }
            0 => {
                let mut bytes = room(stored.len());
                bytes.unwritten().copy_from(stored);
                Ok(bytes)
            }
            _ => self.decompress(stored, compression, handle, dictionary, room),
        }
    }

    fn decompress(
        &self,
        stored: &[u8],
        compression: u8,
        handle: BlockHandle,
        dictionary: bool,
        room: impl FnOnce(usize) -> BlockRoom,
    ) -> Result<BlockRoom> {
        if self.footer.format_version < 2 && compression != CompressionType::Snappy.to_byte() {
            let error = Error::not_supported(
                "compressed blocks of format versions 0 and 1 are read only if Snappy",
            );
            return Err(self.locate(error, handle));
        }
        let unknown = || {
            if CompressionType::is_elsewhere(compression) {
                Error::not_supported(format!("a block of compression type {compression:#04x}"))
            } else {
                Error::corruption(format!("block has unknown compression type {compression:#04x}"))
            }
        };
        let dictionary = self.dictionary.as_ref().filter(|_| dictionary);
        perf::count(PerfMetric::BlockDecompressCount, 1);
        let _time = perf::time(PerfMetric::BlockDecompressTime);
        CompressionType::from_byte(compression)
            .ok_or_else(unknown)
            .and_then(|kind| decompress_into(kind, stored, dictionary, Block::SIZE_MAX, room))
            .map_err(|error| self.locate(error, handle))
    }

    /// Reads a block that is never compressed.
    ///
    /// # Errors
    /// `Corruption` or `IoError`, naming file and offset.
    pub fn read_raw(&self, handle: BlockHandle, verify: bool) -> Result<Vec<u8>> {
        match self.read_stored(handle, verify)? {
            (bytes, 0) => Ok(bytes),
            _ => {
                Err(self
                    .locate(Error::corruption("a block is compressed that must not be"), handle))
            }
        }
    }

    /// Reads a block of key/value entries that is not cached.
    ///
    /// # Errors
    /// `Corruption` or `IoError`, naming file and offset.
    pub fn read_block(&self, handle: BlockHandle, verify: bool, dictionary: bool) -> Result<Block> {
        let bytes = if dictionary {
            self.read(handle, verify, true)?
        } else {
            self.read_passing(handle, verify)?
        };
        Block::of(bytes).map_err(|error| self.locate(error, handle))
    }

    #[inline]
    pub(super) fn cached(&self, handle: BlockHandle) -> Option<CachedBlock> {
        self.cache.as_ref()?.lookup(self.cache_key(handle))
    }

    #[inline]
    fn cache_key(&self, handle: BlockHandle) -> CacheKey {
        CacheKey { file: self.cache_id, offset: handle.offset }
    }

    pub(super) fn keep(
        &self,
        handle: BlockHandle,
        block: CachedBlock,
        charge: usize,
        settings: &ReadSettings,
    ) {
        if let Some(cache) = self.cache.as_ref().filter(|_| settings.fill_cache) {
            let priority = match block {
                CachedBlock::Slim(Slim::Index(_) | Slim::Filter(_)) => self.priority,
                CachedBlock::Blob(_) | CachedBlock::Slim(_) => Priority::Low,
            };
            cache.insert_with_priority(self.cache_key(handle), block, charge, priority);
        }
    }

    /// A block is not in the cache: what it costs until what is returned is dropped is a miss's, if
    /// the cache is to have it then.
    #[inline]
    pub fn begin_miss(&self, settings: &ReadSettings) -> Option<Miss<'_>> {
        self.cache.as_ref().filter(|_| settings.fill_cache)?.begin_miss()
    }

    pub(super) fn refuse_if_cache_only(
        &self,
        handle: BlockHandle,
        settings: &ReadSettings,
    ) -> Result<()> {
        if settings.cache_only {
            return Err(self.locate(Error::incomplete("block is not in the cache"), handle));
        }
        Ok(())
    }

    /// A data block, which mostly is where it was `seen` last: its memory is on its way while the
    /// cache is asked.
    ///
    /// # Errors
    /// `Corruption` or `IoError` naming file and offset, or `Incomplete`.
    #[inline]
    pub fn data_block(
        &self,
        (handle, seen): (BlockHandle, &Whereabouts),
        settings: &ReadSettings,
        readahead: Option<&mut Readahead>,
    ) -> Result<Block> {
        if let Some(cache) = &self.cache {
            seen.prefetch_block(false);
            if let Some(CachedBlock::Slim(Slim::Data(block))) =
                cache.lookup_near(self.cache_key(handle), &seen.slot)
            {
                perf::hit(BlockKind::Data, || block.memory_usage());
                seen.note(&block);
                return self.check_in_memory(handle, &block, false).map(|()| block);
            }
        }
        self.load_data_block(handle, settings, readahead)
    }

    /// Asks for the memory that [`Self::data_block`] will wait for, and what comes after it, if the
    /// block is in the cache: all that can be known at once, from step 0 on. Returns the next step,
    /// if there is any, for when that memory is there.
    pub fn approach(
        &self,
        (handle, seen): (BlockHandle, &Whereabouts),
        step: u32,
        purpose: Purpose,
    ) -> Option<u32> {
        let cache = self.cache.as_ref()?;
        let key = self.cache_key(handle);
        match step {
            0 if seen.prefetch_block(purpose == Purpose::Scan) => {
                cache.prefetch_near(key, &seen.slot);
                return (purpose == Purpose::ScanBack).then_some(3);
            }
            0 | 1 => cache.approach(key, step, |_| {}),
            _ => cache.show_near(key, &seen.slot, |value| {
                let CachedBlock::Slim(Slim::Data(block)) = value else { return };
                match step {
                    2 => {
                        seen.note(block);
                        seen.prefetch_block(purpose == Purpose::Scan);
                    }
                    3 => block.prefetch_end(),
                    _ => block.prefetch_last_interval(),
                }
            }),
        }
        let last = if purpose == Purpose::ScanBack { 4 } else { 2 };
        (step < last).then_some(step + 1)
    }

    /// [`Self::data_block`] for a job: tells whether it was cached, and does not count as a use.
    ///
    /// # Errors
    /// `Corruption` or `IoError` naming file and offset, or `Incomplete`.
    pub fn data_block_noting(
        &self,
        handle: BlockHandle,
        settings: &ReadSettings,
        readahead: &mut Readahead,
        read_cache_hits: &ReadCacheHits,
    ) -> Result<Block> {
        let key = self.cache_key(handle);
        if let Some(CachedBlock::Slim(Slim::Data(block))) =
            self.cache.as_ref().and_then(|cache| cache.peek(key))
        {
            read_cache_hits.note(Some(Tier::First));
            self.check_in_memory(handle, &block, false)?;
            return Ok(block);
        }
        let is_in_second = self.second_tier.as_ref().is_some_and(|second| second.holds(key));
        read_cache_hits.note(is_in_second.then_some(Tier::Second));
        self.read_data_block(handle, settings, Some(readahead))
    }

    /// Takes a data block out of the cache.
    pub fn uncache(&self, handle: BlockHandle) {
        if let Some(cache) = &self.cache {
            cache.erase(self.cache_key(handle));
        }
        if let Some(second) = &self.second_tier {
            second.erase(self.cache_key(handle));
        }
    }

    #[cold]
    fn load_data_block(
        &self,
        handle: BlockHandle,
        settings: &ReadSettings,
        readahead: Option<&mut Readahead>,
    ) -> Result<Block> {
        perf::count_at_level(PerfLevelMetric::BlockCacheMissCount, 1);
        let _miss = self.begin_miss(settings);
        if let Some(block) = self.in_second_tier(handle, settings)? {
            return Ok(block);
        }
        self.refuse_if_cache_only(handle, settings)?;
        self.read_data_block(handle, settings, readahead)
    }

    fn read_data_block(
        &self,
        handle: BlockHandle,
        settings: &ReadSettings,
        readahead: Option<&mut Readahead>,
    ) -> Result<Block> {
        let _kind = perf::reading(BlockKind::Data);
        self.read_through(handle, settings.verify_checksums, readahead, |stored, compression| {
            self.accept_stored(stored, compression, handle, settings)
        })
    }

    /// A data block that the second tier has; it is put into the first.
    ///
    /// # Errors
    /// `Corruption` naming file and offset.
    pub fn in_second_tier(
        &self,
        handle: BlockHandle,
        settings: &ReadSettings,
    ) -> Result<Option<Block>> {
        let Some(second) = &self.second_tier else { return Ok(None) };
        let Some(stored) = second.lookup(self.cache_key(handle)) else { return Ok(None) };
        perf::count(PerfMetric::SecondaryCacheHitCount, 1);
        perf::count(PerfMetric::BlockCacheRealHandleCount, u64::from(settings.fill_cache));
        let StoredBlock { bytes, form } = &*stored;
        let room = |size| heap::room_for(size, self.guide);
        let bytes = match *form {
            Form::File(compression) => self.unpack(bytes, compression, handle, true, room)?,
            Form::Own => decompress_into(CompressionType::Lz4, bytes, None, Block::SIZE_MAX, room)
                .map_err(|error| self.locate(error, handle))?,
        };
        self.accept_data_block(bytes, handle, settings).map(Some)
    }

    /// A data block, if it is cached and has no checksum; its guide is asked for.
    #[inline]
    pub fn cached_data_block(&self, (handle, seen): (BlockHandle, &Whereabouts)) -> Option<Block> {
        let cache = self.cache.as_ref().filter(|_| self.sums.is_none())?;
        let is_on_its_way = seen.prefetch_block(false);
        let Some(CachedBlock::Slim(Slim::Data(block))) =
            cache.lookup_near(self.cache_key(handle), &seen.slot)
        else {
            return None;
        };
        perf::hit(BlockKind::Data, || block.memory_usage());
        seen.note(&block);
        if !is_on_its_way {
            block.prefetch_guide();
        }
        Some(block)
    }

    /// Where a data block lies, for a joint read.
    ///
    /// # Errors
    /// `Corruption` naming file and offset, or `Incomplete`.
    pub fn place_of(&self, handle: BlockHandle, settings: &ReadSettings) -> Result<Place<'_>> {
        self.refuse_if_cache_only(handle, settings)?;
        Ok(Place { file: &*self.file, offset: handle.offset, length: self.length_of(handle)? })
    }

    /// A data block, given what a joint read got of its place.
    ///
    /// # Errors
    /// `Corruption` naming file and offset.
    pub fn data_block_of(
        &self,
        stored: &[u8],
        handle: BlockHandle,
        settings: &ReadSettings,
    ) -> Result<Block> {
        let _kind = perf::reading(BlockKind::Data);
        drop(perf::read_block(stored.len()));
        let compression = self.examine(stored, handle, settings.verify_checksums)?;
        self.accept_stored(&stored[..handle.size as usize], compression, handle, settings)
    }

    /// What was read of a data block, which both tiers hear of.
    fn accept_stored(
        &self,
        stored: &[u8],
        compression: u8,
        handle: BlockHandle,
        settings: &ReadSettings,
    ) -> Result<Block> {
        let bytes = self
            .unpack(stored, compression, handle, true, |size| heap::room_for(size, self.guide))?;
        let block = self.accept_data_block(bytes, handle, settings)?;
        if let Some(second) = self.second_tier.as_ref().filter(|_| settings.fill_cache) {
            second.offer(self.cache_key(handle), stored, compression);
        }
        Ok(block)
    }

    fn accept_data_block(
        &self,
        bytes: BlockRoom,
        handle: BlockHandle,
        settings: &ReadSettings,
    ) -> Result<Block> {
        let block = Block::of(bytes).map_err(|error| self.locate(error, handle))?;
        self.check_in_memory(handle, &block, true)?;
        self.keep(
            handle,
            CachedBlock::Slim(Slim::Data(block.clone())),
            block.memory_usage(),
            settings,
        );
        Ok(block)
    }
}

//! The block cache: what tables keep in memory of their blocks.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::block::{Block, count_in};
use super::filter::Filter;
use super::format::BlockHandle;
use super::heap;
use super::index::IndexBlock;
use crate::base::{SharedPiece, prefetch};
use crate::cache::{Cache, CacheValue, Held, MemoryAccount, MemoryKind, SlotHint};
use crate::trace::TraceType;

/// What the block cache holds. A slot of the cache is a cache line if this is not more than 32
/// bytes: as many as a `Bytes`, in which a word that is never zero tells it from the others, which
/// leave that word alone.
#[derive(Debug, Clone)]
pub enum CachedBlock {
    /// A value from a blob file.
    Blob(Bytes),
    /// Anything else.
    Slim(Slim),
}

/// What takes three words at most, with what it is.
#[derive(Debug, Clone)]
pub enum Slim {
    /// A data block.
    Data(Block),
    /// A partition of an index.
    Index(Arc<IndexPartition>),
    /// A partition of a filter.
    Filter(Arc<Filter>),
    /// A small value from a blob file.
    Blob(SharedPiece),
    /// The checksums of the pieces of a large one.
    Pieces(Arc<[u32]>),
}

impl CachedBlock {
    /// The last step at which [`Cache::approach`] has something to ask for on the way to a value
    /// from a blob file.
    pub const LAST_STEP_TO_BLOB: u32 = 2;

    /// Asks for the memory of a value from a blob file.
    pub fn prefetch_blob(&self) {
        match self {
            Self::Blob(value) => prefetch(value.as_ptr(), 1),
            Self::Slim(Slim::Blob(value)) => SharedPiece::<()>::prefetch_at(value.start(), 0),
            Self::Slim(_) => {}
        }
    }
}

impl CacheValue for CachedBlock {
    fn is_pinned(&self) -> bool {
        match self {
            // An empty one lies nowhere and belongs to nobody, which `is_unique` takes for shared.
            Self::Blob(value) => !value.is_empty() && !value.is_unique(),
            Self::Slim(Slim::Data(block)) => block.is_shared(),
            Self::Slim(Slim::Index(partition)) => partition.is_pinned(),
            Self::Slim(Slim::Filter(filter)) => filter.is_pinned(),
            Self::Slim(Slim::Blob(value)) => !value.is_unique(),
            Self::Slim(Slim::Pieces(checksums)) => Arc::strong_count(checksums) > 1,
        }
    }

    /// Of large values nobody hears, nor of filters, which a lookup has for a moment.
    fn count_kept(&self, account: &Arc<MemoryAccount>) {
        match self {
            Self::Slim(Slim::Data(block)) => block.count_in(account),
            Self::Slim(Slim::Blob(value)) => count_in(value, account),
            Self::Slim(Slim::Index(partition)) => partition.count_in(account),
            Self::Blob(_) | Self::Slim(Slim::Filter(_) | Slim::Pieces(_)) => {}
        }
    }

    /// Values of blob files are data, for which RocksDB has no type of their own.
    fn trace_type(&self) -> TraceType {
        match self {
            Self::Slim(Slim::Index(_)) => TraceType::IndexBlock,
            Self::Slim(Slim::Filter(_)) => TraceType::FilterBlock,
            Self::Blob(_) | Self::Slim(Slim::Data(_) | Slim::Blob(_) | Slim::Pieces(_)) => {
                TraceType::DataBlock
            }
        }
    }

    fn discard(self) {
        if let Self::Slim(Slim::Data(block)) = self
            && let Some(room) = block.into_room()
        {
            heap::reuse(room);
        }
    }
}

/// Where a data block lies in the file, and where it was in memory when somebody last looked: there
/// are as many of these as blocks, so each has but a quarter of a cache line. In memory it may be
/// elsewhere by now, or nowhere: that is a hint.
///
/// ```text
/// word, 64 bits = a 16th of the block's address, 0 if nobody knows: 44; its offset in the file, bits 32 to 35: 4; its size: 16
/// offset        = bits 0 to 31 of the offset
/// ```
#[derive(Debug)]
#[repr(align(16))]
pub struct Whereabouts {
    /// Only the address changes, which is only ever asked for ahead. No schedule depends on it.
    word: AtomicU64,
    offset: u32,
    pub(super) slot: SlotHint,
}

/// What of the word is the address, and what a block's is a multiple of.
const ADDRESS: u64 = !0 << ADDRESS_AT;
const ADDRESS_AT: u32 = SIZE_BITS + OFFSET_BITS;
const ADDRESS_STEP: usize = 16;
const SIZE_BITS: u32 = 16;
/// How many bits of the offset the word has.
const OFFSET_BITS: u32 = 4;

const _: () = assert!(size_of::<Whereabouts>() == 16, "four to a cache line");

impl Whereabouts {
    /// Of a block that nobody has seen; `None` if it is too large for it, or lies too far in the
    /// file.
    pub(super) fn new(handle: BlockHandle) -> Option<Self> {
        let (high, low) = (handle.offset >> 32, handle.offset as u32);
        let fits = handle.size >> SIZE_BITS == 0 && high >> OFFSET_BITS == 0;
        let word = AtomicU64::new(high << SIZE_BITS | handle.size);
        fits.then(|| Self { word, offset: low, slot: SlotHint::default() })
    }

    /// Of a block that lies elsewhere in the file, which somebody else knows.
    pub(super) fn in_memory_only() -> Self {
        Self { word: AtomicU64::new(0), offset: 0, slot: SlotHint::default() }
    }

    /// Where it lies in the file.
    #[inline]
    pub(super) fn handle(&self) -> BlockHandle {
        let word = self.word.load(Ordering::Relaxed) & !ADDRESS;
        let (high, size) = (word >> SIZE_BITS, word & ((1 << SIZE_BITS) - 1));
        BlockHandle { offset: high << 32 | u64::from(self.offset), size }
    }

    /// Asks for the memory in which a search of the block begins, or a scan of it; whether anybody
    /// knows where.
    #[inline]
    pub(super) fn prefetch_block(&self, with_start: bool) -> bool {
        let address = (self.word.load(Ordering::Relaxed) >> ADDRESS_AT) as usize * ADDRESS_STEP;
        if address != 0 {
            Block::prefetch_at(address, with_start);
        }
        address != 0
    }

    /// Notes where it is. Mostly there is nothing to write, and the memory is shared by all who
    /// read.
    #[inline]
    pub(super) fn note(&self, block: &Block) {
        // What is beyond the bits for it would be asked for in vain, and does no harm.
        let address = ((block.address() / ADDRESS_STEP) as u64) << ADDRESS_AT;
        let word = self.word.load(Ordering::Relaxed);
        if word & ADDRESS != address {
            // Who does it at the same time leaves the rest as it is, too.
            self.word.store(word & !ADDRESS | address, Ordering::Relaxed);
        }
    }
}

/// A decoded partition of an index, or all of it.
pub struct IndexPartition {
    pub(super) index: IndexBlock,
    /// Where its memory is counted since the cache let go of it. Nobody waits for another by it.
    kept: OnceLock<Held>,
}

impl IndexPartition {
    pub(super) fn new(index: IndexBlock) -> Self {
        Self { index, kept: OnceLock::new() }
    }

    /// What it takes in memory, in bytes.
    pub(super) fn memory_usage(&self) -> usize {
        self.index.memory_usage()
    }

    fn count_in(&self, account: &Arc<MemoryAccount>) {
        if self.kept.get().is_none() {
            // Not within an initialization: who follows the account may have the cache let go of
            // others.
            let _ = self.kept.set(account.hold(MemoryKind::KeptBlocks, self.memory_usage()));
        }
    }
}

impl fmt::Debug for IndexPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.index.fmt(f)
    }
}

/// The cache that tables share.
pub type BlockCache = Cache<CachedBlock>;

#[cfg(test)]
mod tests;

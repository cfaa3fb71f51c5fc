//! The block cache: what tables keep in memory of their blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::block::Block;
use super::filter::Filter;
use super::heap;
use super::index::IndexBlock;
use crate::base::{SharedPiece, prefetch};
use crate::cache::{Cache, CacheValue, SlotHint};

/// What the block cache holds. A slot of the cache is a cache line if this is not more than 32 bytes: as many as a `Bytes`, in
/// which a word that is never zero tells it from the others, which leave that word alone.
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
    /// The last step at which [`Cache::approach`] has something to ask for on the way to a value from a blob file.
    pub const LAST_STEP_TO_BLOB: u32 = 2;

    /// Asks for the memory of a value from a blob file.
    pub fn prefetch_blob(&self) {
        match self {
            Self::Blob(value) => prefetch(value.as_ptr(), 1),
            Self::Slim(Slim::Blob(value)) => value.prefetch(),
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

    fn discard(self) {
        if let Self::Slim(Slim::Data(block)) = self
            && let Some(room) = block.into_room()
        {
            heap::reuse(room);
        }
    }
}

/// Where a data block was in memory when somebody last looked. It may be elsewhere by now, or nowhere: a hint.
#[derive(Debug, Default)]
pub struct Whereabouts {
    pub(super) slot: SlotHint,
    /// Of its first byte, 0 if nobody knows; only ever asked for ahead. No schedule depends on it.
    address: AtomicUsize,
}

impl Whereabouts {
    /// Asks for the memory in which a search of the block begins, or a scan of it; whether anybody knows where.
    #[inline]
    pub(super) fn prefetch_block(&self, with_start: bool) -> bool {
        let address = self.address.load(Ordering::Relaxed);
        if address != 0 {
            Block::prefetch_at(address, with_start);
        }
        address != 0
    }

    /// Notes where it is. Mostly there is nothing to write, and the memory is shared by all who read.
    #[inline]
    pub(super) fn note(&self, block: &Block) {
        let address = block.address();
        if self.address.load(Ordering::Relaxed) != address {
            self.address.store(address, Ordering::Relaxed);
        }
    }
}

/// A decoded partition of an index.
#[derive(Debug)]
pub struct IndexPartition(pub(super) IndexBlock);

/// The cache that tables share.
pub type BlockCache = Cache<CachedBlock>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::slot_size;

    /// It had 40 bytes, for which a slot took two cache lines: a fiftieth of a cache's memory, and a second line to wait for.
    #[test]
    fn an_entry_fits_into_a_slot() {
        assert_eq!(size_of::<CachedBlock>(), 32);
        assert_eq!(slot_size::<CachedBlock>(), 64);
    }
}

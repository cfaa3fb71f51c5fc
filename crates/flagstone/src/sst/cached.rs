//! The block cache: what tables keep in memory of their blocks.

use std::sync::Arc;

use bytes::Bytes;

use super::block::Block;
use super::filter::Filter;
use super::heap;
use super::index::IndexBlock;
use crate::base::{SharedPiece, prefetch};
use crate::cache::{Cache, CacheValue};

/// What the block cache holds.
#[derive(Debug, Clone)]
pub enum CachedBlock {
    /// A data block.
    Data(Block),
    /// A partition of an index.
    Index(Arc<IndexPartition>),
    /// A partition of a filter.
    Filter(Arc<Filter>),
    /// A value from a blob file.
    Blob(Bytes),
    /// A small one.
    SmallBlob(SharedPiece),
    /// The checksums of such a value's pieces.
    Pieces(Arc<[u32]>),
}

impl CachedBlock {
    /// The last step at which [`Cache::approach`] has something to ask for on the way to a value from a blob file.
    pub const LAST_STEP_TO_BLOB: u32 = 2;

    /// Asks for the memory of a value from a blob file.
    pub fn prefetch_blob(&self) {
        match self {
            Self::Blob(value) => prefetch(value.as_ptr(), 1),
            Self::SmallBlob(value) => value.prefetch(),
            _ => {}
        }
    }
}

impl CacheValue for CachedBlock {
    fn is_pinned(&self) -> bool {
        match self {
            Self::Data(block) => block.is_shared(),
            Self::Index(partition) => partition.is_pinned(),
            Self::Filter(filter) => filter.is_pinned(),
            // An empty one lies nowhere and belongs to nobody, which `is_unique` takes for shared.
            Self::Blob(value) => !value.is_empty() && !value.is_unique(),
            Self::SmallBlob(value) => !value.is_unique(),
            Self::Pieces(checksums) => Arc::strong_count(checksums) > 1,
        }
    }

    fn discard(self) {
        if let Self::Data(block) = self
            && let Some(room) = block.into_room()
        {
            heap::reuse(room);
        }
    }
}

/// A decoded partition of an index.
#[derive(Debug)]
pub struct IndexPartition(pub(super) IndexBlock);

/// The cache that tables share.
pub type BlockCache = Cache<CachedBlock>;

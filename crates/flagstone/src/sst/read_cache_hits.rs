//! Lets the block cache follow a compaction: what was cached of its inputs is, of its outputs,
//! cached again, in the same tier.
//!
//! Without that, each compaction takes from readers the blocks that they use, and they must fetch
//! all of them anew. Keys go through a compaction in order, so that the blocks read last and the
//! block being written hold neighbours.

use std::sync::Arc;

use super::block::{Block, GuideRoom};
use super::cached::{BlockCache, CachedBlock, Slim};
use super::format::BlockHandle;
use super::heap;
use super::second_tier::CompressedCache;
use crate::base::Result;
use crate::base::sync::{AtomicBool, AtomicU32, Ordering};
use crate::cache::{CacheKey, MemoryAccount};

/// Where in the block cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    First,
    Second,
}

/// Whether the blocks that a job reads were cached. Its cursors tell, its builder asks; both in the
/// thread of a part of a job, so that plain loads and stores do: a locked addition would wait until
/// all that was written of the block before is in the cache.
#[derive(Debug, Default)]
pub struct ReadCacheHits {
    first: AtomicU32,
    second: AtomicU32,
    missed: AtomicU32,
    last_first: AtomicBool,
    last_second: AtomicBool,
}

impl ReadCacheHits {
    /// A block was read, and was in this tier.
    pub(super) fn note(&self, tier: Option<Tier>) {
        let counter = match tier {
            Some(Tier::First) => &self.first,
            Some(Tier::Second) => &self.second,
            None => &self.missed,
        };
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// The first tier if it had at least half the blocks that were read since it was last asked;
    /// the second if both together had. If none was read, what it said then.
    fn ask(&self) -> Option<Tier> {
        let take = |counter: &AtomicU32| {
            let count = counter.load(Ordering::Relaxed);
            counter.store(0, Ordering::Relaxed);
            count
        };
        let (first, second, missed) = (take(&self.first), take(&self.second), take(&self.missed));
        if first + second + missed > 0 {
            self.last_first.store(first >= second + missed, Ordering::Relaxed);
            self.last_second.store(first + second >= missed, Ordering::Relaxed);
        }
        let is_last = |last: &AtomicBool| last.load(Ordering::Relaxed);
        match (is_last(&self.last_first), is_last(&self.last_second)) {
            (true, _) => Some(Tier::First),
            (false, true) => Some(Tier::Second),
            (false, false) => None,
        }
    }
}

/// The same counter, not one that counted the same.
impl PartialEq for ReadCacheHits {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for ReadCacheHits {}

/// Puts data blocks into the cache as a table is written.
#[derive(Clone)]
pub struct Prepopulate {
    /// Where to.
    pub cache: Arc<BlockCache>,
    /// Where to, what belongs into the second tier.
    pub second_tier: Option<Arc<CompressedCache>>,
    /// The file's number there: what [`super::TableReadSettings::cache_id`] will be.
    pub cache_id: u64,
    /// Which blocks; all without it.
    pub read_cache_hits: Option<Arc<ReadCacheHits>>,
    /// Hears of the memory of others that go for them.
    pub account: Arc<MemoryAccount>,
}

impl Prepopulate {
    /// A data block was written: as it is, and as the file has it, with its compression type.
    /// Whether it was put in.
    pub(super) fn offer(
        &self,
        handle: BlockHandle,
        (block, guide): (&[u8], GuideRoom),
        stored: (&[u8], u8),
    ) -> Result<bool> {
        let key = CacheKey { file: self.cache_id, offset: handle.offset };
        match (
            self.read_cache_hits
                .as_ref()
                .map_or(Some(Tier::First), |read_cache_hits| read_cache_hits.ask()),
            &self.second_tier,
        ) {
            (Some(Tier::First), _) => self.put(key, block, guide),
            (Some(Tier::Second), Some(second)) => Ok(second.put(key, stored.0, stored.1)),
            _ => Ok(false),
        }
    }

    fn put(&self, key: CacheKey, block: &[u8], guide: GuideRoom) -> Result<bool> {
        if block.len() > Block::SIZE_MAX {
            return Ok(false);
        }
        let mut bytes = heap::room_for(block.len(), guide);
        bytes.unwritten().copy_from(block);
        let block = Block::of(bytes)?;
        let charge = block.memory_usage();
        let is_in = self.cache.prepopulate(key, CachedBlock::Slim(Slim::Data(block)), charge);
        self.account.freed(charge);
        Ok(is_in)
    }
}

#[cfg(test)]
mod tests;

//! Lets the block cache follow a compaction: what was cached of its inputs is, of its outputs, cached again.
//!
//! Without that, each compaction takes from readers the blocks that they use, and they must fetch all of them anew.
//! Keys go through a compaction in order, so that the blocks read last and the block being written hold neighbours.

use std::sync::Arc;

use super::block::Block;
use super::cached::{BlockCache, CachedBlock};
use super::format::BlockHandle;
use crate::base::Result;
use crate::base::sync::{AtomicBool, AtomicU32, Ordering};
use crate::cache::{CacheKey, MemoryAccount};

/// Whether the blocks that a job reads were cached. Its cursors tell, its builder asks; both in the thread of a part of a job.
#[derive(Debug, Default)]
pub struct Warmth {
    cached: AtomicU32,
    missed: AtomicU32,
    last: AtomicBool,
}

impl Warmth {
    /// A block was read, out of the cache or not.
    pub(super) fn note(&self, cached: bool) {
        let counter = if cached { &self.cached } else { &self.missed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether at least half the blocks read since it was last asked were cached; if none was read, what it said then.
    fn ask(&self) -> bool {
        let (cached, missed) =
            (self.cached.swap(0, Ordering::Relaxed), self.missed.swap(0, Ordering::Relaxed));
        if cached + missed > 0 {
            self.last.store(cached >= missed, Ordering::Relaxed);
        }
        self.last.load(Ordering::Relaxed)
    }
}

/// The same counter, not one that counted the same.
impl PartialEq for Warmth {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Warmth {}

/// Puts data blocks into the cache as a table is written.
#[derive(Clone)]
pub struct Prepopulate {
    /// Where to.
    pub cache: Arc<BlockCache>,
    /// The file's number there: what [`super::TableReadSettings::cache_id`] will be.
    pub cache_id: u64,
    /// Which blocks; all without it.
    pub warmth: Option<Arc<Warmth>>,
    /// Hears of the memory of others that go for them.
    pub account: Arc<MemoryAccount>,
}

impl Prepopulate {
    /// A data block was written; whether it was put in.
    pub(super) fn offer(&self, handle: BlockHandle, block: &[u8]) -> Result<bool> {
        if self.warmth.as_ref().is_some_and(|warmth| !warmth.ask()) {
            return Ok(false);
        }
        let block = Arc::new(Block::new(block.to_vec())?);
        let charge = block.memory_usage();
        let key = CacheKey { file: self.cache_id, offset: handle.offset };
        let is_in = self.cache.prepopulate(key, CachedBlock::Data(block), charge);
        self.account.freed(charge);
        Ok(is_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_was_read_since_the_last_question_decides() {
        let warmth = Warmth::default();
        let mut answers = Vec::new();
        for reads in ["", "+", "", "+-", "--+", "", "-+++", ""] {
            reads.chars().for_each(|read| warmth.note(read == '+'));
            answers.push(warmth.ask());
        }
        assert_eq!(answers, [false, true, true, true, false, false, true, true]);
    }
}

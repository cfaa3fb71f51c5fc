//! The second tier of the block cache: data blocks in compressed form.
//!
//! 1. A data block that the first tier does not have is looked for here before its file is read.
//!    What is found is decompressed for the first tier and stays here, too: the policy hears of the
//!    blocks that the first tier loses again and again.
//! 2. A block that is read from its file comes here as it is stored there, checked and found to be
//!    sound: for the price of a copy. One that is stored uncompressed is compressed with LZ4, and
//!    not taken if that saves less than an eighth.
//! 3. It comes in only if it was read before, not long ago (RocksDB's placeholders): what is read
//!    once, as by a scan, drives nothing out. [`Seen`] remembers reads.
//!
//! Index and filter partitions are the first tier's alone, since they are kept decoded there; so
//! are values of blob files.
//!
//! **Thread safety.** That of [`Cache`]: a lookup takes no lock. What threads overwrite for each
//! other in [`Seen`] lets a block in one read later.
//!
//! **Invariants.** What the blocks take in memory, with what the cache needs to find them, and
//! [`Seen`] are within the capacity: but for the cache's table, which does not shrink, where the
//! capacity was much larger before, or blocks have a few bytes.

use std::cell::RefCell;
use std::sync::Arc;

use crate::base::compression::{CompressionOptions, CompressionType, Compressor};
use crate::base::perf::{self, PerfMetric};
use crate::base::slab::Piece;
use crate::base::sync::{AtomicU64, Ordering};
use crate::cache::{Cache, CacheKey, CacheSettings, CacheStatistics};

/// What a block takes beside its bytes: what knows where they are, and the counts of an `Arc`.
const ENTRY_OVERHEAD: usize = size_of::<StoredBlock>() + 2 * size_of::<usize>();

/// Bytes of the capacity for each block that [`Seen`] can remember: twice as many as the tier
/// holds, or more.
const BYTES_PER_SEEN: usize = 1024;

/// As many it remembers at most, in 128 MiB, which are asked for at once: the capacity may be more
/// than there is.
const SEEN_MAX: usize = 64 << 20;

thread_local! {
    /// For blocks that are stored uncompressed.
    static LZ4: RefCell<Option<(Compressor, Vec<u8>)>> = const { RefCell::new(None) };
}

fn options() -> CompressionOptions {
    CompressionOptions::default()
}

/// A data block in compressed form.
pub(super) struct StoredBlock {
    pub(super) bytes: Piece,
    pub(super) form: Form,
}

/// How a block is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As in its file, with the type of compression that stands there.
    File(u8),
    /// With LZ4, by this tier.
    Own,
}

/// Data blocks in compressed form, for those that the block cache does not have.
pub struct CompressedCache {
    blocks: Cache<Arc<StoredBlock>>,
    seen: Seen,
}

impl CompressedCache {
    /// An empty one. The capacity in `settings` is for all that it takes.
    pub fn new(settings: &CacheSettings) -> Self {
        let seen = Seen::new(seen_by(settings.capacity));
        let this = Self { blocks: Cache::new(settings), seen };
        this.set_capacity(settings.capacity);
        this
    }

    /// Changes the capacity, in bytes; what no longer fits is dropped at once.
    pub fn set_capacity(&self, capacity: usize) {
        self.blocks.set_capacity(capacity.saturating_sub(self.seen.memory_usage()));
    }

    /// The most that it takes, in bytes.
    pub fn capacity(&self) -> usize {
        self.blocks.capacity() + self.seen.memory_usage()
    }

    /// What it takes now, in bytes.
    pub fn usage(&self) -> usize {
        self.blocks.usage() + self.seen.memory_usage()
    }

    /// How many blocks it holds.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// What it has done so far.
    pub fn statistics(&self) -> CacheStatistics {
        self.blocks.statistics()
    }

    pub(super) fn lookup(&self, key: CacheKey) -> Option<Arc<StoredBlock>> {
        self.blocks.lookup(key)
    }

    /// Whether it holds a block, which does not count as used.
    pub(super) fn holds(&self, key: CacheKey) -> bool {
        self.blocks.peek(key).is_some()
    }

    pub(super) fn erase(&self, key: CacheKey) {
        self.blocks.erase(key);
    }

    /// A block was read from its file: as it is stored there, and with which type of compression.
    pub(super) fn offer(&self, key: CacheKey, stored: &[u8], compression: u8) {
        if self.seen.again(key) {
            self.put(key, stored, compression);
        } else {
            perf::count(PerfMetric::CompressedSecCacheInsertDummyCount, 1);
        }
    }

    /// Puts a block in, in the form in which its file has it or will have it; whether it is worth
    /// it.
    pub(super) fn put(&self, key: CacheKey, stored: &[u8], compression: u8) -> bool {
        if compression != CompressionType::None.to_byte() {
            return self.keep(key, stored, Form::File(compression));
        }
        // Taken, not borrowed: in the middle of the insertion a scheduler may go on with another of
        // its threads, which shares this one.
        let made =
            || Some((Compressor::new(CompressionType::Lz4, &options(), None).ok()?, Vec::new()));
        let Some((mut compressor, mut compressed)) =
            LZ4.try_with(RefCell::take).ok().flatten().or_else(made)
        else {
            return false;
        };
        compressed.clear();
        // A block that is too long for the codec is too long for the cache.
        let is_kept = compressor.compress(stored, &mut compressed).is_ok()
            && options().is_worthwhile(stored.len(), compressed.len())
            && self.keep(key, &compressed, Form::Own);
        // A thread that is about to end keeps none.
        let _ = LZ4.try_with(|kept| kept.replace(Some((compressor, compressed))));
        is_kept
    }

    fn keep(&self, key: CacheKey, compressed: &[u8], form: Form) -> bool {
        let mut bytes = Piece::new(compressed.len());
        bytes.copy_from_slice(compressed);
        let charge = bytes.capacity() + ENTRY_OVERHEAD;
        perf::count(PerfMetric::CompressedSecCacheInsertRealCount, 1);
        perf::count(PerfMetric::CompressedSecCacheCompressedBytes, compressed.len() as u64);
        self.blocks.insert(key, Arc::new(StoredBlock { bytes, form }), charge)
    }
}

/// Which blocks were read from files lately. Each belongs to a group, which remembers the last four
/// of its own.
struct Seen {
    /// Four tags of 16 bits, the last one lowest.
    groups: Box<[AtomicU64]>,
}

const TAG_BITS: u32 = 16;
const TAGS: u32 = u64::BITS / TAG_BITS;

/// How many reads a tier of that capacity remembers.
fn seen_by(capacity: usize) -> usize {
    (capacity / BYTES_PER_SEEN).min(SEEN_MAX)
}

impl Seen {
    /// Of at least so many blocks, and never of none.
    fn new(count: usize) -> Self {
        let groups = (count / TAGS as usize).next_power_of_two();
        Self { groups: (0..groups).map(|_| AtomicU64::new(0)).collect() }
    }

    fn memory_usage(&self) -> usize {
        size_of_val(&*self.groups)
    }

    /// Notes a read; whether there was one before.
    fn again(&self, key: CacheKey) -> bool {
        let hash = key.hash();
        let group = &self.groups[hash as usize & (self.groups.len() - 1)];
        // Never 0, which stands for none.
        let tag = (hash >> (u64::BITS - TAG_BITS)).max(1);
        let tags = group.load(Ordering::Relaxed);
        let is_there = (0..TAGS).any(|at| tags >> (at * TAG_BITS) & 0xffff == tag);
        if !is_there {
            group.store(tags << TAG_BITS | tag, Ordering::Relaxed);
        }
        is_there
    }
}

#[cfg(test)]
mod tests;

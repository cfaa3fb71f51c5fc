//! What a table that is being written consists of.

use std::cmp::Ordering;

use super::block_compressor::BlockCompressor;
use super::filters::Filters;
use super::held_back::HeldBack;
use super::parallel::ParallelCompressor;
use super::placement::Limit;
use crate::base::{Comparator, InternalKeyBuf, SequenceNumber, timestamp};
use crate::sst::block::BlockBuilder;
use crate::sst::filter::FilterBuilder;
use crate::sst::format::BlockHandle;
use crate::sst::index::PrefixHashBuilder;
use crate::sst::read_cache_hits::Prepopulate;

/// The data block that is being filled, and the one before it.
pub(super) struct DataBlock {
    pub(super) entries: BlockBuilder,
    /// Where it has to end.
    pub(super) limit: Limit,
    pub(super) first_key: Vec<u8>,
    /// The last entry added to the table.
    pub(super) last_key: Vec<u8>,
    /// How many data blocks are complete, those held back included: the number of the block being
    /// filled.
    pub(super) number: u32,
    /// The block written last, while the key that follows it is not known.
    pub(super) written: Option<BlockHandle>,
}

/// What compresses data blocks.
pub(super) struct Codec {
    pub(super) compressor: Option<BlockCompressor>,
    /// The blocks that wait for the dictionary.
    pub(super) held_back: Option<HeldBack>,
    /// The thread that compresses, where there is one.
    pub(super) parallel: Option<ParallelCompressor>,
    pub(super) dictionary: Vec<u8>,
}

/// What goes into the block cache as it is written.
pub(super) struct CachedBlocks {
    pub(super) prepopulate: Option<Prepopulate>,
    /// Whether a block was put into the cache.
    pub(super) is_cached: bool,
}

/// What is made of the keys, beside the index.
pub(super) struct KeyStructures {
    pub(super) filters: Option<Filters>,
    /// A filter that stays in memory and is not written.
    pub(super) key_filter: Option<FilterBuilder>,
    pub(super) prefix_hash: Option<PrefixHashBuilder>,
}

/// The first entry, and the smallest and largest sequence number.
pub(super) struct Bounds {
    pub(super) smallest: Option<InternalKeyBuf>,
    pub(super) sequences: (SequenceNumber, SequenceNumber),
    /// The oldest and the newest timestamp, where keys end in some.
    pub(super) stamps: Option<Stamps>,
}

/// The oldest and the newest timestamp of the keys so far.
pub(super) struct Stamps {
    size: usize,
    ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl Stamps {
    /// `None` for an order of keys without.
    pub(super) fn of(comparator: &Comparator) -> Option<Self> {
        let size = comparator.timestamp_size();
        (size > 0).then_some(Self { size, ends: None })
    }

    pub(super) fn take(&mut self, user_key: &[u8], comparator: &Comparator) {
        let (_, stamp) = timestamp::split(user_key, self.size);
        let Some((oldest, newest)) = &mut self.ends else {
            self.ends = Some((stamp.to_vec(), stamp.to_vec()));
            return;
        };
        for (end, wanted) in [(oldest, Ordering::Less), (newest, Ordering::Greater)] {
            if comparator.compare_timestamps(stamp, end) == wanted {
                end.clear();
                end.extend_from_slice(stamp);
            }
        }
    }

    pub(super) fn ends(&self) -> Option<(&[u8], &[u8])> {
        self.ends.as_ref().map(|(oldest, newest)| (&oldest[..], &newest[..]))
    }
}

//! The index: from a key to the block that may hold it.
//!
//! An index block has one entry per block below it. Its key is at least the last key of that block and below the
//! first key of the next; its value is
//!
//! ```text
//! value = handle, [first internal key: lps]                   entries as in any block
//! value = handle or size change: zigzag varint64, [first key] entries without value length ("delta-encoded"):
//!         the handle if the entry shares nothing with the one before, else the change in size since the block
//!         before, which this one directly follows
//! ```
//!
//! Keys are internal keys, or user keys where no user key spans two blocks in the whole file.

mod builder;
mod prefix_hash;

use std::cmp::Ordering;
use std::ops::Range;

pub(crate) use builder::{IndexBlockWriter, IndexBuilder, IndexBuilderSettings, IndexSizes};
pub(crate) use prefix_hash::{PrefixHash, PrefixHashBuilder};

use crate::base::coding::Decoder;
use crate::base::{Comparator, Error, InternalKey, PACKED_SIZE, Result, prefetch};

use super::block::{Block, BlockWalk, common_prefix};
use super::cached::Whereabouts;
use super::format::{BlockHandle, TRAILER_SIZE};

/// How many entries apart the fences of an index are: eight cache lines of integers.
const FENCE_DISTANCE: usize = 64;

/// How the keys and values of a file's index blocks are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct IndexFlavor {
    pub user_keys: bool,
    pub delta_values: bool,
    pub first_keys: bool,
}

/// An index block decoded for searching: a lookup touches an array of integers and one or two keys.
#[derive(Debug)]
pub(crate) struct IndexBlock {
    comparator: Comparator,
    user_keys: bool,
    /// All keys, one behind the other, and where each ends.
    keys: Vec<u8>,
    ends: Vec<u32>,
    places: Vec<Whereabouts>,
    /// Where all blocks lie, if the places have not the bits for it. Empty mostly.
    handles: Vec<BlockHandle>,
    /// In byte order: the bytes that all user keys start with are left out, and the next eight of each stand here as
    /// one integer. Empty for other orders.
    prefixes: Vec<u64>,
    /// Every so many of the prefixes: they tell with few cache misses where to look among all.
    fences: Vec<u64>,
    /// How many bytes all user keys have in common.
    common: usize,
}

impl IndexBlock {
    fn new(user_keys: bool, comparator: &Comparator) -> Self {
        Self {
            comparator: comparator.clone(),
            user_keys,
            keys: Vec::new(),
            ends: Vec::new(),
            places: Vec::new(),
            handles: Vec::new(),
            prefixes: Vec::new(),
            fences: Vec::new(),
            common: 0,
        }
    }

    /// Decodes a block; no handle may point beyond `limit`.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn decode(block: &Block, flavor: IndexFlavor, comparator: &Comparator, limit: u64) -> Result<Self> {
        let mut index = Self::new(flavor.user_keys, comparator);
        let mut walk = BlockWalk::of_index(block)?;
        // What grows leaves behind, in an allocator's heap, about as much as it has in the end.
        index.ends.reserve_exact(walk.restarts());
        index.places.reserve_exact(walk.restarts());
        index.keys.reserve_exact(block.data().len());
        let mut last = BlockHandle::default();
        loop {
            let mut value;
            let mut shared = 0;
            if flavor.delta_values {
                let Some((key_shared, rest)) = walk.next_without_length()? else { break };
                (shared, value) = (key_shared, Decoder::new(rest));
                let handle = Self::value(&mut value, shared, last, flavor);
                walk.skip(rest.len() - value.rest().len());
                last = handle.ok_or_else(|| Error::corruption("bad value in index block"))?;
            } else {
                let Some(bytes) = walk.next()? else { break };
                value = Decoder::new(bytes);
                let handle = Self::value(&mut value, shared, last, flavor);
                last = handle.ok_or_else(|| Error::corruption("bad value in index block"))?;
            }
            if last.end() > limit {
                return Err(Error::corruption("index entry points beyond the file").at_offset(last.offset));
            }
            index.push(walk.key(), last)?;
        }
        index.prepare();
        Ok(index)
    }

    /// Reads one value; `last` is the handle of the entry before.
    fn value(
        value: &mut Decoder<'_>,
        shared: usize,
        last: BlockHandle,
        flavor: IndexFlavor,
    ) -> Option<BlockHandle> {
        let handle = if shared == 0 {
            BlockHandle::decode(value)?
        } else {
            let size = last.size.checked_add_signed(value.varsigned64()?)?;
            let offset = last.offset.checked_add(last.size)?.checked_add(TRAILER_SIZE as u64)?;
            offset.checked_add(size)?.checked_add(TRAILER_SIZE as u64)?;
            BlockHandle { offset, size }
        };
        if flavor.first_keys {
            value.lps()?;
        }
        Some(handle)
    }

    /// An index with one entry for the whole of this one, which lies at `handle`; `None` if this one is empty.
    pub fn above(&self, handle: BlockHandle) -> Option<Self> {
        let last = self.key(self.len().checked_sub(1)?).to_vec();
        let mut above = Self::new(self.user_keys, &self.comparator);
        above.push(&last, handle).ok()?;
        above.prepare();
        Some(above)
    }

    fn push(&mut self, key: &[u8], handle: BlockHandle) -> Result<()> {
        if !self.user_keys && key.len() < PACKED_SIZE {
            return Err(Error::corruption("index key is too short to be an internal key"));
        }
        if let Some(last) = self.ends.len().checked_sub(1)
            && self.compare_keys(self.key(last), key).is_gt()
            && !self.comparator.is_unknown()
        {
            return Err(Error::corruption("index keys are out of order"));
        }
        self.keys.extend_from_slice(key);
        let end =
            u32::try_from(self.keys.len()).map_err(|_| Error::corruption("index block is too large"))?;
        self.ends.push(end);
        if u32::try_from(handle.size).is_err() {
            return Err(Error::corruption("index entry of a block of 4 GiB or more").at_offset(handle.offset));
        }
        let place = Whereabouts::new(handle);
        if place.is_none() && self.handles.is_empty() {
            self.handles.extend(self.places.iter().map(Whereabouts::handle));
        }
        // From the first one on that does not fit.
        if place.is_none() || !self.handles.is_empty() {
            self.handles.push(handle);
        }
        self.places.push(place.unwrap_or_else(Whereabouts::in_memory_only));
        Ok(())
    }

    fn compare_keys(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.user_keys {
            return self.comparator.compare(a, b);
        }
        let (a, b) = (InternalKey::from_checked(a), InternalKey::from_checked(b));
        self.comparator.compare(a.user_key(), b.user_key()).then_with(|| b.packed().cmp(&a.packed()))
    }

    /// Fills what makes searching fast, and gives back what was allocated too much.
    fn prepare(&mut self) {
        self.keys.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.places.shrink_to_fit();
        self.handles.shrink_to_fit();
        let Some(last) = self.len().checked_sub(1).filter(|_| self.comparator.is_bytewise()) else { return };
        self.common = common_prefix(self.user_key(0), self.user_key(last));
        self.prefixes = (0..self.len()).map(|i| leading_integer(&self.user_key(i)[self.common..])).collect();
        self.fences = self.prefixes.iter().step_by(FENCE_DISTANCE).copied().collect();
    }

    /// The number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The stored key: an internal key, or a user key.
    pub fn key(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.keys[start..self.ends[index] as usize]
    }

    /// The user key of an entry's key.
    #[inline]
    pub fn user_key(&self, index: usize) -> &[u8] {
        let key = self.key(index);
        if self.user_keys { key } else { &key[..key.len() - PACKED_SIZE] }
    }

    /// Where the block of an entry lies.
    #[inline]
    pub fn handle(&self, index: usize) -> BlockHandle {
        if self.handles.is_empty() { self.places[index].handle() } else { self.handles[index] }
    }

    /// Where it was in memory when somebody last looked.
    #[inline]
    pub fn seen(&self, index: usize) -> &Whereabouts {
        &self.places[index]
    }

    /// The first entry whose key is at least `target`, or the number of entries.
    #[inline]
    pub fn seek(&self, target: InternalKey<'_>) -> usize {
        if self.prefixes.is_empty() {
            return self.search(0, self.len(), target);
        }
        let wanted = target.user_key();
        let (low, high) = match self.narrow(wanted) {
            Ok(range) => range,
            Err(found) => return found,
        };
        self.search(low, high, target)
    }

    /// The first entry of `low..high` whose key is at least `target`, else `high`.
    #[inline]
    pub fn seek_within(&self, low: usize, high: usize, target: InternalKey<'_>) -> usize {
        // Where blocks are many, the integers find the place with fewer cache misses than the keys.
        if high - low > 8 { self.seek(target).clamp(low, high) } else { self.search(low, high, target) }
    }

    /// The first entry whose user key is at least `user_key`, or the number of entries.
    pub fn seek_user_key(&self, user_key: &[u8]) -> usize {
        let (mut low, mut high) = match self.prefixes.is_empty() {
            true => (0, self.len()),
            false => match self.narrow(user_key) {
                Ok(range) => range,
                Err(found) => return found,
            },
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if self.comparator.compare(self.user_key(middle), user_key).is_lt() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The entries whose user keys start like `wanted` as far as the integers tell; `Err` if they tell all.
    #[inline]
    fn narrow(&self, wanted: &[u8]) -> Result<(usize, usize), usize> {
        let common = &self.user_key(0)[..self.common];
        let length = self.common.min(wanted.len());
        match wanted[..length].cmp(&common[..length]) {
            Ordering::Less => return Err(0),
            Ordering::Greater => return Err(self.len()),
            Ordering::Equal if length < self.common => return Err(0),
            Ordering::Equal => {}
        }
        let prefix = leading_integer(&wanted[self.common..]);
        let low = self.first_at_least(prefix);
        if self.prefixes.get(low) != Some(&prefix) {
            return Err(low);
        }
        let high = low + self.prefixes[low..].partition_point(|&other| other == prefix);
        Ok((low, high))
    }

    /// The first entry whose integer is at least `prefix`, or the number of entries.
    #[inline]
    fn first_at_least(&self, prefix: u64) -> usize {
        let range = self.between_fences(prefix);
        let start = range.start;
        let between = &self.prefixes[range];
        // All at once rather than one bisected line after the other.
        prefetch(between.as_ptr(), size_of_val(between).div_ceil(64));
        start + between.partition_point(|&other| other < prefix)
    }

    /// Among which entries the first one is whose integer is at least `prefix`, if not behind them.
    #[inline]
    fn between_fences(&self, prefix: u64) -> Range<usize> {
        let fence = self.fences.partition_point(|&other| other < prefix);
        let start = fence.saturating_sub(1) * FENCE_DISTANCE;
        start..(fence * FENCE_DISTANCE).min(self.len())
    }

    /// Asks for the memory that [`Self::seek`] waits for first.
    #[inline]
    pub fn prefetch(&self, wanted: &[u8]) {
        if let Some(rest) = wanted.get(self.common..).filter(|_| self.len() > FENCE_DISTANCE) {
            let between = &self.prefixes[self.between_fences(leading_integer(rest))];
            prefetch(between.as_ptr(), size_of_val(between).div_ceil(64));
        }
    }

    /// Asks for the memory of an entry's handle.
    #[inline]
    pub fn prefetch_handle(&self, index: usize) {
        prefetch(&raw const self.places[index], 1);
    }

    /// The first entry of `low..high` at or after `target`, else `high`.
    fn search(&self, mut low: usize, mut high: usize, target: InternalKey<'_>) -> usize {
        while low < high {
            let middle = low + (high - low) / 2;
            let order = self.comparator.compare(self.user_key(middle), target.user_key());
            let below = match order {
                Ordering::Equal if !self.user_keys => {
                    InternalKey::from_checked(self.key(middle)).packed() > target.packed()
                }
                order => order.is_lt(),
            };
            if below {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// What the decoded block takes in memory, in bytes.
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>()
            + self.keys.capacity()
            + 4 * self.ends.capacity()
            + size_of::<Whereabouts>() * self.places.capacity()
            + size_of::<BlockHandle>() * self.handles.capacity()
            + 8 * (self.prefixes.capacity() + self.fences.capacity())
    }
}

/// The first eight bytes as a big-endian number; what is missing counts as zeros.
#[inline]
fn leading_integer(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(padded)
}

#[cfg(test)]
mod tests;

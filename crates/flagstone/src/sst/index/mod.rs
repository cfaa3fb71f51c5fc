//! The index: from a key to the block that may hold it.
//!
//! An index block has one entry per block below it. Its key is at least the last key of that block
//! and below the first key of the next; its value is
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
mod keys;
mod prefix_hash;

use std::cmp::Ordering;

pub(crate) use builder::{IndexBlockWriter, IndexBuilder, IndexBuilderSettings, IndexSizes};
pub(crate) use prefix_hash::{PrefixHash, PrefixHashBuilder};

use crate::base::coding::Decoder;
use crate::base::{Comparator, Error, InternalKey, Result, prefetch};

use super::block::{Block, BlockWalk, common_prefix};
use super::cached::Whereabouts;
use super::format::{BlockHandle, TRAILER_SIZE};
use keys::{IndexKeys, KeyList};

/// How the keys and values of a file's index blocks are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct IndexFlavor {
    pub user_keys: bool,
    pub delta_values: bool,
    pub first_keys: bool,
}

/// An index block decoded for searching: a lookup touches an array of integers and one entry.
#[derive(Debug)]
pub(crate) struct IndexBlock {
    keys: IndexKeys,
    places: Box<[Whereabouts]>,
    /// Where all blocks lie, if the places have not the bits for it. Empty mostly.
    handles: Box<[BlockHandle]>,
}

/// The same on its way.
struct Entries {
    keys: KeyList,
    places: Vec<Whereabouts>,
    handles: Vec<BlockHandle>,
}

impl Entries {
    fn new(user_keys: bool, comparator: &Comparator) -> Self {
        Self { keys: KeyList::new(user_keys, comparator), places: Vec::new(), handles: Vec::new() }
    }

    fn push(&mut self, key: &[u8], handle: BlockHandle) -> Result<()> {
        self.keys.push(key)?;
        if u32::try_from(handle.size).is_err() {
            return Err(Error::corruption("index entry of a block of 4 GiB or more")
                .at_offset(handle.offset));
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

    fn finish(self) -> IndexBlock {
        let (places, handles) = (self.places.into(), self.handles.into());
        IndexBlock { keys: self.keys.finish(), places, handles }
    }
}

impl IndexBlock {
    /// Decodes a block; no handle may point beyond `limit`.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn decode(
        block: &Block,
        flavor: IndexFlavor,
        comparator: &Comparator,
        limit: u64,
    ) -> Result<Self> {
        let mut index = Entries::new(flavor.user_keys, comparator);
        let mut walk = BlockWalk::of_index(block)?;
        // What grows leaves behind, in an allocator's heap, about as much as it has in the end.
        index.places.reserve_exact(walk.restarts());
        index.keys.reserve(walk.restarts(), block.data().len());
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
                return Err(
                    Error::corruption("index entry points beyond the file").at_offset(last.offset)
                );
            }
            index.push(walk.key(), last)?;
        }
        Ok(index.finish())
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

    /// An index with one entry for the whole of this one, which lies at `handle`; `None` if this
    /// one is empty.
    pub fn above(&self, handle: BlockHandle) -> Option<Self> {
        let last = self.key(self.len().checked_sub(1)?);
        let mut above = Entries::new(self.keys.are_user_keys(), self.keys.comparator());
        above.push(&last, handle).ok()?;
        Some(above.finish())
    }

    /// The number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The stored key: an internal key, or a user key.
    pub fn key(&self, index: usize) -> Vec<u8> {
        self.keys.key(index)
    }

    /// The user key of an entry's key.
    pub fn user_key(&self, index: usize) -> Vec<u8> {
        self.keys.user_key(index)
    }

    /// How it stands to another.
    pub fn compare_user_key(&self, index: usize, user_key: &[u8]) -> Ordering {
        self.keys.compare(index, user_key)
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
        self.keys.seek(target)
    }

    /// The first entry of `low..high` whose key is at least `target`, else `high`.
    #[inline]
    pub fn seek_within(&self, low: usize, high: usize, target: InternalKey<'_>) -> usize {
        self.keys.seek_within(low..high, target)
    }

    /// The first entry whose user key is at least `user_key`, or the number of entries.
    pub fn seek_user_key(&self, user_key: &[u8]) -> usize {
        self.keys.seek_user_key(user_key)
    }

    /// Asks for the memory that [`Self::seek`] waits for first.
    #[inline]
    pub fn prefetch(&self, wanted: &[u8]) {
        self.keys.prefetch(wanted);
    }

    /// Asks for the memory of an entry's handle.
    #[inline]
    pub fn prefetch_handle(&self, index: usize) {
        prefetch(&raw const self.places[index], 1);
    }

    /// What the decoded block takes in memory, in bytes.
    pub fn memory_usage(&self) -> usize {
        self.keys.memory_usage() + size_of::<Self>() - size_of::<IndexKeys>()
            + size_of_val(&*self.places)
            + size_of_val(&*self.handles)
    }
}

#[cfg(test)]
mod tests;

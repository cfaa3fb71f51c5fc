//! The sorted block that data, index and meta blocks are made of.
//!
//! ```text
//! block   = entries, [values section], restart offsets: fixed32 * n, [hash index], [values offset: fixed32], footer
//! entry   = varint32 shared, varint32 non_shared, varint32 value_length, key suffix, value
//! hash index = buckets: u8 * m, fixed16 m            only with footer bit 31
//! footer  = fixed32: bits 0-27 n, bit 28 values apart, bit 29 keys evenly spread (a hint), bit 31 hash index
//! ```
//!
//! A key is the first `shared` bytes of the key before it and the suffix. Restart offsets point at
//! entries with `shared = 0`. With bit 28 set (never written here) an entry at a restart has a
//! fourth number, `varint32 value_offset`, and values follow each other in the values section.
//! Index blocks may have values without a length; `sst::index` reads those.

mod builder;
mod entry;
mod guide;
mod hash_index;
mod iter;
mod scan;
mod trail;
mod walk;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub use builder::BlockBuilder;
pub(crate) use builder::common_prefix;
pub(crate) use entry::{EntryHeader, entry_header};
pub(super) use guide::GuideRoom;
pub use iter::BlockIter;
pub(super) use scan::Found;
pub(crate) use walk::BlockWalk;

use crate::base::coding::fixed32_at;
use crate::base::sync::{AtomicBool, Ordering};
use crate::base::{Error, Result, SharedPiece, SharedRoom, prefetch};
use crate::cache::{MemoryAccount, MemoryKind};
use guide::Guide;
use hash_index::HashIndex;

const COUNT_MASK: u32 = (1 << 28) - 1;
const VALUES_APART_BIT: u32 = 1 << 28;
const RESERVED_BIT: u32 = 1 << 30;
const HASH_INDEX_BIT: u32 = 1 << 31;

/// The walk met bytes that no entry consists of.
#[derive(Debug)]
struct Damage;

fn bad(what: &str) -> Error {
    Error::corruption(format!("bad block contents: {what}"))
}

/// The bytes of one block, uncompressed, with the layout of its end checked. A clone is another
/// share of the same.
#[derive(Clone)]
pub struct Block(SharedPiece<Layout>);

/// Room for the bytes of a block.
pub type BlockRoom = SharedRoom<Layout>;

/// How a block is laid out.
pub struct Layout {
    /// Where entries (and the values section) end.
    restarts_offset: u32,
    num_restarts: u32,
    /// Where the values section starts, if values lie apart.
    values_offset: Option<u32>,
    hash_index: Option<HashIndex>,
    /// Whether it was searched before there was a guide, which lies in the margin.
    is_searched: AtomicBool,
}

const _: () =
    assert!(size_of::<Layout>() + GuideRoom::Many.size() as usize + 64 <= ROOM_FOR_LAYOUT);

/// More than lies before the bytes of a block.
const ROOM_FOR_LAYOUT: usize = 1 << 10;

impl Block {
    /// The most bytes that a block can have: with what is known of it, it is smaller than 4 GiB.
    pub(super) const SIZE_MAX: usize = u32::MAX as usize - ROOM_FOR_LAYOUT;

    /// A copy of the bytes of a block without its trailer.
    ///
    /// # Errors
    /// `Corruption` if the end of the block cannot be that of one.
    pub fn new(data: &[u8]) -> Result<Self> {
        Self::with_guide_room(data, GuideRoom::Many)
    }

    /// [`Self::new`] for a block of few entries, which is found without a guide.
    pub(in crate::sst) fn small(data: &[u8]) -> Result<Self> {
        Self::with_guide_room(data, GuideRoom::None)
    }

    fn with_guide_room(data: &[u8], guide: GuideRoom) -> Result<Self> {
        if data.len() > Self::SIZE_MAX {
            return Err(bad("larger than 4 GiB"));
        }
        let mut room = BlockRoom::with_margin(data.len(), guide.size());
        room.unwritten().copy_from(data);
        Self::of(room)
    }

    /// [`Self::new`] for bytes that lie in their place.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn of(data: BlockRoom) -> Result<Self> {
        let mut end = data.len().checked_sub(4).ok_or_else(|| bad("shorter than its footer"))?;
        let footer = fixed32_at(&data, end).ok_or_else(|| bad("no footer"))?;
        if footer & RESERVED_BIT != 0 {
            return Err(bad("reserved footer bit set"));
        }
        let values_offset = if footer & VALUES_APART_BIT != 0 {
            end = end.checked_sub(4).ok_or_else(|| bad("no room for the values offset"))?;
            fixed32_at(&data, end)
        } else {
            None
        };
        let hash_index = if footer & HASH_INDEX_BIT != 0 {
            let index =
                HashIndex::parse(&data[..end]).ok_or_else(|| bad("hash index out of bounds"))?;
            end = index.start();
            Some(index)
        } else {
            None
        };
        let num_restarts = footer & COUNT_MASK;
        let restarts_offset = (num_restarts as usize)
            .checked_mul(4)
            .and_then(|size| end.checked_sub(size))
            .ok_or_else(|| bad("more restarts than bytes"))? as u32;
        if values_offset.is_some_and(|offset| offset > restarts_offset) {
            return Err(bad("values offset out of bounds"));
        }
        if num_restarts == 0 && restarts_offset != 0 {
            return Err(bad("entries without a restart"));
        }
        let is_searched = AtomicBool::new(false);
        let layout =
            Layout { restarts_offset, num_restarts, values_offset, hash_index, is_searched };
        Ok(Self(data.share(layout)))
    }

    /// The bytes.
    #[inline]
    pub fn data(&self) -> &[u8] {
        &self.0
    }

    #[inline]
    fn layout(&self) -> &Layout {
        self.0.known()
    }

    /// Its bytes, kept alive.
    #[inline]
    fn share_bytes(&self) -> SharedPiece {
        self.0.clone().without_known()
    }

    /// Whether somebody else has the block, too.
    pub fn is_shared(&self) -> bool {
        !self.0.is_unique()
    }

    /// Its memory is somebody's in `account` until nobody has the block any more.
    pub(super) fn count_in(&self, account: &Arc<MemoryAccount>) {
        count_in(&self.0, account);
    }

    /// Its memory, to be used again, unless somebody else has the block.
    pub(super) fn into_room(self) -> Option<BlockRoom> {
        self.0.into_room()
    }

    /// What the block takes in memory, in bytes.
    pub fn memory_usage(&self) -> usize {
        self.0.capacity()
    }

    /// What makes searching in byte order fast, for blocks of internal keys, if it is made.
    #[inline]
    fn guide(&self) -> Option<Guide<'_>> {
        self.0.margin().map(Guide)
    }

    #[cfg(test)]
    pub(in crate::sst) fn guide_size(&self) -> Option<usize> {
        self.0.margin().map(<[u8]>::len)
    }

    /// [`Block::guide`] for a search, of which the second makes it: it costs as much as two or
    /// three searches by restarts, and where the cache is small most blocks leave it after one.
    #[inline]
    fn guide_for_search(&self) -> Option<Guide<'_>> {
        let made = self.guide();
        if made.is_none() && self.0.is_margin_blank() { self.guide_unless_first() } else { made }
    }

    #[cold]
    fn guide_unless_first(&self) -> Option<Guide<'_>> {
        // Whoever sees it late searches by restarts once more.
        if !self.layout().is_searched.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.0.fill_margin(|margin| Guide::write(self, margin)).map(Guide)
    }

    /// Where the entries end.
    #[inline]
    fn entries_end(&self) -> usize {
        let layout = self.layout();
        layout.values_offset.unwrap_or(layout.restarts_offset) as usize
    }

    /// Whether there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries_end() == 0
    }

    /// The stored offset of a restart; not yet known to lie within the entries.
    #[inline]
    fn restart(&self, index: u32) -> usize {
        let at = self.layout().restarts_offset as usize + 4 * index as usize;
        u32::from_le_bytes(self.data()[at..at + 4].try_into().expect("four bytes")) as usize
    }

    /// Fetches a part of the block into the processor's caches: to ask for one line after the
    /// other, each being where the one before says, takes several times as long.
    #[inline]
    fn prefetch(&self, start: usize, end: usize) {
        let end = end.min(self.data().len());
        if let Some(part) = self.data().get(start..end) {
            prefetch(part.as_ptr(), part.len().div_ceil(64));
        }
    }

    #[inline]
    fn slice(&self, start: u32, end: u32) -> &[u8] {
        &self.data()[start as usize..end as usize]
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes, {} restarts)", self.data().len(), self.layout().num_restarts)
    }
}

/// What the cache let go of, and somebody uses still, has memory until nobody does.
pub(super) fn count_in<K>(shared: &SharedPiece<K>, account: &Arc<MemoryAccount>) {
    shared.accompany(|| Box::new(account.hold(MemoryKind::KeptBlocks, shared.capacity())));
}

/// A piece of a block that keeps the block alive: a value without a copy.
#[derive(Debug, Clone)]
pub struct BlockSlice {
    bytes: SharedPiece,
    start: u32,
    end: u32,
}

impl BlockSlice {
    /// A part of it.
    ///
    /// # Panics
    /// If the range leaves it.
    pub fn slice(mut self, range: std::ops::Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len(), "the range leaves the piece");
        // Both are within a block, whose places are 32 bits wide.
        self.end = self.start + range.end as u32;
        self.start += range.start as u32;
        self
    }
}

impl Deref for BlockSlice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start as usize..self.end as usize]
    }
}

impl AsRef<[u8]> for BlockSlice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// A borrowed value, to be copied or pinned.
#[derive(Debug, Clone, Copy)]
pub struct ValueRef<'a> {
    owner: Owner<'a>,
    start: u32,
    end: u32,
}

/// Where a value lies.
#[derive(Debug, Clone, Copy)]
enum Owner<'a> {
    Block(&'a Block),
    /// Memory of its own.
    Piece(&'a SharedPiece),
}

impl<'a> ValueRef<'a> {
    /// The bytes of `block` from `start` to `end`.
    #[inline]
    fn of_block(block: &'a Block, start: u32, end: u32) -> Self {
        Self { owner: Owner::Block(block), start, end }
    }

    /// The bytes of `piece` up to `end`.
    pub(super) fn of_piece(piece: &'a SharedPiece, end: u32) -> Self {
        Self { owner: Owner::Piece(piece), start: 0, end }
    }

    /// The value.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        match self.owner {
            Owner::Block(block) => block.slice(self.start, self.end),
            Owner::Piece(piece) => &piece[self.start as usize..self.end as usize],
        }
    }

    /// The value, kept alive with what it lies in instead of copied.
    #[inline]
    pub fn pin(&self) -> BlockSlice {
        let bytes = match self.owner {
            Owner::Block(block) => block.share_bytes(),
            Owner::Piece(piece) => piece.clone(),
        };
        BlockSlice { bytes, start: self.start, end: self.end }
    }
}

#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod tests;

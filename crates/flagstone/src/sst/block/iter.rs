//! The cursor over a data block: the hottest loop of a read.
//!
//! A seek
//! 1. finds a key below the target near it: by the block's guide, else by bisection over the full
//!    keys at restarts;
//! 2. walks entries from there, in byte order without putting their keys together (`scan`).
//!
//! A key that shares nothing with the one before is used where it lies; others are put together in
//! a buffer.
//!
//! With a global sequence number (ingested files, which store 0 everywhere), keys are put together
//! in the buffer with that number, and 0 is put back before the next key is derived.

mod seek;

use std::cmp::Ordering;

use crate::base::coding::Decoder;
use crate::base::{
    Comparator, Error, InternalKey, KeyBuffer, PACKED_SIZE, PinnedValue, Result, SequenceNumber,
};

use super::trail::Trail;
use super::{Block, Damage, EntryHeader, ValueRef, entry_header};

/// Bit `n` is set if the byte `n` is a value type that data blocks store; range tombstones have a
/// block of their own.
const VALUE_TYPES: u32 =
    1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 0x11 | 1 << 0x14 | 1 << 0x16 | 1 << 0x18;

/// So many entries are few.
const COARSE: usize = 12;

/// How many bytes short scans read.
pub(super) const SCANNED: usize = 1536;

/// A cursor over the entries of one block of internal keys, in the order of a comparator.
#[derive(Debug, Clone)]
pub struct BlockIter {
    block: Block,
    comparator: Comparator,
    global_sequence: Option<SequenceNumber>,
    valid: bool,
    /// What ended the walk.
    damage: Option<Error>,
    /// Where the current entry starts, and where the next one does.
    offset: usize,
    next: usize,
    key_at: KeyAt,
    buffer: KeyBuffer,
    value: (u32, u32),
    pub(super) trail: Trail,
}

#[derive(Debug, Clone, Copy)]
enum KeyAt {
    Block {
        start: u32,
        end: u32,
    },
    Buffer,
    /// The last key of the trail.
    Trail,
}

impl BlockIter {
    /// A cursor that stands nowhere yet.
    pub fn new(
        block: Block,
        comparator: Comparator,
        global_sequence: Option<SequenceNumber>,
    ) -> Self {
        Self {
            block,
            comparator,
            global_sequence,
            valid: false,
            damage: None,
            offset: 0,
            next: 0,
            key_at: KeyAt::Buffer,
            buffer: KeyBuffer::new(),
            value: (0, 0),
            trail: Trail::default(),
        }
    }

    /// Turns to another block of the same table, keeping allocations.
    pub fn reset(&mut self, block: Block) {
        self.block = block;
        self.invalidate();
        self.key_at = KeyAt::Buffer;
        self.trail.clear();
    }

    /// The block.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// Whether the cursor stands on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// The damage that ended the walk, without file and offset.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn status(&self) -> Result<()> {
        self.damage.clone().map_or(Ok(()), Err)
    }

    /// The entry's key; the cursor must be valid.
    #[inline]
    pub fn key(&self) -> InternalKey<'_> {
        debug_assert!(self.valid());
        InternalKey::from_checked(self.raw_key())
    }

    #[inline]
    fn raw_key(&self) -> &[u8] {
        match self.key_at {
            KeyAt::Block { start, end } => self.block.slice(start, end),
            KeyAt::Buffer => self.buffer.as_slice(),
            KeyAt::Trail => self.trail.key(),
        }
    }

    /// The entry's value; the cursor must be valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.block.slice(self.value.0, self.value.1)
    }

    /// The entry's value, to be copied or pinned.
    #[inline]
    pub fn value_ref(&self) -> ValueRef<'_> {
        ValueRef::of_block(&self.block, self.value.0, self.value.1)
    }

    /// The entry's value with the block that it lies in.
    pub fn pin_value(&self) -> PinnedValue {
        PinnedValue::new(self.block.share_bytes(), self.value.0 as usize..self.value.1 as usize)
    }

    /// Shows `visit` the entries behind the current one, as type and value, until it says `false`.
    /// Those of the current user key may be left out, and all where values lie apart; what is
    /// damaged ends it.
    pub fn upcoming(&self, visit: &mut dyn FnMut(u8, &[u8]) -> bool) {
        if self.block.layout().values_offset.is_some() {
            return;
        }
        let entries = &self.block.data()[..self.block.entries_end()];
        let mut at = self.next;
        while let Some(header) = entry_header(entries, at) {
            let key_end = header.suffix as usize + header.non_shared as usize;
            let value_end = key_end + header.value_length as usize;
            let Some(value) = entries.get(key_end..value_end) else { return };
            // The type is the first byte of the sequence number's eight, unless those are shared in
            // part.
            let is_told = header.non_shared as usize >= PACKED_SIZE;
            if is_told && !visit(entries[key_end - PACKED_SIZE], value) {
                return;
            }
            at = value_end;
        }
    }

    fn invalidate(&mut self) {
        self.valid = false;
        self.damage = None;
    }

    /// Moves to the first entry.
    pub fn seek_to_first(&mut self) {
        self.invalidate();
        if !self.block.is_empty() {
            self.run(|iter| iter.step_to(0, true));
        }
    }

    /// Moves to the last entry.
    pub fn seek_to_last(&mut self) {
        self.invalidate();
        if !self.block.is_empty() {
            let end = self.block.entries_end();
            self.block.prefetch_end();
            self.run(|iter| iter.walk_to_before(end));
        }
    }

    /// Whether the block has few entries, to go by the size of the current one.
    #[inline]
    pub fn is_coarse(&self) -> bool {
        self.next.saturating_sub(self.offset) * COARSE >= self.block.entries_end()
    }

    /// Whether about so many steps are left to the end of the block, or to its beginning, to go by
    /// the size of the current entry.
    #[inline]
    pub fn is_near_end(&self, steps: u32, back: bool) -> bool {
        let left =
            if back { self.offset } else { self.block.entries_end().saturating_sub(self.next) };
        left <= steps as usize * self.next.saturating_sub(self.offset)
    }

    /// Moves on; the cursor must be valid.
    #[inline]
    pub fn next(&mut self) {
        debug_assert!(self.valid());
        if self.next >= self.block.entries_end() {
            self.valid = false;
            return;
        }
        let at_restart = self.block.layout().values_offset.is_some() && self.is_restart(self.next);
        self.run(|iter| iter.step_to(iter.next, at_restart));
    }

    /// Moves back; the cursor must be valid.
    #[inline]
    pub fn prev(&mut self) {
        debug_assert!(self.valid());
        let end = self.offset;
        if self.trail.ends_at(end) && self.trail.len() > 1 {
            return self.step_back();
        }
        self.valid = false;
        if end > 0 {
            self.run(|iter| iter.walk_to_before(end));
        }
    }

    /// Moves back along the trail, at whose end the cursor stands; nowhere from its start.
    #[inline]
    fn step_back(&mut self) {
        match self.trail.back() {
            Some(entry) => {
                (self.offset, self.next, self.value) = (entry.offset, entry.next, entry.value);
                self.key_at = KeyAt::Trail;
            }
            None => self.valid = false,
        }
    }

    #[inline]
    fn run(&mut self, walk: impl FnOnce(&mut Self) -> Result<(), Damage>) {
        if walk(self).is_err() {
            self.note_damage();
        }
    }

    #[cold]
    fn note_damage(&mut self) {
        self.valid = false;
        self.damage =
            Some(Error::corruption(format!("bad entry in block at byte {}", self.offset)));
    }

    #[inline]
    fn compare(&self, a: InternalKey<'_>, b: InternalKey<'_>) -> Ordering {
        self.comparator
            .compare(a.user_key(), b.user_key())
            .then_with(|| b.packed().cmp(&a.packed()))
    }

    /// Sequence number and type as they count, given the stored bytes of a whole key.
    #[inline]
    fn effective_packed(&self, stored: u64) -> Result<u64, Damage> {
        match self.global_sequence {
            None => Ok(stored),
            Some(sequence) if stored <= 0xff => Ok(sequence << 8 | stored),
            Some(_) => Err(Damage),
        }
    }

    /// The header of the entry at `offset` and, where values lie apart, the value's offset if it is
    /// noted.
    #[inline]
    fn header(
        &self,
        offset: usize,
        at_restart: bool,
    ) -> Result<(EntryHeader, Option<u32>), Damage> {
        let entries = &self.block.data()[..self.block.entries_end()];
        let mut header = entry_header(entries, offset).ok_or(Damage)?;
        if self.block.layout().values_offset.is_none() || !at_restart {
            return Ok((header, None));
        }
        let mut decoder = Decoder::new(&entries[header.suffix as usize..]);
        let value_offset = decoder.varint32().ok_or(Damage)?;
        header.suffix = (entries.len() - decoder.rest().len()) as u32;
        Ok((header, Some(value_offset)))
    }

    fn is_restart(&self, offset: usize) -> bool {
        let (mut low, mut high) = (0, self.block.layout().num_restarts);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.block.restart(middle).cmp(&offset) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return true,
            }
        }
        false
    }

    /// Stands on the entry at `offset`, which follows the current one unless it is at a restart.
    #[inline]
    fn step_to(&mut self, offset: usize, at_restart: bool) -> Result<(), Damage> {
        self.offset = offset;
        let (header, value_offset) = self.header(offset, at_restart)?;
        self.set_value_and_next(&header, value_offset)?;
        let end = header.suffix as usize + header.non_shared as usize;
        if header.shared == 0 && self.global_sequence.is_none() {
            self.key_at = KeyAt::Block { start: header.suffix, end: end as u32 };
        } else {
            match self.key_at {
                KeyAt::Block { start, end } => self.buffer.splice(0, self.block.slice(start, end)),
                KeyAt::Trail => self.buffer.splice(0, self.trail.key()),
                KeyAt::Buffer => {}
            }
            self.restore_stored_sequence();
            if header.shared as usize > self.buffer.len() || (at_restart && header.shared != 0) {
                return Err(Damage);
            }
            self.buffer
                .splice(header.shared as usize, &self.block.data()[header.suffix as usize..end]);
            self.key_at = KeyAt::Buffer;
        }
        self.check_key()
    }

    /// Checks the current key and gives it the sequence number that counts.
    #[inline]
    fn check_key(&mut self) -> Result<(), Damage> {
        let key = self.raw_key();
        if key.len() < PACKED_SIZE {
            return Err(Damage);
        }
        let value_type = key[key.len() - PACKED_SIZE];
        if value_type > 0x18 || VALUE_TYPES >> value_type & 1 == 0 {
            return Err(Damage);
        }
        if self.global_sequence.is_some() {
            let packed = self.effective_packed(InternalKey::from_checked(key).packed())?;
            let at = self.buffer.len() - PACKED_SIZE;
            self.buffer.as_mut_slice()[at..].copy_from_slice(&packed.to_le_bytes());
        }
        self.valid = true;
        Ok(())
    }

    /// Undoes what [`BlockIter::check_key`] did for a global sequence number.
    #[inline]
    fn restore_stored_sequence(&mut self) {
        if self.global_sequence.is_some() && self.buffer.len() >= PACKED_SIZE {
            let at = self.buffer.len() - PACKED_SIZE + 1;
            self.buffer.as_mut_slice()[at..].fill(0);
        }
    }

    #[inline]
    fn set_value_and_next(
        &mut self,
        header: &EntryHeader,
        value_offset: Option<u32>,
    ) -> Result<(), Damage> {
        let key_end = header.suffix as usize + header.non_shared as usize;
        let length = header.value_length as usize;
        let entries_end = self.block.entries_end();
        let Some(values) = self.block.layout().values_offset else {
            let next = key_end + length;
            if next > entries_end {
                return Err(Damage);
            }
            self.value = (key_end as u32, next as u32);
            self.next = next;
            return Ok(());
        };
        let start =
            value_offset.map_or(self.value.1 as usize, |offset| values as usize + offset as usize);
        let end = start + length;
        if key_end > entries_end
            || end > self.block.layout().restarts_offset as usize
            || start < values as usize
        {
            return Err(Damage);
        }
        self.value = (start as u32, end as u32);
        self.next = key_end;
        Ok(())
    }

    /// Stands on the entry that ends at `end`.
    fn walk_to_before(&mut self, end: usize) -> Result<(), Damage> {
        let (mut low, mut high) = (0, self.block.layout().num_restarts - 1);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.block.restart(middle) < end {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let start = self.block.restart(low);
        if start >= end {
            return Err(Damage);
        }
        self.step_to(start, true)?;
        self.trail.clear();
        let mut is_left = self.leave_trail();
        while self.next < end {
            self.step_to(self.next, false)?;
            is_left = is_left && self.leave_trail();
        }
        if self.next == end { Ok(()) } else { Err(Damage) }
    }

    /// Adds the current entry to the trail, or gives that up; whether it has.
    #[inline]
    fn leave_trail(&mut self) -> bool {
        let key = match self.key_at {
            KeyAt::Block { start, end } => self.block.slice(start, end),
            _ => self.buffer.as_slice(),
        };
        if self.trail.is_full_for(key.len()) {
            self.trail.clear();
            return false;
        }
        self.trail.push(key, self.offset, self.next, self.value);
        true
    }
}

//! An entry in an arena, as every index holds it.
//!
//! ```text
//! record = key size u32, value size u32, internal key, value
//! ```
//!
//! **Invariants**
//! 1. A record never moves and never changes from when [`Record::write_to`] has returned until its
//!    arena is dropped.
//! 2. A `Record<'a>` exists only while its arena is borrowed for `'a`, or kept alive for as long.
#![expect(unsafe_code, reason = "records in an arena, reached by pointers")]

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

use super::arena::{ALIGNMENT, Allocate, Arena};
use crate::base::{InternalKey, PACKED_SIZE, prefetch};

/// Bytes of a record that are fetched when it is near.
const FRONT: usize = 2 * 64;
/// Of a long one the processor fetches the rest by itself, once it sees that one line after the
/// other is wanted.
const FETCHED_MAX: usize = 1 << 10;

/// What stands before a record's key and value.
#[repr(C)]
pub(super) struct RecordHeader {
    key_size: u32,
    value_size: u32,
}

/// What becomes a record.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) user_key: &'a [u8],
    pub(super) packed: u64,
    pub(super) value: &'a [u8],
}

impl Entry<'_> {
    /// Bytes of the record.
    #[inline]
    pub(super) fn record_size(&self) -> usize {
        size_of::<RecordHeader>() + self.user_key.len() + PACKED_SIZE + self.value.len()
    }
}

/// An entry; see invariant 2.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    at: NonNull<RecordHeader>,
    arena: PhantomData<&'a Arena>,
}

impl<'a> Record<'a> {
    /// Puts a record into the arena.
    ///
    /// # Panics
    /// If key or value is 4 GiB or longer.
    #[inline]
    pub(super) fn create(arena: &mut impl Allocate, entry: &Entry<'_>) -> NonNull<RecordHeader> {
        const { assert!(align_of::<RecordHeader>() <= ALIGNMENT) };
        let at = arena.allocate(entry.record_size()).cast();
        // SAFETY: the piece is that large and aligned, and nobody else knows it yet.
        unsafe { Self::write_to(at, entry) };
        at
    }

    /// Makes a record.
    ///
    /// # Panics
    /// If key or value is 4 GiB or longer.
    ///
    /// # Safety
    /// At `at` there must be [`Entry::record_size`] bytes, aligned for the header, that nobody else
    /// knows yet.
    #[inline]
    pub(super) unsafe fn write_to(at: NonNull<RecordHeader>, entry: &Entry<'_>) {
        let Entry { user_key, packed, value } = *entry;
        let header = RecordHeader {
            key_size: u32::try_from(user_key.len() + PACKED_SIZE)
                .expect("a key is shorter than 4 GiB"),
            value_size: u32::try_from(value.len()).expect("a value is shorter than 4 GiB"),
        };
        // SAFETY: the caller's promise; the parts add up to `record_size`.
        unsafe {
            at.write(header);
            let key = at.add(1).cast::<u8>().as_ptr();
            ptr::copy_nonoverlapping(user_key.as_ptr(), key, user_key.len());
            let number = key.add(user_key.len());
            ptr::copy_nonoverlapping(packed.to_le_bytes().as_ptr(), number, PACKED_SIZE);
            ptr::copy_nonoverlapping(value.as_ptr(), number.add(PACKED_SIZE), value.len());
        }
    }

    /// # Safety
    /// A record must have been made there, and invariant 2 must hold.
    #[inline]
    pub(super) unsafe fn new(at: NonNull<RecordHeader>) -> Self {
        Self { at, arena: PhantomData }
    }

    #[inline]
    pub(super) fn pointer(self) -> NonNull<RecordHeader> {
        self.at
    }

    #[inline]
    fn header(self) -> &'a RecordHeader {
        // SAFETY: invariants 1 and 2.
        unsafe { self.at.as_ref() }
    }

    #[inline]
    pub(super) fn key(self) -> InternalKey<'a> {
        let size = self.header().key_size as usize;
        // SAFETY: `key_size` bytes follow the header, and never change.
        InternalKey::from_checked(unsafe {
            slice::from_raw_parts(self.at.add(1).cast().as_ptr(), size)
        })
    }

    #[inline]
    pub(super) fn user_key(self) -> &'a [u8] {
        self.key().user_key()
    }

    #[inline]
    pub(super) fn value(self) -> &'a [u8] {
        let header = self.header();
        // SAFETY: `value_size` bytes follow the key, and never change.
        unsafe {
            let value = self.at.add(1).cast::<u8>().add(header.key_size as usize);
            slice::from_raw_parts(value.as_ptr(), header.value_size as usize)
        }
    }

    /// Asks the processor to fetch the key and the front of the value.
    #[inline]
    pub(super) fn prefetch(self) {
        prefetch(self.at.as_ptr(), FRONT / 64);
    }

    /// Asks for more of the value, where [`Record::prefetch`] was not all. The front should be
    /// there by now, as it says how much.
    #[inline]
    pub(super) fn prefetch_rest(self) {
        let RecordHeader { key_size, value_size } = *self.header();
        let size = size_of::<RecordHeader>() + key_size as usize + value_size as usize;
        if size > FRONT {
            let front_end = self.at.as_ptr().cast::<u8>().wrapping_add(FRONT);
            prefetch(front_end, (size.min(FETCHED_MAX) - FRONT) / 64 + 1);
        }
    }
}

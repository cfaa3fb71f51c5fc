//! Pointers to records in the order in which they were added.
//!
//! ```text
//! log     = segment, segment, ...           each twice as large as the one before, up to a limit
//! segment = next segment, capacity, records [capacity]
//! ```
//!
//! **Thread safety.** One writer at a time, which holds the arena's lock; any number of readers.
//! The writer stores a pointer (and the link to a new segment) first and then `count`, with release
//! order. A reader loads `count` with acquire order and touches nothing beyond it.
//!
//! **Invariants**
//! 1. Segments and records lie in one arena, and are not moved or freed before it is dropped.
//! 2. A log is dropped before its arena, or with it; a `Record<'a>` is made only while the log is
//!    borrowed for `'a`.
#![expect(unsafe_code, reason = "segments in an arena, linked by atomic pointers")]

use std::ptr::{self, NonNull};

use crate::base::sync::{AtomicPtr, AtomicUsize, Ordering};
use crate::memtable::arena::{ALIGNMENT, Allocate, Arena};
use crate::memtable::record::{Record, RecordHeader};

const FIRST_CAPACITY: usize = 8;
const CAPACITY_MAX: usize = if cfg!(any(miri, feature = "shuttle")) { 16 } else { 1 << 12 };

/// What stands before a segment's pointers.
#[repr(C)]
struct Segment {
    next: AtomicPtr<Segment>,
    capacity: usize,
}

type Slot = AtomicPtr<RecordHeader>;

const _: () =
    assert!(align_of::<Segment>() <= ALIGNMENT && align_of::<Slot>() <= align_of::<Segment>());

/// A place between two entries.
#[derive(Clone, Copy)]
pub(super) struct Position {
    segment: NonNull<Segment>,
    /// Entries of the segment before this place.
    within: usize,
    /// Entries of the log before this place.
    pub(super) before: usize,
}

pub(super) struct Log {
    first: NonNull<Segment>,
    count: AtomicUsize,
}

// SAFETY: see "Thread safety" above.
unsafe impl Send for Log {}
// SAFETY: the same.
unsafe impl Sync for Log {}
// SAFETY: a position is used with its log only.
unsafe impl Send for Position {}
// SAFETY: the same; it does not change.
unsafe impl Sync for Position {}

fn new_segment(arena: &mut Arena, capacity: usize) -> NonNull<Segment> {
    let at = arena.allocate(size_of::<Segment>() + capacity * size_of::<Slot>()).cast::<Segment>();
    // SAFETY: the piece is that large and aligned, and nobody else knows it yet.
    unsafe {
        at.write(Segment { next: AtomicPtr::new(ptr::null_mut()), capacity });
        let slots = at.add(1).cast::<Slot>();
        for index in 0..capacity {
            slots.add(index).write(Slot::new(ptr::null_mut()));
        }
    }
    at
}

impl Position {
    /// # Safety
    /// The position's log must be alive for `'a`.
    #[inline]
    unsafe fn segment<'a>(self) -> &'a Segment {
        // SAFETY: invariant 1.
        unsafe { self.segment.as_ref() }
    }

    /// The slot after this place, which the segment must have.
    ///
    /// # Safety
    /// As for [`Position::segment`].
    #[inline]
    unsafe fn slot<'a>(self) -> &'a Slot {
        // SAFETY: the slots were made with the segment, and there are more than `within`.
        unsafe {
            debug_assert!(self.within < self.segment().capacity);
            self.segment.add(1).cast::<Slot>().add(self.within).as_ref()
        }
    }
}

impl Log {
    pub(super) fn new(arena: &mut Arena) -> Self {
        Self { first: new_segment(arena, FIRST_CAPACITY), count: AtomicUsize::new(0) }
    }

    pub(super) fn first(&self) -> Position {
        Position { segment: self.first, within: 0, before: 0 }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Adds a record of the log's arena at its end; the caller is the one writer.
    #[inline]
    pub(super) fn push(
        &self,
        arena: &mut Arena,
        end: &mut Position,
        record: NonNull<RecordHeader>,
    ) {
        // SAFETY: the log is borrowed.
        let segment = unsafe { end.segment() };
        if end.within == segment.capacity {
            let next = new_segment(arena, (segment.capacity * 2).min(CAPACITY_MAX));
            segment.next.store(next.as_ptr(), Ordering::Release);
            (end.segment, end.within) = (next, 0);
        }
        // SAFETY: the log is borrowed, and the segment has room.
        unsafe { end.slot() }.store(record.as_ptr(), Ordering::Release);
        end.within += 1;
        end.before += 1;
        self.count.store(end.before, Ordering::Release);
    }

    /// The records between `from` and the first `count`, which the log must have.
    pub(super) fn read(&self, from: Position, count: usize) -> Reader<'_> {
        debug_assert!(from.before <= count && count <= self.count());
        Reader { _log: self, at: from, count }
    }
}

/// Walks over a part of a log.
pub(super) struct Reader<'a> {
    _log: &'a Log,
    at: Position,
    count: usize,
}

impl Reader<'_> {
    /// Where the walk has come to.
    pub(super) fn position(&self) -> Position {
        self.at
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        if self.at.before == self.count {
            return None;
        }
        // SAFETY: the log is borrowed for `'a`.
        let segment = unsafe { self.at.segment() };
        if self.at.within == segment.capacity {
            let next = NonNull::new(segment.next.load(Ordering::Acquire));
            (self.at.segment, self.at.within) = (next.expect("more entries follow"), 0);
        }
        // SAFETY: as above; below `count` there is a next segment when one is full, and it has
        // room.
        let record = unsafe { self.at.slot() }.load(Ordering::Acquire);
        self.at.within += 1;
        self.at.before += 1;
        let record = NonNull::new(record).expect("it was stored before the count");
        // SAFETY: invariants 1 and 2.
        Some(unsafe { Record::new(record) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.count - self.at.before;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Reader<'_> {}

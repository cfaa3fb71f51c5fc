//! Segmented LRU, in both forms.
//!
//! Segments are numbered from the bottom. A new entry goes to the front of segment 0; one that is
//! hit, to the front of the segment above its own (in the top one, to that one's front). While an
//! upper segment's charge exceeds its part of the capacity, its last entry moves to the front of
//! the segment below. What leaves the cache is the last entry of segment 0. The forms differ in how
//! much segment 0 may hold:
//!
//! - `slru` (Karedla, Love, Wherry: "Caching strategies to improve disk system performance", 1994)
//!   has two segments. The upper, protected one has 80% of the capacity at most; the lower one has
//!   all that the upper one leaves, so that the cache is full before anything leaves it.
//! - `s4lru` (Huang et al.: "An analysis of Facebook photo caching", SOSP 2013) has four, each with
//!   a quarter of the capacity and no more: what was never hit has a quarter, even if the others
//!   are empty. An entry larger than a quarter does not come in.
//!
//! With entries of different sizes a hit can push more down into segment 0 of `s4lru` than it took
//! out; what is too much then leaves before the next entry comes in.

use super::list::Lists;
use super::{Incoming, Policy, part};

const SEGMENTS_MAX: usize = 4;
/// The protected segment's part of an `slru`, in percent.
const PROTECTED_PERCENT: u64 = 80;

/// Segmented LRU.
#[derive(Debug)]
pub struct Segmented {
    segments: Lists<SEGMENTS_MAX>,
    top: usize,
    /// Whether segment 0 is bounded for itself.
    strict: bool,
    /// What segments above 0 may hold each, and segment 0 if `strict`.
    segment_capacity: u64,
    capacity: u64,
}

impl Segmented {
    /// Two segments, the lower one with what the upper one leaves.
    pub fn slru() -> Self {
        Self::new(2, false)
    }

    /// Four quarters.
    pub fn s4lru() -> Self {
        Self::new(SEGMENTS_MAX, true)
    }

    fn new(segments: usize, strict: bool) -> Self {
        Self {
            segments: Lists::default(),
            top: segments - 1,
            strict,
            segment_capacity: 0,
            capacity: 0,
        }
    }

    /// Moves down what is too much, from this segment on.
    #[inline]
    fn spill(&mut self, from: usize) {
        for segment in (1..=from).rev() {
            while self.segments.charge(segment) > self.segment_capacity
                && let Some(slot) = self.segments.oldest(segment)
            {
                self.segments.shift(slot, segment - 1);
            }
        }
    }
}

impl Policy for Segmented {
    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.segment_capacity =
            if self.strict { part(capacity, 1, 4) } else { part(capacity, PROTECTED_PERCENT, 100) };
        self.spill(self.top);
    }

    fn largest(&self) -> u64 {
        if self.strict { self.segment_capacity } else { self.capacity }
    }

    #[inline]
    fn inserted(&mut self, slot: u32, entry: Incoming) {
        self.segments.push(0, slot, entry);
    }

    #[inline]
    fn hit(&mut self, slot: u32) {
        let above = (self.segments.list_of(slot) + 1).min(self.top);
        self.segments.shift(slot, above);
        self.spill(above);
    }

    #[inline]
    fn evict(&mut self, incoming: u64) -> Option<u32> {
        let (used, limit) = if self.strict {
            (self.segments.charge(0), self.segment_capacity)
        } else {
            (self.segments.total(), self.capacity)
        };
        if used + incoming <= limit {
            return None;
        }
        (0..=self.top).find_map(|segment| self.segments.pop(segment))
    }

    fn memory(&self) -> u64 {
        self.segments.memory()
    }

    fn removed(&mut self, slot: u32) {
        self.segments.unlink(slot);
    }
}

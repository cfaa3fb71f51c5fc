//! W-TinyLFU: Einziger, Friedman, Manes: "TinyLFU: a highly efficient cache admission policy", ACM
//! TOS 2017, section 4.
//!
//! 1. A window, LRU, has a hundredth of the capacity; the main part, an `slru` (`segmented.rs`) of
//!    which 80% are protected, the rest. Every use of an entry is counted in a sketch
//!    (`sketch.rs`), also its coming in.
//! 2. A new entry goes into the window. What the window has no room for, oldest first, goes on to
//!    the main part's lower segment. The newest entry stays in the window even if it is larger.
//! 3. Once the cache is full, the window's last entry competes with the main part's victim: the one
//!    used more often lately stays, and if they are equal, the one that is in the main part.
//!
//! The paper's doorkeeper (a Bloom filter before the sketch, to make it smaller) is left out, as in
//! Caffeine.

use super::list::Lists;
use super::sketch::Sketch;
use super::{Incoming, Policy, part};

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// W-TinyLFU.
#[derive(Debug, Default)]
pub struct TinyLfu {
    segments: Lists<3>,
    sketch: Sketch,
    entries: usize,
    window_capacity: u64,
    protected_capacity: u64,
    capacity: u64,
}

impl TinyLfu {
    fn spill_window(&mut self) {
        while self.segments.charge(WINDOW) > self.window_capacity
            && !self.segments.is_single(WINDOW)
            && let Some(slot) = self.segments.oldest(WINDOW)
        {
            self.segments.shift(slot, PROBATION);
        }
    }

    fn spill_protected(&mut self) {
        while self.segments.charge(PROTECTED) > self.protected_capacity
            && let Some(slot) = self.segments.oldest(PROTECTED)
        {
            self.segments.shift(slot, PROBATION);
        }
    }

    #[inline]
    fn frequency(&self, slot: u32) -> u64 {
        self.sketch.frequency(self.segments.id(slot))
    }

    /// Step 3.
    fn victim(&self, incoming: u64) -> Option<u32> {
        let main = self.segments.oldest(PROBATION).or_else(|| self.segments.oldest(PROTECTED));
        let is_full = self.segments.charge(WINDOW) + incoming > self.window_capacity;
        match (main, self.segments.oldest(WINDOW).filter(|_| is_full || main.is_none())) {
            (Some(main), Some(candidate)) if self.frequency(candidate) > self.frequency(main) => {
                Some(main)
            }
            (main, candidate) => candidate.or(main),
        }
    }
}

impl Policy for TinyLfu {
    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.window_capacity = part(capacity, 1, 100).max(1);
        self.protected_capacity = part(capacity.saturating_sub(self.window_capacity), 80, 100);
        self.spill_protected();
        self.spill_window();
    }

    fn largest(&self) -> u64 {
        self.capacity
    }

    #[inline]
    fn inserted(&mut self, slot: u32, entry: Incoming) {
        self.entries += 1;
        self.sketch.make_room(self.entries);
        self.sketch.count(entry.id, self.entries);
        self.segments.push(WINDOW, slot, entry);
        self.spill_window();
    }

    #[inline]
    fn hit(&mut self, slot: u32) {
        self.sketch.count(self.segments.id(slot), self.entries);
        match self.segments.list_of(slot) {
            WINDOW => self.segments.shift(slot, WINDOW),
            _ => {
                self.segments.shift(slot, PROTECTED);
                self.spill_protected();
            }
        }
    }

    #[inline]
    fn evict(&mut self, incoming: u64) -> Option<u32> {
        if self.segments.total() + incoming <= self.capacity {
            return None;
        }
        let slot = self.victim(incoming)?;
        self.removed(slot);
        Some(slot)
    }

    fn memory(&self) -> u64 {
        self.segments.memory() + self.sketch.memory()
    }

    fn removed(&mut self, slot: u32) {
        self.entries -= 1;
        self.segments.unlink(slot);
        self.sketch.fit(self.entries);
    }
}

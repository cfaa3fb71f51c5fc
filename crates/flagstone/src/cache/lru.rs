//! Least recently used, with RocksDB's division into a high- and a low-priority pool.
//!
//! 1. A new entry of high priority, and any entry that is hit, goes to the front of the high pool; a new one of low
//!    priority to the front of the low pool.
//! 2. While the high pool's charge exceeds its part of the capacity, its last entry moves to the front of the low pool.
//! 3. The victim is the last entry of the low pool; of the high pool only if the low one is empty.
//!
//! So a scan that touches everything once flushes the low pool, not what was used twice. With a ratio of zero there is
//! one pool, and this is plain LRU.
//!
//! The structure knows entries by slot numbers only, which the shard chooses; a doubly linked list of slots per pool.

use super::Priority;

/// No slot.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Links {
    newer: u32,
    older: u32,
    charge: usize,
    high: bool,
}

/// One pool, as a list.
#[derive(Debug)]
struct Pool {
    newest: u32,
    oldest: u32,
    charge: usize,
}

impl Pool {
    const EMPTY: Self = Self { newest: NONE, oldest: NONE, charge: 0 };
}

/// The order in which entries go.
#[derive(Debug)]
pub(super) struct Lru {
    links: Vec<Links>,
    low: Pool,
    high: Pool,
    high_ratio: f64,
    high_capacity: usize,
}

impl Lru {
    /// Without entries; `high_ratio` is the high pool's part of the capacity.
    pub(super) fn new(high_ratio: f64) -> Self {
        Self { links: Vec::new(), low: Pool::EMPTY, high: Pool::EMPTY, high_ratio, high_capacity: 0 }
    }

    /// The shard's capacity has changed.
    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.high_capacity = (capacity as f64 * self.high_ratio) as usize;
        self.spill();
    }

    /// An entry has come into a slot that had none.
    pub(super) fn inserted(&mut self, slot: u32, charge: usize, priority: Priority) {
        let links = Links { newer: NONE, older: NONE, charge, high: false };
        match self.links.get_mut(slot as usize) {
            Some(free) => *free = links,
            None => self.links.push(links),
        }
        debug_assert!((slot as usize) < self.links.len(), "slots are used from the first");
        self.push(slot, priority == Priority::High && self.high_ratio > 0.0);
        self.spill();
    }

    /// An entry has been used.
    #[inline]
    pub(super) fn hit(&mut self, slot: u32) {
        if self.high.newest == slot {
            return;
        }
        self.unlink(slot);
        self.push(slot, self.high_ratio > 0.0);
        self.spill();
    }

    /// An entry has left.
    pub(super) fn removed(&mut self, slot: u32) {
        self.unlink(slot);
    }

    /// The entry that should go next; it stays until [`Lru::removed`].
    pub(super) fn victim(&self) -> Option<u32> {
        [self.low.oldest, self.high.oldest].into_iter().find(|&slot| slot != NONE)
    }

    /// Step 2.
    #[inline]
    fn spill(&mut self) {
        while self.high.charge > self.high_capacity {
            let slot = self.high.oldest;
            self.unlink(slot);
            self.push(slot, false);
        }
    }

    fn pool(&mut self, high: bool) -> &mut Pool {
        if high { &mut self.high } else { &mut self.low }
    }

    #[inline]
    fn push(&mut self, slot: u32, high: bool) {
        let charge = self.links[slot as usize].charge;
        let pool = self.pool(high);
        pool.charge += charge;
        let older = std::mem::replace(&mut pool.newest, slot);
        if older == NONE {
            pool.oldest = slot;
        } else {
            self.links[older as usize].newer = slot;
        }
        self.links[slot as usize] = Links { newer: NONE, older, charge, high };
    }

    #[inline]
    fn unlink(&mut self, slot: u32) {
        let Links { newer, older, charge, high } = self.links[slot as usize];
        if newer != NONE {
            self.links[newer as usize].older = older;
        }
        if older != NONE {
            self.links[older as usize].newer = newer;
        }
        let pool = self.pool(high);
        pool.charge -= charge;
        if newer == NONE {
            pool.newest = older;
        }
        if older == NONE {
            pool.oldest = newer;
        }
    }
}

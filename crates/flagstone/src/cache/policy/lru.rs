//! Least recently used, with RocksDB's division into a high- and a low-priority pool.
//!
//! 1. A new entry of high priority, and any entry that is hit, goes to the front of the high pool;
//!    a new one of low priority to the front of the low pool.
//! 2. While the high pool's charge exceeds its part of the capacity, its last entry moves to the
//!    front of the low pool.
//! 3. The victim is the last entry of the low pool; of the high pool only if the low one is empty.
//!
//! So a scan that touches everything once flushes the low pool, not what was used twice. With a
//! ratio of zero there is one pool, and this is plain LRU.

use super::list::Lists;
use super::{Incoming, Policy, Priority};

const LOW: usize = 0;
const HIGH: usize = 1;

/// Least recently used.
#[derive(Debug)]
pub struct Lru {
    pools: Lists<2>,
    high_ratio: f64,
    high_capacity: u64,
    capacity: u64,
}

impl Lru {
    /// Without entries; `high_ratio`, from 0 to 1, is the high pool's part of the capacity.
    pub fn new(high_ratio: f64) -> Self {
        Self { pools: Lists::default(), high_ratio, high_capacity: 0, capacity: 0 }
    }

    /// Step 2.
    #[inline]
    fn spill(&mut self) {
        while self.pools.charge(HIGH) > self.high_capacity
            && let Some(slot) = self.pools.oldest(HIGH)
        {
            self.pools.shift(slot, LOW);
        }
    }
}

impl Policy for Lru {
    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.high_capacity = (capacity as f64 * self.high_ratio) as u64;
        self.spill();
    }

    fn largest(&self) -> u64 {
        self.capacity
    }

    #[inline]
    fn inserted(&mut self, slot: u32, entry: Incoming) {
        let high = entry.priority == Priority::High && self.high_ratio > 0.0;
        self.pools.push(if high { HIGH } else { LOW }, slot, entry);
        self.spill();
    }

    #[inline]
    fn hit(&mut self, slot: u32) {
        self.pools.shift(slot, if self.high_ratio > 0.0 { HIGH } else { LOW });
        self.spill();
    }

    #[inline]
    fn evict(&mut self, incoming: u64) -> Option<u32> {
        if self.pools.total() + incoming <= self.capacity {
            return None;
        }
        self.pools.pop(LOW).or_else(|| self.pools.pop(HIGH))
    }

    fn memory(&self) -> u64 {
        self.pools.memory()
    }

    fn removed(&mut self, slot: u32) {
        self.pools.unlink(slot);
    }
}

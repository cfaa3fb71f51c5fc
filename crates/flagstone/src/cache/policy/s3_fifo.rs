//! S3-FIFO: Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you need for cache eviction", SOSP
//! 2023, Algorithm 1.
//!
//! 1. Three queues: S, small, a tenth of the capacity; M, main, the rest; G, of ghosts, which
//!    remembers as much as M holds.
//! 2. A hit raises the entry's frequency, to three at most, and moves nothing.
//! 3. A new entry goes into M if G remembers it, else into S, with frequency zero.
//! 4. To evict: from S if S has its tenth or more, else from M; from the other if that one is
//!    empty.
//! 5. From S, oldest first: an entry with a frequency above one moves to M, where it begins at
//!    zero; the first other one is the victim, and G remembers it.
//! 6. From M, oldest first: an entry with a frequency above zero goes to the front again, with one
//!    less; the first other one is the victim.
//!
//! Where moves of step 5 make M larger than its part, the next eviction is from M, as in the
//! authors' implementation (libCacheSim), rather than within step 5, as in their listing.

use super::ghost::{Ghosts, HashedGhosts};
use super::list::Lists;
use super::{Incoming, Policy, at_slot, memory_of, part};

const SMALL: usize = 0;
const MAIN: usize = 1;
const FREQUENCY_MAX: u8 = 3;

/// S3-FIFO.
#[derive(Debug, Default)]
pub struct S3Fifo<G = HashedGhosts> {
    queues: Lists<2>,
    frequency: Vec<u8>,
    ghosts: G,
    small_capacity: u64,
    capacity: u64,
}

impl<G: Ghosts> S3Fifo<G> {
    /// Step 5; `None` if all of S has moved to M.
    fn evict_small(&mut self) -> Option<u32> {
        while let Some(slot) = self.queues.oldest(SMALL) {
            if self.frequency[slot as usize] <= 1 {
                let charge = self.queues.unlink(slot);
                self.ghosts.push(self.queues.id(slot), charge);
                return Some(slot);
            }
            self.frequency[slot as usize] = 0;
            self.queues.shift(slot, MAIN);
        }
        None
    }

    /// Step 6.
    fn evict_main(&mut self) -> Option<u32> {
        while let Some(slot) = self.queues.oldest(MAIN) {
            let frequency = &mut self.frequency[slot as usize];
            if *frequency == 0 {
                self.queues.unlink(slot);
                return Some(slot);
            }
            *frequency -= 1;
            self.queues.shift(slot, MAIN);
        }
        None
    }
}

impl<G: Ghosts> Policy for S3Fifo<G> {
    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.small_capacity = part(capacity, 1, 10);
        self.ghosts.set_capacity(capacity - self.small_capacity);
    }

    fn largest(&self) -> u64 {
        self.capacity
    }

    #[inline]
    fn inserted(&mut self, slot: u32, entry: Incoming) {
        let queue = if self.ghosts.take(entry.id) { MAIN } else { SMALL };
        self.queues.push(queue, slot, entry);
        *at_slot(&mut self.frequency, slot, 0) = 0;
    }

    #[inline]
    fn hit(&mut self, slot: u32) {
        let frequency = &mut self.frequency[slot as usize];
        if *frequency < FREQUENCY_MAX {
            *frequency += 1;
        }
    }

    #[inline]
    fn evict(&mut self, incoming: u64) -> Option<u32> {
        if self.queues.total() + incoming <= self.capacity {
            return None;
        }
        let small_first = self.queues.charge(SMALL) >= self.small_capacity;
        let victim = if small_first { self.evict_small() } else { None };
        victim.or_else(|| self.evict_main()).or_else(|| self.evict_small())
    }

    fn memory(&self) -> u64 {
        self.queues.memory() + memory_of(&self.frequency) + self.ghosts.memory()
    }

    #[inline]
    fn touch(&self, id: u64) {
        self.ghosts.touch(id);
    }

    fn removed(&mut self, slot: u32) {
        self.queues.unlink(slot);
    }
}

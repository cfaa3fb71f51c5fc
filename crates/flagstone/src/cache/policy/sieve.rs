//! SIEVE: Zhang, Yang, Yue, Vigfusson, Rashmi: "SIEVE is simpler than LRU", NSDI 2024, Algorithm 1.
//!
//! 1. One queue. A new entry goes to its front, not visited; a hit marks its entry as visited and
//!    moves nothing.
//! 2. A hand goes from the back of the queue to its front and then from the back again. To evict,
//!    it starts where it stopped last, takes the mark from visited entries, and stops beyond the
//!    first one that has none: the victim.

use super::list::Lists;
use super::{Incoming, Policy, at_slot, memory_of};

const QUEUE: usize = 0;

/// SIEVE.
#[derive(Debug, Default)]
pub struct Sieve {
    queue: Lists<1>,
    visited: Vec<bool>,
    hand: Option<u32>,
    capacity: u64,
}

impl Sieve {
    /// Takes a slot out; the hand never rests on a slot that is not in the queue.
    #[inline]
    fn unlink(&mut self, slot: u32) {
        if self.hand == Some(slot) {
            self.hand = self.queue.newer(slot);
        }
        self.queue.unlink(slot);
    }
}

impl Policy for Sieve {
    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    fn largest(&self) -> u64 {
        self.capacity
    }

    #[inline]
    fn inserted(&mut self, slot: u32, entry: Incoming) {
        self.queue.push(QUEUE, slot, entry);
        *at_slot(&mut self.visited, slot, false) = false;
    }

    #[inline]
    fn hit(&mut self, slot: u32) {
        self.visited[slot as usize] = true;
    }

    #[inline]
    fn evict(&mut self, incoming: u64) -> Option<u32> {
        if self.queue.total() + incoming <= self.capacity {
            return None;
        }
        let mut slot = self.hand.or_else(|| self.queue.oldest(QUEUE))?;
        while std::mem::take(&mut self.visited[slot as usize]) {
            slot = self.queue.newer(slot).or_else(|| self.queue.oldest(QUEUE))?;
        }
        self.hand = Some(slot);
        self.unlink(slot);
        Some(slot)
    }

    fn memory(&self) -> u64 {
        self.queue.memory() + memory_of(&self.visited)
    }

    fn removed(&mut self, slot: u32) {
        self.unlink(slot);
    }
}

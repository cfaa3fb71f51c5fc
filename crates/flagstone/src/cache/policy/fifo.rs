//! First in, first out: a hit changes nothing.

use super::list::Lists;
use super::{Incoming, Policy};

const QUEUE: usize = 0;

/// First in, first out.
#[derive(Debug, Default)]
pub struct Fifo {
    queue: Lists<1>,
    capacity: u64,
}

impl Policy for Fifo {
    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    fn largest(&self) -> u64 {
        self.capacity
    }

    #[inline]
    fn inserted(&mut self, slot: u32, entry: Incoming) {
        self.queue.push(QUEUE, slot, entry);
    }

    #[inline]
    fn hit(&mut self, _slot: u32) {}

    #[inline]
    fn evict(&mut self, incoming: u64) -> Option<u32> {
        if self.queue.total() + incoming <= self.capacity {
            return None;
        }
        self.queue.pop(QUEUE)
    }

    fn memory(&self) -> u64 {
        self.queue.memory()
    }

    fn removed(&mut self, slot: u32) {
        self.queue.unlink(slot);
    }
}

//! Least frequently used.
//!
//! An entry's frequency is how often it was used since it came in, that time included; it is
//! forgotten when the entry leaves. The victim is, of the least frequent, the one used longest ago.
//! (Shah, Mitra, Matani: "An O(1) algorithm for implementing the LFU cache eviction scheme", 2010,
//! has the same order; an ordered set stands here for its lists.)

use std::collections::BTreeSet;

use super::{FEW_SLOTS, Incoming, Policy, at_slot, memory_of};

#[derive(Debug, Clone, Copy, Default)]
struct Use {
    frequency: u64,
    /// The number of the last use among all uses.
    last: u64,
    charge: u64,
}

/// Least frequently used.
#[derive(Debug, Default)]
pub struct Lfu {
    order: BTreeSet<(u64, u64, u32)>,
    uses: Vec<Use>,
    count: u64,
    used: u64,
    capacity: u64,
}

impl Lfu {
    fn use_once_more(&mut self, slot: u32, seen: Use) {
        self.count += 1;
        let seen = Use { frequency: seen.frequency + 1, last: self.count, ..seen };
        *at_slot(&mut self.uses, slot, Use::default()) = seen;
        self.order.insert((seen.frequency, seen.last, slot));
    }

    fn take(&mut self, slot: u32) -> Use {
        let seen = self.uses[slot as usize];
        self.order.remove(&(seen.frequency, seen.last, slot));
        seen
    }
}

impl Policy for Lfu {
    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    fn largest(&self) -> u64 {
        self.capacity
    }

    fn inserted(&mut self, slot: u32, entry: Incoming) {
        self.used += entry.charge;
        self.use_once_more(slot, Use { charge: entry.charge, ..Use::default() });
    }

    fn hit(&mut self, slot: u32) {
        let seen = self.take(slot);
        self.use_once_more(slot, seen);
    }

    fn evict(&mut self, incoming: u64) -> Option<u32> {
        if self.used + incoming <= self.capacity {
            return None;
        }
        let (_, _, slot) = self.order.pop_first()?;
        self.used -= self.uses[slot as usize].charge;
        Some(slot)
    }

    fn memory(&self) -> u64 {
        // In its nodes there is room for a half more, about.
        let ordered =
            self.order.len().saturating_sub(FEW_SLOTS) * size_of::<(u64, u64, u32)>() * 3 / 2;
        memory_of(&self.uses) + ordered as u64
    }

    fn removed(&mut self, slot: u32) {
        self.used -= self.take(slot).charge;
    }
}

//! A part of a cache: entries in a slab, found through a hash table, in the order of a policy.
//!
//! The table has one slot number per bucket, the head of a chain that runs through the entries; it doubles when there
//! are as many entries as buckets. Freed slots are used again, last freed first, so that slot numbers stay dense.

use super::policy::{Incoming, Policy};
use super::{CacheKey, CacheStatistics, Priority};

/// No slot.
const NONE: u32 = u32::MAX;

const MIN_BUCKETS: usize = 16;

struct Entry<V> {
    key: CacheKey,
    /// `None` in a free slot.
    value: Option<V>,
    charge: usize,
    /// The low half of the key's hash, for growing the table and for comparing before the key is.
    hash: u32,
    /// The next slot of the bucket.
    next: u32,
}

/// A cache without locks.
pub(super) struct Shard<V> {
    buckets: Vec<u32>,
    entries: Vec<Entry<V>>,
    free: Vec<u32>,
    policy: Box<dyn Policy + Send>,
    usage: usize,
    statistics: CacheStatistics,
}

impl<V> Shard<V> {
    /// Empty, and without capacity.
    pub(super) fn new(policy: Box<dyn Policy + Send>) -> Self {
        Self {
            buckets: vec![NONE; MIN_BUCKETS],
            entries: Vec::new(),
            free: Vec::new(),
            policy,
            usage: 0,
            statistics: CacheStatistics::default(),
        }
    }

    pub(super) fn usage(&self) -> usize {
        self.usage
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(super) fn statistics(&self) -> CacheStatistics {
        self.statistics
    }

    /// The value of a key, which counts as used now.
    #[inline]
    pub(super) fn lookup(&mut self, hash: u64, key: CacheKey) -> Option<&V> {
        let slot = self.find(hash as u32, key);
        if slot == NONE {
            self.statistics.misses += 1;
            return None;
        }
        self.statistics.hits += 1;
        self.policy.hit(slot);
        self.entries[slot as usize].value.as_ref()
    }

    /// Puts a value in; those that must go for it are moved to `dropped`. `false` if it does not fit at all (then it
    /// is there, too).
    pub(super) fn insert(
        &mut self,
        hash: u64,
        key: CacheKey,
        value: V,
        charge: usize,
        priority: Priority,
        dropped: &mut Vec<V>,
    ) -> bool {
        dropped.extend(self.erase(hash, key));
        if charge as u64 > self.policy.largest() {
            dropped.push(value);
            return false;
        }
        self.make_room(charge, dropped);
        if self.len() >= self.buckets.len() {
            self.grow();
        }
        let id = hash;
        let hash = hash as u32;
        let bucket = self.bucket(hash);
        let entry = Entry { key, value: Some(value), charge, hash, next: self.buckets[bucket] };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        self.buckets[bucket] = slot;
        self.usage += charge;
        self.statistics.inserts += 1;
        self.policy.inserted(slot, Incoming { id, charge: charge as u64, priority });
        true
    }

    /// Takes a key out.
    pub(super) fn erase(&mut self, hash: u64, key: CacheKey) -> Option<V> {
        match self.find(hash as u32, key) {
            NONE => None,
            slot => {
                self.policy.removed(slot);
                self.remove(slot)
            }
        }
    }

    /// Changes the capacity; what no longer fits is moved to `dropped`.
    pub(super) fn set_capacity(&mut self, capacity: usize, dropped: &mut Vec<V>) {
        self.policy.set_capacity(capacity as u64);
        self.make_room(0, dropped);
    }

    fn make_room(&mut self, charge: usize, dropped: &mut Vec<V>) {
        while let Some(slot) = self.policy.evict(charge as u64) {
            dropped.extend(self.remove(slot));
            self.statistics.evictions += 1;
        }
    }

    #[inline]
    fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    #[inline]
    fn find(&self, hash: u32, key: CacheKey) -> u32 {
        let mut slot = self.buckets[self.bucket(hash)];
        while slot != NONE {
            let entry = &self.entries[slot as usize];
            if entry.hash == hash && entry.key == key {
                break;
            }
            slot = entry.next;
        }
        slot
    }

    /// Frees a slot that is no longer in the policy's order.
    fn remove(&mut self, slot: u32) -> Option<V> {
        let entry = &mut self.entries[slot as usize];
        let (value, hash, next) = (entry.value.take(), entry.hash, entry.next);
        self.usage -= entry.charge;
        let bucket = self.bucket(hash);
        if self.buckets[bucket] == slot {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket];
            while self.entries[before as usize].next != slot {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
        }
        self.free.push(slot);
        value
    }

    #[cfg(test)]
    pub(super) fn keys(&self) -> impl Iterator<Item = CacheKey> {
        self.entries.iter().filter(|entry| entry.value.is_some()).map(|entry| entry.key)
    }

    fn grow(&mut self) {
        self.buckets = vec![NONE; self.buckets.len() * 2];
        for slot in 0..self.entries.len() {
            if self.entries[slot].value.is_some() {
                let bucket = self.bucket(self.entries[slot].hash);
                self.entries[slot].next = std::mem::replace(&mut self.buckets[bucket], slot as u32);
            }
        }
    }
}

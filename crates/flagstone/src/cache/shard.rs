//! A part of a cache.
//!
//! **Thread safety.** A lookup goes through the table and the hit log, and takes no lock. Every change happens under the
//! lock of `changing`, in this order: the log's hits are told to the policy; what must go leaves policy, table and usage; what
//! comes in enters them. Values are dropped by the caller, after the lock.
//!
//! **Invariants.** `usage` is the charge of all entries in the table and never above the capacity. Slots in use, entries
//! in the table and entries in the policy's order are the same.

use std::sync::Arc;

use super::entry::{CacheValue, Entry};
use super::hits::HitLog;
use super::policy::{Incoming, Policy};
use super::table::Table;
use super::{CacheKey, Priority};
use crate::base::sync::{AtomicU32, AtomicU64, AtomicUsize, Mutex, Ordering};

/// How many pinned entries a new one may find in its way before it is refused.
const SPARED_MAX: usize = 16;

/// What left a shard, to be dropped without its lock.
pub(super) type Dropped<V> = Vec<Arc<Entry<V>>>;

/// What comes into a shard.
pub(super) struct Insertion<V> {
    pub(super) hash: u64,
    pub(super) key: CacheKey,
    pub(super) value: V,
    pub(super) charge: usize,
    pub(super) priority: Priority,
}

/// Entries under one policy.
pub(super) struct Shard<V> {
    table: Table<V>,
    hits: HitLog,
    usage: AtomicUsize,
    len: AtomicUsize,
    inserts: AtomicU64,
    evictions: AtomicU64,
    changing: Mutex<Slots<V>>,
}

/// What only changes need.
struct Slots<V> {
    /// By slot; freed ones are used again, so that numbers stay dense.
    entries: Vec<Option<Arc<Entry<V>>>>,
    free: Vec<u32>,
    policy: Box<dyn Policy + Send>,
}

impl<V: CacheValue> Shard<V> {
    /// Empty, and without capacity.
    pub(super) fn new(policy: Box<dyn Policy + Send>) -> Self {
        Self {
            table: Table::new(),
            hits: HitLog::new(),
            usage: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            inserts: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            changing: Mutex::new(Slots { entries: Vec::new(), free: Vec::new(), policy }),
        }
    }

    pub(super) fn usage(&self) -> usize {
        self.usage.load(Ordering::Relaxed)
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(super) fn inserts(&self) -> u64 {
        self.inserts.load(Ordering::Relaxed)
    }

    pub(super) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    /// Shows `visit` each value and its charge, under the lock.
    pub(super) fn visit(&self, visit: &mut impl FnMut(&V, usize)) {
        self.changing.lock().entries.iter().flatten().for_each(|entry| visit(&entry.value, entry.charge));
    }

    /// The charge of entries whose values somebody uses.
    pub(super) fn pinned_usage(&self) -> usize {
        let mut pinned = 0;
        self.visit(&mut |value, charge| pinned += if value.is_pinned() { charge } else { 0 });
        pinned
    }

    /// The value of a key, which counts as used now.
    #[inline]
    pub(super) fn lookup(&self, hash: u64, key: CacheKey) -> Option<V> {
        self.table.find(hash, key, |entry| {
            self.hits.record(entry.slot, &entry.seen);
            entry.value.clone()
        })
    }

    /// [`Shard::lookup`], and the entry's charge.
    pub(super) fn lookup_with_charge(&self, hash: u64, key: CacheKey) -> Option<(V, usize)> {
        self.table.find(hash, key, |entry| {
            self.hits.record(entry.slot, &entry.seen);
            (entry.value.clone(), entry.charge)
        })
    }

    /// The value of a key, of which the policy hears nothing.
    pub(super) fn peek(&self, hash: u64, key: CacheKey) -> Option<V> {
        self.table.find(hash, key, |entry| entry.value.clone())
    }

    /// Puts a value in. `false` if it does not fit, or what it would displace is in use.
    pub(super) fn insert(&self, new: Insertion<V>, dropped: &mut Dropped<V>) -> bool {
        let Insertion { hash, key, value, charge, priority } = new;
        let mut guard = self.changing.lock();
        let slots = &mut *guard;
        self.tell_hits(slots);
        dropped.extend(self.take(slots, hash, key));
        let fits = charge as u64 <= slots.policy.largest() && self.make_room(slots, charge, true, dropped);
        let slot = slots.free.pop().unwrap_or_else(|| {
            slots.entries.push(None);
            (slots.entries.len() - 1) as u32
        });
        if fits {
            self.table.grow_for(self.len(), &mut slots.entries);
        }
        let (seen, next) = (AtomicU32::new(0), self.table.head(hash));
        let entry = Arc::new(Entry { key, hash, value, charge, priority, slot, seen, next });
        if !fits {
            slots.free.push(slot);
            dropped.push(entry);
            return false;
        }
        slots.policy.inserted(slot, Incoming { id: hash, charge: charge as u64, priority });
        slots.entries[slot as usize] = Some(entry.clone());
        self.usage.fetch_add(charge, Ordering::Relaxed);
        self.len.fetch_add(1, Ordering::Relaxed);
        self.inserts.fetch_add(1, Ordering::Relaxed);
        self.table.insert(entry);
        true
    }

    /// Takes a key out; takes no lock if it is not there.
    pub(super) fn erase(&self, hash: u64, key: CacheKey) -> Option<Arc<Entry<V>>> {
        self.table.find(hash, key, |_| ())?;
        let mut slots = self.changing.lock();
        self.tell_hits(&mut slots);
        self.take(&mut slots, hash, key)
    }

    /// Changes the capacity; what no longer fits leaves, also if it is in use.
    pub(super) fn set_capacity(&self, capacity: usize, dropped: &mut Dropped<V>) {
        let mut slots = self.changing.lock();
        self.tell_hits(&mut slots);
        slots.policy.set_capacity(capacity as u64);
        self.make_room(&mut slots, 0, false, dropped);
    }

    fn tell_hits(&self, slots: &mut Slots<V>) {
        let Slots { entries, policy, .. } = slots;
        self.hits.read(|slot| {
            if entries.get(slot as usize).is_some_and(Option::is_some) {
                policy.hit(slot);
            }
        });
    }

    /// Evicts until something of this charge fits. What is in use is kept, if asked for, since that would free nothing; `false`
    /// if too much of it is in the way.
    fn make_room(&self, slots: &mut Slots<V>, charge: usize, spare: bool, dropped: &mut Dropped<V>) -> bool {
        let mut spared = 0;
        while let Some(slot) = slots.policy.evict(charge as u64) {
            let entry = slots.entries[slot as usize].as_ref().expect("what the policy orders is there");
            if spare && entry.value.is_pinned() {
                let (id, charge, priority) = (entry.hash, entry.charge as u64, entry.priority);
                slots.policy.inserted(slot, Incoming { id, charge, priority });
                spared += 1;
                if spared == SPARED_MAX {
                    return false;
                }
                continue;
            }
            dropped.extend(self.free(slots, slot));
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    fn take(&self, slots: &mut Slots<V>, hash: u64, key: CacheKey) -> Option<Arc<Entry<V>>> {
        let slot = self.table.find(hash, key, |entry| entry.slot)?;
        slots.policy.removed(slot);
        self.free(slots, slot)
    }

    /// Frees a slot that is no longer in the policy's order.
    fn free(&self, slots: &mut Slots<V>, slot: u32) -> Option<Arc<Entry<V>>> {
        let entry = slots.entries[slot as usize].take()?;
        slots.free.push(slot);
        let entries = &mut slots.entries;
        self.table.remove(&entry, |copy| entries[copy.slot as usize] = Some(copy.clone()));
        self.usage.fetch_sub(entry.charge, Ordering::Relaxed);
        self.len.fetch_sub(1, Ordering::Relaxed);
        Some(entry)
    }

    #[cfg(test)]
    pub(super) fn keys(&self) -> Vec<CacheKey> {
        self.changing.lock().entries.iter().flatten().map(|entry| entry.key).collect()
    }
}

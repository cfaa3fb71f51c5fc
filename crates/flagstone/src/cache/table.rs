//! Finds entries by their keys without a lock.
//!
//! A bucket is the number of a slot, which has that of the next. Whoever changes the table holds
//! the shard's lock, and leaves those on their way through a chain alone: slots are used again, so
//! one of them may find himself in another chain, and go on there. He may miss what he looks for,
//! which of a cache is no lie, but he finds nothing else, since he compares the key in a slot that
//! he keeps where it is; and he gives up after so many steps.
//!
//! When there are half as many entries as buckets, another array takes over, with twice as many;
//! the old ones stay, empty of use, and are together as large as the new one: four bytes a bucket.

use std::ptr;
use std::sync::OnceLock;

use super::CacheKey;
use super::policy::FEW_SLOTS;
use super::slots::{Changes, NONE, Pin, Slot, SlotHint, Slots};
use crate::base::prefetch;
use crate::base::sync::{AtomicU32, Ordering};

const MIN_BITS: u32 = 1;
const MAX_BITS: u32 = 31;

/// Where a reader gives up: far beyond the length of any chain that nobody changes.
const STEPS_MAX: usize = 64;

/// Entries by key.
pub(super) struct Table<V> {
    /// An array for each logarithm of its length; all but the present one are of the past.
    arrays: [OnceLock<Box<[AtomicU32]>>; (MAX_BITS + 1) as usize],
    bits: AtomicU32,
    slots: Slots<V>,
}

/// An entry that was found.
pub(super) struct Found<'a, V> {
    pub(super) number: u32,
    pub(super) slot: &'a Slot<V>,
    pin: Pin<'a, V>,
}

impl<V> Found<'_, V> {
    pub(super) fn value(&self) -> &V {
        self.pin.value()
    }
}

/// What is in a slot that had the key, and still has when it is kept where it is.
#[inline]
fn found<V>(number: u32, slot: &Slot<V>, key: CacheKey) -> Option<Found<'_, V>> {
    let pin = slot.pin()?;
    // Between the two looks the slot may have been used again.
    slot.has(key).then_some(Found { number, slot, pin })
}

impl<V> Table<V> {
    /// An empty one, and the right to change it.
    pub(super) fn new() -> (Self, Changes) {
        let (slots, changes) = Slots::new();
        let arrays = [const { OnceLock::new() }; (MAX_BITS + 1) as usize];
        (Self { arrays, bits: AtomicU32::new(MIN_BITS), slots }, changes)
    }

    #[inline]
    fn array(&self, bits: u32) -> &[AtomicU32] {
        self.arrays[bits as usize]
            .get_or_init(|| (0..1usize << bits).map(|_| AtomicU32::new(NONE)).collect())
    }

    #[inline]
    fn bucket(&self, hash: u64) -> &AtomicU32 {
        let array = self.array(self.bits.load(Ordering::Acquire));
        &array[hash as usize & (array.len() - 1)]
    }

    /// Asks for the memory of the key's bucket.
    pub(super) fn prefetch_bucket(&self, hash: u64) {
        prefetch(ptr::from_ref(self.bucket(hash)), 1);
    }

    /// Asks for the memory of the first slot of the key's bucket, mostly that of its entry.
    pub(super) fn prefetch_slot(&self, hash: u64) {
        let number = self.bucket(hash).load(Ordering::Acquire);
        if number != NONE {
            prefetch(ptr::from_ref(self.slots.get(number)), 1);
        }
    }

    /// The key's entry, which stays where it is meanwhile.
    #[inline]
    pub(super) fn find(&self, hash: u64, key: CacheKey) -> Option<Found<'_, V>> {
        let mut number = self.bucket(hash).load(Ordering::Acquire);
        for _ in 0..STEPS_MAX {
            if number == NONE {
                return None;
            }
            let slot = self.slots.get(number);
            if slot.has(key) {
                return found(number, slot, key);
            }
            number = slot.next.load(Ordering::Acquire);
        }
        None
    }

    /// The same for a key whose entry was in that slot once.
    #[inline]
    pub(super) fn find_near(
        &self,
        hash: u64,
        key: CacheKey,
        hint: &SlotHint,
    ) -> Option<Found<'_, V>> {
        if let Some(number) = hint.get()
            && let Some(slot) = self.slots.get_if_used(number).filter(|slot| slot.has(key))
            && let Some(found) = found(number, slot, key)
        {
            return Some(found);
        }
        let found = self.find(hash, key)?;
        hint.set(found.number);
        Some(found)
    }

    /// Asks for the memory of a slot in which an entry was once.
    #[inline]
    pub(super) fn prefetch_near(&self, hint: &SlotHint) {
        if let Some(slot) = hint.get().and_then(|number| self.slots.get_if_used(number)) {
            prefetch(ptr::from_ref(slot), 1);
        }
    }

    /// The number of the key's entry; for who holds the lock, so that nothing is missed.
    pub(super) fn number_of(&self, hash: u64, key: CacheKey) -> Option<u32> {
        let mut number = self.bucket(hash).load(Ordering::Relaxed);
        while number != NONE && !self.slots.get(number).has(key) {
            number = self.slots.get(number).next.load(Ordering::Relaxed);
        }
        (number != NONE).then_some(number)
    }

    /// The value of an entry, for who holds the lock.
    pub(super) fn get(&self, number: u32) -> Pin<'_, V> {
        self.slots.get(number).pin().expect("what is in the table is live")
    }

    /// The key of an entry, for who holds the lock.
    pub(super) fn key_of(&self, number: u32) -> CacheKey {
        self.slots.get(number).key()
    }

    /// The last round of the hit log in which the entry was used.
    pub(super) fn seen(&self, number: u32) -> &AtomicU32 {
        &self.slots.get(number).seen
    }

    /// Puts an entry in whose key is not there; its number.
    pub(super) fn insert(&self, changes: &mut Changes, hash: u64, key: CacheKey, value: V) -> u32 {
        let bucket = self.bucket(hash);
        let number = self.slots.fill(changes, key, value, bucket.load(Ordering::Relaxed));
        bucket.store(number, Ordering::Release);
        number
    }

    /// Takes an entry out. `None` if somebody looks at it right now: then [`Table::sweep`] hands
    /// the value out later.
    pub(super) fn remove(&self, changes: &mut Changes, number: u32) -> Option<V> {
        let slot = self.slots.get(number);
        let mut place = self.bucket(slot.key().hash());
        loop {
            match place.load(Ordering::Relaxed) {
                at if at == number => break,
                NONE => unreachable!("an entry is in its bucket until it is removed"),
                at => place = &self.slots.get(at).next,
            }
        }
        // Those who stand on the slot go on from there as before.
        place.store(slot.next.load(Ordering::Relaxed), Ordering::Release);
        self.slots.take(changes, number)
    }

    /// Bytes of all that leads to entries, and of their places, beyond what a few take.
    pub(super) fn memory(&self, changes: &Changes) -> u64 {
        // All arrays together are twice as long as the present one.
        let buckets = 2u64 << self.bits.load(Ordering::Relaxed);
        let buckets = buckets.saturating_sub(4 * FEW_SLOTS as u64) * size_of::<AtomicU32>() as u64;
        buckets + self.slots.memory(changes)
    }

    /// Hands out the values that somebody looked at when they were removed.
    pub(super) fn sweep(&self, changes: &mut Changes, dropped: &mut Vec<V>) {
        self.slots.sweep(changes, dropped);
    }

    /// Makes room, when there are this many entries: `numbers`.
    pub(super) fn grow_for(
        &self,
        _: &mut Changes,
        count: usize,
        numbers: impl Iterator<Item = u32>,
    ) {
        let bits = self.bits.load(Ordering::Relaxed);
        if count * 2 < 1 << bits || bits == MAX_BITS {
            return;
        }
        let array = self.array(bits + 1);
        for number in numbers {
            let slot = self.slots.get(number);
            let bucket = &array[slot.key().hash() as usize & (array.len() - 1)];
            slot.next.store(bucket.load(Ordering::Relaxed), Ordering::Release);
            bucket.store(number, Ordering::Release);
        }
        self.bits.store(bits + 1, Ordering::Release);
    }
}

//! Numbered places for entries, which are read without a lock and used again.
//!
//! A slot's `state` says whether its value may be looked at, and counts those who do. Whoever wants
//! to look adds himself to the count first, and looks only if the slot was live then. Whoever takes
//! an entry out ends its life first; the value is his once nobody is counted that came before.
//! Where somebody is, the value waits among the dying until the next change: nobody ever waits for
//! anybody, and what leaves is free at once but for the moment in which it is being looked at.
//!
//! **Invariants**
//! 1. Who changes a slot holds the [`Changes`] of these slots, so there is one at a time.
//! 2. Key and value are written only in a slot that is not full: nobody looks at them, as it was
//!    not live when the last one who did was counted out, and has not been since.
//! 3. A slot is live only while it is full; it is full from [`Slots::fill`] until its value is
//!    taken out.
#![expect(
    unsafe_code,
    reason = "values that are read under a count, and moved out when it is zero"
)]

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::CacheKey;
use super::policy::FEW_SLOTS;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};

/// The value may be looked at.
const LIVE: u32 = 1 << 31;
/// There is a value.
const FULL: u32 = 1 << 30;
/// Those who look.
const READERS: u32 = FULL - 1;

/// The logarithm of how many slots the first four arrays have together; each following four have
/// twice as many.
const FIRST_BITS: u32 = 4;
/// The logarithm of how many arrays have one length.
const STEP_BITS: u32 = 2;
const ARRAYS: usize = ((32 - FIRST_BITS) << STEP_BITS) as usize;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// An entry's place: a cache line, for values of up to 32 bytes.
#[repr(C, align(64))]
pub(super) struct Slot<V> {
    state: AtomicU32,
    /// The next slot of the same bucket.
    pub(super) next: AtomicU32,
    /// The last round of the hit log in which it was found, or the one before it came in.
    pub(super) seen: AtomicU32,
    file: AtomicU64,
    offset: AtomicU64,
    value: UnsafeCell<MaybeUninit<V>>,
}

/// What an entry's place takes, in bytes.
#[cfg(test)]
pub(crate) const fn slot_size<V>() -> usize {
    size_of::<Slot<V>>()
}

// SAFETY: a reader gets a shared reference to the value from any thread (`V: Sync`), and whoever
// empties the slot or drops it gets the value itself (`V: Send`). All else are atomics.
unsafe impl<V: Send + Sync> Sync for Slot<V> {}

/// The slot in which a key's entry was found last. By now it may hold another's: whoever looks
/// there compares keys.
#[derive(Debug, Default)]
pub struct SlotHint(
    /// One more than its number, 0 for none. No schedule depends on it.
    std::sync::atomic::AtomicU32,
);

impl SlotHint {
    #[inline]
    pub(super) fn get(&self) -> Option<u32> {
        self.0.load(Ordering::Relaxed).checked_sub(1)
    }

    #[inline]
    pub(super) fn set(&self, number: u32) {
        self.0.store(number.wrapping_add(1), Ordering::Relaxed);
    }
}

/// A live slot that is being looked at.
pub(super) struct Pin<'a, V>(&'a Slot<V>);

impl<V> Pin<'_, V> {
    pub(super) fn value(&self) -> &V {
        // SAFETY: the slot was live when this was counted in, thus full (3), and no one writes to a
        // slot that is full or takes its value out before this is counted out (2). What was written
        // before it became live is seen, since counting in acquired what `fill` released.
        unsafe { (*self.0.value.get()).assume_init_ref() }
    }
}

impl<V> Drop for Pin<'_, V> {
    fn drop(&mut self) {
        self.0.state.fetch_sub(1, Ordering::Release);
    }
}

impl<V> Slot<V> {
    fn new() -> Self {
        Self {
            state: AtomicU32::new(0),
            next: AtomicU32::new(NONE),
            seen: AtomicU32::new(0),
            file: AtomicU64::new(0),
            offset: AtomicU64::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    #[inline]
    pub(super) fn has(&self, key: CacheKey) -> bool {
        self.offset.load(Ordering::Relaxed) == key.offset
            && self.file.load(Ordering::Relaxed) == key.file
    }

    pub(super) fn key(&self) -> CacheKey {
        CacheKey {
            file: self.file.load(Ordering::Relaxed),
            offset: self.offset.load(Ordering::Relaxed),
        }
    }

    /// Keeps the value where it is, if it is live. Its key stays meanwhile, too.
    #[inline]
    pub(super) fn pin(&self) -> Option<Pin<'_, V>> {
        // Counts in on whatever the slot holds; on what is not live, only to be counted out again.
        let before = self.state.fetch_add(1, Ordering::Acquire);
        let pin = Pin(self);
        (before & LIVE != 0).then_some(pin)
    }

    /// Takes the value out if nobody looks at it.
    fn empty(&self, _: &mut Changes) -> Option<V> {
        let state = self.state.load(Ordering::Acquire);
        if state & (LIVE | READERS) != 0 {
            return None;
        }
        assert_ne!(state & FULL, 0, "a slot is emptied once");
        // Readers may come in meanwhile, but none that looks: it is not live.
        self.state.fetch_and(!FULL, Ordering::Relaxed);
        // SAFETY: the slot was full, so there is a value; it is marked empty, so nobody takes it
        // again. It was not live when nobody was counted, and becomes so only in `fill`, under the
        // same `Changes`: no one looks at it, and those who did released it when they were counted
        // out, which the load acquired.
        Some(unsafe { (*self.value.get()).assume_init_read() })
    }
}

/// What a change needs. There is one for the slots it was made with.
pub(super) struct Changes {
    /// How many slots were ever used.
    used: u32,
    free: Vec<u32>,
    /// Out of life, but somebody looked at them.
    dying: Vec<u32>,
}

/// Slots by number.
pub(super) struct Slots<V> {
    /// No slot ever moves. Each array adds a seventh to a quarter to what there is: what nobody
    /// uses is little.
    arrays: [OnceLock<Box<[Slot<V>]>>; ARRAYS],
}

impl<V> Slots<V> {
    /// No slots, and the right to change them.
    pub(super) fn new() -> (Self, Changes) {
        let arrays = [const { OnceLock::new() }; ARRAYS];
        (Self { arrays }, Changes { used: 0, free: Vec::new(), dying: Vec::new() })
    }

    /// A slot that was used before.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> &Slot<V> {
        let (array, at) = place_of(slot);
        &self.arrays[array].get().expect("a slot that was used is there")[at]
    }

    /// The slot of that number, if one was ever used.
    #[inline]
    pub(super) fn get_if_used(&self, slot: u32) -> Option<&Slot<V>> {
        let (array, at) = place_of(slot);
        self.arrays.get(array)?.get()?.get(at)
    }

    /// Bytes of all slots but the first few.
    pub(super) fn memory(&self, changes: &Changes) -> u64 {
        let slots = match changes.used.checked_sub(1) {
            Some(last) => first_of(place_of(last).0 + 1),
            None => 0,
        };
        slots.saturating_sub(FEW_SLOTS as u64) * size_of::<Slot<V>>() as u64
    }

    /// Puts a value into a free slot, which becomes live, and then visible to those who are led to
    /// it.
    pub(super) fn fill(&self, changes: &mut Changes, key: CacheKey, value: V, next: u32) -> u32 {
        let number = changes.free.pop().unwrap_or_else(|| {
            let (array, _) = place_of(changes.used);
            let length = first_of(array + 1) - first_of(array);
            self.arrays[array].get_or_init(|| (0..length).map(|_| Slot::new()).collect());
            changes.used += 1;
            changes.used - 1
        });
        let slot = self.get(number);
        assert_eq!(slot.state.load(Ordering::Relaxed) & FULL, 0, "a free slot is empty");
        slot.file.store(key.file, Ordering::Relaxed);
        slot.offset.store(key.offset, Ordering::Relaxed);
        slot.seen.store(0, Ordering::Relaxed);
        // Who still stands here from a former life goes on from here, maybe to a slot in an array
        // that is new.
        slot.next.store(next, Ordering::Release);
        // SAFETY: the slot is empty, so no one looks at it (2) and nothing is overwritten that
        // needs a drop; nobody else fills it, since `changes` is held (1).
        unsafe { (*slot.value.get()).write(value) };
        slot.state.fetch_or(LIVE | FULL, Ordering::Release);
        number
    }

    /// Ends the life of a slot's value. `None` if somebody looks at it right now: then
    /// [`Slots::sweep`] hands it out later.
    pub(super) fn take(&self, changes: &mut Changes, number: u32) -> Option<V> {
        let slot = self.get(number);
        slot.state.fetch_and(!LIVE, Ordering::Relaxed);
        let value = slot.empty(changes);
        match value {
            Some(_) => changes.free.push(number),
            None => changes.dying.push(number),
        }
        value
    }

    /// Hands out the values that somebody looked at when they were taken, and nobody does now.
    pub(super) fn sweep(&self, changes: &mut Changes, dropped: &mut Vec<V>) {
        for number in std::mem::take(&mut changes.dying) {
            match self.get(number).empty(changes) {
                Some(value) => {
                    dropped.push(value);
                    changes.free.push(number);
                }
                None => changes.dying.push(number),
            }
        }
    }
}

impl<V> Drop for Slots<V> {
    fn drop(&mut self) {
        for slot in self.arrays.iter_mut().filter_map(OnceLock::get_mut).flatten() {
            if slot.state.load(Ordering::Acquire) & FULL != 0 {
                // SAFETY: it is full, and nobody else has the slots any more.
                unsafe { slot.value.get_mut().assume_init_drop() };
            }
        }
    }
}

/// In which array a slot lies, and where.
#[inline]
fn place_of(slot: u32) -> (usize, usize) {
    let at = u64::from(slot) + (1 << FIRST_BITS);
    let array_bits = at.ilog2() - STEP_BITS;
    // Its highest bits are from four to seven.
    let step =
        ((array_bits + STEP_BITS - FIRST_BITS) << STEP_BITS) as usize + (at >> array_bits) as usize;
    (step - (1 << STEP_BITS), (at & ((1 << array_bits) - 1)) as usize)
}

/// The first slot of an array.
fn first_of(array: usize) -> u64 {
    let steps = 1 << STEP_BITS;
    let highest = (steps + array % steps) as u64;
    (highest << ((array / steps) as u32 + FIRST_BITS - STEP_BITS)) - (1 << FIRST_BITS)
}

#[cfg(test)]
mod tests;

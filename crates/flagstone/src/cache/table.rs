//! Finds entries by their keys without a lock.
//!
//! A bucket is the head of a chain of entries, of which none ever points elsewhere. Whoever changes the table holds the
//! shard's lock; readers hold nothing but the head that they found, and with it the chain as it was then.
//!
//! 1. A new entry points to the old head, then becomes the head.
//! 2. Where an entry is taken out, those in front of it are replaced by copies that lead past it. There are seldom any.
//! 3. When there are half as many entries as buckets, another array takes over, with twice as many, and copies of all
//!    entries. A reader who is on his way to the old one may find nothing there, which of a cache is no lie.
//!
//! To change where a bucket points costs a look at what each thread is reading, so it is done once for an entry that comes in
//! and once for one that goes.

use std::sync::{Arc, OnceLock};

use super::CacheKey;
use super::entry::{CacheValue, Entry};
use crate::base::sync::{ArcSwapOption, AtomicU32, Ordering};

const MIN_BITS: u32 = 1;
const MAX_BITS: u32 = 31;

type Buckets<V> = Box<[ArcSwapOption<Entry<V>>]>;

/// Entries by key.
pub(super) struct Table<V> {
    /// An array for each logarithm of its length; all but the present one are empty.
    arrays: [OnceLock<Buckets<V>>; (MAX_BITS + 1) as usize],
    bits: AtomicU32,
}

impl<V: CacheValue> Table<V> {
    pub(super) fn new() -> Self {
        Self { arrays: [const { OnceLock::new() }; (MAX_BITS + 1) as usize], bits: AtomicU32::new(MIN_BITS) }
    }

    #[inline]
    fn array(&self, bits: u32) -> &[ArcSwapOption<Entry<V>>] {
        let empty = || (0..1usize << bits).map(|_| ArcSwapOption::default()).collect();
        self.arrays[bits as usize].get_or_init(empty)
    }

    #[inline]
    fn bucket(&self, hash: u64) -> &ArcSwapOption<Entry<V>> {
        let array = self.array(self.bits.load(Ordering::Acquire));
        &array[hash as usize & (array.len() - 1)]
    }

    /// What `read` makes of the key's entry.
    #[inline]
    pub(super) fn find<R>(&self, hash: u64, key: CacheKey, read: impl FnOnce(&Entry<V>) -> R) -> Option<R> {
        let head = self.bucket(hash).load();
        let mut entry = head.as_deref()?;
        while entry.key != key {
            entry = entry.next.as_deref()?;
        }
        Some(read(entry))
    }

    /// The first entry of a bucket: what a new one is to point to.
    pub(super) fn head(&self, hash: u64) -> Option<Arc<Entry<V>>> {
        self.bucket(hash).load_full()
    }

    /// Puts an entry in whose key is not there, and that points to the head of its bucket.
    pub(super) fn insert(&self, entry: Arc<Entry<V>>) {
        self.bucket(entry.hash).store(Some(entry));
    }

    /// Takes an entry out; `replace` is given the copies that take the places of others.
    pub(super) fn remove(&self, entry: &Arc<Entry<V>>, mut replace: impl FnMut(&Arc<Entry<V>>)) {
        let bucket = self.bucket(entry.hash);
        let mut in_front = Vec::new();
        let mut place = bucket.load_full().expect("an entry is in its bucket until it is removed");
        while !Arc::ptr_eq(&place, entry) {
            let next = place.next.clone().expect("an entry is in its bucket until it is removed");
            in_front.push(std::mem::replace(&mut place, next));
        }
        let mut chain = entry.next.clone();
        for other in in_front.iter().rev() {
            let copy = Arc::new(other.in_front_of(chain));
            replace(&copy);
            chain = Some(copy);
        }
        bucket.store(chain);
    }

    /// Makes room, when there are this many entries; all are replaced by copies.
    pub(super) fn grow_for(&self, count: usize, entries: &mut [Option<Arc<Entry<V>>>]) {
        let bits = self.bits.load(Ordering::Relaxed);
        if count * 2 < 1 << bits || bits == MAX_BITS {
            return;
        }
        let array = self.array(bits + 1);
        for entry in entries.iter_mut().flatten() {
            let bucket = &array[entry.hash as usize & (array.len() - 1)];
            *entry = Arc::new(entry.in_front_of(bucket.load_full()));
            bucket.store(Some(entry.clone()));
        }
        self.bits.store(bits + 1, Ordering::Release);
        self.array(bits).iter().for_each(|bucket| bucket.store(None));
    }
}

//! Finds entries by their keys without a lock.
//!
//! A bucket is the head of a chain of entries. Whoever changes the table holds the shard's lock; readers hold nothing but the
//! entry that they look at.
//!
//! 1. A new entry points to the old head, then becomes the head.
//! 2. An entry that is taken out is passed over by the one before it and goes on pointing to the one behind it, so that a
//!    reader who stands on it finds its way.
//! 3. When there are half as many entries as buckets, another array takes over, with twice as many, and all entries are linked
//!    anew. A reader who is on its way meanwhile may end up in another chain and find nothing, which of a cache is no lie.

use std::sync::{Arc, OnceLock};

use super::CacheKey;
use super::entry::Entry;
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

impl<V> Table<V> {
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
        let mut place = self.bucket(hash).load();
        loop {
            let entry = place.as_ref()?;
            if entry.key == key {
                return Some(read(entry));
            }
            let next = entry.next.load();
            place = next;
        }
    }

    /// Puts an entry in whose key is not there.
    pub(super) fn insert(&self, entry: Arc<Entry<V>>) {
        let bucket = self.bucket(entry.hash);
        entry.next.store(bucket.load_full());
        bucket.store(Some(entry));
    }

    /// Takes an entry out.
    pub(super) fn remove(&self, entry: &Arc<Entry<V>>) {
        let bucket = self.bucket(entry.hash);
        let behind = entry.next.load_full();
        let mut place = bucket.load_full();
        if place.as_ref().is_some_and(|head| Arc::ptr_eq(head, entry)) {
            bucket.store(behind);
            return;
        }
        while let Some(before) = place {
            let next = before.next.load_full();
            if next.as_ref().is_some_and(|next| Arc::ptr_eq(next, entry)) {
                before.next.store(behind);
                return;
            }
            place = next;
        }
        unreachable!("an entry is in its bucket until it is removed");
    }

    /// Makes room, given all entries, when there are this many.
    pub(super) fn grow_for<'a>(&self, count: usize, entries: impl Iterator<Item = &'a Arc<Entry<V>>>)
    where
        V: 'a,
    {
        let bits = self.bits.load(Ordering::Relaxed);
        if count * 2 < 1 << bits || bits == MAX_BITS {
            return;
        }
        let array = self.array(bits + 1);
        for entry in entries {
            let bucket = &array[entry.hash as usize & (array.len() - 1)];
            entry.next.store(bucket.load_full());
            bucket.store(Some(entry.clone()));
        }
        self.bits.store(bits + 1, Ordering::Release);
        self.array(bits).iter().for_each(|bucket| bucket.store(None));
    }
}

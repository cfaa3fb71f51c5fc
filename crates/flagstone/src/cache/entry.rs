//! An entry of a cache, and what a cache asks of its values.

use std::sync::Arc;

use super::{CacheKey, Priority};
use crate::base::sync::{AtomicU32, Ordering};

/// What a cache can hold: handles, which a lookup clones.
pub trait CacheValue: Clone {
    /// Whether somebody else holds the value, too, so that dropping it from the cache would free no memory. May be out of date
    /// as soon as it is told.
    fn is_pinned(&self) -> bool;
}

impl<T: ?Sized> CacheValue for Arc<T> {
    fn is_pinned(&self) -> bool {
        Arc::strong_count(self) > 1
    }
}

/// A key with its value. Only `seen` changes.
pub(super) struct Entry<V> {
    pub(super) key: CacheKey,
    pub(super) hash: u64,
    pub(super) value: V,
    pub(super) charge: usize,
    pub(super) priority: Priority,
    /// Its number in the shard.
    pub(super) slot: u32,
    /// The last round of the hit log that has it.
    pub(super) seen: AtomicU32,
    /// The next entry of the same bucket.
    pub(super) next: Option<Arc<Entry<V>>>,
}

impl<V: CacheValue> Entry<V> {
    /// A copy with another entry behind it.
    pub(super) fn in_front_of(&self, next: Option<Arc<Self>>) -> Self {
        Self {
            key: self.key,
            hash: self.hash,
            value: self.value.clone(),
            charge: self.charge,
            priority: self.priority,
            slot: self.slot,
            seen: AtomicU32::new(self.seen.load(Ordering::Relaxed)),
            next,
        }
    }
}

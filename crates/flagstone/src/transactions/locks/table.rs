//! The locks of one family.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::base::ColumnFamilyId;
use crate::base::hash::hash64;
use crate::base::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use crate::transactions::locks::lock::{Lock, LockMode, Waiter};
use crate::transactions::locks::owner::Owner;

/// Slots of a stripe that are kept, however few locks it has.
const SLOTS_KEPT: usize = 64;

/// The locked keys of one family, in stripes that are used independently of each other.
pub struct FamilyLocks {
    family: ColumnFamilyId,
    stripes: Box<[Mutex<Stripe>]>,
    /// Keys that are locked.
    count: AtomicU64,
}

/// Some of the keys.
#[derive(Default)]
pub(super) struct Stripe {
    locks: HashMap<Arc<[u8]>, Lock>,
}

/// A key that is locked, as [`LockManager::locked_keys`](super::LockManager::locked_keys) lists it.
#[derive(Debug, Clone)]
pub struct LockedKey {
    /// The number of its family.
    pub family: ColumnFamilyId,
    /// The key.
    pub key: Vec<u8>,
    /// How its holders have it.
    pub mode: LockMode,
    /// The owners that hold it.
    pub holders: Vec<Arc<Owner>>,
    /// Those that wait for it, the next one first.
    pub waiters: Vec<Arc<Owner>>,
}

impl FamilyLocks {
    pub(super) fn new(family: ColumnFamilyId, stripes: usize) -> Arc<Self> {
        let stripes = (0..stripes.max(1)).map(|_| Mutex::default()).collect();
        Arc::new(Self { family, stripes, count: AtomicU64::new(0) })
    }

    /// The family's number.
    pub fn family(&self) -> ColumnFamilyId {
        self.family
    }

    /// How many keys are locked.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Slots that the stripes have.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.lock().locks.capacity()).sum()
    }

    pub(super) fn stripe(&self, key: &[u8]) -> MutexGuard<'_, Stripe> {
        self.stripes[hash64(key) as usize % self.stripes.len()].lock()
    }

    /// Takes a place for one more locked key, of up to `most`.
    pub(super) fn reserve(&self, most: Option<u64>) -> bool {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        let has_room = most.is_none_or(|most| before < most);
        if !has_room {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        has_room
    }

    /// Releases a key. Does nothing if `owner` does not hold it, because it was taken over.
    pub fn release(&self, owner: &Owner, key: &[u8]) {
        self.change(key, |lock| lock.release(owner));
    }

    /// Lets others share a key that `owner` need not have for itself.
    pub fn weaken(&self, owner: &Arc<Owner>, key: &[u8]) {
        self.change(key, |lock| {
            lock.weaken(owner);
            false
        });
    }

    /// Removes a waiter that gives up; returns `false` if it was granted the lock before.
    pub(super) fn give_up(&self, key: &[u8], waiter: &Arc<Waiter>) -> bool {
        let mut stripe = self.stripe(key);
        if waiter.is_granted() {
            return false;
        }
        self.change_in(&mut stripe, key, |lock| {
            lock.remove(waiter);
            lock.settle()
        });
        true
    }

    fn change(&self, key: &[u8], change: impl FnOnce(&mut Lock) -> bool) {
        self.change_in(&mut self.stripe(key), key, change);
    }

    /// Changes a lock, and removes it if `change` says that nobody has it.
    pub(super) fn change_in(
        &self,
        stripe: &mut Stripe,
        key: &[u8],
        change: impl FnOnce(&mut Lock) -> bool,
    ) {
        if stripe.locks.get_mut(key).is_some_and(change) {
            stripe.locks.remove(key);
            self.count.fetch_sub(1, Ordering::Relaxed);
            stripe.shrink();
        }
    }

    /// The owners that `owner` waits for, if it waits for `key`.
    pub(super) fn blockers(&self, owner: &Owner, key: &[u8], mode: LockMode) -> Vec<Arc<Owner>> {
        let stripe = self.stripe(key);
        stripe.locks.get(key).map_or_else(Vec::new, |lock| lock.blockers(owner, mode))
    }

    /// Visits all locks, in no order; not as of one moment.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&[u8], &Lock)) {
        for stripe in &self.stripes {
            stripe.lock().locks.iter().for_each(|(key, lock)| visit(key, lock));
        }
    }
}

impl Stripe {
    pub(super) fn get_mut(&mut self, key: &[u8]) -> Option<&mut Lock> {
        self.locks.get_mut(key)
    }

    pub(super) fn insert(&mut self, key: Arc<[u8]>, lock: Lock) {
        self.locks.insert(key, lock);
    }

    /// The key, as the table has it.
    pub(super) fn key(&self, key: &[u8]) -> Option<&Arc<[u8]>> {
        self.locks.get_key_value(key).map(|(key, _)| key)
    }

    /// Returns memory after many locks were released.
    fn shrink(&mut self) {
        let used = self.locks.len();
        if self.locks.capacity() > SLOTS_KEPT && used * 8 < self.locks.capacity() {
            self.locks.shrink_to((used * 2).max(SLOTS_KEPT));
        }
    }
}

impl fmt::Debug for FamilyLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FamilyLocks")
            .field("family", &self.family)
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

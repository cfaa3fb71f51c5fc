//! Takes locks, and waits for them.
//!
//! **Algorithm** of [`LockManager::lock`]
//! 1. Under the lock of the key's stripe: if no owner has the key, or the owners that have it
//!    agree, take it. If it must be waited for, take it from holders that have expired, and look
//!    again.
//! 2. Otherwise join the key's queue, and say what this owner waits for.
//! 3. If wanted, look for a cycle. Owners do so one after the other: one that gives up because of a
//!    cycle has left it before the next one looks.
//! 4. Wait until a holder's release makes this owner a holder, until a holder expires, or until
//!    time is up. One that gives up leaves the queue, and lets those behind it advance.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::base::ColumnFamilyId;
use crate::base::perf::{self, PerfMetric};
use crate::base::sync::{ArcSwap, AtomicU64, Mutex, Ordering};
use crate::env::Clock;
use crate::transactions::locks::deadlock::{Cycle, Deadlock, Recent, find_cycle};
use crate::transactions::locks::lock::{Lock, LockMode, Waiter};
use crate::transactions::locks::owner::{Owner, Wait};
use crate::transactions::locks::table::{FamilyLocks, LockedKey};

/// A waiter looks at the clock at least this often: a clock that is not the system's may run ahead
/// of the time for which a thread sleeps.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// Sizes of a [`LockManager`].
#[derive(Debug, Clone, Copy)]
pub struct LockSettings {
    /// Parts of each family's table that are used independently.
    pub stripes: usize,
    /// Keys of one family that may be locked at once; `None` for any number.
    pub locks_max: Option<u64>,
    /// How many deadlocks are remembered.
    pub deadlocks_max: usize,
}

/// How an owner waits; by default it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Patience {
    /// How long it waits for a key; [`Duration::MAX`] for ever.
    pub timeout: Duration,
    /// Looks for deadlocks among up to so many waiting owners.
    pub detect_depth: Option<usize>,
}

/// A key that was locked.
#[derive(Debug)]
pub struct Granted {
    /// The key, shared with the table.
    pub key: Arc<[u8]>,
    /// Whether the owner had to wait.
    pub waited: bool,
    /// How many expired owners lost the key meanwhile.
    pub robbed: u64,
}

/// Why a key was not locked.
#[derive(Debug)]
pub enum LockFailure {
    /// Other owners held it, or were before this one, for too long.
    TimedOut {
        /// Those owners.
        blockers: Vec<Arc<Owner>>,
    },
    /// The owner would wait for itself.
    Deadlock(Deadlock),
    /// The family has as many locked keys as it may have.
    Limit,
    /// The owner has expired.
    Expired,
}

/// The locks of a database.
pub struct LockManager {
    settings: LockSettings,
    clock: Arc<dyn Clock>,
    families: ArcSwap<BTreeMap<ColumnFamilyId, Arc<FamilyLocks>>>,
    /// Families are added and removed one at a time.
    changing: Mutex<()>,
    last_id: AtomicU64,
    /// Owners look for cycles one at a time.
    deadlocks: Mutex<Recent>,
}

impl LockManager {
    /// No key is locked.
    pub fn new(settings: LockSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings,
            clock,
            families: ArcSwap::from_pointee(BTreeMap::new()),
            changing: Mutex::new(()),
            last_id: AtomicU64::new(0),
            deadlocks: Mutex::new(Recent::new(settings.deadlocks_max)),
        }
    }

    /// A new owner. After `expiration` its locks may be taken over.
    pub fn begin(&self, expiration: Option<Duration>) -> Arc<Owner> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let expires_us = expiration.map(|expiration| self.after(expiration));
        Owner::new(id, expires_us)
    }

    /// Whether an owner has expired.
    pub fn has_expired(&self, owner: &Owner) -> bool {
        owner.expires() && owner.has_expired(self.clock.now_us())
    }

    /// Keeps an owner's locks from being taken over while it is written. Returns `false` if it has
    /// expired, and can never be written.
    pub fn begin_commit(&self, owner: &Owner) -> bool {
        let now_us = if owner.expires() { self.clock.now_us() } else { 0 };
        owner.begin_commit(now_us)
    }

    /// The locks of a family, if there have been some.
    pub fn known_family(&self, id: ColumnFamilyId) -> Option<Arc<FamilyLocks>> {
        self.families.load().get(&id).cloned()
    }

    /// The locks of a family.
    pub fn family(&self, id: ColumnFamilyId) -> Arc<FamilyLocks> {
        let _changing = self.changing.lock();
        let mut families = BTreeMap::clone(&self.families.load());
        let stripes = self.settings.stripes;
        let family = families.entry(id).or_insert_with(|| FamilyLocks::new(id, stripes)).clone();
        self.families.store(Arc::new(families));
        family
    }

    /// Forgets a family that was dropped. Owners that hold keys of it still release them.
    pub fn forget_family(&self, id: ColumnFamilyId) {
        let _changing = self.changing.lock();
        let mut families = BTreeMap::clone(&self.families.load());
        families.remove(&id);
        self.families.store(Arc::new(families));
    }

    /// Locks `key`, which `owner` may hold already.
    ///
    /// # Errors
    /// Why it was not; then nothing has changed.
    pub fn lock(
        &self,
        table: &Arc<FamilyLocks>,
        owner: &Arc<Owner>,
        key: &[u8],
        mode: LockMode,
        patience: &Patience,
    ) -> Result<Granted, LockFailure> {
        if self.has_expired(owner) {
            return Err(LockFailure::Expired);
        }
        let mut robbed = 0;
        let (waiter, shared_key) = {
            let mut stripe = table.stripe(key);
            let Some(lock) = stripe.get_mut(key) else {
                if !table.reserve(self.settings.locks_max) {
                    return Err(LockFailure::Limit);
                }
                let key: Arc<[u8]> = key.into();
                stripe.insert(key.clone(), Lock::new(owner.clone(), mode));
                return Ok(Granted { key, waited: false, robbed });
            };
            let mut is_taken = lock.try_take(owner, mode);
            if !is_taken {
                robbed = self.rob(lock);
                if robbed > 0 {
                    is_taken = lock.settle_for(owner, mode);
                }
            }
            let waiter = if is_taken {
                None
            } else if patience.timeout.is_zero() {
                return Err(LockFailure::TimedOut { blockers: lock.blockers(owner, mode) });
            } else {
                let waiter = Waiter::new(owner.clone(), mode);
                lock.enqueue(waiter.clone());
                Some(waiter)
            };
            let shared_key = stripe.key(key).expect("a held key is in its table").clone();
            if waiter.is_some() {
                let (key, since_us) = (shared_key.clone(), self.clock.now_us());
                owner.set_waits(Some(Arc::new(Wait { table: table.clone(), key, mode, since_us })));
            }
            (waiter, shared_key)
        };
        let waited = waiter.is_some();
        if let Some(waiter) = waiter {
            perf::count(PerfMetric::KeyLockWaitCount, 1);
            let time = perf::time(PerfMetric::KeyLockWaitTime);
            let outcome = self.wait(table, &shared_key, &waiter, patience);
            drop(time);
            owner.set_waits(None);
            robbed += outcome?;
        }
        Ok(Granted { key: shared_key, waited, robbed })
    }

    /// Waits in the queue. Returns how many owners were robbed meanwhile.
    fn wait(
        &self,
        table: &Arc<FamilyLocks>,
        key: &[u8],
        waiter: &Arc<Waiter>,
        patience: &Patience,
    ) -> Result<u64, LockFailure> {
        let deadline_us = self.after(patience.timeout);
        if let Some(depth) = patience.detect_depth {
            self.detect(table, key, waiter, depth)?;
        }
        let mut robbed = 0;
        let mut stripe = table.stripe(key);
        loop {
            let now_us = self.clock.now_us();
            table.change_in(&mut stripe, key, |lock| {
                if waiter.is_granted() {
                    return false;
                }
                let gone = lock.rob(now_us);
                robbed += gone;
                gone > 0 && lock.settle()
            });
            if waiter.is_granted() {
                return Ok(robbed);
            }
            if now_us >= deadline_us {
                let mut blockers = Vec::new();
                table.change_in(&mut stripe, key, |lock| {
                    blockers = lock.blockers(&waiter.owner, waiter.mode);
                    lock.remove(waiter);
                    lock.settle()
                });
                return Err(LockFailure::TimedOut { blockers });
            }
            let expiry_us = stripe.get_mut(key).and_then(|lock| lock.next_expiry_us(now_us));
            let until_us = deadline_us.min(expiry_us.unwrap_or(u64::MAX));
            let sleep = Duration::from_micros(until_us - now_us).min(LONGEST_SLEEP);
            waiter.wake.wait_for(&mut stripe, sleep);
        }
    }

    /// Leaves the queue if that breaks a cycle.
    fn detect(
        &self,
        table: &FamilyLocks,
        key: &[u8],
        waiter: &Arc<Waiter>,
        depth: usize,
    ) -> Result<(), LockFailure> {
        let mut recent = self.deadlocks.lock();
        let Some(cycle) = find_cycle(&waiter.owner, depth) else { return Ok(()) };
        if !table.give_up(key, waiter) {
            return Ok(());
        }
        waiter.owner.set_waits(None);
        let (path, limit_exceeded) = match cycle {
            Cycle::Path(path) => (path, false),
            Cycle::TooDeep => (Vec::new(), true),
        };
        let unix_seconds = self.clock.unix_seconds();
        let deadlock = Deadlock { path, limit_exceeded, unix_seconds };
        recent.push(deadlock.clone());
        Err(LockFailure::Deadlock(deadlock))
    }

    fn rob(&self, lock: &mut Lock) -> u64 {
        let may_expire = lock.holders().iter().any(|holder| holder.expires());
        if may_expire { lock.rob(self.clock.now_us()) } else { 0 }
    }

    fn after(&self, time: Duration) -> u64 {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.clock.now_us().saturating_add(micros)
    }

    /// The deadlocks that were found last, the newest one first.
    pub fn deadlocks(&self) -> Vec<Deadlock> {
        self.deadlocks.lock().list()
    }

    /// For how long an owner has waited.
    pub fn waited(&self, wait: &Wait) -> Duration {
        Duration::from_micros(self.clock.now_us().saturating_sub(wait.since_us))
    }

    /// How many keys are locked in all families.
    pub fn count(&self) -> u64 {
        self.families.load().values().map(|family| family.count()).sum()
    }

    /// The owners that hold or await locks, by their ids, and how many keys each of them has; not
    /// as of one moment. Visits every lock.
    pub fn owners(&self) -> Vec<(Arc<Owner>, u64)> {
        let mut owners = BTreeMap::new();
        for family in self.families.load().values() {
            family.for_each(|_, lock| {
                for holder in lock.holders() {
                    owners.entry(holder.id()).or_insert_with(|| (holder.clone(), 0)).1 += 1;
                }
                for waiter in lock.queue() {
                    let owner = &waiter.owner;
                    owners.entry(owner.id()).or_insert_with(|| (owner.clone(), 0));
                }
            });
        }
        owners.into_values().collect()
    }

    /// All keys that are locked, by family and key; not as of one moment. Visits every lock.
    pub fn locked_keys(&self) -> Vec<LockedKey> {
        let mut listed = Vec::new();
        for family in self.families.load().values() {
            family.for_each(|key, lock| {
                listed.push(LockedKey {
                    family: family.family(),
                    key: key.to_vec(),
                    mode: lock.mode(),
                    holders: lock.holders().to_vec(),
                    waiters: lock.queue().map(|waiter| waiter.owner.clone()).collect(),
                })
            });
        }
        listed.sort_by(|a, b| (a.family, &a.key).cmp(&(b.family, &b.key)));
        listed
    }
}

impl fmt::Debug for LockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockManager").field("count", &self.count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

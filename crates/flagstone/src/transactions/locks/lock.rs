//! The lock of one key: its holders, and the queue of those that wait.
//!
//! A lock with one holder and no queue takes 16 bytes beside its key. Only a lock that several
//! owners want has a box.

use std::collections::VecDeque;
use std::slice;
use std::sync::Arc;

use crate::base::sync::{AtomicBool, Condvar, Ordering};
use crate::transactions::locks::owner::Owner;

/// How a key is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Other transactions may hold it in the same way.
    Shared,
    /// No other transaction holds it.
    Exclusive,
}

impl LockMode {
    /// Whether two owners may hold a key in these ways.
    fn agrees_with(self, other: Self) -> bool {
        self == Self::Shared && other == Self::Shared
    }
}

/// An owner in the queue of a lock.
pub(super) struct Waiter {
    pub(super) owner: Arc<Owner>,
    pub(super) mode: LockMode,
    /// Changed under the lock of the stripe.
    is_granted: AtomicBool,
    pub(super) wake: Condvar,
}

impl Waiter {
    pub(super) fn new(owner: Arc<Owner>, mode: LockMode) -> Arc<Self> {
        Arc::new(Self { owner, mode, is_granted: AtomicBool::new(false), wake: Condvar::new() })
    }

    /// Whether its owner holds the lock.
    pub(super) fn is_granted(&self) -> bool {
        self.is_granted.load(Ordering::Relaxed)
    }
}

/// The state of one key.
pub(super) enum Lock {
    Exclusive(Arc<Owner>),
    Shared(Arc<Owner>),
    Wide(Box<Wide>),
}

/// A lock with several holders, or a queue.
pub(super) struct Wide {
    mode: LockMode,
    holders: Vec<Arc<Owner>>,
    queue: VecDeque<Arc<Waiter>>,
}

impl Lock {
    /// Held by one owner.
    pub(super) fn new(owner: Arc<Owner>, mode: LockMode) -> Self {
        match mode {
            LockMode::Shared => Self::Shared(owner),
            LockMode::Exclusive => Self::Exclusive(owner),
        }
    }

    pub(super) fn mode(&self) -> LockMode {
        match self {
            Self::Exclusive(_) => LockMode::Exclusive,
            Self::Shared(_) => LockMode::Shared,
            Self::Wide(wide) => wide.mode,
        }
    }

    pub(super) fn holders(&self) -> &[Arc<Owner>] {
        match self {
            Self::Exclusive(owner) | Self::Shared(owner) => slice::from_ref(owner),
            Self::Wide(wide) => &wide.holders,
        }
    }

    /// Those that wait, the next one first.
    pub(super) fn queue(&self) -> impl Iterator<Item = &Arc<Waiter>> {
        let queue = match self {
            Self::Wide(wide) => Some(&wide.queue),
            _ => None,
        };
        queue.into_iter().flatten()
    }

    fn is_held_by(&self, owner: &Owner) -> bool {
        self.holders().iter().any(|holder| holder.id() == owner.id())
    }

    /// Makes `owner` a holder, or strengthens what it holds, if it need not wait.
    pub(super) fn try_take(&mut self, owner: &Arc<Owner>, mode: LockMode) -> bool {
        let is_holder = self.is_held_by(owner);
        if is_holder && (mode == LockMode::Shared || self.mode() == LockMode::Exclusive) {
            return true;
        }
        if is_holder && self.holders().len() == 1 {
            match self {
                Self::Wide(wide) => wide.mode = LockMode::Exclusive,
                _ => *self = Self::Exclusive(owner.clone()),
            }
            return true;
        }
        // Behind the queue, so that readers do not keep a writer waiting for ever.
        let is_free = !is_holder && mode.agrees_with(self.mode()) && self.queue().next().is_none();
        if is_free {
            self.widen().holders.push(owner.clone());
        }
        is_free
    }

    /// Adds a waiter at the end of the queue. One that holds the lock already, and wants it for
    /// itself, comes before those that hold nothing: they cannot go first.
    pub(super) fn enqueue(&mut self, waiter: Arc<Waiter>) {
        let is_holder = |owner: &Owner, holders: &[Arc<Owner>]| {
            holders.iter().any(|holder| holder.id() == owner.id())
        };
        let Wide { holders, queue, .. } = self.widen();
        let at = if is_holder(&waiter.owner, holders) {
            queue.iter().take_while(|other| is_holder(&other.owner, holders)).count()
        } else {
            queue.len()
        };
        queue.insert(at, waiter);
    }

    /// Removes a waiter that gives up. Afterwards [`Lock::settle`].
    pub(super) fn remove(&mut self, waiter: &Arc<Waiter>) {
        if let Self::Wide(wide) = self {
            wide.queue.retain(|other| !Arc::ptr_eq(other, waiter));
        }
    }

    /// Removes a holder. Returns whether the lock is left without one, and has no queue.
    pub(super) fn release(&mut self, owner: &Owner) -> bool {
        match self {
            Self::Exclusive(holder) | Self::Shared(holder) => holder.id() == owner.id(),
            Self::Wide(wide) => {
                wide.holders.retain(|holder| holder.id() != owner.id());
                self.settle()
            }
        }
    }

    /// Lets a holder that need not have the key for itself share it.
    pub(super) fn weaken(&mut self, owner: &Arc<Owner>) {
        if self.mode() != LockMode::Exclusive || !self.is_held_by(owner) {
            return;
        }
        match self {
            Self::Wide(wide) => {
                wide.mode = LockMode::Shared;
                self.settle();
            }
            _ => *self = Self::Shared(owner.clone()),
        }
    }

    /// Removes holders that have expired. Returns how many. Afterwards [`Lock::settle`].
    pub(super) fn rob(&mut self, now_us: u64) -> u64 {
        if !self.holders().iter().any(|holder| holder.expires_us() <= now_us) {
            return 0;
        }
        let holders = &mut self.widen().holders;
        let before = holders.len();
        holders.retain(|holder| !holder.rob(now_us));
        (before - holders.len()) as u64
    }

    /// When the next holder expires, after `now_us`. One that has expired and is still there is
    /// being written.
    pub(super) fn next_expiry_us(&self, now_us: u64) -> Option<u64> {
        let expiries = self.holders().iter().map(|holder| holder.expires_us());
        expiries.filter(|expiry_us| *expiry_us > now_us).min()
    }

    /// Makes holders of those at the front of the queue that may have the lock now. Returns whether
    /// nobody has it.
    pub(super) fn settle(&mut self) -> bool {
        let Self::Wide(wide) = self else { return false };
        while let Some(next) = wide.queue.front() {
            let others = wide.holders.iter().filter(|holder| holder.id() != next.owner.id());
            let may_join = next.mode.agrees_with(wide.mode);
            if others.count() > 0 && !may_join {
                break;
            }
            let Some(next) = wide.queue.pop_front() else { break };
            // A holder that waited has it for itself from now on; any other begins or joins.
            wide.mode = next.mode;
            wide.holders.retain(|holder| holder.id() != next.owner.id());
            wide.holders.push(next.owner.clone());
            next.is_granted.store(true, Ordering::Relaxed);
            next.wake.notify_one();
        }
        match (wide.holders.as_slice(), wide.queue.is_empty()) {
            ([], _) => true,
            ([only], true) => {
                *self = Self::new(only.clone(), wide.mode);
                false
            }
            _ => false,
        }
    }

    /// After holders were robbed: advances the queue, and takes the lock for `owner`, which is not
    /// in it, if it need not wait.
    pub(super) fn settle_for(&mut self, owner: &Arc<Owner>, mode: LockMode) -> bool {
        if self.settle() {
            *self = Self::new(owner.clone(), mode);
            return true;
        }
        self.try_take(owner, mode)
    }

    /// The owners that `owner` waits for: holders, and those in front of it in the queue.
    pub(super) fn blockers(&self, owner: &Owner, mode: LockMode) -> Vec<Arc<Owner>> {
        let is_other = |other: &&Arc<Owner>| other.id() != owner.id();
        let mut blockers = Vec::new();
        if !mode.agrees_with(self.mode()) {
            blockers.extend(self.holders().iter().filter(is_other).cloned());
        }
        if self.queue().any(|waiter| waiter.owner.id() == owner.id()) {
            let ahead = self.queue().take_while(|waiter| waiter.owner.id() != owner.id());
            let in_its_way = ahead.filter(|waiter| !mode.agrees_with(waiter.mode));
            blockers.extend(in_its_way.map(|waiter| waiter.owner.clone()));
        }
        blockers
    }

    fn widen(&mut self) -> &mut Wide {
        if !matches!(self, Self::Wide(_)) {
            let (mode, holders) = (self.mode(), self.holders().to_vec());
            *self = Self::Wide(Box::new(Wide { mode, holders, queue: VecDeque::new() }));
        }
        match self {
            Self::Wide(wide) => wide,
            _ => unreachable!("it was made wide"),
        }
    }
}

#[cfg(test)]
mod tests;

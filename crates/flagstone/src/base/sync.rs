//! Where the engine takes its locks and atomics from.
//!
//! An ordinary build has parking_lot's locks and the standard library's atomics, by another name.
//! With the feature `shuttle` they are those of a scheduler that runs all threads in one, and
//! decides before every operation on a lock or an atomic which of them goes on: `tests/schedule`
//! explores many such schedules. Everything that threads agree by is taken from here; what only
//! counts (statistics) and what lies in `env` is not.
//!
//! Builds for tests (unit tests, and those with the feature `mutants`) check the order in which
//! each thread takes its locks ([`ranked`]). In other builds a [`Rank`] leaves nothing behind.
//!
//! The scheduler is sequentially consistent: what needs a weaker order of memory to go wrong is for
//! Miri to find.

pub use std::sync::atomic::Ordering;

#[cfg(not(feature = "shuttle"))]
use ordinary as plain;
#[cfg(feature = "shuttle")]
use scheduled as plain;

pub use plain::{
    ArcSwap, ArcSwapOption, AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64,
    AtomicUsize, Guard, Rounds, fence, spin_loop, yield_now,
};

#[cfg(any(test, feature = "mutants"))]
mod ranked;
#[cfg(not(any(test, feature = "mutants")))]
mod unranked;

#[cfg(any(test, feature = "mutants"))]
pub use ranked::{Condvar, Mutex, MutexGuard, RwLock, ranked};
#[cfg(not(any(test, feature = "mutants")))]
pub use unranked::{Condvar, Mutex, MutexGuard, RwLock, ranked};

/// The place of a lock in the order in which threads take locks: a thread takes a lock only if its
/// rank is above the ranks of all locks that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Rank {
    /// Backups of one directory are made or removed.
    Backup,
    /// A secondary catches up.
    Following,
    /// An event is told to the listeners, which may call the database.
    Telling,
    /// The database is being closed.
    Closing,
    /// A checkpoint looks for its directory and makes it.
    Checkpoint,
    /// The OPTIONS file is written.
    OptionsFile,
    /// Obsolete files are removed.
    Removal,
    /// Entries of a WAL are replayed into a family's memtable.
    Replay,
    /// A replay writes a full memtable to a table.
    ReplayedTables,
    /// A thread leads a sync of the WAL.
    SyncLead,
    /// A write, or a switch of memtables.
    Commit,
    /// The tree: versions, families, jobs.
    State,
    /// Any other lock. It guards one thing, and no part of the engine is called under it.
    #[default]
    Other,
}

#[cfg(not(feature = "shuttle"))]
mod ordinary {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub use std::thread::yield_now;

    pub use arc_swap::{ArcSwap, ArcSwapOption, Guard};
    pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
    #[cfg(any(test, feature = "mutants"))]
    pub use parking_lot::{RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult};

    /// A number that threads wait to see changed. One call wakes them all, and none of them needs a
    /// lock to go on.
    #[derive(Debug, Default)]
    pub struct Rounds(AtomicU32);

    impl Rounds {
        /// The present number.
        pub fn now(&self) -> u32 {
            self.0.load(std::sync::atomic::Ordering::Acquire)
        }

        /// Waits while the number is `seen`; may also return early.
        pub fn wait_beyond(&self, seen: u32) {
            atomic_wait::wait(&self.0, seen);
        }

        /// Changes the number.
        pub fn advance(&self) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Release);
            atomic_wait::wake_all(&self.0);
        }
    }
}

/// The same interfaces over the scheduler's locks.
#[cfg(feature = "shuttle")]
mod scheduled {
    use std::ops::{Deref, DerefMut};
    use std::sync::{Arc, PoisonError, TryLockError};
    use std::time::Duration;

    pub use arc_swap::Guard;
    use arc_swap::RefCnt;
    pub use shuttle::hint::spin_loop;
    use shuttle::sync;
    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub use shuttle::thread::yield_now;

    /// A pointer that is replaced as a whole, and may be at any time before it is loaded or stored
    /// here.
    pub type ArcSwap<T> = Swap<Arc<T>>;
    /// The same, or nothing.
    pub type ArcSwapOption<T> = Swap<Option<Arc<T>>>;

    /// What the two have in common.
    #[derive(Debug, Default)]
    pub struct Swap<P: RefCnt>(arc_swap::ArcSwapAny<P>);

    impl<T> ArcSwap<T> {
        /// A pointer to that value.
        pub fn from_pointee(value: T) -> Self {
            Self(arc_swap::ArcSwapAny::new(Arc::new(value)))
        }
    }

    impl<P: RefCnt> Swap<P> {
        /// What it points to now.
        pub fn load(&self) -> Guard<P> {
            decide();
            self.0.load()
        }

        /// The same, for longer.
        pub fn load_full(&self) -> P {
            decide();
            self.0.load_full()
        }

        /// Makes it point elsewhere.
        pub fn store(&self, pointer: P) {
            decide();
            self.0.store(pointer);
        }

        /// The same. Returns what it pointed to.
        pub fn swap(&self, pointer: P) -> P {
            decide();
            self.0.swap(pointer)
        }
    }

    /// Lets the scheduler decide who goes on. (`yield_now` would also ask to let others go first.)
    fn decide() {
        shuttle::thread::sleep(Duration::ZERO);
    }

    /// A lock that knows no poison.
    #[derive(Debug, Default)]
    pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

    /// The right to what a [`Mutex`] guards.
    pub struct MutexGuard<'a, T: ?Sized> {
        mutex: &'a Mutex<T>,
        /// Nothing only while a [`Condvar`] has it, or it is given back for a moment.
        held: Option<sync::MutexGuard<'a, T>>,
    }

    impl<T> Mutex<T> {
        /// An unlocked one.
        pub const fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }
    }

    impl<T: ?Sized> Mutex<T> {
        /// Waits for the lock.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            MutexGuard { mutex: self, held: Some(held) }
        }

        /// Takes the lock if it is free.
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            let held = match self.0.try_lock() {
                Ok(held) => held,
                Err(TryLockError::Poisoned(error)) => error.into_inner(),
                Err(TryLockError::WouldBlock) => return None,
            };
            Some(MutexGuard { mutex: self, held: Some(held) })
        }

        /// What it guards, without locking.
        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl<T: ?Sized> MutexGuard<'_, T> {
        /// Does something without the lock.
        pub fn unlocked<R>(guard: &mut Self, work: impl FnOnce() -> R) -> R {
            guard.held = None;
            let done = work();
            guard.held = guard.mutex.lock().held;
            done
        }
    }

    impl<T: ?Sized> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.held.as_ref().expect("held")
        }
    }

    impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.held.as_mut().expect("held")
        }
    }

    #[cfg(any(test, feature = "mutants"))]
    pub use NeverTimedOut as WaitTimeoutResult;
    #[cfg(any(test, feature = "mutants"))]
    pub use shuttle::sync::{RwLockReadGuard, RwLockWriteGuard};

    /// How [`Condvar::wait_for`] ended.
    pub struct NeverTimedOut;

    impl NeverTimedOut {
        /// Not by that.
        pub fn timed_out(&self) -> bool {
            false
        }
    }

    /// A condition to wait for.
    #[derive(Debug, Default)]
    pub struct Condvar(sync::Condvar);

    impl Condvar {
        /// One that nobody waits for.
        pub const fn new() -> Self {
            Self(sync::Condvar::new())
        }

        /// Lets go of the lock, waits to be woken, takes the lock again.
        pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.held.take().expect("held");
            guard.held = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        }

        /// The same: no time passes here. A thread that would be helped only by its time-out has
        /// missed a signal, and the scheduler reports the deadlock.
        pub fn wait_for<T>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            _longest: Duration,
        ) -> NeverTimedOut {
            self.wait(guard);
            NeverTimedOut
        }

        /// Wakes one of those that wait.
        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        /// Wakes all that wait.
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    /// A number that threads wait to see changed.
    #[derive(Debug)]
    pub struct Rounds {
        number: Mutex<u32>,
        changed: Condvar,
    }

    impl Default for Rounds {
        fn default() -> Self {
            Self { number: Mutex::new(0), changed: Condvar::new() }
        }
    }

    impl Rounds {
        /// The present number.
        pub fn now(&self) -> u32 {
            *self.number.lock()
        }

        /// Waits while the number is `seen`.
        pub fn wait_beyond(&self, seen: u32) {
            let mut number = self.number.lock();
            while *number == seen {
                self.changed.wait(&mut number);
            }
        }

        /// Changes the number.
        pub fn advance(&self) {
            *self.number.lock() += 1;
            self.changed.notify_all();
        }
    }

    /// A lock with many readers or one writer.
    #[derive(Debug, Default)]
    pub struct RwLock<T: ?Sized>(sync::RwLock<T>);

    impl<T> RwLock<T> {
        /// An unlocked one.
        pub const fn new(value: T) -> Self {
            Self(sync::RwLock::new(value))
        }
    }

    impl<T: ?Sized> RwLock<T> {
        /// Waits until nobody writes.
        pub fn read(&self) -> sync::RwLockReadGuard<'_, T> {
            self.0.read().unwrap_or_else(PoisonError::into_inner)
        }

        /// Waits until nobody reads or writes.
        pub fn write(&self) -> sync::RwLockWriteGuard<'_, T> {
            self.0.write().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

//! Locks that check, when they are taken, the order in which threads may take them.
//!
//! Each lock has a [`Rank`]. Each thread keeps a list of the locks that it holds. A thread that
//! takes a lock whose rank is not above the ranks of all locks on its list panics and names both:
//! another thread that takes the two the other way round would wait for it for ever. Locks of
//! [`Rank::Other`] are not compared with one another.
//!
//! Only builds for tests have this ([`super`]). `try_lock` never waits, so it is not checked, but
//! what is taken under its lock is. With the feature `shuttle` the list belongs to a thread of the
//! scheduler.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::{Rank, plain};

/// A lock that one thread holds.
#[derive(Clone, Copy)]
struct Entry {
    rank: Rank,
    name: &'static str,
    /// Tells apart two entries of one thread.
    id: u64,
}

#[derive(Default)]
struct List {
    entries: Vec<Entry>,
    next_id: u64,
}

#[cfg(not(feature = "shuttle"))]
thread_local! {
    static LIST: RefCell<List> = RefCell::default();
}
#[cfg(feature = "shuttle")]
shuttle::thread_local! {
    static LIST: RefCell<List> = RefCell::default();
}

/// A thread that ends has no list any more, and takes locks in destructors only.
fn with_list<R: Default>(work: impl FnOnce(&mut List) -> R) -> R {
    LIST.try_with(|list| work(&mut list.borrow_mut())).unwrap_or_default()
}

/// Panics if the thread may not take a lock of this rank now.
#[track_caller]
fn check(rank: Rank, name: &'static str) {
    let is_below =
        |entry: &&Entry| entry.rank >= rank && (entry.rank, rank) != (Rank::Other, Rank::Other);
    let above = with_list(|list| list.entries.iter().find(is_below).copied());
    if let Some(held) = above
        && !std::thread::panicking()
    {
        panic!(
            "lock {name} ({rank:?}) is taken under lock {} ({:?}), which comes after it",
            held.name, held.rank
        );
    }
}

/// A place on the thread's list, until it is dropped.
struct Held {
    rank: Rank,
    name: &'static str,
    id: u64,
}

impl Held {
    fn new(rank: Rank, name: &'static str) -> Self {
        let id = with_list(|list| {
            list.next_id += 1;
            list.entries.push(Entry { rank, name, id: list.next_id });
            list.next_id
        });
        Self { rank, name, id }
    }

    fn take_off(&self) {
        with_list(|list| list.entries.retain(|entry| entry.id != self.id));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.take_off();
    }
}

/// An unlocked lock.
pub const fn ranked<T>(rank: Rank, value: T) -> Mutex<T> {
    Mutex { rank, plain: plain::Mutex::new(value) }
}

/// A lock with a rank.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized> {
    rank: Rank,
    plain: plain::Mutex<T>,
}

impl<T> Mutex<T> {
    /// An unlocked lock of [`Rank::Other`].
    pub const fn new(value: T) -> Self {
        ranked(Rank::Other, value)
    }
}

impl<T: ?Sized> Mutex<T> {
    fn name() -> &'static str {
        std::any::type_name::<T>()
    }

    /// Waits for the lock.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        check(self.rank, std::any::type_name::<T>());
        let plain = self.plain.lock();
        MutexGuard { plain, held: Held::new(self.rank, Self::name()) }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let plain = self.plain.try_lock()?;
        Some(MutexGuard { plain, held: Held::new(self.rank, Self::name()) })
    }

    /// What it guards, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.plain.get_mut()
    }
}

/// The right to what a [`Mutex`] guards.
pub struct MutexGuard<'a, T: ?Sized> {
    plain: plain::MutexGuard<'a, T>,
    held: Held,
}

impl<T: ?Sized> MutexGuard<'_, T> {
    /// Does something without the lock.
    pub fn unlocked<R>(guard: &mut Self, work: impl FnOnce() -> R) -> R {
        guard.held.take_off();
        let done = plain::MutexGuard::unlocked(&mut guard.plain, work);
        guard.held = Held::new(guard.held.rank, guard.held.name);
        done
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.plain
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.plain
    }
}

/// A condition to wait for. A thread that waits keeps its place on the list: it takes no lock
/// meanwhile.
#[derive(Debug, Default)]
pub struct Condvar(plain::Condvar);

impl Condvar {
    /// A condition that no thread waits for.
    pub const fn new() -> Self {
        Self(plain::Condvar::new())
    }

    /// Releases the lock, waits to be woken, and takes the lock again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.0.wait(&mut guard.plain);
    }

    /// [`Self::wait`], for no longer than this.
    pub fn wait_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        longest: Duration,
    ) -> plain::WaitTimeoutResult {
        self.0.wait_for(&mut guard.plain, longest)
    }

    /// Wakes one of the threads that wait.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A lock of [`Rank::Other`] with many readers or one writer.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(plain::RwLock<T>);

/// The right of one reader or writer, with its place on the list.
pub struct Ranked<G> {
    plain: G,
    _held: Held,
}

impl<T> RwLock<T> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Self {
        Self(plain::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until no thread writes.
    pub fn read(&self) -> Ranked<plain::RwLockReadGuard<'_, T>> {
        Ranked { plain: self.0.read(), _held: Held::new(Rank::Other, std::any::type_name::<T>()) }
    }

    /// Waits until no thread reads or writes.
    pub fn write(&self) -> Ranked<plain::RwLockWriteGuard<'_, T>> {
        Ranked { plain: self.0.write(), _held: Held::new(Rank::Other, std::any::type_name::<T>()) }
    }
}

impl<G: Deref> Deref for Ranked<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.plain
    }
}

impl<G: DerefMut> DerefMut for Ranked<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.plain
    }
}

#[cfg(test)]
mod tests;

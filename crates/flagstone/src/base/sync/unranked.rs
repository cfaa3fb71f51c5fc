//! Locks without a rank, for builds that do not check the order in which they are taken.

use super::Rank;
pub use super::plain::{Condvar, Mutex, MutexGuard, RwLock};

/// An unlocked lock.
pub const fn ranked<T>(_rank: Rank, value: T) -> Mutex<T> {
    Mutex::new(value)
}

//! Locks on keys, for transactions. They know nothing of databases: a key is bytes in a family of
//! some number.
//!
//! - `owner`: [`Owner`], a transaction as the locks see it: whether it has expired, what it waits
//!   for
//! - `lock`: the state of one key: holders, and a queue of waiters
//! - `table`: the locks of one family, in stripes
//! - `manager`: [`LockManager`], which takes locks and waits for them
//! - `deadlock`: the search for a cycle of waiters, and the list of those found
//!
//! **Invariants**
//! 1. A key is in its table while an owner holds it. (Waiters wait only for what is held.)
//! 2. A waiter waits for the holders of its key and for the waiters in front of it, unless both
//!    only read. The waiter that is next becomes a holder in the same step in which the last lock
//!    in its way is released, so no owner overtakes it.
//! 3. A cycle of waiters is closed by an owner that begins to wait: a lock that is granted goes to
//!    an owner that does not wait any more. So it is enough that each owner looks for a cycle once,
//!    when its own wait can already be seen.
//!
//! **Lock order.** The search, then a stripe, then an owner's wait. Each is held for a moment, and
//! never while an owner waits.

mod deadlock;
mod lock;
mod manager;
mod owner;
mod table;

pub use deadlock::{Deadlock, DeadlockStep};
pub use lock::LockMode;
pub use manager::{Granted, LockFailure, LockManager, LockSettings, Patience};
pub use owner::{Owner, Wait};
pub use table::{FamilyLocks, LockedKey};

//! How transactions behave. Names and defaults are RocksDB's.

use std::time::Duration;

/// How [`TransactionDb`](crate::TransactionDb) locks keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionDbOptions {
    /// Keys of one column family that may be locked at once; 0 or less for any number. One more is
    /// refused with `Busy` and subcode `LockLimit`. Default: -1.
    pub max_num_locks: i64,
    /// How many deadlocks [`TransactionDb::deadlocks`](crate::TransactionDb::deadlocks) remembers.
    /// Default: 5.
    pub max_num_deadlocks: u32,
    /// Parts of the table of locks, per column family, that threads use independently. Default: 16.
    pub num_stripes: usize,
    /// How long a transaction waits for the lock of a key, unless it says otherwise;
    /// [`Duration::MAX`] for ever. Default: 1 s.
    pub transaction_lock_timeout: Duration,
    /// How long a write outside of transactions waits for the lock of a key; [`Duration::MAX`] for
    /// ever. Default: 1 s.
    pub default_lock_timeout: Duration,
    /// Lock nothing, in transactions or outside: for a program that knows that no two of its writes
    /// meet. Default: false.
    pub skip_concurrency_control: bool,
}

impl Default for TransactionDbOptions {
    fn default() -> Self {
        Self {
            max_num_locks: -1,
            max_num_deadlocks: 5,
            num_stripes: 16,
            transaction_lock_timeout: Duration::from_secs(1),
            default_lock_timeout: Duration::from_secs(1),
            skip_concurrency_control: false,
        }
    }
}

/// How one transaction behaves: see [`Db::begin_with`](crate::Db::begin_with). What concerns locks
/// has no effect in a database that is not a [`TransactionDb`](crate::TransactionDb).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionOptions {
    /// Begin with [`Transaction::set_snapshot`](crate::Transaction::set_snapshot). Default: false.
    pub set_snapshot: bool,
    /// Before it waits for a lock, look whether transactions would wait for each other. If so the
    /// operation fails at once (`Busy` with subcode `Deadlock`), and not after the time-out.
    /// Default: false.
    pub deadlock_detect: bool,
    /// How many waiting transactions that look may visit. If there are more, it counts as a
    /// deadlock. Default: 50.
    pub deadlock_detect_depth: usize,
    /// How long to wait for the lock of a key; [`Duration::MAX`] for ever, zero not at all.
    /// Default: none, which is the database's `transaction_lock_timeout`.
    pub lock_timeout: Option<Duration>,
    /// How long it may take. Afterwards the commit fails (`Expired`), and other transactions may
    /// take over its locks. Default: none, for ever.
    pub expiration: Option<Duration>,
    /// Most bytes of its batch; 0 for any number. A change beyond is refused with `Aborted` and
    /// subcode `MemoryLimit`. Default: 0.
    pub max_write_batch_size: usize,
    /// Lock nothing, and look for no conflicts. If several that write one key are prepared, the
    /// next opening locks the key only for the first of them by name. Default: false.
    pub skip_concurrency_control: bool,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self {
            set_snapshot: false,
            deadlock_detect: false,
            deadlock_detect_depth: 50,
            lock_timeout: None,
            expiration: None,
            max_write_batch_size: 0,
            skip_concurrency_control: false,
        }
    }
}

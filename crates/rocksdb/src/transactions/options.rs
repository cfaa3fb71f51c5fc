//! How transactions behave.

use std::time::Duration;

/// Milliseconds, or for ever if negative.
fn for_ever_if_negative(milliseconds: i64) -> Duration {
    u64::try_from(milliseconds).map_or(Duration::MAX, Duration::from_millis)
}

/// Milliseconds, or nothing if negative.
fn nothing_if_negative(milliseconds: i64) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// How a transaction of a [`TransactionDB`](crate::TransactionDB) behaves.
#[derive(Default)]
pub struct TransactionOptions {
    pub(super) engine: flagstone::TransactionOptions,
}

impl TransactionOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has no effect: a transaction that is not prepared can always be committed.
    pub fn set_skip_prepare(&mut self, _skip_prepare: bool) {}

    /// Begins with a snapshot: a key that is written after it is refused. Default: false.
    pub fn set_snapshot(&mut self, snapshot: bool) {
        self.engine.set_snapshot = snapshot;
    }

    /// Looks for deadlocks before it waits. Default: false.
    pub fn set_deadlock_detect(&mut self, deadlock_detect: bool) {
        self.engine.deadlock_detect = deadlock_detect;
    }

    /// How long it waits for a lock, in milliseconds. Negative (default): as long as the database
    /// says.
    pub fn set_lock_timeout(&mut self, lock_timeout: i64) {
        self.engine.lock_timeout = nothing_if_negative(lock_timeout);
    }

    /// How long it may take, in milliseconds, before others may take over its locks and its commit
    /// fails. Negative (default): for ever.
    pub fn set_expiration(&mut self, expiration: i64) {
        self.engine.expiration = nothing_if_negative(expiration);
    }

    /// How many waiting transactions the search for deadlocks visits. Default: 50.
    pub fn set_deadlock_detect_depth(&mut self, depth: i64) {
        self.engine.deadlock_detect_depth = usize::try_from(depth).unwrap_or(0);
    }

    /// Most bytes of its batch; 0 (default) for any number.
    pub fn set_max_write_batch_size(&mut self, size: usize) {
        self.engine.max_write_batch_size = size;
    }
}

/// How a [`TransactionDB`](crate::TransactionDB) locks keys.
#[derive(Default)]
pub struct TransactionDBOptions {
    pub(super) engine: flagstone::TransactionDbOptions,
}

impl TransactionDBOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long a write outside of transactions waits for a lock, in milliseconds; negative for
    /// ever. Default: 1,000.
    pub fn set_default_lock_timeout(&mut self, default_lock_timeout: i64) {
        self.engine.default_lock_timeout = for_ever_if_negative(default_lock_timeout);
    }

    /// How long a transaction waits for a lock, in milliseconds; negative for ever. Default: 1,000.
    pub fn set_txn_lock_timeout(&mut self, txn_lock_timeout: i64) {
        self.engine.transaction_lock_timeout = for_ever_if_negative(txn_lock_timeout);
    }

    /// Most keys of a family that are locked; not positive (default) for any number.
    pub fn set_max_num_locks(&mut self, max_num_locks: i64) {
        self.engine.max_num_locks = max_num_locks;
    }

    /// Parts of the table of locks, for each family. Default: 16.
    pub fn set_num_stripes(&mut self, num_stripes: usize) {
        self.engine.num_stripes = num_stripes;
    }
}

/// How a transaction of an [`OptimisticTransactionDB`](crate::OptimisticTransactionDB) behaves.
#[derive(Default)]
pub struct OptimisticTransactionOptions {
    pub(super) engine: flagstone::TransactionOptions,
}

impl OptimisticTransactionOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins with a snapshot: a key that is written after it is a conflict. Default: false.
    pub fn set_snapshot(&mut self, snapshot: bool) {
        self.engine.set_snapshot = snapshot;
    }
}

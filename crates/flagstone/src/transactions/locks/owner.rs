//! A transaction as its locks see it.

use std::fmt;
use std::sync::Arc;

use crate::base::ColumnFamilyId;
use crate::base::sync::{AtomicU8, Mutex, Ordering};
use crate::transactions::locks::lock::LockMode;
use crate::transactions::locks::table::FamilyLocks;

/// The locks of an owner cannot be taken over.
const NEVER: u64 = u64::MAX;

/// [`Owner::stage`]: the transaction may still lock keys.
const LIVE: u8 = 0;
/// It is being written: its locks stay, even if it expires meanwhile.
const COMMITTING: u8 = 1;
/// It expired, and a lock of it was taken over. It can never be written.
const STOLEN: u8 = 2;
/// It is prepared: its locks stay until it is decided.
const PREPARED: u8 = 3;

/// A transaction that holds locks or waits for one.
///
/// **Expiry against commit.** Both change the stage from `LIVE` by one compare-and-exchange. So a
/// transaction is written with all of its locks, or loses them and is not written.
pub struct Owner {
    id: u64,
    /// The clock's reading, in microseconds, from which on its locks may be taken over.
    expires_us: u64,
    stage: AtomicU8,
    waits: Mutex<Option<Arc<Wait>>>,
}

/// What an owner waits for.
pub struct Wait {
    pub(super) table: Arc<FamilyLocks>,
    pub(super) key: Arc<[u8]>,
    pub(super) mode: LockMode,
    /// When it began, by the clock in microseconds.
    pub(super) since_us: u64,
}

impl Owner {
    /// An owner whose locks may be taken over from `expires_us` on, if given.
    pub(super) fn new(id: u64, expires_us: Option<u64>) -> Arc<Self> {
        let expires_us = expires_us.unwrap_or(NEVER);
        Arc::new(Self { id, expires_us, stage: AtomicU8::new(LIVE), waits: Mutex::new(None) })
    }

    /// The transaction's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether its locks can be taken over one day.
    pub(super) fn expires(&self) -> bool {
        self.expires_us != NEVER
    }

    /// When its locks may be taken over, by the clock.
    pub(super) fn expires_us(&self) -> u64 {
        self.expires_us
    }

    /// Whether a lock of it was taken over.
    pub fn was_robbed(&self) -> bool {
        self.stage.load(Ordering::Acquire) == STOLEN
    }

    /// Whether it has expired at `now_us`, or lost a lock. One that is being written, or is
    /// prepared, expires no more.
    pub(super) fn has_expired(&self, now_us: u64) -> bool {
        match self.stage.load(Ordering::Acquire) {
            COMMITTING | PREPARED => false,
            stage => stage == STOLEN || now_us >= self.expires_us,
        }
    }

    /// Keeps all locks from being taken over, for the commit. Returns `false` if it has expired.
    pub(super) fn begin_commit(&self, now_us: u64) -> bool {
        now_us < self.expires_us && self.change_stage(LIVE, COMMITTING)
    }

    /// The transaction is prepared: it never expires now.
    pub fn set_prepared(&self) {
        self.stage.store(PREPARED, Ordering::Release);
    }

    /// Whether it is prepared, or was until it was decided.
    pub fn is_prepared(&self) -> bool {
        self.stage.load(Ordering::Acquire) == PREPARED
    }

    /// After a commit that failed: the transaction goes on.
    pub fn resume(&self) {
        self.change_stage(COMMITTING, LIVE);
    }

    /// Whether its locks may be taken over now; if so it can never be written.
    pub(super) fn rob(&self, now_us: u64) -> bool {
        now_us >= self.expires_us && (self.change_stage(LIVE, STOLEN) || self.was_robbed())
    }

    fn change_stage(&self, from: u8, to: u8) -> bool {
        self.stage.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// What it waits for now.
    pub fn waits(&self) -> Option<Arc<Wait>> {
        self.waits.lock().clone()
    }

    pub(super) fn set_waits(&self, wait: Option<Arc<Wait>>) {
        *self.waits.lock() = wait;
    }
}

impl Wait {
    /// The number of the key's family.
    pub fn family(&self) -> ColumnFamilyId {
        self.table.family()
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// How it is to be locked.
    pub fn mode(&self) -> LockMode {
        self.mode
    }

    /// The owners that are in the way of `owner`, whose wait this is.
    pub fn blockers(&self, owner: &Owner) -> Vec<Arc<Owner>> {
        self.table.blockers(owner, &self.key, self.mode)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owner").field(&self.id).finish()
    }
}

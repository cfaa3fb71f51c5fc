//! How a transaction keeps others away from its keys, or learns that they wrote them.

use std::sync::Arc;
use std::time::Duration;

use crate::base::sync::Mutex;
use crate::base::{Code, Error, Result, SequenceNumber};
use crate::db::{ColumnFamily, Ticker};
use crate::front::family::Family;
use crate::front::locking::{Engine, Locking};
use crate::front::transaction::Transaction;
use crate::front::transaction::closure::is_conflict;
use crate::front::transaction::stamps::check_not_newer;
use crate::transactions::locks::{FamilyLocks, LockMode, Owner, Patience};
use crate::transactions::{TransactionOptions, Use};

/// How a transaction deals with others.
#[cfg_attr(
    feature = "shuttle",
    expect(clippy::large_enum_variant, reason = "the scheduler's mutex is larger than others")
)]
pub(super) enum Control {
    /// It does not.
    Nothing,
    /// The commit asks whether they wrote tracked keys.
    Validation,
    /// It locks its keys.
    Locks(Locks),
}

/// A transaction's part in the locks of its database.
pub(super) struct Locks {
    locking: Arc<Locking>,
    pub(super) owner: Arc<Owner>,
    patience: Patience,
    name: Mutex<Option<Vec<u8>>>,
    /// It locks nothing.
    is_skipped: bool,
}

/// What is done with a key, and what that asks of others.
#[derive(Clone, Copy)]
pub(super) struct Claim {
    pub(super) used: Use,
    pub(super) mode: LockMode,
    /// They must not have written the key since the snapshot.
    pub(super) is_validated: bool,
}

impl Claim {
    pub(super) const WRITE: Self =
        Self { used: Use::Write, mode: LockMode::Exclusive, is_validated: true };
    pub(super) const WRITE_UNTRACKED: Self = Self { is_validated: false, ..Self::WRITE };
    pub(super) const READ: Self = Self { used: Use::Read, ..Self::WRITE };
    pub(super) const READ_SHARED: Self = Self { mode: LockMode::Shared, ..Self::READ };
}

impl Control {
    pub(super) fn new(engine: &Engine, options: &TransactionOptions) -> Self {
        let is_skipped = options.skip_concurrency_control;
        let Some(locking) = engine.locking() else {
            return if is_skipped { Self::Nothing } else { Self::Validation };
        };
        let database = &locking.options;
        let patience = Patience {
            timeout: options.lock_timeout.unwrap_or(database.transaction_lock_timeout),
            detect_depth: options.deadlock_detect.then_some(options.deadlock_detect_depth),
        };
        Self::Locks(Locks {
            owner: locking.manager.begin(options.expiration),
            locking: locking.clone(),
            patience,
            name: Mutex::new(None),
            is_skipped: is_skipped || database.skip_concurrency_control,
        })
    }

    /// The transaction's part in the locks, if there are any.
    pub(super) fn locks(&self) -> Option<&Locks> {
        match self {
            Self::Locks(locks) => Some(locks),
            Self::Nothing | Self::Validation => None,
        }
    }

    pub(super) fn owner(&self) -> Option<&Owner> {
        self.locks().map(|locks| &*locks.owner)
    }

    /// Refuses what a transaction that has expired would do.
    pub(super) fn check_expiry(&self) -> Result<()> {
        match self.locks().filter(|_| self.has_expired()) {
            Some(locks) => Err(locks.locking.expired(&locks.owner)),
            None => Ok(()),
        }
    }

    pub(super) fn has_expired(&self) -> bool {
        self.locks().is_some_and(|locks| locks.locking.manager.has_expired(&locks.owner))
    }
}

impl Locks {
    /// Those of a transaction that is prepared.
    pub(super) fn of_prepared(locking: &Arc<Locking>, owner: Arc<Owner>, name: &[u8]) -> Self {
        Self {
            locking: locking.clone(),
            owner,
            patience: Patience::default(),
            name: Mutex::new(Some(name.to_vec())),
            is_skipped: locking.options.skip_concurrency_control,
        }
    }

    pub(super) fn locking(&self) -> &Locking {
        &self.locking
    }

    /// Keeps the locks for a commit.
    pub(super) fn begin_commit(&self) -> Result<()> {
        if self.locking.manager.begin_commit(&self.owner) {
            return Ok(());
        }
        Err(self.locking.expired(&self.owner))
    }

    fn table(&self, engine: &Engine, family: &ColumnFamily) -> Result<Option<Arc<FamilyLocks>>> {
        family.check_alive()?;
        Ok(engine.lock_table(&self.locking, family.id()))
    }

    fn lock(
        &self,
        engine: &Engine,
        table: &Arc<FamilyLocks>,
        key: &[u8],
        mode: LockMode,
    ) -> Result<Arc<[u8]>> {
        engine.lock(&self.locking, table, &self.owner, key, mode, &self.patience)
    }

    pub(super) fn set_name(&self, name: &[u8]) -> Result<()> {
        let mut own = self.name.lock();
        if own.is_some() {
            return Err(Error::invalid_argument("the transaction has a name already"));
        }
        self.locking.name(&self.owner, name)?;
        *own = Some(name.to_vec());
        Ok(())
    }

    pub(super) fn name(&self) -> Option<Vec<u8>> {
        self.name.lock().clone()
    }

    /// Makes the name free again.
    pub(super) fn unname(&self) {
        if let Some(name) = self.name.lock().take() {
            self.locking.names.lock().remove(&name);
        }
    }
}

impl Transaction {
    /// How long the transaction waits for a lock from now on; [`Duration::MAX`] for ever. Without
    /// effect where keys are not locked.
    #[doc(alias = "SetLockTimeout")]
    pub fn set_lock_timeout(&mut self, timeout: Duration) {
        if let Control::Locks(locks) = &mut self.control {
            locks.patience.timeout = timeout;
        }
    }

    /// From now on families with timestamps are read as of this one. A key that the transaction
    /// claims from then on must not have a newer version (`Busy`).
    #[doc(alias = "SetReadTimestampForValidation")]
    pub fn set_read_timestamp(&mut self, timestamp: impl AsRef<[u8]>) {
        self.stamps.read = Some(timestamp.as_ref().to_vec());
    }

    /// What the commit writes to families with timestamps gets this one. Without it the commit of
    /// such a transaction fails.
    #[doc(alias = "SetCommitTimestamp")]
    pub fn set_commit_timestamp(&mut self, timestamp: impl AsRef<[u8]>) {
        self.stamps.commit = Some(timestamp.as_ref().to_vec());
    }

    /// Claims `key`: from now on no other transaction may write it, or the commit will know.
    pub(super) fn claim(&mut self, family: &Family, key: &[u8], claim: Claim) -> Result<()> {
        let claimed = self.claim_key(family, key, claim);
        self.met_conflict = claimed.as_ref().err().is_some_and(is_conflict);
        claimed
    }

    fn claim_key(&mut self, family: &Family, key: &[u8], claim: Claim) -> Result<()> {
        self.claim_now(family, key, claim)?;
        // Once the key is locked nobody writes a newer version, where keys are.
        if claim.is_validated {
            check_not_newer(self, family.engine_family(), key)?;
        }
        Ok(())
    }

    fn claim_now(&mut self, family: &Family, key: &[u8], claim: Claim) -> Result<()> {
        self.check_unprepared()?;
        self.check(family)?;
        let family = family.engine_family();
        match &self.control {
            Control::Nothing => self.take_due_snapshot(),
            Control::Locks(locks) if locks.is_skipped => self.take_due_snapshot(),
            Control::Validation => return self.track(family, key, claim),
            Control::Locks(_) => return self.lock(family, key, claim),
        }
        Ok(())
    }

    /// Remembers since when nobody may have written `key`.
    fn track(&mut self, family: &ColumnFamily, key: &[u8], claim: Claim) -> Result<()> {
        self.take_due_snapshot();
        if !claim.is_validated || self.tracked.count(family.id(), key, claim.used) {
            return Ok(());
        }
        let engine = self.db.engine();
        let kept = self.kept.get_or_insert_with(|| engine.snapshot());
        let since = match &self.snapshot {
            Some(moment) => moment.sequence(),
            None => engine.latest_sequence_number().max(kept.sequence()),
        };
        self.tracked.open(family, || Ok(None))?;
        self.tracked.add(family.id(), key.into(), (since, claim.mode), claim.used);
        Ok(())
    }

    /// Locks `key`, and asks whether it was written since the snapshot.
    fn lock(&mut self, family: &ColumnFamily, key: &[u8], claim: Claim) -> Result<()> {
        let id = family.id();
        let Control::Locks(locks) = &self.control else { return Ok(()) };
        let engine = self.db.stamping();
        self.tracked.open(family, || locks.table(engine, family))?;
        let known = self.tracked.get(id, key).copied();
        let is_held = known.is_some_and(|known| {
            known.mode == LockMode::Exclusive || claim.mode == LockMode::Shared
        });
        let locked = match self.tracked.locks(id).filter(|_| !is_held) {
            Some(table) => Some(locks.lock(engine, table, key, claim.mode)?),
            None => None,
        };
        self.take_due_snapshot();
        match self.unwritten_since(family, key, claim, known.map(|known| known.since)) {
            Ok(since) => {
                if !is_held || known.is_none_or(|known| known.since > since) {
                    let key = locked.unwrap_or_else(|| key.into());
                    self.tracked.add(id, key, (since, claim.mode), claim.used);
                } else {
                    self.tracked.count(id, key, claim.used);
                }
                Ok(())
            }
            Err(error) => {
                let mode = known.map(|known| known.mode);
                if let (Some(table), Some(locks)) = (self.tracked.locks(id), self.control.locks()) {
                    match mode {
                        None => table.release(&locks.owner, key),
                        Some(LockMode::Shared) => table.weaken(&locks.owner, key),
                        Some(LockMode::Exclusive) => {}
                    }
                }
                Err(error)
            }
        }
    }

    /// Since when nobody else has written a key that is locked now.
    ///
    /// # Errors
    /// `Busy` if somebody has since the snapshot.
    fn unwritten_since(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        claim: Claim,
        known: Option<SequenceNumber>,
    ) -> Result<SequenceNumber> {
        let engine = self.db.engine();
        let Some(snapshot) = self.snapshot.as_ref().filter(|_| claim.is_validated) else {
            return Ok(known.unwrap_or_else(|| engine.latest_sequence_number()));
        };
        if let Some(known) = known.filter(|known| *known <= snapshot.sequence()) {
            return Ok(known);
        }
        let outcome = engine.check_unwritten(family, key, snapshot);
        if matches!(&outcome, Err(error) if error.code() == Code::Busy) {
            engine.statistics().add(Ticker::TransactionConflicts, 1);
        }
        outcome.map(|()| snapshot.sequence())
    }
}

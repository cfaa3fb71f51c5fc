//! The locks of a database on keys, in the terms of its families: who waits, how long, and what a
//! refusal says.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::base::sync::Mutex;
use crate::base::{Code, ColumnFamilyId, Error, Result, SubCode, counted, key_in_words, timestamp};
use crate::batch::{Operation, StampSize, TRANSACTION_NAME_MAX, WriteBatch};
use crate::db::{ColumnFamily, DatabaseFacts, Ticker, TwoPhase};
use crate::front::transaction::{AllParked, Parked};
use crate::transactions::TransactionDbOptions;
use crate::transactions::locks::{
    Deadlock, FamilyLocks, Granted, LockFailure, LockManager, LockMode, LockSettings, Owner,
    Patience,
};
use crate::ttl::TtlDb;

/// The engine as the front door uses it: with locks, if it is that of a
/// [`TransactionDb`](crate::TransactionDb).
#[derive(Clone)]
pub(super) struct Engine {
    stamping: TtlDb,
    locking: Option<Arc<Locking>>,
}

/// The locks of one database.
pub(super) struct Locking {
    pub(super) manager: LockManager,
    pub(super) options: TransactionDbOptions,
    /// The named transactions.
    pub(super) names: Mutex<HashMap<Vec<u8>, Arc<Owner>>>,
    /// Prepared transactions of which nobody has a handle, by name.
    parked: Mutex<AllParked>,
    /// No other locks of the database are made as long as it lives.
    _claim: Arc<()>,
}

/// Keys that a write outside of transactions has locked, until this is dropped.
pub(super) struct Held {
    owner: Arc<Owner>,
    keys: Vec<(Arc<FamilyLocks>, Arc<[u8]>)>,
}

impl Drop for Held {
    fn drop(&mut self) {
        for (table, key) in &self.keys {
            table.release(&self.owner, key);
        }
    }
}

impl Deref for Engine {
    type Target = TtlDb;

    fn deref(&self) -> &TtlDb {
        &self.stamping
    }
}

impl From<TtlDb> for Engine {
    fn from(stamping: TtlDb) -> Self {
        Self { stamping, locking: None }
    }
}

impl Engine {
    /// The same with locks.
    ///
    /// # Errors
    /// `Busy` if the database has locks already: two sets of them would not know of each other.
    /// `NotSupported` if it is open for reading.
    pub(super) fn with_locks(&self, options: &TransactionDbOptions) -> Result<Self> {
        let Some(claim) = TwoPhase::of(self.base()).claim_locks()? else {
            let message = "the database has the locks of a TransactionDb already; clone that one";
            return Err(Error::new(Code::Busy, message));
        };
        let settings = LockSettings {
            stripes: options.num_stripes,
            locks_max: u64::try_from(options.max_num_locks).ok().filter(|most| *most > 0),
            deadlocks_max: options.max_num_deadlocks as usize,
        };
        let manager = LockManager::new(settings, self.base().env().clock.clone());
        let locking = Locking {
            manager,
            options: options.clone(),
            names: Mutex::default(),
            parked: Mutex::default(),
            _claim: claim,
        };
        Ok(Self { stamping: self.stamping.clone(), locking: Some(Arc::new(locking)) })
    }

    pub(super) fn locking(&self) -> Option<&Arc<Locking>> {
        self.locking.as_ref()
    }

    /// The locks that writes outside of transactions take.
    fn plain_locking(&self) -> Option<&Arc<Locking>> {
        self.locking.as_ref().filter(|locking| !locking.options.skip_concurrency_control)
    }

    /// Locks a key for a write outside of transactions; nothing in a database without locks.
    #[inline]
    pub(super) fn lock_key(&self, family: &ColumnFamily, key: &[u8]) -> Result<Option<Held>> {
        match self.plain_locking() {
            None => Ok(None),
            Some(locking) => self.lock_keys(locking, &[(family.id(), key)]).map(Some),
        }
    }

    /// Locks all keys that a batch writes.
    pub(super) fn lock_batch(&self, batch: &WriteBatch) -> Result<Option<Held>> {
        let Some(locking) = self.plain_locking() else { return Ok(None) };
        let mut keys = Vec::new();
        for operation in batch.iter() {
            let operation = operation?;
            if let Operation::DeleteRange { .. } = operation {
                self.refuse_ranges()?;
            }
            if let (Some(family), Some((_, key, _))) = (operation.family(), operation.entry()) {
                // The versions of a key have one lock.
                let size = match batch.stamp_size(family) {
                    StampSize::Known(size) => size,
                    StampSize::Unknown => self.timestamp_size(family),
                };
                keys.push((family, timestamp::strip(key, size)));
            }
        }
        // In one order, so that two batches never wait for each other.
        keys.sort_unstable();
        keys.dedup();
        self.lock_keys(locking, &keys).map(Some)
    }

    fn timestamp_size(&self, id: ColumnFamilyId) -> usize {
        let families = self.base().column_families();
        let family = families.iter().find(|family| family.id() == id);
        family.map_or(0, |family| family.comparator().timestamp_size())
    }

    /// Refuses to delete a range in a database with locks.
    pub(super) fn refuse_ranges(&self) -> Result<()> {
        if self.plain_locking().is_none() {
            return Ok(());
        }
        Err(Error::not_supported(
            "a range of keys cannot be locked; delete the keys, or write the batch with \
             TransactionDb::write_without_locks",
        ))
    }

    fn lock_keys(&self, locking: &Locking, keys: &[(ColumnFamilyId, &[u8])]) -> Result<Held> {
        let owner = locking.manager.begin(None);
        let timeout = locking.options.default_lock_timeout;
        let patience = Patience { timeout, detect_depth: None };
        let mut held = Held { owner: owner.clone(), keys: Vec::with_capacity(keys.len()) };
        for (family, key) in keys {
            // A write to a family that is gone fails for that reason.
            let Some(table) = self.lock_table(locking, *family) else { continue };
            let key = self.lock(locking, &table, &owner, key, LockMode::Exclusive, &patience)?;
            held.keys.push((table, key));
        }
        Ok(held)
    }

    /// The table of a family's locks; none if there is no such family.
    pub(super) fn lock_table(
        &self,
        locking: &Locking,
        family: ColumnFamilyId,
    ) -> Option<Arc<FamilyLocks>> {
        locking.manager.known_family(family).or_else(|| {
            let exists = self.family_name(family).is_some();
            exists.then(|| locking.manager.family(family))
        })
    }

    /// Locks a key.
    ///
    /// # Errors
    /// `TimedOut` with `LockTimeout`, `Busy` with `Deadlock` or `LockLimit`, `Expired`.
    pub(super) fn lock(
        &self,
        locking: &Locking,
        table: &Arc<FamilyLocks>,
        owner: &Arc<Owner>,
        key: &[u8],
        mode: LockMode,
        patience: &Patience,
    ) -> Result<Arc<[u8]>> {
        let statistics = self.base().statistics();
        match locking.manager.lock(table, owner, key, mode, patience) {
            Ok(Granted { key, waited, robbed }) => {
                if waited {
                    statistics.add(Ticker::LockWaits, 1);
                }
                if robbed > 0 {
                    statistics.add(Ticker::LocksTakenOver, robbed);
                }
                Ok(key)
            }
            Err(failure) => {
                let ticker = match &failure {
                    LockFailure::TimedOut { .. } => Some(Ticker::LockTimeouts),
                    LockFailure::Deadlock(_) => Some(Ticker::LockDeadlocks),
                    LockFailure::Limit => Some(Ticker::LockLimits),
                    LockFailure::Expired => None,
                };
                if let Some(ticker) = ticker {
                    statistics.add(ticker, 1);
                }
                Err(self.refusal(locking, owner, (table.family(), key), &failure, patience.timeout))
            }
        }
    }

    /// Locks a key for one owner alone, unless another has it.
    ///
    /// # Errors
    /// `Busy` with `LockLimit`.
    pub(super) fn lock_if_free(
        &self,
        locking: &Locking,
        table: &Arc<FamilyLocks>,
        owner: &Arc<Owner>,
        key: &[u8],
    ) -> Result<Option<Arc<[u8]>>> {
        let (mode, never) = (LockMode::Exclusive, Patience::default());
        match locking.manager.lock(table, owner, key, mode, &never) {
            Ok(granted) => Ok(Some(granted.key)),
            Err(LockFailure::TimedOut { .. }) => Ok(None),
            Err(failure) => {
                let key = (table.family(), key);
                Err(self.refusal(locking, owner, key, &failure, never.timeout))
            }
        }
    }

    fn refusal(
        &self,
        locking: &Locking,
        owner: &Owner,
        (family, key): (ColumnFamilyId, &[u8]),
        failure: &LockFailure,
        timeout: Duration,
    ) -> Error {
        let key = self.key_in_words(family, key);
        match failure {
            LockFailure::TimedOut { blockers } => {
                let holders = locking.all_in_words(blockers, "and");
                let how = match timeout {
                    Duration::ZERO => ", and is not waited for".to_string(),
                    timeout => format!(" for longer than the time-out of {timeout:?}"),
                };
                let message =
                    format!("{key} was locked by {holders}{how}; roll back, and try again");
                Error::new(Code::TimedOut, message).with_subcode(SubCode::LockTimeout)
            }
            LockFailure::Deadlock(deadlock) => self.deadlock(locking, &key, deadlock),
            LockFailure::Limit => {
                let message = format!(
                    "{key} is not locked: {} keys of the family are, which is max_num_locks; commit \
                     or roll back transactions, or open with a higher limit",
                    locking.options.max_num_locks
                );
                Error::new(Code::Busy, message).with_subcode(SubCode::LockLimit)
            }
            LockFailure::Expired => locking.expired(owner),
        }
    }

    fn deadlock(&self, locking: &Locking, key: &str, deadlock: &Deadlock) -> Error {
        let mut message = format!("{key} is not locked: ");
        if deadlock.limit_exceeded {
            message.push_str(
                "more transactions wait than deadlock_detect_depth, which counts as a deadlock",
            );
        } else {
            message.push_str("transactions would wait for each other (");
            for (at, step) in deadlock.path.iter().enumerate() {
                let holder = &deadlock.path[(at + 1) % deadlock.path.len()];
                let awaited = self.key_in_words(step.family, &step.key);
                let separator = if at == 0 { "" } else { ", " };
                message.push_str(&format!(
                    "{separator}{} for {awaited} of {}",
                    locking.named(step.transaction),
                    locking.named(holder.transaction)
                ));
            }
            message.push(')');
        }
        message.push_str("; roll back, and try again");
        Error::new(Code::Busy, message).with_subcode(SubCode::Deadlock)
    }

    /// Adds what a diagnosis goes by of locks that are waited for. Visits every lock.
    pub(super) fn add_lock_waits(&self, facts: &mut DatabaseFacts) {
        let Some(locking) = &self.locking else { return };
        let owners = locking.manager.owners();
        let waits = owners.iter().filter_map(|(owner, _)| Some((owner, owner.waits()?)));
        let mut waits: Vec<_> =
            waits.map(|(owner, wait)| (locking.manager.waited(&wait), owner, wait)).collect();
        waits.sort_by_key(|(waited, ..)| *waited);
        facts.lock_waits = waits.len() as u64;
        let Some((waited, waiter, wait)) = waits.last() else { return };
        facts.lock_wait_seconds = waited.as_secs();
        facts.lock_waiter = waiter.id();
        facts.lock_key = self.key_in_words(wait.family(), wait.key());
        facts.lock_holders = locking.all_in_words(&wait.blockers(waiter), "with");
    }

    fn key_in_words(&self, family: ColumnFamilyId, key: &[u8]) -> String {
        let name = self.family_name(family).unwrap_or_else(|| family.0.to_string());
        format!("key {} of column family '{name}'", key_in_words(key))
    }

    /// The families, by number.
    pub(super) fn families(&self) -> HashMap<ColumnFamilyId, ColumnFamily> {
        let families = self.base().column_families().into_iter();
        families.map(|family| (family.id(), family)).collect()
    }

    /// The name of a family; none if there is no such family.
    pub(super) fn family_name(&self, id: ColumnFamilyId) -> Option<String> {
        let families = self.base().column_families();
        families.iter().find(|family| family.id() == id).map(|family| family.name().to_string())
    }
}

impl Locking {
    /// Keeps the locks of a transaction that is prepared.
    pub(super) fn park(&self, name: Vec<u8>, parked: Parked) {
        self.parked.lock().insert(name, parked);
    }

    /// Hands out what is parked under this name.
    pub(super) fn unpark(&self, name: &[u8]) -> AllParked {
        self.parked.lock().remove_entry(name).into_iter().collect()
    }

    /// Hands out all that is parked.
    pub(super) fn unpark_all(&self) -> AllParked {
        std::mem::take(&mut *self.parked.lock())
    }

    /// A transaction by its number, its name if it has one, and whether it is prepared.
    fn named(&self, id: u64) -> String {
        let names = self.names.lock();
        let named = names.iter().find(|(_, named)| named.id() == id);
        let named = named.map(|(name, owner)| {
            let prepared = if owner.is_prepared() { ", prepared" } else { "" };
            format!(" ('{}'{prepared})", key_in_words(name))
        });
        format!("transaction {id}{}", named.unwrap_or_default())
    }

    /// The first one, `and` how many others.
    fn all_in_words(&self, owners: &[Arc<Owner>], and: &str) -> String {
        match owners {
            [] => "another transaction".to_string(),
            [only] => self.named(only.id()),
            [first, others @ ..] => {
                format!("{} {and} {}", self.named(first.id()), counted(others.len(), "other"))
            }
        }
    }

    /// The refusal of a transaction that took too long.
    pub(super) fn expired(&self, owner: &Owner) -> Error {
        let message = format!(
            "{} took longer than its expiration; roll back, and begin another",
            self.named(owner.id())
        );
        Error::new(Code::Expired, message)
    }

    /// Gives a transaction a name that no other has.
    ///
    /// # Errors
    /// `InvalidArgument` if another has it, or it is empty or longer than 512 bytes.
    pub(super) fn name(&self, owner: &Arc<Owner>, name: &[u8]) -> Result<()> {
        if name.is_empty() || name.len() > TRANSACTION_NAME_MAX {
            return Err(Error::invalid_argument(format!(
                "the name of a transaction has 1 to {TRANSACTION_NAME_MAX} bytes, not {}",
                name.len()
            )));
        }
        let mut names = self.names.lock();
        if let Some(other) = names.get(name) {
            return Err(Error::invalid_argument(format!(
                "transaction {} is named '{}' already; choose another name",
                other.id(),
                key_in_words(name)
            )));
        }
        names.insert(name.to_vec(), owner.clone());
        Ok(())
    }
}
